"""Embedding through the user's cache: the same bytes, embedded once, in any project."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

import anvil
from anvil.embedding.provider import CachedProvider, EmbeddingProvider
from anvil.index_file.table_rows import quantized
from anvil.index_file.vector_cache import default_path
from tests.conftest import PAGES, write


def test_a_cached_vector_is_the_same_row_of_an_index(local: EmbeddingProvider) -> None:
    texts = [text[:400] for text in PAGES.values()]
    first, second = CachedProvider(local), CachedProvider(local)
    computed = first.embed(texts[:2])
    mixed = second.embed(texts)
    assert computed.cached == frozenset() and mixed.cached == {0, 1}
    assert quantized(mixed.vectors) == quantized(local.embed(texts).vectors)
    assert np.allclose(np.linalg.norm(mixed.vectors, axis=1), 1, atol=1e-6)


def test_a_copy_of_a_project_embeds_nothing_and_has_the_same_bytes(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs) as opened:
        built = opened.index()
    shutil.copytree(docs, tmp_path / "copy", ignore=shutil.ignore_patterns(".anvil"), copy_function=shutil.copy2)
    with anvil.open(tmp_path / "copy") as opened:
        again = opened.index()
        assert opened.search("dpkg").results[0].metadata.file_path == "install.md"
    assert built.embedded and not again.embedded and again.reused == again.windows
    assert Path(built.index_path).read_bytes() == Path(again.index_path).read_bytes()


def test_force_embeds_everything(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs) as opened:
        first = opened.index()
        assert opened.index(force=True).embedded == first.embedded


def test_the_cache_can_be_switched_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANVIL_EMBEDDING_CACHE", "false")
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs) as opened:
        assert opened.index().embedded
    assert not default_path().exists()
