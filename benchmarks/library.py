"""A document library: documents a minute, queries in a large one, compared with MarkItDown and a LanceDB pipeline.

    pip install 'anvil-docs[library]' python-docx openpyxl python-pptx reportlab lancedb
    python benchmarks/library.py [--files 40] [--chunks 100000] [--peer-chunks 2000] [--rounds 3]

Throughput: the same DOCX, XLSX, PPTX, PDF and HTML files, converted by MarkItDown in one process, and taken in by
``ingest_folder`` without embedding, one file at a time by one process that converts and then as it comes. Both were
started and have converted a file before the clock runs; rounds take turns, each into an empty library.

Questions: a library of ``--chunks`` passages, 20 a document, whose words are those of this project's pages in any
order and whose vectors are random, since it is their number that counts; asked with and without filters, each question
once. What follows a write is measured apart.

LanceDB (left out when it is not installed): the same passages, embedded by the same model in batches of one size,
into a table with a full-text index, asked by vector and words with the filter ahead of the search. It embeds the
first tokens of a passage only, as such pipelines do; Anvil embeds all of them, in as many windows as it takes.
"""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from measuring import ROOT, heading, in_turn, percentile, ratio, table

sys.path.insert(0, str(ROOT))

import anvil
from anvil.embedding.provider import create_provider
from anvil.formats.data_formats import timestamp
from anvil.index_file.table_rows import quantized
from anvil.library.conversion_process import Converter
from anvil.library.document_formats import FileKind
from anvil.library.library import Library
from anvil.library.settings import LibraryOptions
from anvil.library.stored_documents import StagedDocument
from anvil.library.values import DocumentInfo
from anvil.settings.schema import Config, EmbeddingSettings
from anvil.values import Chunk, Window
from tests.support import documents

WORDS = [word for page in sorted((ROOT / "docs").rglob("*.md")) for word in page.read_text("utf-8").split()]
PER_DOCUMENT = 20
QUESTIONS = 40


def sentence(chance: random.Random, words: int) -> str:
    """Words of this project's pages, in any order."""
    return " ".join(chance.choices(WORDS, k=words))


# --- throughput --------------------------------------------------------------------------------------------------


def make_files(folder: Path, count: int) -> None:
    """Files of five formats, a page or two of text each."""
    chance = random.Random(1)
    for number in range(count):
        make_file(folder / f"{number:04}", number, chance)


def make_file(name: Path, number: int, chance: random.Random) -> None:
    """A file of the format that is next."""
    text = sentence(chance, 400)
    match number % 5:
        case 0:
            documents.docx(name.with_suffix(".docx"), f"Report {number}", text)
        case 1:
            documents.xlsx(name.with_suffix(".xlsx"), [[sentence(chance, 2) for _ in range(5)] for _ in range(40)])
        case 2:
            documents.pptx(name.with_suffix(".pptx"), [(f"Slide {each}", text[:500]) for each in range(5)])
        case 3:
            documents.pdf(name.with_suffix(".pdf"), ["\n".join(sentence(chance, 10) for _ in range(40))])
        case _:
            name.with_suffix(".html").write_text(f"<h1>Page {number}</h1><p>{text}</p>", "utf-8")


def throughput(files: int, rounds: int) -> None:
    """Documents a minute, compared with MarkItDown alone."""
    from markitdown import MarkItDown

    plain = MarkItDown(enable_plugins=False)
    with tempfile.TemporaryDirectory() as place:
        source = Path(place, "files")
        source.mkdir()
        make_files(source, files)
        paths = sorted(source.iterdir())
        for path in paths[:5]:
            plain.convert_local(path)

        def alone(_: int) -> float:
            started = time.perf_counter()
            for path in paths:
                plain.convert_local(path)
            return time.perf_counter() - started

        def taken_in(processes: int) -> Callable[[int], float]:
            config = Config(embedding=EmbeddingSettings(provider="none"))
            converter = Converter(config.table(LibraryOptions), processes)
            for _ in converter.parts(paths[0], FileKind.of(paths[0].name)):
                pass

            def run(number: int) -> float:
                with anvil.open_library(Path(place, f"{processes}-{number}.db"), config=config) as library:
                    library._converter = converter  # warm, as a server's is
                    started = time.perf_counter()
                    report = library.ingest_folder(str(source), max_concurrency=processes)
                    seconds = time.perf_counter() - started
                    library._converter = None
                assert report.indexed == files, report.errors
                return seconds

            run(-1)  # each format's libraries are loaded once
            return run

        cpus = max(2, os.cpu_count() or 1)
        tasks = {"MarkItDown alone": alone, "one at a time": taken_in(1), f"{cpus} at a time": taken_in(cpus)}
        times = in_turn(rounds, tasks)
    rows = [
        [name, f"{files / statistics.median(each) * 60:.0f}", f"{ratio(each, times['MarkItDown alone']):.2f}"]
        for name, each in times.items()
    ]
    print(table(["", "documents a minute", "time, MarkItDown = 1"], rows), "\n")


# --- questions ---------------------------------------------------------------------------------------------------


def passages(chance: random.Random) -> list[Chunk]:
    """A document's passages."""
    return [Chunk(number, f"Part {number}", 1, sentence(chance, 120), 0, 0, 1, 1, "") for number in range(PER_DOCUMENT)]


