"""The cache of one user, in a folder that several users may share."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import anvil
from anvil.errors import ConfigError
from anvil.fetch.fetched_cache import FetchedCache
from anvil.system import user_folders

pytestmark = pytest.mark.skipif(os.name == "nt", reason="users and modes of POSIX")


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder around the cache."""
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "shared" / "anvil"))
    return tmp_path / "shared"


def become_another_user(monkeypatch: pytest.MonkeyPatch) -> str:
    """The number of a user who owns none of the files here."""
    number = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: number)
    return str(number)


def test_what_another_user_made_is_not_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert user_folders.cache() == shared / "anvil"
    user_folders.make(user_folders.cache())
    assert user_folders.cache() == shared / "anvil"
    number = become_another_user(monkeypatch)
    assert user_folders.cache() == FetchedCache().folder.parent == shared / f"anvil-{number}"
    (shared / f"anvil-{number}").mkdir()  # by the first user, before the second one comes
    with pytest.raises(ConfigError, match=f"anvil-{number} belongs to another user"):
        user_folders.cache()


def test_what_all_users_may_write_to_is_not_used_and_what_a_group_may_write_to_is(shared: Path) -> None:
    user_folders.make(shared / "anvil")
    (shared / "anvil").chmod(0o770)
    assert user_folders.cache() == shared / "anvil"
    (shared / "anvil").chmod(0o777)
    assert user_folders.cache() == shared / f"anvil-{os.geteuid()}"


def test_a_folder_that_a_group_may_write_to_is_not_private(tmp_path: Path) -> None:
    for mode, is_private in ((0o700, True), (0o755, True), (0o770, False), (0o707, False)):
        tmp_path.chmod(mode)
        assert user_folders.is_private(tmp_path) is is_private
    assert not user_folders.is_private(tmp_path / "missing")


def test_a_link_must_be_the_users_own(shared: Path) -> None:
    shared.mkdir()
    (shared / "elsewhere").mkdir(mode=0o700)
    for target in ("elsewhere", "missing"):
        (shared / "anvil").symlink_to(shared / target)
        assert user_folders.cache() == shared / "anvil"
        if os.geteuid() == 0:
            os.lchown(shared / "anvil", 1, 1)
            assert user_folders.cache() == shared / "anvil-0"
        (shared / "anvil").unlink()


def test_each_level_that_is_made_is_private_under_any_umask(shared: Path) -> None:
    before = os.umask(0)
    try:
        user_folders.make(shared / "anvil" / "fetched" / "objects")
    finally:
        os.umask(before)
    made = [shared, *shared.rglob("*")]
    assert len(made) == 4 and {each.stat().st_mode & 0o777 for each in made} == {0o700}


def test_a_search_needs_no_cache(shared: Path, docs: Path) -> None:
    for name in ("anvil", f"anvil-{os.geteuid()}"):
        (shared / name).mkdir(parents=True)
        (shared / name).chmod(0o777)
    with anvil.open(docs, provider="local") as opened:
        opened.index()
        assert opened.search("lighthouse").results
    assert not list(shared.rglob("*/*"))
