from __future__ import annotations

import _thread
import contextlib
import errno
import os
import shutil
import threading
import time
from pathlib import Path

import apsw
import pytest

from anvil.errors import BuildError, FolderVanished, IndexBusy
from anvil.index_file import publish
from tests.conftest import linked


def test_a_build_that_ends_leaves_the_lock_of_the_one_that_began_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, second = tmp_path / "index.db", contextlib.ExitStack()

    class Slow(apsw.Connection):
        """Somebody else begins as soon as it is closed."""

        def close(self, force: bool = False) -> None:
            super().close(force)
            monkeypatch.undo()
            second.enter_context(publish.exclusive(path, 0.0))

    monkeypatch.setattr(apsw, "Connection", Slow)
    with publish.exclusive(path, 0.0):
        pass
    with second:
        assert path.with_name("index.db.lock").exists()
        with pytest.raises(IndexBusy), publish.exclusive(path, 0.0):
            pass
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("there", [True, False])
def test_a_lock_that_is_a_link_is_not_followed(tmp_path: Path, there: bool) -> None:
    target = tmp_path / "away.db"
    if there:
        target.write_bytes(b"")
    linked(tmp_path / "index.db.lock", target)
    with pytest.raises(BuildError, match="lock is a link"), publish.exclusive(tmp_path / "index.db", 0.0):
        pass
    assert target.exists() == there


def test_a_lock_that_holds_something_is_not_opened(tmp_path: Path) -> None:
    file = tmp_path / "index.db.lock"
    with contextlib.closing(apsw.Connection(str(file))) as handle:
        handle.execute("CREATE TABLE x (y)")
    journal = tmp_path / "index.db.lock-journal"
    journal.write_bytes(b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7".ljust(512, b"\1"))
    with pytest.raises(BuildError, match="not a lock of Anvil's"), publish.exclusive(tmp_path / "index.db", 0.0):
        pass
    assert file.exists() and journal.exists()


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be removed there")
def test_a_file_in_place_of_the_folder_is_told(tmp_path: Path) -> None:
    with pytest.raises(FolderVanished, match="emptied or replaced"), publish.exclusive(tmp_path / "docs/index.db"):
        shutil.rmtree(tmp_path / "docs")
        (tmp_path / "docs").write_text("")
        raise BuildError("docs/index.db cannot be written.")


@pytest.mark.skipif(os.name == "nt", reason="there SQLite has other locks")
def test_a_file_system_without_locks_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """SQLite says that another process holds the lock, and would wait for it."""
    import fcntl

    def without(*given: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    with publish.exclusive(tmp_path / "index.db"):  # which is what SQLite takes each lock for
        monkeypatch.setattr(fcntl, "lockf", without)
        with pytest.raises(BuildError, match="without locks"), publish.exclusive(tmp_path / "index.db", 60.0):
            pass
        assert list(tmp_path.iterdir()) == []


def test_a_wait_for_another_process_is_reported_in_seconds(tmp_path: Path) -> None:
    reports: list[tuple[str, int, int]] = []
    path = tmp_path / "index.db"
    waiting = publish.exclusive(path, 2.0, lambda *report: reports.append(report))
    with publish.exclusive(path), pytest.raises(IndexBusy), waiting:
        pass
    stage = f"waiting for another process that writes {path}: second"
    assert list(dict.fromkeys(reports)) == [(stage, 0, 2), (stage, 1, 2)]


def test_an_interrupt_ends_the_wait_for_a_lock(tmp_path: Path) -> None:
    with publish.exclusive(tmp_path / "index.db"):
        interrupt = threading.Timer(0.2, _thread.interrupt_main)
        began = time.monotonic()
        interrupt.start()
        with pytest.raises(KeyboardInterrupt), publish.exclusive(tmp_path / "index.db", 60.0):
            pass
        assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []
