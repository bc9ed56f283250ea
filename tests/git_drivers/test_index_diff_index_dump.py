"""An index as text: every difference shows, in as few lines as it takes."""

from __future__ import annotations

import difflib
from pathlib import Path

import anvil
from anvil.git_drivers.index_diff import lines
from anvil.index_file import verify
from tests.conftest import PAGES, write


def text(docs: Path) -> list[str]:
    with anvil.open(docs, provider="none") as opened:
        opened.index()
        with verify.open_checked(opened.index_path) as reader:
            return list(lines(reader))


def test_an_edit_changes_its_own_lines_only(docs: Path) -> None:
    before = text(docs)
    assert text(docs) == before
    write(docs, {"install.md": PAGES["install.md"].replace("## Linux\n", "## Linux\n\nA line on top.\n")})
    after = text(docs)
    changed = [line for line in difflib.ndiff(before, after) if line[0] in "+-"]
    pages = [line for line in changed if "install.md" in line or "Install" in line]
    assert [line[0] for line in pages] == ["-", "+", "-", "+"] and "Install > Linux" in pages[3]
    rest = {line.split()[1] for line in changed if line not in pages}
    assert "text" in rest and rest <= {"text", "times"}  # the time is the file's, in whole seconds


def test_what_a_terminal_would_act_on_is_not_printed(docs: Path) -> None:
    write(docs, {"bad.md": "# \x1b[31mRed\x07\n\ntext\n"})
    dumped = text(docs)
    assert all(line.isprintable() for line in dumped) and any("[31mRed" in line for line in dumped)


def test_front_matter_alone_shows_too(docs: Path) -> None:
    before = text(docs)
    write(docs, {"install.md": PAGES["install.md"].replace("tags: [start]", "tags: [begin]")})
    assert any("install.md" in line for line in set(text(docs)) - set(before))
