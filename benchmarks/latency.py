"""How long a question takes in process, by size of the index and by mode; embedding the question included.

    python benchmarks/latency.py [--docs FOLDER] [--chunks 1000 10000 100000] [--rounds 5] [--questions 40]

Real pages are indexed and embedded until there are 1,000 chunks. Larger indexes are synthesised from them through the
store's own writer, to save an hour of embedding: each copy of a page has its sentences in another order
across its sections, hence other chunks of the same words and headings, and each of its windows has the vector of the
real one with noise of half its length, rounded to 8 bits again. The result is published and checked as any artifact
is, and answered from through ``anvil.open``. The one row that names the working tree answers from the real index
instead, and compares it with the real pages before each answer.

Questions are made from headings, sentences and identifiers of the pages. None is asked twice, so nothing is answered
from what was remembered; the first few, which also load the model and the vectors, are not counted.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import itertools
import random
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import corpus
import numpy as np
from measuring import ROOT, heading, percentile, table
from numpy.typing import NDArray

sys.path.insert(0, str(ROOT))

import anvil
from anvil.embedding.provider import create_provider
from anvil.index_file import connection, manifests, publish, table_rows, verify
from anvil.index_file.connection import fill
from anvil.index_file.table_rows import quantized
from anvil.index_file.writer import Writer
from anvil.results import Mode, Page
from anvil.settings.schema import ChunkingOptions, Config, EmbeddingSettings
from anvil.values import Chunk, Document, ParsedPage, Section, Window

BASE = 1000
NOISE = 0.5
WARM = 5
_SENTENCE = re.compile(r"\S.*?(?:[.!?](?=\s)|\n|$)\s*", re.DOTALL)
_WORDS = re.compile(r"[A-Za-z][\w'-]+(?: [\w'-]+){5,11}")
_IDENTIFIER = re.compile(r"\b(?:[a-z]+[A-Z]\w+|\w+_\w+)\b")


@dataclass
class RealPage:
    """A page as the base index holds it: its sections, its chunks, and each chunk's vectors."""

    path: str
    title: str
    sections: tuple[Section, ...]
    page: Page
    vectors: list[NDArray[np.int8]]


def base_index(folder: Path, found: dict[str, str]) -> Path:
    """Index just as many real pages as give ``BASE`` chunks; the index file."""
    docs = folder / "docs"
    corpus.write(docs, found, len(found))
    kept, chunks = set(), 0
    with anvil.open(docs, folder / "count.db", provider="none") as opened:
        for summary in opened.list_pages().pages:
            if chunks < BASE:
                kept.add(summary.file_path)
                chunks += summary.chunk_count
    for path in found.keys() - kept:
        (docs / path).unlink()
    with anvil.open(docs, folder / "base.db") as opened:
        opened.index()
    return folder / "base.db"


def real_pages(index: Path) -> list[RealPage]:
    """All pages of an index."""
    pages = []
    with verify.open_checked(index) as reader:
        owners, vectors = reader.matrix()
        of_chunk: dict[int, list[int]] = {}
        for place, owner in enumerate(owners.tolist()):
            of_chunk.setdefault(owner, []).append(place)
        rows: dict[int, list[int]] = {}
        for row, document in reader.chunk_documents():
            rows.setdefault(document, []).append(row)
        for found in reader.documents():
            chunks = reader.page_chunks(found.id)
            page = Page(found.file_path, found.title, found.last_modified, 0, chunks)
            own = [vectors[of_chunk.get(row, [])] for row in rows.get(found.id, [])]
            pages.append(RealPage(found.file_path, found.title, reader.sections(found.id), page, own))
    return pages


def synthesised(index: Path, base: Path, pages: list[RealPage], count: int) -> None:
    """Publish an index of at least ``count`` chunks at ``index``."""
    provider = create_provider("local", EmbeddingSettings())
    random_ = random.Random(7)
    noise = np.random.default_rng(7)
    with contextlib.closing(Writer(connection.open_scratch())) as writer:
        with verify.open_checked(base) as reader:
            fill(writer.connection, reader.connection)
        writer.set_meta(manifests.settings(provider, ChunkingOptions()))
        made = writer.reader.counts()["chunks"]
        with writer.atomic():
            for copy, real in ((n, page) for n in itertools.count(2) for page in pages):
                if made >= count:
                    break
                made += put_copy(writer, real, copy, random_, noise)
        writer.seal()
        with publish.exclusive(index) as lock:
            publication = publish.Publication(writer, lock)
            publication.write_text()
            publication.finish()
    provider.close()


