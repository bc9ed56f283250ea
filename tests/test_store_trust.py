"""A file is checked once on a machine, and again when one of its bytes changed."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from anvil.building import build
from anvil.config import ChunkingOptions
from anvil.embedding import EmbeddingProvider
from anvil.errors import ArtifactRejected
from anvil.sources import working_tree
from anvil.store import checking, trust


@pytest.fixture
def index(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> Path:
    path = tmp_path / "index.db"
    build(working_tree(docs), path, keywords, ChunkingOptions())
    return path


def folder() -> Path:
    return Path(platformdirs.user_cache_dir("anvil", appauthor=False)) / "checked"


def test_a_built_index_is_known_and_a_copy_of_it_too(index: Path, tmp_path: Path) -> None:
    assert trust.is_known(trust.sha256(index))
    copy = tmp_path / "copy.db"
    copy.write_bytes(index.read_bytes())
    assert trust.is_known(trust.sha256(copy))


def test_a_known_file_is_not_checked_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError("checked again")

    monkeypatch.setattr(checking, "_check", refuse)
    checking.check(index)
    for name in folder().iterdir():
        name.unlink()
    with pytest.raises(AssertionError, match="checked again"):
        checking.check(index)


def test_a_changed_byte_is_another_file(index: Path) -> None:
    checking.check(index)
    data = bytearray(index.read_bytes())
    place = data.index(b"Lighthouse watches")
    data[place] ^= 1
    index.write_bytes(data)
    with pytest.raises(ArtifactRejected, match="does not match its digest"):
        checking.check(index)


def test_a_refused_file_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 4000)
    with pytest.raises(ArtifactRejected):
        checking.check(path)
    assert not trust.is_known(trust.sha256(path))


def test_no_cache_costs_a_check_and_no_more(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file where a folder is wanted")
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(taken))
    checking.check(index)
    checking.check(index)


def test_only_so_many_are_kept() -> None:
    for number in range(trust.KEPT + 20):
        trust.remember(f"{number:064x}")
        os.utime(folder() / f"{number:064x}-{trust.__version__}", (number + 1, number + 1))
    trust.remember("f" * 64)
    assert len(list(folder().iterdir())) == trust.KEPT
    assert trust.is_known("f" * 64) and not trust.is_known(f"{0:064x}")
