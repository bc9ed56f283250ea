"""``anvil context``: what its commands print."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import write
from tests.support.context_folders import FILES
from tests.support.in_process import program


def test_open_tasks_are_printed_if_no_status_is_named(tmp_path: Path) -> None:
    write(tmp_path, FILES)
    program("context", "ingest", cwd=tmp_path)
    by_default, still_open, done = (
        program("context", "tasks", *words, cwd=tmp_path).stdout
        for words in ((), ("--status", "open"), ("--status", "done"))
    )
    assert by_default == still_open and still_open and done and not {*still_open.splitlines()} & {*done.splitlines()}
