"""Pages and sections as they are typed on the command line."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from anvil.cli import pages
from tests.conftest import write
from tests.support.in_process import complaint, program

ALERTS = "# Alerts\n\nText of alerts.\n\n## Silence\n\nQuiet.\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    write(tmp_path / "docs", {"guides/alerts.md": ALERTS, "b.md": "# B\n\nOther.\n"})
    program("build", "--provider", "none", cwd=tmp_path)
    return tmp_path


def test_a_page_is_known_by_the_end_of_its_path_and_not_by_a_part_of_its_name(project: Path) -> None:
    for typed in ("alerts", "alerts.md", "guides/alerts", "docs/guides/alerts.md"):
        assert program("show", typed, cwd=project).stdout.startswith(ALERTS.rstrip("\n"))
    for typed in ("lerts", "lerts.md"):
        assert f"There is no page {typed}." in complaint("show", typed, cwd=project)


def test_a_line_is_that_of_its_section_up_to_the_end_of_the_page(project: Path) -> None:
    assert program("show", "guides/alerts.md:7", cwd=project).stdout.startswith("## Silence")
    assert "guides/alerts.md ends at line 7: it has no line 8." in complaint("show", "guides/alerts.md:8", cwd=project)


@pytest.mark.skipif(os.name == "nt", reason="there, a working folder cannot be removed")
def test_a_page_without_a_path_from_the_working_folder_has_its_whole_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    removed = tmp_path / "removed"
    removed.mkdir()
    monkeypatch.chdir(removed)  # as on Windows, where no path leads to another drive
    docs = str(tmp_path / "docs")
    assert pages.shown({None: docs}, "a.md", None, None) == "../docs/a.md"
    removed.rmdir()
    assert pages.shown({None: docs}, "a.md", None, None) == f"{docs}/a.md"