def fill(library: Library, chunks: int) -> None:
    """Documents of many words and random vectors, through the store's own writer."""
    chance, noise = random.Random(2), np.random.default_rng(2)
    for number in range(chunks // PER_DOCUMENT):
        vectors = noise.standard_normal((PER_DOCUMENT, library.provider.dimensions)).astype(np.float32)
        source, kind, metadata = f"/documents/{number}.md", ("md", "pdf")[number % 2], {"team": f"t{number % 50}"}
        info = DocumentInfo(
            source,
            f"library{number % 10}",
            f"Document {number}",
            kind,
            str(number),
            1,
            timestamp(time.time()),
            metadata,
        )
        with closing(StagedDocument(library.ensure_writable(), info)) as stage, library._write() as writer:
            stage.add(passages(chance), 0)
            for row, vector in enumerate(quantized(vectors)):
                (window,) = stage.rows.put_windows(row, [Window(0, 1, f"{number} {row}")])
                stage.rows.put_vectors([(window, vector)])
            writer.store(stage)


def asked(questions: list[str], ask: Callable[[str], Any]) -> list[float]:
    """Seconds of each question, the first few not counted."""
    times = []
    for question in questions:
        started = time.perf_counter()
        ask(question)
        times.append(time.perf_counter() - started)
    return times[5:]


def questions(chunks: int) -> None:
    """How long a question takes, with filters of several widths."""
    chance = random.Random(3)
    ways: dict[str, dict[str, Any]] = {
        "all": {},
        "half, by type": {"filter": {"file_type": "pdf"}},
        "a tenth, by library": {"library": "library3"},
        "a fiftieth, by metadata": {"filter": {"metadata.team": "t7"}},
        "all, 100 results": {"top_k": 100},
    }
    rows = []
    with tempfile.TemporaryDirectory() as place, anvil.open_library(Path(place, "library.db")) as library:
        fill(library, chunks)
        started = time.perf_counter()
        library.search("the first question")
        first = time.perf_counter() - started
        for name, more in ways.items():
            times = asked([sentence(chance, 6) for _ in range(QUESTIONS)], partial(library.search, **more))
            rows.append([name, f"{statistics.median(times) * 1000:.1f} ms", f"{percentile(times, 0.95) * 1000:.1f} ms"])

        def after_a_write(question: str) -> float:
            library.ingest_content(f"# New\n\n{question}", "new.md")
            started = time.perf_counter()
            library.search(question)
            return time.perf_counter() - started

        times = [after_a_write(sentence(chance, 6)) for _ in range(10)]
        rows.append(
            [
                "all, after a write",
                f"{statistics.median(times) * 1000:.1f} ms",
                f"{percentile(times, 0.95) * 1000:.1f} ms",
            ]
        )
    print(table([f"among {chunks:,} passages", "median", "95 %"], rows))
    print(f"\nThe first question, which reads what is kept in memory: {first:.1f} s.\n")


# --- LanceDB -----------------------------------------------------------------------------------------------------


def size(path: Path) -> int:
    """Bytes of a file, or of all in a folder."""
    return path.stat().st_size if path.is_file() else sum(p.stat().st_size for p in path.rglob("*") if p.is_file())


def beside_lancedb(chunks: int) -> None:
    """Passages a second, a question, and bytes a passage, by the same model."""
    try:
        import lancedb
        from lancedb.index import FTS
    except ImportError:
        print("LanceDB is left out: it is not installed.")
        return
    chance = random.Random(4)
    texts = [[chunk.content for chunk in passages(chance)] for _ in range(chunks // PER_DOCUMENT)]
    asking = [sentence(chance, 6) for _ in range(QUESTIONS)]
    provider = create_provider("local", EmbeddingSettings())
    provider.warm()
    rows = []
    with tempfile.TemporaryDirectory() as place:
        with Library(Path(place, "library.db"), Config(), provider) as library:
            started, held = time.perf_counter(), 0
            for number, each in enumerate(texts):
                text = "".join(f"# Part {part}\n\n{content}\n\n" for part, content in enumerate(each))
                held += library.ingest_content(text, f"{number}.md", f"l{number % 2}").chunk_count
            seconds = time.perf_counter() - started
            times = asked(asking, lambda q: library.search(q, library="l1"))
        rows.append(_row("Anvil", held / seconds, times, size(Path(place, "library.db")) / held))

        started = time.perf_counter()
        opened = lancedb.connect(str(Path(place, "lance")))
        made: Any = None
        for number, each in enumerate(texts):
            vectors = provider.embed(each).vectors
            data = [
                {"vector": vector, "text": content, "source": f"{number}.md", "library": f"l{number % 2}"}
                for vector, content in zip(vectors, each, strict=True)
            ]
            made = opened.create_table("passages", data) if made is None else (made.add(data), made)[1]
        made.create_index("text", config=FTS())
        made.optimize()
        seconds = time.perf_counter() - started

        def ask(question: str) -> Any:
            found = made.search(query_type="hybrid").vector(provider.embed_query(question)).text(question)
            return found.where("library = 'l1'", prefilter=True).limit(5).to_list()

        times = asked(asking, ask)
        total = sum(map(len, texts))
        rows.append(_row("LanceDB", total / seconds, times, size(Path(place, "lance")) / total))
    print(table([f"{chunks:,} passages", "passages a second", "a question, filtered", "bytes a passage"], rows))


def _row(name: str, rate: float, times: list[float], weight: float) -> list[str]:
    return [name, f"{rate:.0f}", f"{statistics.median(times) * 1000:.1f} ms", f"{weight:,.0f}"]


def main() -> None:
    """Print three tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=40)
    parser.add_argument("--chunks", type=int, default=100_000)
    parser.add_argument("--peer-chunks", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    print(heading(given.rounds))
    throughput(given.files, given.rounds)
    questions(given.chunks)
    beside_lancedb(given.peer_chunks)


if __name__ == "__main__":
    main()
