"""How serving grows with the index: the file, the first answer, questions by mode, and the memory they take.

    python benchmarks/scale_serve.py [--chunks 10000,100000,1000000] [--questions 100] [--keep FOLDER]
                                     [--lite | --milvus ADDRESS]

Indexes are generated through the store's own writer: pages of ten sections, words of a vocabulary of 40,000 that are as
uneven as those of a language, and unit vectors around a centre for each page, rounded to 8 bits as real ones. Nothing
is embedded but the questions. The file is published and checked as any artifact is.

Each index is asked by a process of its own, so that its memory is its own: opened, asked once, then so many questions
a mode, and as many with a filter that lets half of the pages through. ``--lite`` exports the same index into a Milvus
Lite file and asks that, in the same process; ``--milvus`` into a server, such as milvus://127.0.0.1:19530/bench.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import random
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import accumulate, pairwise
from pathlib import Path

import numpy as np
from measuring import ROOT, heading, percentile, table

sys.path.insert(0, str(ROOT))

import anvil
from anvil.embedding.provider import create_provider
from anvil.index_file import connection, manifests, publish
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import quantized
from anvil.index_file.writer import Writer
from anvil.results import Mode
from anvil.settings import index_url
from anvil.settings.schema import ChunkingOptions, Config, EmbeddingSettings
from anvil.values import Chunk, Document, ParsedPage, Section, Window

SECTIONS = 10
VOCABULARY = 40_000
SEVERAL = 0.3
"""Chunks that have two windows."""
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")


class Author:
    """Writes pages; the same for the same seed."""

    def __init__(self, seed: int) -> None:
        self._dice = random.Random(seed)
        self._noise = np.random.default_rng(seed)
        syllables = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]
        self.words = ["".join(self._dice.choices(syllables, k=self._dice.choice((2, 3, 4)))) for _ in range(VOCABULARY)]
        self._weights = list(accumulate(1 / (place + 3) for place in range(VOCABULARY)))

    def some(self, count: int) -> list[str]:
        """Words, common ones more often."""
        return self._dice.choices(self.words, cum_weights=self._weights, k=count)

    def section(self, heading: str) -> str:
        """A heading and a text of 60 to 200 words."""
        words = self.some(self._dice.randrange(60, 200))
        lines = [" ".join(words[i : i + 12]).capitalize() + "." for i in range(0, len(words), 12)]
        return f"## {heading}\n\n" + "\n".join(lines) + "\n\n"

    def vectors(self, count: int, width: int) -> list[bytes]:
        """Unit vectors that share a direction, as those of one page do."""
        made = self._noise.standard_normal((count, width)) + 0.7 * self._noise.standard_normal(width)
        return quantized((made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32))

    def windows(self) -> int:
        """How many a chunk has."""
        return 2 if self._dice.random() < SEVERAL else 1


def generate(index: Path, count: int) -> float:
    """Publish an index of ``count`` chunks; seconds."""
    began = time.perf_counter()
    provider = create_provider("local", EmbeddingSettings())
    author = Author(7)
    scratch = index.with_suffix(".scratch")
    with contextlib.closing(Writer(connection.open_scratch(scratch))) as writer:
        connection.create_tables(writer.connection, provider.dimensions)
        settings = manifests.settings(provider, ChunkingOptions())
        writer.set_meta({**settings, "anvil_version": anvil.__version__, "docs_root_path": "."})
        with writer.atomic():
            for number in range(-(-count // SECTIONS)):
                write(writer, author, number, min(SECTIONS, count - number * SECTIONS), provider.dimensions)
        writer.seal()
        with publish.exclusive(index) as lock:
            publication = publish.Publication(writer, lock)
            publication.write_text()
            publication.finish()
    scratch.unlink(missing_ok=True)
    provider.close()
    return time.perf_counter() - began


def write(writer: Writer, author: Author, number: int, count: int, width: int) -> None:
    """Store one page with ``count`` sections, each a chunk."""
    title = " ".join(author.some(3)).title()
    headings = [f"{' '.join(author.some(3)).title()} {place}" for place in range(count)]
    texts = [author.section(heading) for heading in headings]
    starts = list(accumulate(map(len, texts), initial=0))
    path = f"{'guides' if number % 2 else 'reference'}/{number % 100:02}/page-{number}.md"
    sections = tuple(
        Section(place, f"{title} > {heading}", 2, heading, f"s{place}", starts[place], starts[place + 1], 1, 1)
        for place, heading in enumerate(headings)
    )
    chunks = [
        Chunk(place, section.heading_path, 2, text, section.start, section.end, 1, 1, "")
        for place, (section, text) in enumerate(zip(sections, texts, strict=True))
    ]
    text = "".join(texts)
    blob = hashlib.sha1(path.encode()).hexdigest()
    document = Document(path, blob, text, len(text), "2026-01-01T00:00:00Z", title=title)
    document_id = writer.put(document, ParsedPage(text, 1, None, {}, sections, (), ()), chunks)
    rows = Reader(writer.connection).chunk_rows(document_id)
    ids: list[int] = []
    for row, chunk in zip(rows, chunks, strict=True):
        parts = author.windows()
        bounds = [len(chunk.content) * part // parts for part in range(parts + 1)]
        ids += writer.put_windows(row, [Window(a, b, f"{path}\n{chunk.content[a:b]}") for a, b in pairwise(bounds)])
    writer.put_vectors(zip(ids, author.vectors(len(ids), width), strict=True))


def ask(index: str, count: int) -> dict[str, object]:
    """Open an index, ask it, and say how long it took and what it holds. Runs in a process of its own."""
    author = Author(8)
    with tempfile.TemporaryDirectory() as empty:
        config = Config(docs=str(Path(empty, "none")))
        began = time.perf_counter()
        with anvil.open(index=index, config=config) as opened:
            opened.search(" ".join(author.some(4)))
            found: dict[str, object] = {"first": time.perf_counter() - began}
            for mode, glob in [*((mode, None) for mode in MODES), ("hybrid", "guides/**")]:
                times = []
                for _ in range(count):
                    question = "how do I " + " ".join(author.some(4))
                    started = time.perf_counter()
                    opened.search(question, mode=mode, file_filter=glob)
                    times.append(time.perf_counter() - started)
                name = f"{mode}, filtered" if glob else mode
                found[name] = [statistics.median(times) * 1000, percentile(times, 0.95) * 1000]
            found["resident"] = resident()
    return found


def resident() -> int:
    """Bytes of this process in memory now; its peak, where the system does not say."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) * 1024
    except OSError:
        import resource

        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def asked(index: str, count: int) -> dict[str, list[float]]:
    """:func:`ask` in another process."""
    line = [sys.executable, __file__, "--ask", index, "--questions", str(count)]
    done = subprocess.run(line, check=True, capture_output=True, text=True)
    found: dict[str, list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def exported(index: Path, address: str) -> float:
    """Export an index; seconds."""
    from anvil.milvus import export
    from anvil.milvus.milvus_client import Client

    client = Client(index_url.milvus(address), Path.cwd())
    told = time.monotonic()

    def progress(stage: str, done: int, total: int) -> None:
        nonlocal told
        if time.monotonic() - told > 10:
            told = time.monotonic()
            print(f"  {stage} {done:,} of {total:,}", file=sys.stderr)

    try:
        return export.export(index, client, progress, grace=0).seconds
    finally:
        client.close()


def row(name: str, chunks: int, size: float, found: dict[str, list[float]]) -> tuple[str, ...]:
    """A line of the table."""
    modes = [f"{found[each][0]:.0f} / {found[each][1]:.0f}" for each in (*MODES, "hybrid, filtered")]
    held = float(found["resident"])  # type: ignore[arg-type]
    first = float(found["first"])  # type: ignore[arg-type]
    return (f"{chunks:,}", name, f"{size / 1e6:,.0f} MB", f"{first:.1f} s", *modes, f"{held / 1e6:,.0f} MB")


def main() -> None:
    """Make the indexes, ask them, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chunks", default="10000,100000,1000000", help="sizes, separated by commas")
    parser.add_argument("--questions", type=int, default=100, help="a mode")
    parser.add_argument("--keep", type=Path, help="a folder for the indexes: those there are used again")
    parser.add_argument("--lite", action="store_true", help="also from a Milvus Lite file")
    parser.add_argument("--milvus", metavar="ADDRESS", help="also from a Milvus server")
    parser.add_argument("--ask", metavar="INDEX", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.ask:
        print(json.dumps(ask(given.ask, given.questions)))
        return
    rows: list[tuple[str, ...]] = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.keep or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        for chunks in map(int, given.chunks.split(",")):
            index = folder / f"serve-{chunks}.db"
            if not index.is_file():
                print(f"{chunks:,} chunks ...", file=sys.stderr)
                print(f"  generated in {generate(index, chunks):.0f} s", file=sys.stderr)
            began = time.perf_counter()
            subprocess.run([sys.executable, "-m", "anvil", "verify", str(index)], check=True, capture_output=True)
            print(f"  verified in {time.perf_counter() - began:.1f} s", file=sys.stderr)
            rows.append(row("file", chunks, index.stat().st_size, asked(str(index), given.questions)))
            address = given.milvus or (given.lite and f"milvus+lite:{folder.resolve()}/lite-{chunks}.db/bench")
            if address:
                seconds = exported(index, address)
                print(f"  exported in {seconds:.0f} s, {chunks / seconds:,.0f} chunks/s", file=sys.stderr)
                lite = folder / f"lite-{chunks}.db"
                size = sum(each.stat().st_size for each in lite.rglob("*") if each.is_file()) if given.lite else 0
                name = "Milvus Lite" if given.lite else "Milvus"
                rows.append(row(name, chunks, size, asked(address, given.questions)))
    names = ("chunks", "from", "size", "first answer", *MODES, "hybrid, filtered", "resident")
    print(heading())
    print("Median / p95 in milliseconds; embedding the question included, and the model in the memory.\n")
    print(table(names, rows))


if __name__ == "__main__":
    main()
