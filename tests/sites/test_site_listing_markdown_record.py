"""The record of the Markdown that Anvil wrote into a site, which the site's author may have changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anvil.sites.site_listing import RECORD, Record, read_record, recorded_paths
from tests.conftest import write


def test_a_record_is_read_back(tmp_path: Path) -> None:
    record = Record({"b.md": "2", "a.md": "1"}, {"llms.txt": "3"}, ("b.html", "a.html"))
    write(tmp_path, {RECORD: record.text()})
    read = read_record(tmp_path)
    assert read == Record({"a.md": "1", "b.md": "2"}, {"llms.txt": "3"}, ("a.html", "b.html"))
    assert read.text() == record.text()
    assert recorded_paths(tmp_path) == {"a.md", "b.md", "llms.txt"}
    assert read.is_own("a.md", "1") and read.is_own("llms.txt", "3")
    assert not read.is_own("a.md", "2") and not read.is_own("c.md", "1")


@pytest.mark.parametrize("text", ["", "[]", "{}", "null", '{"format": 2, "files": {}, "linked": []}', '{"format": 1}'])
def test_another_file_is_no_record(tmp_path: Path, text: str) -> None:
    write(tmp_path, {RECORD: text})
    assert read_record(tmp_path) == Record()
    assert recorded_paths(tmp_path) == frozenset()


def test_paths_out_of_the_site_and_other_files_are_left_out(tmp_path: Path) -> None:
    paths = ["../x.md", "/etc/x.md", "a//b.md", "a\\b.md", "C:x.md", "./x.md", "index.html", "a/llms.txt", "ok/x.md"]
    values = {"format": 1, "files": dict.fromkeys(paths, "1"), "linked": ["../x.html", "ok.html"]}
    write(tmp_path, {RECORD: json.dumps(values)})
    assert read_record(tmp_path) == Record({"ok/x.md": "1"}, {}, ("ok.html",))


def test_a_changed_record_is_read_again(tmp_path: Path) -> None:
    for names in ({"a.md"}, {"b.md"}, {"c.md", "d.md"}):
        (tmp_path / RECORD).unlink(missing_ok=True)
        write(tmp_path, {RECORD: Record(dict.fromkeys(names, "1")).text()})
        assert recorded_paths(tmp_path) == names
