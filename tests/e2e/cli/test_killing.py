"""Builds that are killed, and builds side by side: the path holds the old index or the new one, whole."""

from __future__ import annotations

import contextlib
import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import anvil
from anvil.index_file import publish, verify
from tests.conftest import write
from tests.support import in_process
from tests.support.programs import environment, program

SOAK = os.environ.get("ANVIL_SOAK") == "1"
ROUNDS = 60 if SOAK else 8


def edition(docs: Path, number: int) -> None:
    """Write the pages anew, so that each build has all of them to do."""
    text = "Words of edition {0}, page {1}, paragraph {2}, among many that are the same in each of them.\n\n"
    pages = range(80)
    write(
        docs,
        {
            f"{page}.md": f"# Page {page}\n\n" + "".join(text.format(number, page, i) for i in range(30))
            for page in pages
        },
    )


def start(docs: Path, index: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "anvil", "build", "--docs", str(docs), "--index", str(index), "--provider", "none"]
    return subprocess.Popen([*command, "--quiet"], env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def finish(process: subprocess.Popen[bytes]) -> None:
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors.decode()


def editions(index: Path) -> set[str]:
    """Which editions an index holds, after it was checked whole."""
    verify.check(index)
    with anvil.open(index=index, provider="none") as alone:
        found = {
            chunk.content.split("edition ")[1].split(",")[0]
            for page in alone.list_pages().pages
            for chunk in alone.get_page(page.file_path).chunks
        }
    return found


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """(docs, index), and a working folder with neither."""
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    (tmp_path / "docs").mkdir()
    return tmp_path / "docs", tmp_path / "out" / "index.db"


@pytest.mark.slow
def test_a_killed_build_leaves_the_old_index_or_the_new_one(place: tuple[Path, Path]) -> None:
    docs, index = place
    edition(docs, -1)
    finish(start(docs, index))  # the first is slower than those after it
    edition(docs, 0)
    began = time.monotonic()
    finish(start(docs, index))
    length = time.monotonic() - began
    chance = random.Random(time.time_ns() if SOAK else 5)
    stands, killed = 0, 0
    for number in range(1, ROUNDS + 1):
        edition(docs, number)
        process = start(docs, index)
        time.sleep(length * chance.uniform(0.2, 1.1))
        if process.poll() is None:
            killed += 1
        else:
            length *= 0.5
        process.kill()
        process.communicate()
        held = editions(index)
        assert held in ({str(stands)}, {str(number)})
        stands = int(held.pop())
    assert killed > ROUNDS // 4
    finish(start(docs, index))
    assert editions(index) == {str(ROUNDS)}
    assert [path.name for path in index.parent.iterdir()] == ["index.db"]


def test_two_builds_at_once_leave_one_sound_index(place: tuple[Path, Path]) -> None:
    docs, index = place
    edition(docs, 1)
    ends = [process.communicate(timeout=60)[1] for process in [start(docs, index) for _ in range(3)]]
    assert ends == [b"", b"", b""]
    assert editions(index) == {"1"}
    assert [path.name for path in index.parent.iterdir()] == ["index.db"]


def test_what_a_dead_build_left_behind_blocks_nobody(place: tuple[Path, Path]) -> None:
    docs, index = place
    edition(docs, 1)
    index.parent.mkdir()
    index.with_name("index.db.lock").write_bytes(b"")
    index.with_name("index.db.new").write_bytes(b"half of an index")
    began = time.monotonic()
    program("build", "--docs", docs, "--index", index, "--provider", "none")
    assert time.monotonic() - began < 30
    assert editions(index) == {"1"} and [path.name for path in index.parent.iterdir()] == ["index.db"]


def test_readers_are_answered_while_the_index_is_rebuilt(place: tuple[Path, Path]) -> None:
    docs, index = place
    edition(docs, 0)
    finish(start(docs, index))
    seen: list[str] = []
    with anvil.open(index=index, provider="none") as alone:
        edition(docs, 1)
        process = start(docs, index)
        while process.poll() is None:
            hits = alone.search("words of edition", 20).results
            held = {hit.content.split("edition ")[1].split(",")[0] for hit in hits}
            assert len(hits) == 20 and len(held) == 1
            seen += held
            time.sleep(0.02)
        finish(process)
        seen.append(alone.get_page("7.md").chunks[0].content.split("edition ")[1][0])
    assert seen == sorted(seen) and seen[-1] == "1" and "0" in seen


def test_a_build_says_that_it_waits_for_another_process(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nText.\n"})
    with contextlib.ExitStack() as held:
        held.enter_context(publish.exclusive(docs / ".anvil/index.db"))
        threading.Timer(1.5, held.close).start()
        done = in_process.program("build", "--provider", "none", "--docs", "docs", cwd=tmp_path)
    assert "anvil: waiting for another process that writes docs/.anvil/index.db: second 1 of 600\n" in done.stderr
    assert (docs / ".anvil/index.db").exists()
