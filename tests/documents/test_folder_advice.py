"""What is advised near real folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.documents.folder_advice import folder_advice, other_formats_note
from tests.conftest import write


def test_the_folders_near_a_missing_one_that_hold_pages_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_advice(tmp_path / "docs") == "Name the documentation folder with --docs."
    write(tmp_path, {"manual/deep/a.md": "# A\n", "src/a.py": "", ".hidden/a.md": "# A\n", "README.md": "# R\n"})
    write(tmp_path, {"website/src/empty.ts": "", "website/docs/a.md": "# A\n", "website/b.md": "# B\n"})
    places = f"{tmp_path / 'website/docs'} and {tmp_path / 'manual'}"
    named = f"--docs: {places} hold Markdown, and '.' has README.md."
    assert folder_advice(tmp_path / "docs") == f"Name the documentation folder with {named}"
    write(tmp_path, {"b.md": "# B\n", "c.md": "# C\n"})
    assert folder_advice(tmp_path / "docs").endswith("and '.' has README.md and 2 more Markdown files.")


def test_other_formats_are_named_where_they_are_more_than_the_pages(tmp_path: Path) -> None:
    write(tmp_path, {"a.rst": "", "b/c.RST": "", "b/d.adoc": "", "_build/e.rst": "", ".git/f.rst": "", "g.html": ""})
    note = other_formats_note(tmp_path, 2)
    assert note is not None and note.startswith("1 AsciiDoc file and 2 reStructuredText files in the")
    assert other_formats_note(tmp_path, 3) is None
