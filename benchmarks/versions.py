"""Is this version slower than another one? Both versions take turns with the same commands, pages and questions.

    git worktree add /tmp/before COMMIT
    python benchmarks/versions.py /tmp/before EVAL [--corpora prettier pydantic argo-cd] [--rounds 7] [--cold 3]

EVAL is the folder that ``retrieval.py`` wants. Each corpus becomes a git repository of 20 commits with an index of
each version. Both versions run with the interpreter and the packages of this script, and each has its own user cache.
All but the warm searches are whole processes. A cold build begins with an empty cache, vectors included. The warm
searches are of two processes of ``anvil.open`` and of two servers, which get each question in turn; the order changes
with each question. Linux only: the processor time of a running server is read from its clock.

A cell has medians. "CPU" is user and system time, which other load on the machine changes less than wall time. The
ratio is that of the CPU seconds of the same round, this version against the other: the median, and in brackets the
range of nine tenths of the rounds.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import json
import os
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from operator import methodcaller
from pathlib import Path

from measuring import ROOT, anvil, heading, run, table
from server import Server

os.environ.pop("ANVIL_EMBEDDING_CACHE", None)  # the cache of vectors is a part of what is compared
Times = tuple[float, float]
"""Wall seconds and processor seconds."""
WARM_QUESTIONS = 20

SEARCHES = """
import sys, time, anvil
with anvil.open(sys.argv[1], sys.argv[2]) as opened:
    for question in sys.stdin:
        wall, cpu = time.perf_counter(), time.process_time()
        opened.search(question.strip(), top_k=10)
        print(time.perf_counter() - wall, time.process_time() - cpu, flush=True)
