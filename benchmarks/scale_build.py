"""A build's embedding on one machine and on a Ray cluster: passages a second, what Ray costs, what is sent.

    python benchmarks/scale_build.py [--docs FOLDER] [--pages 100] [--rounds 3] [--workers 1 2] [--limit 900]

The cluster runs on this machine, with as many processors as asked for, and is spoken to by Ray Client as one elsewhere
would be. Local builds with as many threads are what it is compared with. Needs the extra ``ray``. One page is some 27
passages, and a round builds four times: three rounds of 100 pages take 15 minutes at 40 passages a second. Each build
is told of on stderr when it has ended; one that takes longer than ``--limit`` seconds ends the benchmark. Ray's workers
have the priority of other processes here (Ray's own choice gives way to every other process of the machine).

Statements about larger clusters and indexes are derived from these numbers: each processor embeds at the
measured rate, unless the machine that builds takes longer to cut and to write; the rest stays on that machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import corpus
from measuring import ROOT, heading, run, table

sys.path.insert(0, str(ROOT))

from anvil.ray.executor import MAX_LOCAL_TEXTS
from tests.support.ray_cluster import TOKEN, descendants, ray_cluster

SIZES = (10_000, 100_000, 1_000_000)
PROCESSORS = (8, 32, 128)
Told = dict[str, float]


def one(docs: Path, index: Path, threads: int, address: str) -> None:
    """Build in this process, on the cluster at ``address`` if one is given, and print what it took."""
    from anvil.build import builder
    from anvil.documents.working_tree import WorkingTree
    from anvil.embedding.provider import EmbeddedBatches, Executor, LocalExecutor, create_provider
    from anvil.ray.executor import executor
    from anvil.requests import BuildRequest
    from anvil.settings.schema import ChunkingOptions, EmbeddingSettings

    settings = EmbeddingSettings(threads=threads)
    provider = create_provider("local", settings)
    inner: Executor = executor(address, provider, settings) if address else LocalExecutor(provider)
    told: Told = {"sent": 0, "received": 0, "first": 0.0, "embedding": 0.0, "own": 0.0}

    class Watched:
        """The executor, with an eye on the clock and on what goes through it."""

        batch = inner.batch

        def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
            began = time.perf_counter()
            answers = inner.embed(self.counted(batches))
            with contextlib.closing(answers):
                for answer in answers:
                    told["first"] = told["first"] or time.perf_counter() - began
                    told["received"] += answer.vectors.nbytes
                    since = time.perf_counter()
                    yield answer
                    told["own"] += time.perf_counter() - since
            told["embedding"] = time.perf_counter() - began

        def counted(self, batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
            since = time.perf_counter()
            for texts in batches:
                told["own"] += time.perf_counter() - since
                told["sent"] += len(json.dumps(texts))
                yield texts
                since = time.perf_counter()

    request = BuildRequest(workers=Watched())
    report = builder.build(WorkingTree(docs), index, provider, ChunkingOptions(), request)
    provider.close()
    told.update(seconds=report.seconds, passages=report.embedded)
    print(json.dumps(told))


def measured(docs: Path, work: Path, threads: int, limit_s: float, address: str = "") -> tuple[Told, bytes]:
    """What one build took, and the index's bytes."""
    index = work / "index.db"
    index.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--one", str(docs), str(index), str(threads), address]
    variables = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": TOKEN, "RAYON_NUM_THREADS": str(threads)}
    with processor_seconds() as spent:
        done = run(command, variables, limit_s=limit_s)
    told: Told = json.loads(done.output)
    told["cpu"] = sum(spent.values())
    if address and told["passages"] <= MAX_LOCAL_TEXTS:
        raise SystemExit(f"{told['passages']:.0f} passages are embedded without the cluster. Ask for more --pages.")
    where = f"Ray, {threads} workers" if address else f"local, {threads} threads"
    rate = told["passages"] / told["embedding"]
    print(f"  {where}: {told['seconds']:.0f} s, {rate:.1f} passages/s", file=sys.stderr)
    return told, index.read_bytes()


@contextlib.contextmanager
def processor_seconds() -> Iterator[dict[int, float]]:
    """Process id -> seconds, complete after the ``with``: of all processes below this one, as read twice a second.

    Ray's workers end with the build, and no process is told their times.
    """
    before, spent = cpu_of_each(), dict[int, float]()
    ended = threading.Event()

    def watch() -> None:
        while not ended.wait(0.5):
            for pid, seconds in cpu_of_each().items():
                spent[pid] = seconds - before.get(pid, 0.0)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield spent
    finally:
        ended.set()
        thread.join()


