"""Processes that read a large site: the same pages as one process reads, also when one of them dies."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from anvil.sites import reader_processes
from anvil.sites.page_content import PageRules
from anvil.sites.site_pages import PageFacts
from anvil.system.child_process import ChildProcess
from tests.support.html_sites import page, write

RULES = PageRules(ignore=("h2",))


@pytest.fixture
def files(tmp_path: Path) -> list[tuple[str, str | None]]:
    pages = {f"{n}.html": page(f"Page {n}", f"<h2>no</h2><p>Text {n}.</p>") for n in range(40)}
    link = '<link rel="alternate" type="text/markdown" href="/md/4.md">'
    pages["4.html"] = page("Page 4", "<p>Text 4.</p>", head=link)
    write(tmp_path, {**pages, "3.md": "# Page 3\n\nText *3*.\n"})
    return [*((path, "3.md" if path == "3.html" else None) for path in pages), ("missing.html", None)]


def test_several_processes_read_what_one_reads(
    files: list[tuple[str, str | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(reader_processes.read_all(tmp_path, files, RULES))
    assert reader_processes.unpacked(alone[3].text)[0] == "# Page 3\n\nText *3*.\n"
    assert alone[-1] == (
        "missing.html",
        "",
        PageFacts(problem="it was deleted while the site was read"),
        (),
        None,
        b"",
    )
    assert alone[4].linked == ("md/4.md", "4.md")
    monkeypatch.setattr(reader_processes, "MIN_FILES", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert list(reader_processes.read_all(tmp_path, files, RULES)) == alone


def test_a_process_that_dies_costs_nothing(
    files: list[tuple[str, str | None]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = list(reader_processes.read_all(tmp_path, files, RULES))
    send = ChildProcess.send

    ended: list[ChildProcess] = []

    def killed(self: ChildProcess, message: Mapping[str, Any]) -> None:
        ended.append(self)
        self.kill()
        send(self, message)

    monkeypatch.setattr(reader_processes, "MIN_FILES", 2)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setattr(ChildProcess, "send", killed)
    assert list(reader_processes.read_all(tmp_path, files, RULES)) == alone and ended


@pytest.mark.skipif(os.name == "nt", reason="such names are no names there")
@pytest.mark.parametrize("name", ["\\\\evil\\share\\notes.md", "C:notes.md", "C:\\Users\\notes.md"])
def test_markdown_whose_path_is_another_one_on_windows_is_not_read(tmp_path: Path, name: str) -> None:
    link = f'<link rel="alternate" type="text/markdown" href="/{quote(name, safe="")}">'
    write(tmp_path, {"index.html": page("Page", "<p>Text.</p>", head=link), name: "# Page\n\n*Text*.\n"})
    assert (tmp_path / name).is_file()
    loaded = reader_processes.load(tmp_path, "index.html", None)
    assert (loaded.twin_data, loaded.twin) == (None, None)
    assert not reader_processes.is_inside(tmp_path, name)


@pytest.mark.parametrize("path", ["../secret.md", "in/../../secret.md", "..\\secret.md", "in/\0.md"])
def test_a_file_outside_of_the_folder_is_not_inside(tmp_path: Path, path: str) -> None:
    site = write(tmp_path / "site", {"in/page.md": "text"})
    write(tmp_path, {"secret.md": "text"})
    assert reader_processes.is_inside(site, "in/page.md")
    assert not reader_processes.is_inside(site, path)
