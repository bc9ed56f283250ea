"""A file is checked once on a machine, and again when one of its bytes changed."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ArtifactRejected
from anvil.index_file import table_rows, verify
from anvil.settings.schema import ChunkingOptions
from anvil.system import safe_files


@pytest.fixture
def index(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> Path:
    path = tmp_path / "index.db"
    build(WorkingTree(docs), path, keywords, ChunkingOptions())
    return path


def folder() -> Path:
    return Path(platformdirs.user_cache_dir("anvil", appauthor=False)) / "checked"


def test_a_built_index_is_known_and_a_copy_of_it_too(index: Path, tmp_path: Path) -> None:
    assert verify.is_verified(safe_files.sha256(index))
    copy = tmp_path / "copy.db"
    copy.write_bytes(index.read_bytes())
    assert verify.is_verified(safe_files.sha256(copy))


def test_a_known_file_is_not_checked_again(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise ArtifactRejected("checked again")

    monkeypatch.setattr(verify, "_check", refuse)
    verify.check(index)
    for name in folder().iterdir():
        name.unlink()
    with pytest.raises(ArtifactRejected, match="checked again"):
        verify.check(index)


def test_a_file_is_checked_again_by_an_anvil_of_the_same_version_that_reads_another_format(
    index: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other_format = table_rows.FORMAT_VERSION + 1
    monkeypatch.setattr(table_rows, "FORMAT_VERSION", other_format)
    with pytest.raises(ArtifactRejected, match="it has the old format"):
        verify.check(index)


def test_a_changed_byte_is_another_file(index: Path) -> None:
    verify.check(index)
    data = bytearray(index.read_bytes())
    place = data.index(b"Lighthouse watches")
    data[place] ^= 1
    index.write_bytes(data)
    with pytest.raises(ArtifactRejected, match="does not match its digest"):
        verify.check(index)


def test_a_refused_file_is_not_remembered(tmp_path: Path) -> None:
    path = tmp_path / "foreign.db"
    path.write_bytes(b"SQLite format 3\0" + b"\0" * 4000)
    with pytest.raises(ArtifactRejected):
        verify.check(path)
    assert not verify.is_verified(safe_files.sha256(path))


def test_no_cache_costs_a_check_and_no_more(index: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.write_text("a file where a folder is wanted")
    for name in ("HOME", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.setenv(name, str(taken))
    verify.check(index)
    verify.check(index)


def test_only_so_many_are_kept() -> None:
    for number in range(500):
        verify.remember_verified(f"{number:064x}")
        os.utime(next(folder().glob(f"{number:064x}-*")), (number + 1, number + 1))
    assert len(list(folder().iterdir())) == 500 and verify.is_verified(f"{0:064x}")
    verify.remember_verified("f" * 64)
    assert len(list(folder().iterdir())) == 400
    assert verify.is_verified("f" * 64) and not verify.is_verified(f"{100:064x}") and verify.is_verified(f"{101:064x}")


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_marks_that_others_could_have_made_are_not_trusted(index: Path) -> None:
    digest = safe_files.sha256(index)
    assert verify.is_verified(digest)
    folder().chmod(0o777)
    try:
        assert not verify.is_verified(digest)
    finally:
        folder().chmod(0o700)


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_the_folder_of_marks_is_private_under_any_umask(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.system.safe_files.user_cache", lambda: tmp_path / "cache")
    before = os.umask(0)
    try:
        verify.remember_verified("0" * 64)
    finally:
        os.umask(before)
    assert (tmp_path / "cache/checked").stat().st_mode & 0o777 == 0o700
    assert verify.is_verified("0" * 64)
