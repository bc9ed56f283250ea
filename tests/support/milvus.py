"""Indexes for exports, quickly built: many pages of words, and a model that only hashes words."""

from __future__ import annotations

import hashlib
import random
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import Embedded, Vector
from anvil.settings.schema import ChunkingOptions
from tests.conftest import write

SYLLABLES = ("ba", "ce", "di", "fo", "gu", "ha", "je", "ki", "lo", "mu", "na", "pe", "qui", "ro", "su", "ta", "ve")


@cache
def _vector(word: str) -> Vector:
    seed = int.from_bytes(hashlib.sha256(word.encode()).digest()[:4], "big")
    return np.random.default_rng(seed).standard_normal(Words.dimensions).astype(np.float32)


class Words:
    """Vectors of hashed words: texts that share words are near. It reads forty words at a time."""

    name, model, max_tokens, dimensions = "words", "hashed-words", 40, 64
    server, scripts, passages = "", None, None
    digest = hashlib.sha256(b"hashed-words").hexdigest()

    def warm(self) -> None:
        pass

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return [[found.span() for found in re.finditer(r"\w+", text)] for text in texts]

    def embed(self, texts: Sequence[str]) -> Embedded:
        return Embedded(np.stack([self.embed_query(text) for text in texts]), {})

    def embed_query(self, text: str) -> Vector:
        found = np.full(self.dimensions, 1e-3, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            found += _vector(word)
        return np.asarray(found / np.linalg.norm(found), np.float32)

    def close(self) -> None:
        pass


def vocabulary(dice: random.Random, count: int) -> list[str]:
    """Invented words."""
    return ["".join(dice.choice(SYLLABLES) for _ in range(dice.choice((2, 3, 4)))) for _ in range(count)]


def pages(count: int, seed: int = 1) -> dict[str, str]:
    """Pages of six sections, each page with common words and words of its own; some sections are long enough for
    several vectors."""
    dice = random.Random(seed)
    common = vocabulary(dice, 400)
    found = {}
    for number in range(count):
        own = vocabulary(dice, 12)

        def sentence(own: list[str] = own) -> str:
            words = [dice.choice(own if dice.random() < 0.3 else common) for _ in range(9)]
            return f"{' '.join(words).capitalize()} {dice.choice(own)}-{dice.randrange(9)}. "

        sections = [
            f"## {dice.choice(own).title()} {dice.choice(common)}\n\n"
            + "".join(sentence() for _ in range(dice.choice((4, 8, 16))))
            for _ in range(6)
        ]
        path = f"{dice.choice(('guides', 'reference'))}/page-{number}.md"
        found[path] = f"# {dice.choice(own).title()} {number}\n\n" + "\n\n".join(sections) + "\n"
    return found


def questions(found: dict[str, str], count: int, seed: int = 2) -> list[str]:
    """Questions: some words of a sentence, in another order."""
    dice = random.Random(seed)
    asked = []
    for _ in range(count):
        line = dice.choice([line for line in found[dice.choice(sorted(found))].splitlines() if len(line) > 80])
        words = dice.choice(line.rstrip(". ").split(". ")).split()
        dice.shuffle(words)
        asked.append("what is " + " ".join(words[: dice.choice((1, 2, 4, 6))]))
    return asked


def built(folder: Path, found: dict[str, str], provider: Any = None, name: str = "index.db") -> Path:
    """The index of pages, written into ``folder/docs``."""
    write(folder / "docs", found)
    index = folder / name
    build(WorkingTree(folder / "docs"), index, provider or Words(), ChunkingOptions())
    return index


class Hasty:
    """The module ``time`` with a very short ``sleep``."""

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def sleep(self, seconds: float) -> None:
        time.sleep(min(seconds, 0.01))


@pytest.fixture(scope="session")
def hasty() -> Iterator[None]:
    """pymilvus waits half a second before it asks whether an index is made. Milvus Lite makes it at once, and an export
    makes seven."""
    from pymilvus.client import grpc_handler

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(grpc_handler, "time", Hasty())
        yield


@contextmanager
def lite_server(folder: Path, port: int = 0) -> Iterator[int]:
    """The loopback port of Milvus Lite, used like a cluster."""
    from milvus_lite.adapter.grpc.server import start_server_in_thread

    server, database, port = start_server_in_thread(str(folder / "cluster.db"), port=port)
    try:
        yield port
    finally:
        server.stop(grace=0).wait()
        database.close()
