"""Processor time of the first check of an index file, and of its largest parts.

    python benchmarks/index_check.py .anvil/index.db

A file that passed is not checked again on the same machine. The parts are measured one by one, the least of nine times;
within the check, the keyword index is compared in a thread.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable
from pathlib import Path

from measuring import heading, table

from anvil.index_file import connection as connections
from anvil.index_file import fts_table, verify
from anvil.index_file.reader import Reader
from anvil.index_file.writer import checksum, document_digests

ROUNDS = 9


def least(work: Callable[[], object]) -> float:
    """Processor time in milliseconds, the least of several rounds."""
    times = []
    for _ in range(ROUNDS):
        began = time.process_time()
        work()
        times.append((time.process_time() - began) * 1000)
    return min(times)


def main(path: Path) -> None:
    """Measure the check of an index file."""
    handle = connections.open_artifact(path)
    reader = Reader(handle)
    meta = reader.meta()
    copy = connections.open_scratch()
    connections.fill(copy, handle)
    vector_group = handle.execute("SELECT max(size) FROM vectors_chunks").get if reader.has_vectors() else 0

    def copied() -> None:
        with contextlib.closing(connections.open_scratch()) as scratch:
            connections.fill(scratch, handle)

    parts: dict[str, Callable[[], object]] = {
        "the whole check": lambda: verify._check(reader, path),
        "SHA-256 of the file, before and after": lambda: [connections.sha256(handle) for _ in range(2)],
        "a copy that FTS5's check can write to": copied,
        "keyword index against the text": lambda: fts_table.agrees(copy),
        "types and ranges of values of pages": lambda: verify.wrong_pages(handle, meta["chunking"]),
        "windows and vectors": lambda: verify.wrong_windows(handle, int(meta["embedding_dimensions"]), vector_group),
        "digests of documents": lambda: dict(document_digests(handle)),
        "checksum": lambda: checksum(handle),
    }
    print(heading())
    print(table(("what", "processor time"), [(name, f"{least(work):.1f} ms") for name, work in parts.items()]))
    print(f"\n{reader.counts()['chunks']:,} chunks, {path.stat().st_size:,} bytes.")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
