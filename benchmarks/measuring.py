"""Timing of whole processes, and results as a Markdown table with the machine above it.

Processes run one at a time. Things that are compared take turns within a round, so that a busy moment of the machine
slows all of them. Quote the ratios: they hold on other machines, absolute numbers do not.
"""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode; compiling is not its start
os.environ.setdefault("ANVIL_EMBEDDING_CACHE", "false")  # what is measured is embedding, unless a benchmark asks for it


@dataclass(frozen=True)
class Run:
    """What a process did: wall seconds, peak resident bytes, what it printed on stdout, processor seconds."""

    seconds: float
    peak: int
    output: str
    cpu: float


def run(
    command: Sequence[str],
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
    codes: Collection[int] = (0,),
    limit_s: float | None = None,
) -> Run:
    """Run a process to its end; SystemExit with its messages when it exits with none of ``codes``, or is killed because
    it did not end within ``limit_s`` seconds.

    The peak is the kernel's own count for this one child (``wait4``), which never falls below what the benchmark
    itself holds at that moment: benchmarks that ask for it keep small.
    """
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as messages:
        started = time.perf_counter()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=messages,
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT), **(environment or {})},
        )
        overdue = threading.Event()

        def end() -> None:
            overdue.set()
            process.kill()

        timer = threading.Timer(limit_s or threading.TIMEOUT_MAX, end)
        timer.daemon = True
        timer.start()
        _, status, usage = os.wait4(process.pid, 0)
        timer.cancel()
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        messages.seek(0)
        if overdue.is_set() or process.returncode not in codes:
            ended = (
                f"did not end in {limit_s:.0f} s and was killed" if overdue.is_set() else f"gave {process.returncode}"
            )
            said = messages.read().decode(errors="replace")
            raise SystemExit(f"{' '.join(command)} {ended}:\n{said}")
        unit = 1 if sys.platform == "darwin" else 1024
        printed = output.read().decode(errors="replace")
        return Run(seconds, usage.ru_maxrss * unit, printed, usage.ru_utime + usage.ru_stime)


def anvil(*arguments: str) -> list[str]:
    """The command line of this checkout's ``anvil``."""
    return [sys.executable, "-m", "anvil", *arguments]


def in_turn(rounds: int, tasks: Mapping[str, Callable[[int], float]]) -> dict[str, list[float]]:
    """Seconds of each task in each round, the tasks taking turns; each gets the number of the round."""
    found: dict[str, list[float]] = {name: [] for name in tasks}
    for number in range(rounds):
        for name, task in tasks.items():
            found[name].append(task(number))
    return found


def ratio(times: Sequence[float], yardstick: Sequence[float]) -> float:
    """Median over the rounds of how many times as long as the yardstick it took in the same round."""
    return statistics.median(a / b for a, b in zip(times, yardstick, strict=True))


def milliseconds(times: Sequence[float]) -> str:
    """Median, and in brackets the least and the most."""
    least, most = min(times) * 1000, max(times) * 1000
    return f"{statistics.median(times) * 1000:.0f} ms ({least:.0f} to {most:.0f})"


def percentile(times: Sequence[float], share: float) -> float:
    """The value that ``share`` of the times do not exceed."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, round(share * (len(ordered) - 1)))]


CPU_FEATURES = ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8", "asimddp", "i8mm")
"""Instruction sets that decide how fast 8-bit products are, as Linux names them."""


def heading(rounds: int | None = None) -> str:
    """The command and the machine, as lines above a table."""
    command = " ".join([f"python benchmarks/{Path(sys.argv[0]).name}", *sys.argv[1:]])
    return f"`{command}`\n\n{f'{rounds} rounds; ' if rounds else ''}{machine()}.\n"


def machine() -> str:
    """CPUs, their features that matter here, and Python, as in "2 CPUs, x86_64 (avx2, no VNNI), Python 3.12.1"."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    features = cpu_features()
    named = "features unknown" if features is None else ", ".join(features) or "no AVX2"
    if features is not None and not any("vnni" in name for name in features) and platform.machine() == "x86_64":
        named += ", no VNNI"
    return f"{cpus} CPUs, {platform.machine()} ({named}), Python {platform.python_version()}"


def cpu_features() -> list[str] | None:
    """Those of ``CPU_FEATURES`` that the processor has. None where the system has no /proc/cpuinfo."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return None
    flags = next(
        (line.partition(":")[2].split() for line in lines if line.lower().startswith(("flags", "features"))), []
    )
    return [name for name in CPU_FEATURES if name in flags]


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
