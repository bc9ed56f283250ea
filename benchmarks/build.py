"""What building costs: cold, with nothing to do, after one edit; how large, how much memory, and the same bytes?

    python benchmarks/build.py [--docs FOLDER] [--pages 1000] [--rounds 5] [--provider local] [--only PART ...]

Parts, of which ``--only`` takes one or several:

    cold       a first build: chunks and windows per second, artifact bytes per byte of Markdown
    no-op      a build that finds nothing to do
    edit       a build after one page was edited
    start-up   anvil --help and anvil check
    memory     peak memory of a first build of N and of 2 N pages
    share      how much of a first build is not inference (needs vectors)
    copy       a first build of a copy of the documents, with the user's cache of vectors
    first-answer  a search in a folder without an index
    identity   the SHA-256 of: two builds, files created in another order in another time zone, an incremental build

All but ``share`` run whole processes (``python -m anvil build``), start included. The yardstick is
``python -c "import click, apsw, pygit2"``, the least that a build has to import, timed in the same rounds. Without
``--docs`` the pages are those of the npm package ``next`` (needs npm), multiplied to ``--pages``; see corpus.py.
With ``--provider none`` there are no vectors and all of it takes a minute or two.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import corpus
from measuring import Run, anvil, heading, in_turn, milliseconds, ratio, run, table

YARDSTICK = [sys.executable, "-c", "import click, apsw, pygit2"]
Row = tuple[str, str, str]


class Bench:
    """One corpus on disk, and the index that its parts share."""

    def __init__(self, work: Path, found: dict[str, str], count: int, rounds: int, provider: str) -> None:
        self.work, self.found, self.count, self.rounds, self.provider = work, found, count, rounds, provider
        self.docs = work / "docs"
        self.index = work / "index.db"
        self.size = corpus.write(self.docs, found, count)

    def build(
        self, docs: Path, index: Path, *more: str, environment: dict[str, str] | None = None
    ) -> tuple[Run, dict[str, Any]]:
        """One ``anvil build``; its run and its report."""
        command = anvil("build", "--docs", str(docs), "--index", str(index), "--provider", self.provider, "--json")
        done = run([*command, *more], environment, self.work)
        return done, json.loads(done.output)

    def standing(self) -> None:
        """Make sure that the shared index is there and fresh."""
        self.build(self.docs, self.index)

    # --- parts ---------------------------------------------------------------------------------------------

    def cold(self) -> list[Row]:
        """One first build; it is long enough to need no second."""
        self.index.unlink(missing_ok=True)
        done, report = self.build(self.docs, self.index)
        chunks, embedded, size = report["chunks"], report["embedded"], report["size_bytes"]
        per_second = f"{chunks / done.seconds:.0f} chunks/s, {embedded / done.seconds:.0f} windows/s"
        held = f"{report['pages']} pages, {chunks} chunks, {report['windows']} windows"
        return [
            ("cold build", f"{done.seconds:.1f} s", f"{per_second}; {held}"),
            ("artifact", f"{size / 1e6:.1f} MB", f"{size / self.size:.2f} x the Markdown"),
        ]

    def timed(self, name: str, command: Callable[[int], list[str]]) -> Row:
        """A command, compared with the yardstick."""
        times = in_turn(
            self.rounds,
            {
                "yardstick": lambda _: run(YARDSTICK).seconds,
                name: lambda number: run(command(number), folder=self.work).seconds,
            },
        )
        against = ratio(times[name], times["yardstick"])
        yardstick = f"{against:.2f} x the yardstick, {milliseconds(times['yardstick'])}"
        return name, milliseconds(times[name]), yardstick

    def copy(self) -> list[Row]:
        """A first build of a copy of the documents, with the user's cache of vectors."""
        cache = {"ANVIL_EMBEDDING_CACHE": "true", "XDG_CACHE_HOME": str(self.work / "cache")}
        first, _ = self.build(self.docs, self.work / "first.db", environment=cache)
        copied, report = self.build(self.docs, self.work / "copy.db", environment=cache)
        same = (self.work / "first.db").read_bytes() == (self.work / "copy.db").read_bytes()
        detail = (
            f"{report['embedded']} embedded, {'the same' if same else 'OTHER'} bytes; without: {first.seconds:.1f} s"
        )
        return [("first build of a copy, vectors cached", f"{copied.seconds:.1f} s", detail)]

    def first_answer(self) -> list[Row]:
        """``anvil search`` in a folder without an index, until it prints; the index is built after that."""
        seconds = []
        for number in range(self.rounds):
            index = self.work / f"answer-{number}.db"
            question = ["search", "--docs", str(self.docs), "--index", str(index), "how do I set the base path?"]
            started = time.perf_counter()
            with subprocess.Popen(anvil(*question), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
                assert process.stdout is not None
                process.stdout.readline()
                seconds.append(time.perf_counter() - started)
                process.kill()
        return [("first answer, no index yet", milliseconds(seconds), "the index is built after it")]

    def no_op(self) -> list[Row]:
        """A build with nothing to do."""
        self.standing()
        before = self.index.stat()
        row = self.timed("no-op build", lambda _: self._build_command())
        after = self.index.stat()
        assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino), "the index was written"
        return [row]

    def edit(self) -> list[Row]:
        """A build after a sentence came to one page; each round edits another."""
        self.standing()
        paths = sorted(self.docs.rglob("*.md*"))
        originals: dict[Path, str] = {}

        def command(number: int) -> list[str]:
            page = paths[(number * 37 + 11) % len(paths)]
            originals.setdefault(page, page.read_text(encoding="utf-8"))
            page.write_text(f"{originals[page]}\nA sentence that came in round {number}.\n", encoding="utf-8")
            return self._build_command()

        row = self.timed("one-page edit", command)
        for page, text in originals.items():
            page.write_text(text, encoding="utf-8")
            os.utime(page, (corpus.WRITTEN, corpus.WRITTEN))
        return [row]

    def _build_command(self) -> list[str]:
        named = ["--docs", str(self.docs), "--index", str(self.index), "--provider", self.provider, "--quiet"]
        return anvil("build", *named)

    def start_up(self) -> list[Row]:
        """Commands that need no model."""
        self.standing()
        check = anvil("check", "--docs", str(self.docs), "--index", str(self.index), "--quiet")
        return [self.timed("anvil --help", lambda _: anvil("--help")), self.timed("anvil check", lambda _: check)]

    def memory(self) -> list[Row]:
        """Peak memory of two first builds, one of twice as many pages."""
        rows = []
        for count in (self.count, 2 * self.count):
            docs, index = self.work / "memory", self.work / "memory.db"
            corpus.write(docs, self.found, count)
            done, report = self.build(docs, index)
            rows.append((f"peak memory, {count} pages", f"{done.peak / 1e6:.0f} MB", f"{report['windows']} windows"))
            shutil.rmtree(docs)
            index.unlink()
        return rows

    def share(self) -> list[Row]:
        """How a first build's time is spent, told by a process of its own."""
        if self.provider == "none":
            return [("outside inference", "-", "needs vectors: not with --provider none")]
        index = self.work / "share.db"
        done = run([sys.executable, __file__, "--share-of", str(self.docs), str(index), self.provider])
        told = json.loads(done.output)
        outside = 1 - told["inference"] / told["build"]
        detail = f"of {told['build']:.1f} s; all tokenising counted as outside"
        return [("outside inference", f"{outside * 100:.1f} %", detail)]

    def identity(self) -> list[Row]:
        """One corpus, four ways to its index."""
        ways: dict[str, str] = {}

        def built(name: str, docs: Path, index: Path, *more: str, environment: dict[str, str] | None = None) -> None:
            self.build(docs, index, *more, environment=environment)
            ways[name] = hashlib.sha256(index.read_bytes()).hexdigest()

        built("built", self.docs, self.work / "a.db")
        built("built twice", self.docs, self.work / "b.db", "--force")
        other = self.work / "elsewhere" / "docs"
        corpus.write(other, self.found, self.count, shuffled=True)
        built("other order, other time zone", other, self.work / "c.db", environment={"TZ": "Asia/Kolkata"})

        steps = self.work / "steps"
        shutil.copytree(self.docs, steps)
        paths = sorted(steps.rglob("*.md*"))
        for number, page in enumerate(paths):
            if number % 5 == 0:
                page.unlink()
            elif number % 5 == 1:
                page.write_text("# Another text\n\nIt is replaced later.\n", encoding="utf-8")
        (steps / "extra.md").write_text("# Gone later\n\nA page that does not stay.\n", encoding="utf-8")
        self.build(steps, self.work / "d.db")
        (steps / "extra.md").unlink()
        corpus.write(steps, self.found, self.count)
        built("incremental", steps, self.work / "d.db")
        first = ways["built"]
        return [
            (f"SHA-256, {name}", sha[:16], "the same" if sha == first else "DIFFERENT") for name, sha in ways.items()
        ]


