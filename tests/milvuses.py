"""Indexes to export, quickly made: many pages of plausible words, and a model that knows words only by their letters."""

from __future__ import annotations

import hashlib
import random
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from anvil import embedding
from anvil.building import build
from anvil.config import ChunkingOptions
from anvil.embedding import Embedded
from anvil.sources import working_tree
from tests.conftest import write

NOUNS = ["server", "alert", "check", "certificate", "volume", "window", "summary", "recipient", "relay", "packet", "tunnel", "mirror", "gateway", "ledger", "lantern", "harbour", "anchor", "compass", "beacon", "signal", "turbine", "valve", "reactor", "conduit", "manifest", "digest", "archive", "cursor"]
VERBS = ["starts", "stops", "renews", "warns", "watches", "sends", "holds", "mends", "counts", "reads", "writes", "moves", "opens", "closes"]


class Words:
    """Vectors of hashed words: texts that share words are near. It reads eight words at a time."""

    name, model, max_tokens, dimensions = "words", "hashed-words", 40, 32
    digest = hashlib.sha256(b"hashed-words").hexdigest()

    def warm(self) -> None:
        pass

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return [[found.span() for found in re.finditer(r"\w+", text)] for text in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.stack([self.embed_query(text) for text in texts]), {})

    def embed_query(self, text: str) -> embedding.Vector:
        found = np.full(self.dimensions, 1e-3, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
            found += np.random.default_rng(seed).standard_normal(self.dimensions).astype(np.float32)
        return np.asarray(found / np.linalg.norm(found), np.float32)

    def close(self) -> None:
        pass


def pages(count: int, seed: int = 1) -> dict[str, str]:
    """So many pages of six sections, some of them long enough for several vectors."""
    dice = random.Random(seed)

    def sentence() -> str:
        return f"The {dice.choice(NOUNS)} {dice.choice(VERBS)} the {dice.choice(NOUNS)}-{dice.randrange(40)}. "

    return {
        f"{dice.choice(('guides', 'reference'))}/page-{number}.md": f"# The {dice.choice(NOUNS)} {number}\n\n"
        + "\n\n".join(
            f"## {dice.choice(NOUNS).title()} and {dice.choice(NOUNS)}\n\n"
            + "".join(sentence() for _ in range(dice.choice((4, 8, 30))))
            for _ in range(6)
        )
        for number in range(count)
    }


def built(folder: Path, found: dict[str, str], provider: Any = None, name: str = "index.db") -> Path:
    """The index of pages, written into ``folder/docs``."""
    write(folder / "docs", found)
    index = folder / name
    build(working_tree(folder / "docs"), index, provider or Words(), ChunkingOptions())
    return index


@contextmanager
def lite_server(folder: Path, port: int = 0) -> Iterator[int]:
    """Milvus Lite over a loopback port, as a cluster would be asked; the port."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(folder / "cluster.db"), port=port)
    try:
        yield port
    finally:
        server.stop(grace=0).wait()
        database.close()