def cpu_of_each() -> dict[int, float]:
    """Process id -> processor seconds of each process below this one."""
    found = {}
    for pid in descendants(os.getpid()):
        with contextlib.suppress(OSError):
            user, system = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
            found[pid] = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
    return found


def median(told: Sequence[Told], key: str) -> float:
    """Over the rounds."""
    return statistics.median(each[key] for each in told)


def times(told: Sequence[Told], yardstick: Sequence[Told]) -> str:
    """How many times as fast as the yardstick in the same round: median."""
    return f"{statistics.median(b['embedding'] / a['embedding'] for a, b in zip(told, yardstick, strict=True)):.2f} x"


def derived(start: float, rate: float, own: float, outside: float) -> list[tuple[str, ...]]:
    """What follows for other sizes: seconds of a build on one machine of two processors, and on clusters."""

    def told(seconds: float) -> str:
        if seconds < 120:
            return f"{seconds:.0f} s"
        return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

    return [
        (
            f"{size:,}",
            told(size * (outside + own + 1 / (2 * rate))),
            *(told(start + size * (outside + max(own, 1 / (count * rate)))) for count in PROCESSORS),
        )
        for size in SIZES
    ]


def main() -> None:
    """Build in turns and print two tables."""
    if sys.argv[1:2] == ["--one"]:
        one(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--limit", type=float, default=900, help="seconds that one build may take")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        docs = work / "docs"
        corpus.write(docs, corpus.chosen(given.docs), given.pages)
        here: dict[int, list[Told]] = {count: [] for count in given.workers}
        there: dict[int, list[Told]] = {count: [] for count in given.workers}
        for number in range(given.rounds):
            for count in given.workers:
                print(f"round {number + 1}, {count} workers ...", file=sys.stderr)
                told, expected = measured(docs, work, count, given.limit)
                here[count].append(told)
                with ray_cluster(count) as cluster:
                    told, found = measured(docs, work, count, given.limit, cluster.address)
                there[count].append(told)
                if found != expected:
                    raise SystemExit("The cluster made other bytes than the local build.")
    passages = here[given.workers[0]][0]["passages"]
    rows = []
    for count in given.workers:
        for where, runs in (f"local, {count} threads", here), (f"Ray, {count} workers", there):
            mine = runs[count]
            rates = [passages / each["embedding"] for each in mine]
            first = median(mine, "first")
            after = median(mine, "embedding") - first
            sent, received = (median(mine, key) / passages for key in ("sent", "received"))
            rows.append(
                (
                    where,
                    f"{statistics.median(rates):.1f} ({min(rates):.1f} to {max(rates):.1f})",
                    times(mine, runs[given.workers[0]]),
                    times(mine, here[count]),
                    f"{passages / median(mine, 'cpu'):.1f}",
                    *((f"{first:.1f} s", f"{passages / after:.1f}") if runs is there else ("", "")),
                    f"{sent:.0f} + {received:.0f}" if runs is there else "",
                )
            )
    columns = (
        "embedding",
        "passages/s",
        f"against {given.workers[0]}",
        "against local",
        "passages per processor second",
        "until the first answer",
        "passages/s after it",
        "bytes a passage, out and back",
    )
    print(heading(given.rounds))
    print(f"{given.pages} pages, {passages:.0f} passages; all indexes have the same bytes.\n")
    print(table(columns, rows))
    most = max(given.workers)
    whole = there[most]
    rate = statistics.median(each["passages"] / each["embedding"] for each in here[most]) / most
    outside = statistics.median((each["seconds"] - each["embedding"]) / each["passages"] for each in whole)
    own = statistics.median(each["own"] / each["passages"] for each in whole)
    given_by = (
        f"{rate:.1f} passages/s a processor, {own * 1000:.2f} ms a passage for cutting and writing its vectors, "
        f"{outside * 1000:.2f} ms for all the rest"
    )
    print(f"\nDerived, not measured, from {given_by}.\n")
    print(
        table(
            ("passages", "one machine, 2 processors", *(f"{count} processors" for count in PROCESSORS)),
            derived(median(whole, "first"), rate, own, outside),
        )
    )


if __name__ == "__main__":
    main()