def share_of(docs: Path, index: Path, name: str) -> None:
    """Build in this process and print the seconds in all and those of inference.

    Inference is the time inside the provider's ``embed``, less the time that tokenising the same texts takes: that is
    measured by doing it again.
    """
    import time

    from anvil.build import builder
    from anvil.documents.working_tree import WorkingTree
    from anvil.embedding.provider import Embedded, create_provider
    from anvil.settings.schema import ChunkingOptions, EmbeddingSettings

    provider = create_provider(name, EmbeddingSettings(provider=name))
    inner, spent, again = provider.embed, 0.0, 0.0

    def timed(texts: list[str]) -> Embedded:
        nonlocal spent, again
        started = time.perf_counter()
        found = inner(texts)
        between = time.perf_counter()
        provider.token_spans(texts)
        spent += between - started
        again += time.perf_counter() - between
        return found

    provider.embed = timed  # type: ignore[method-assign, assignment]
    started = time.perf_counter()
    builder.build(WorkingTree(docs), index, provider, ChunkingOptions())
    whole = time.perf_counter() - started - again
    provider.close()
    print(json.dumps({"build": whole, "inference": spent - again}))


PARTS: dict[str, Callable[[Bench], list[Row]]] = {
    "cold": Bench.cold,
    "copy": Bench.copy,
    "first-answer": Bench.first_answer,
    "no-op": Bench.no_op,
    "edit": Bench.edit,
    "start-up": Bench.start_up,
    "memory": Bench.memory,
    "share": Bench.share,
    "identity": Bench.identity,
}


def main() -> None:
    """Run the parts and print a table."""
    if sys.argv[1:2] == ["--share-of"]:
        share_of(Path(sys.argv[2]), Path(sys.argv[3]), sys.argv[4])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--provider", default="local", choices=["local", "none"])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS), metavar="PART")
    parser.add_argument("--work", type=Path, help="keep pages and index here; a second run starts from them")
    given = parser.parse_args()
    if given.work:
        given.work.mkdir(parents=True, exist_ok=True)
    with contextlib.nullcontext(given.work) if given.work else tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder), corpus.chosen(given.docs), given.pages, given.rounds, given.provider)
        rows: list[Row] = []
        for name in given.only:
            print(f"{name} ...", file=sys.stderr)
            rows += PARTS[name](bench)
        median = statistics.median(len(text) for text in bench.found.values())
        print(heading(given.rounds))
        print(f"{given.pages} pages, {bench.size / 1e6:.2f} MB of Markdown, median page {median / 1000:.1f} kB.\n")
        print(table(("what", "measured", "compared with"), rows))


if __name__ == "__main__":
    main()