"""


class Version:
    """A checkout, and where it keeps its indexes and caches."""

    def __init__(self, checkout: Path, work: Path) -> None:
        self.work = work
        work.mkdir()
        subprocess.run([sys.executable, "-m", "compileall", "-q", str(checkout / "anvil")], check=True)
        self.environment = {"PYTHONPATH": str(checkout.resolve()), "XDG_CACHE_HOME": str(work / "cache")}

    def command(self, *arguments: str, cache: Path | None = None) -> Times:
        """A command that succeeds, with the version's cache or another."""
        more = {"XDG_CACHE_HOME": str(cache)} if cache else {}
        done = run(anvil(*arguments), {**self.environment, **more}, self.work)
        return done.seconds, done.cpu

    def index(self, docs: Path) -> Path:
        """The index of a corpus."""
        return self.work / f"{docs.parent.name}.db"

    def cold(self, docs: Path) -> Times:
        """A first build with an empty cache."""
        self.index(docs).unlink(missing_ok=True)
        with tempfile.TemporaryDirectory() as cache:
            built = "build", "--docs", str(docs), "--index", str(self.index(docs)), "--quiet"
            return self.command(*built, cache=Path(cache))

    def on_index(self, name: str, docs: Path) -> Times:
        """A command that compares the index with the documents."""
        return self.command(name, "--docs", str(docs), "--index", str(self.index(docs)))

    def server(self, docs: Path) -> Server:
        """A server over a pipe."""
        flags = "serve", "--docs", str(docs), "--index", str(self.index(docs)), "--log-level", "error"
        return Server(self.work, command=anvil(*flags), settings=self.environment)

    def searches(self, docs: Path) -> subprocess.Popen[str]:
        """A process that searches for each line of its input, and prints the seconds."""
        return subprocess.Popen(
            [sys.executable, "-c", SEARCHES, str(docs), str(self.index(docs))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=self.work,
            env={**os.environ, **self.environment},
        )


def cpu(process: subprocess.Popen[bytes]) -> float:
    """Processor seconds of a running process, as clock_getcpuclockid(3) finds them."""
    return time.clock_gettime((~process.pid << 3) | 2)


def repository(folder: Path, pages: Path) -> Path:
    """A git repository of 20 commits with the pages; its documentation folder."""
    docs = folder / "docs"
    paths = sorted(path for path in pages.rglob("*") if path.suffix in (".md", ".mdx"))
    for number, share in enumerate(paths[first::20] for first in range(20)):
        for path in share:
            target = docs / path.relative_to(pages)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        if number == 0:
            subprocess.run(["git", "init", "-q", str(folder)], check=True)
        subprocess.run(["git", "-C", str(folder), "add", "--all"], check=True)
        person = "-c", "user.name=Benchmark", "-c", "user.email=benchmark@example.com"
        date = f"2026-01-{number + 1:02}T00:00:00Z"
        subprocess.run(
            ["git", "-C", str(folder), *person, "commit", "-q", "--allow-empty", "-m", f"Share {number}"],
            check=True,
            env={**os.environ, "GIT_AUTHOR_DATE": date, "GIT_COMMITTER_DATE": date},
        )
    return docs


def in_turn(versions: Sequence[Version], rounds: int, task: Callable[[Version], Times]) -> list[list[Times]]:
    """Times of each version in each round; the version that begins changes with each round."""
    times: list[list[Times]] = [[], []]
    for number in range(rounds):
        for place in (0, 1) if number % 2 == 0 else (1, 0):
            times[place].append(task(versions[place]))
    return times


def starts(versions: Sequence[Version], rounds: int, docs: Path, question: str) -> dict[str, list[list[Times]]]:
    """Times from the start of a server to its answers."""
    times: dict[str, list[list[Times]]] = defaultdict(lambda: [[], []])
    for number in range(rounds + 1):
        for place in (0, 1) if number % 2 == 0 else (1, 0):
            server = versions[place].server(docs)

            def note(what: str, place: int = place, server: Server = server, number: int = number) -> None:
                if number:
                    times[what][place].append((time.perf_counter() - server.started, cpu(server.process)))

            server.begin()
            note("start to `initialize`")
            server.ask("tools/list", {})
            note("start to the list of tools")
            notes = server.search(question).get("freshness", {}).get("notes")
            note("start to the first hybrid answer")
            server.end()
            if any("Semantic search" in note or "vector" in note for note in notes):
                sys.exit(f"The first answer was not a whole one: {notes}")
    return times


def warm(versions: Sequence[Version], docs: Path, questions: Sequence[str]) -> dict[str, list[list[Times]]]:
    """Times of each question, in process and over a pipe."""
    times: dict[str, list[list[Times]]] = {"search, in process": [[], []], "`search_docs`, over a pipe": [[], []]}
    processes = [version.searches(docs) for version in versions]
    servers = [version.server(docs) for version in versions]
    for server in servers:
        server.begin()
    for number, question in enumerate(itertools.chain(questions[:WARM_QUESTIONS], questions)):
        for place in (0, 1) if number % 2 == 0 else (1, 0):
            process, server = processes[place], servers[place]
            assert process.stdin and process.stdout
            process.stdin.write(f"{question}\n")
            process.stdin.flush()
            wall, used = process.stdout.readline().split()
            began, before = time.perf_counter(), cpu(server.process)
            server.search(question)
            answered = time.perf_counter() - began, cpu(server.process) - before
            if number >= WARM_QUESTIONS:
                times["search, in process"][place].append((float(wall), float(used)))
                times["`search_docs`, over a pipe"][place].append(answered)
    for process, server in zip(processes, servers, strict=True):
        server.end()
        process.communicate()
    return times


def row(what: str, corpus: str, times: list[list[Times]]) -> list[str]:
    """A row of the table."""
    walls, used = ([[pair[part] for pair in side] for side in times] for part in (0, 1))
    ratios = sorted(after / before for before, after in zip(*used, strict=True))
    least, most = ratios[len(ratios) // 20], ratios[-1 - len(ratios) // 20]
    cells = [typical(side) for part in (walls, used) for side in part]
    return [what, corpus, *cells, f"{statistics.median(ratios):.2f} ({least:.2f} to {most:.2f})"]


def typical(seconds: Sequence[float]) -> str:
    """The median, in the unit that suits it."""
    middle = statistics.median(seconds)
    return f"{middle:.2f} s" if middle >= 2 else f"{middle * 1000:.3g} ms"


def contents(index: Path) -> list[str]:
    """Format, bytes, SHA-256 and chunks of an index."""
    with sqlite3.connect(index) as connection:
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        (chunks,) = connection.execute("SELECT count(*) FROM chunks").fetchone()
    data = index.read_bytes()
    return [str(version), f"{chunks:,}", f"{len(data):,}", hashlib.sha256(data).hexdigest()[:12]]


def main() -> None:
    """Compare, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="a checkout of the other version")
    parser.add_argument("eval", type=Path)
    parser.add_argument("--corpora", nargs="+", default=["prettier", "pydantic", "argo-cd"])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--cold", type=int, default=3, help="rounds of cold builds")
    given = parser.parse_args()
    lines = [line for file in sorted(given.eval.glob("*.jsonl")) for line in file.read_text("utf-8").splitlines()]
    questions = [" ".join(json.loads(line)["query"].split()) for line in lines]
    rows, indexes = [], []
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        versions = [Version(given.before, work / "before"), Version(ROOT, work / "after")]
        for flag in ("--version", "--help"):
            rows.append(row(f"`anvil {flag}`", "", in_turn(versions, 3 * given.rounds, methodcaller("command", flag))))
        for corpus in given.corpora:
            docs = repository(work / corpus, given.eval / "corpora" / corpus)
            print(corpus, file=sys.stderr)
            rows.append(row("cold build", corpus, in_turn(versions, given.cold, methodcaller("cold", docs))))
            for what, command in (("build with nothing to do", "build"), ("`anvil check`", "check")):
                times = in_turn(versions, given.rounds, methodcaller("on_index", command, docs))
                rows.append(row(what, corpus, times))
            for what, times in starts(versions, given.rounds, docs, questions[0]).items():
                rows.append(row(what, corpus, times))
            for what, times in warm(versions, docs, questions).items():
                rows.append(row(what, corpus, times))
            for label, version in zip(("before", "after"), versions, strict=True):
                indexes.append([corpus, label, *contents(version.index(docs))])
    print(heading(given.rounds))
    columns = ["what", "corpus", "wall before", "wall after", "CPU before", "CPU after", "CPU, after / before"]
    print(table(columns, rows))
    print()
    print(table(["corpus", "version", "format", "chunks", "bytes", "SHA-256"], indexes))


if __name__ == "__main__":
    main()
