"""File events: told soon, of what matters, and again after the folder was away."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from anvil.documents import file_watcher
from anvil.documents.file_watcher import Watcher
from tests.conftest import write


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Events and the folder are looked at more often than in a server."""
    monkeypatch.setattr(file_watcher, "DEBOUNCE_MS", 60)
    monkeypatch.setattr(file_watcher, "LOOK_MS", 200)
    monkeypatch.setattr(file_watcher, "WATCH_RETRY_S", 0.1)


class Told:
    """Counts calls, and can be waited for."""

    def __init__(self) -> None:
        self.event = threading.Event()

    def __call__(self) -> None:
        self.event.set()

    def soon(self, seconds: float = 10) -> bool:
        return self.event.wait(seconds)


def started(folder: Path, told: Told, *, deep: bool = True) -> Watcher:
    watcher = Watcher(folder, told, deep=deep)
    watcher.start()
    end = time.monotonic() + 10
    while not told.event.is_set() and time.monotonic() < end:  # until it listens
        write(folder, {"probe.md": str(time.monotonic())})
        told.event.wait(0.1)
    time.sleep(0.3)
    told.event.clear()
    return watcher


def test_a_change_anywhere_below_is_told(docs: Path) -> None:
    told = Told()
    watcher = started(docs, told)
    write(docs, {"deep/er/new.md": "# New\n"})
    assert told.soon()
    watcher.close()
    watcher.close()
    assert not watcher._thread.is_alive()


def test_one_folder_alone(docs: Path) -> None:
    told = Told()
    watcher = started(docs, told, deep=False)
    write(docs, {"guides/alerts.md": "# Other\n"})
    assert not told.soon(0.5)
    write(docs, {"index.md": "# Other\n"})
    assert told.soon()
    watcher.close()


def test_a_folder_that_was_away(docs: Path, caplog: pytest.LogCaptureFixture) -> None:
    told = Told()
    watcher = started(docs, told)
    docs.rename(docs.with_name("aside"))
    end = time.monotonic() + 10
    while watcher.problem is None and time.monotonic() < end:
        time.sleep(0.05)
    assert watcher.problem
    time.sleep(0.5)
    assert len([each for each in caplog.records if "No file events" in each.message]) == 1
    told.event.clear()
    docs.with_name("aside").rename(docs)
    assert told.soon()  # what happened meanwhile is told at once
    assert watcher.problem is None
    told.event.clear()
    write(docs, {"new.md": "# New\n"})
    assert told.soon()
    watcher.close()


@pytest.mark.skipif(os.name == "nt", reason="links need a privilege there")
def test_a_link_that_is_set_to_another_folder(docs: Path, tmp_path: Path) -> None:
    told = Told()
    (tmp_path / "current").symlink_to(docs)
    watcher = started(tmp_path / "current", told)
    (tmp_path / "next").symlink_to(write(tmp_path / "other", {"other.md": "# Other\n"}))
    (tmp_path / "next").replace(tmp_path / "current")
    assert told.soon()  # that it is another one
    told.event.clear()
    write(tmp_path / "other", {"other.md": "# Changed\n"})
    assert told.soon()
    watcher.close()


NAMESPACE = ("unshare", "--user", "--map-root-user", "sh", "-c", 'echo "$1" > "/proc/sys/user/$0" && shift && "$@"')
"""A program with a limit of its own: name of the limit, number, words of the program."""


@pytest.mark.skipif(shutil.which("unshare") is None, reason="limits of watches are those of Linux")
@pytest.mark.parametrize(
    ("own", "number", "named"),
    [
        ("max_inotify_watches", "1", "sudo sysctl -w fs.inotify.max_user_watches=524288"),
        ("max_inotify_instances", "0", "sudo sysctl -w fs.inotify.max_user_instances=1024"),
    ],
)
def test_a_limit_of_watches_is_named_with_the_command_that_raises_it(
    docs: Path, own: str, number: str, named: str
) -> None:
    if subprocess.run([*NAMESPACE, own, number, "true"], capture_output=True).returncode:
        pytest.skip("this system does not let users make namespaces")
    code = (
        "import logging, sys, time; from pathlib import Path; from anvil.documents.file_watcher import Watcher\n"
        "logging.basicConfig(); watcher = Watcher(Path(sys.argv[1]), print); watcher.start()\n"
        "while watcher.problem is None: time.sleep(0.02)\n"
    )
    done = subprocess.run([*NAMESPACE, own, number, sys.executable, "-c", code, docs], capture_output=True, text=True)
    assert named in done.stderr