def put_copy(writer: Writer, real: RealPage, copy: int, random_: random.Random, noise: np.random.Generator) -> int:
    """Store one copy of a page, its sentences shuffled; how many chunks it has."""
    contents = shuffled([chunk.content for chunk in real.page.chunks], random_)
    lost = sum(len(chunk.content) for chunk in real.page.chunks) - sum(map(len, contents))
    contents[-1:] = [last + "\n" * lost for last in contents[-1:]]  # blank lines; sections end where they ended
    text = "".join(contents)
    path = f"copy-{copy}/{real.path}"
    blob_id = hashlib.sha1(path.encode()).hexdigest()
    document = Document(path, blob_id, text, len(text), real.page.last_modified, title=real.title)
    starts = list(itertools.accumulate((len(content) for content in contents), initial=0))
    chunks = [
        Chunk(number, chunk.heading_path, chunk.heading_level, content, start, start + len(content), 1, 1, "")
        for number, (chunk, content, start) in enumerate(zip(real.page.chunks, contents, starts, strict=False))
    ]
    document_id = writer.put(document, ParsedPage(text, 1, None, {}, real.sections, (), ()), chunks)
    rows = dict(
        writer.connection.execute(
            "SELECT ordinal, id FROM chunks WHERE id BETWEEN ? AND ?", table_rows.chunk_range(document_id)
        )
    )
    for chunk, vectors in zip(chunks, real.vectors, strict=True):
        bounds = np.linspace(0, len(chunk.content), len(vectors) + 1).astype(int).tolist()
        windows = [
            Window(first, last, f"{path}\n{number}\n{chunk.content[first:last]}")
            for number, (first, last) in enumerate(itertools.pairwise(bounds))
        ]
        ids = writer.put_windows(rows[chunk.ordinal], windows)
        if ids:
            wide = vectors.astype(np.float32)
            wide /= np.linalg.norm(wide, axis=1, keepdims=True)
            wide += noise.normal(0, NOISE / np.sqrt(wide.shape[1]), wide.shape).astype(np.float32)
            writer.put_vectors(zip(ids, quantized(wide), strict=True))
    return len(chunks)


def shuffled(contents: list[str], random_: random.Random) -> list[str]:
    """The sentences of a page's chunks shuffled; each chunk keeps its first line and its number of them."""
    heads, bodies = [], []
    for content in contents:
        head, line, body = content.partition("\n")
        heads.append(head + line)
        bodies.append(_SENTENCE.findall(body))
    pool = [sentence for body in bodies for sentence in body]
    random_.shuffle(pool)
    dealt = iter(pool)
    return [head + "".join(itertools.islice(dealt, len(body))) for head, body in zip(heads, bodies, strict=True)]


def questions(pages: list[RealPage], random_: random.Random) -> Iterator[str]:
    """Different questions, a few thousand: half from headings, a quarter sentences, a quarter identifiers."""
    headings = sorted({section.title for page in pages for section in page.sections if section.title})
    texts = [chunk.content for page in pages for chunk in page.page.chunks]
    sentences = sorted({found for text in texts for found in _WORDS.findall(text)})
    identifiers = sorted({found for text in texts for found in _IDENTIFIER.findall(text)})
    shapes = ("how do I use {}", "what does {} do", "why is {} not working", "{}", "configure {} for production")
    seen: set[str] = set()
    while True:
        for _ in range(1000):  # a few pages may have no other question left
            kind = random_.random()
            if kind < 0.5:
                asked = random_.choice(shapes).format(random_.choice(headings))
            elif kind < 0.75 or not identifiers:
                asked = random_.choice(sentences)
            else:
                asked = random_.choice(identifiers)
            if asked not in seen:
                break
        seen.add(asked)
        yield asked


def ask(opened: anvil.Anvil, asked: Iterator[str], mode: Mode, rounds: int, count: int) -> list[list[float]]:
    """Seconds of each question, by round."""
    for question in itertools.islice(asked, WARM):
        opened.search(question, mode=mode)
    found: list[list[float]] = []
    for _ in range(rounds):
        times = []
        for question in itertools.islice(asked, count):
            started = time.perf_counter()
            opened.search(question, mode=mode)
            times.append(time.perf_counter() - started)
        found.append(times)
    return found


def row(name: str, mode: str, times: list[list[float]]) -> tuple[str, str, str, str, str]:
    """One line of the table."""
    every = [each for one in times for each in one]
    medians = [statistics.median(one) * 1000 for one in times]
    spread = f"{min(medians):.1f} to {max(medians):.1f}"
    return name, mode, f"{statistics.median(every) * 1000:.1f}", spread, f"{percentile(every, 0.95) * 1000:.1f}"


def main() -> None:
    """Make the indexes, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--chunks", type=int, nargs="+", default=[1000, 10_000, 100_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=40, help="a round")
    given = parser.parse_args()
    rows = []
    modes: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")
    with tempfile.TemporaryDirectory() as folder:
        print("embedding the base ...", file=sys.stderr)
        base = base_index(Path(folder), corpus.chosen(given.docs))
        pages = real_pages(base)
        asked = questions(pages, random.Random(3))
        with anvil.open(Path(folder, "docs"), base) as opened:
            name = f"{opened.get_status().index.total_chunks:,}, working tree compared"
            rows.append(row(name, "hybrid", ask(opened, asked, "hybrid", given.rounds, given.questions)))
        for count in given.chunks:
            print(f"{count} chunks ...", file=sys.stderr)
            index = Path(folder, f"{count}.db")
            synthesised(index, base, pages, count)
            alone = Config(docs=str(Path(folder, "none")))  # no tree to compare with
            with anvil.open(index=index, config=alone) as opened:
                name = f"{opened.get_status().index.total_chunks:,}"
                rows += [row(name, mode, ask(opened, asked, mode, given.rounds, given.questions)) for mode in modes]
    print(heading(given.rounds))
    print(f"{given.questions} questions a round, none asked twice. Milliseconds.\n")
    print(table(("chunks", "mode", "median", "medians of the rounds", "p95"), rows))


if __name__ == "__main__":
    main()
