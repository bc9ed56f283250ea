"""What it costs to answer from fresh text only.

    python benchmarks/freshness.py [--docs FOLDER] [--rounds 15] [--chunks 10000]

Pages are made as in the other benchmarks (``corpus.py``). One object answers, as in a server, without file events.
"""

from __future__ import annotations

import argparse
import itertools
import statistics
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import corpus
import measuring

import anvil
from anvil.documents.document_source import DocumentSource
from anvil.documents.working_tree import WorkingTree
from anvil.settings.schema import SourceOptions


def timed(task: Callable[[int], object], rounds: int) -> list[float]:
    """Seconds of each call."""
    found = []
    for number in range(rounds):
        began = time.perf_counter()
        task(number)
        found.append(time.perf_counter() - began)
    return found


def scan(source: DocumentSource, _: int) -> None:
    """Compare the folder with what was seen of it before."""
    source.scan()


def row(name: str, times: list[float], note: str = "") -> tuple[str, str, str, str]:
    """A line of the table."""
    p99 = measuring.percentile(times, 0.99) * 1000
    return name, f"{statistics.median(times) * 1000:.1f} ms", f"{p99:.1f} ms", note


def checks(folder: Path, pages: dict[str, str], rounds: int) -> list[tuple[str, str, str, str]]:
    """A comparison that finds nothing, at two sizes."""
    rows = []
    for count in (1_000, 10_000):
        docs = folder / str(count)
        small = {path: text[:2_000] for path, text in pages.items()}  # it is never read twice, only looked at
        corpus.write(docs, small, count)
        source = WorkingTree(docs, SourceOptions())
        source.scan()
        time.sleep(0.2)
        source.scan()
        rows.append(row(f"nothing changed, {count:,} pages", timed(partial(scan, source), rounds)))
    return rows


def edits(docs: Path, pages: dict[str, str], rounds: int) -> list[tuple[str, str, str, str]]:
    """Edits of one page and of many, each followed by a question."""
    with anvil.open(docs, background=True) as found:
        found.start()
        while found.search("page").freshness.notes:
            time.sleep(1)
        chunks = found.get_status().index.total_chunks
        name, text = next((path, text) for path, text in pages.items() if len(text) > 2_000)
        numbers = itertools.count()
        vectors: list[int] = []

        def edit(_: int) -> None:
            number = next(numbers)
            (docs / name).write_text(f"{text}\n\n## Addendum {number}\n\nThe quagga of edition {number} is back.\n")
            result = found.search(f"quagga of edition {number}")
            assert f"edition {number} " in result.results[0].content, "an old text was answered"
            vectors.append(result.freshness.pending_vectors)

        rows = [row(f"search, nothing changed, {chunks:,} chunks", timed(lambda n: found.search(f"route {n}"), rounds))]
        rows.append(row("the first edit of one page, then search", timed(edit, 1)))
        later = timed(edit, rounds)
        rows.append(row("a later edit of one page, then search", later, f"vectors pending: {max(vectors)}"))
        many = [(f"new/{each}", f"{pages[each]}\n\nNew in the year of the okapi.\n") for each in list(pages)[:200]]
        for path, body in many:
            (docs / path).parent.mkdir(parents=True, exist_ok=True)
            (docs / path).write_text(body)
        began = time.perf_counter()
        result = found.search("year of the okapi", mode="keyword")
        seconds = time.perf_counter() - began
        assert result.results and result.results[0].metadata.file_path.startswith("new/")
        pending = result.freshness.pending_vectors
        rows.append(row(f"{len(many)} new pages, then search", [seconds], f"vectors pending: {pending:,}"))
        rows.append(row("searches while they are embedded", timed(lambda n: found.search(f"okapi {n}"), rounds)))
        began = time.perf_counter()
        while found.search("okapi", mode="keyword").freshness.pending_vectors:
            time.sleep(0.2)
        rows.append(row("until none is pending", [time.perf_counter() - began]))
    return rows


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown instead of the npm package next")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--chunks", type=int, default=10_000, help="about so many are in the index that is edited")
    options = parser.parse_args()
    pages = corpus.chosen(options.docs)
    with tempfile.TemporaryDirectory() as folder:
        rows = checks(Path(folder), pages, options.rounds)
        docs = Path(folder, "docs")
        with anvil.open(corpus_folder(Path(folder, "one"), pages), provider="none") as one:
            each = one.get_status().index.total_chunks / len(pages)
        corpus.write(docs, pages, max(int(options.chunks / each), len(pages)))
        with anvil.open(docs) as found:
            found.index()
        rows += edits(docs, pages, options.rounds)
    print(measuring.heading(options.rounds))
    print(measuring.table(("what", "median", "99th percentile", ""), rows))


def corpus_folder(folder: Path, pages: dict[str, str]) -> Path:
    """The pages once, in a folder."""
    corpus.write(folder, pages, len(pages))
    return folder


if __name__ == "__main__":
    main()
