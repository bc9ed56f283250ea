"""Check boxes as tasks: the source that brings them along, and their marks."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.context import tasks as boxes
from anvil.context.context_queries import Context
from anvil.context.settings import ContextOptions, TaskMarks
from anvil.documents.working_tree import WorkingTree
from anvil.errors import ConfigError
from anvil.settings.schema import Config
from anvil.values import Document, Skipped
from tests.conftest import write
from tests.support.context_folders import FILES
from tests.support.in_process import program


def test_documents_bring_their_boxes_along(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    documents = boxes.TaskedDocuments(WorkingTree(root))
    path = "specs/001-booking/tasks.md"
    found = documents.read(path)
    assert isinstance(found, Document) and found.page is not None
    tasks, _ = boxes.tasks_of(path, found.metadata, TaskMarks())
    assert [(task.line, task.status) for task in tasks] == [
        (5, "done"),
        (6, "open"),
        (7, "open"),
        (8, "done"),
        (12, "open"),
        (13, "done"),
        (14, "open"),
        (15, "done"),
    ]
    assert tasks[4].heading == "Tasks: Booking > Phase 2: User Story 1"
    assert tasks[1].text == "T002 [P] Lay out the booking table in db/schema.sql"
    assert isinstance(documents.read("specs/none.md"), Skipped)
    assert documents.scan() is documents.scan()  # the same object while nothing changed, as comparing relies on


MARKED = """\
# Tasks

- [ ] T001 open
- [x] T002 done
- [X] T003 done
- [✅] T004 done
- [❌] T005 open
- [❌\ufe0f] T006 open
- [-] T007 dropped
- [~] T008 under way
- [?] T009 unknown
- T010 no box
  - a plain list under it
- [P] T011 a label alone

A plain list:

- one
- [P] two

1. [>] moved on
2. [ ] open
"""


def test_marks_that_are_known_and_those_that_are_not(tmp_path: Path) -> None:
    write(tmp_path, {"specs/a/tasks.md": MARKED, "specs/b/tasks.md": "- [ ] one\n", ".git/HEAD": ""})
    with Context(Config(), tmp_path) as context:
        found = context.tasks("all", "specs/a")
        assert [(task.text.split()[0], task.status, task.mark) for task in found] == [
            ("T001", "open", " "),
            ("T002", "done", "x"),
            ("T003", "done", "X"),
            ("T004", "done", "✅"),
            ("T005", "open", "❌"),
            ("T006", "open", "❌\ufe0f"),
            ("T007", "done", "-"),
            ("T008", "open", "~"),
            ("open", "open", " "),
        ]
        told = (
            "3 items of task lists without a known mark: specs/a/tasks.md:11, specs/a/tasks.md:14, "
            "specs/a/tasks.md:21. "
            "Set the known marks with context.tasks.open and context.tasks.done."
        )
        assert context.unmarked() == told and context.unmarked("specs/b") is None
        assert told in context.health().notes and context.health().status == "ok"
        assert told in context.ingest().notes and told in context.ingest().notes  # nothing changed, and still said
    marks = TaskMarks(open=(">",), done=("x", "?"))
    with Context(Config(tables={"context": ContextOptions(tasks=marks)}), tmp_path) as context:  # its index exists
        found = context.tasks("all", "specs/a")
        assert [(task.line, task.status) for task in found if task.mark in ">?"] == [(11, "done"), (21, "open")]
        assert not [task for task in found if task.text.startswith("T004")]
        assert context.ingest().tasks.done == 3


@pytest.mark.parametrize("marks", [{"open": ("x",)}, {"done": ("[",)}, {"done": ("abc",)}, {"open": ("",)}])
def test_marks_that_cannot_be(marks: dict[str, tuple[str, ...]]) -> None:
    with pytest.raises(ConfigError, match=r"context\.tasks has"):
        TaskMarks(**marks)


def test_a_file_over_the_limit_names_the_key_of_the_context(tmp_path: Path) -> None:
    write(tmp_path, {"specs/a.md": "x" * 200, "specs/b.md": "# B\n", "mcp.config.json": '{"maxFileSizeBytes": 100}'})
    done = program("context", "ingest", "--root", tmp_path)
    assert "skipped specs/a.md: too large: 200 bytes, the limit is 100 (context.max_file_size_bytes)" in done.stderr
    (tmp_path / "anvil.toml").write_text("[source]\nmax_file_bytes = 100\n")
    done = program("build", "--docs", "specs", "--provider", "none", "--index", tmp_path / "i.db", cwd=tmp_path)
    assert "the limit is 100 (source.max_file_bytes)" in done.stderr


def test_the_list_of_artifacts_with_their_text(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    with Context(Config(), root) as context:
        assert all(each.content is None for each in context.artifacts())
        found = {each.path: each.content for each in context.artifacts("spec", content=True)}
        assert found == {path: text for path, text in FILES.items() if path.endswith("/spec.md")}


def test_the_script_for_crontabs_comes_with_the_package() -> None:
    own = (Path(__file__).parents[2] / "scripts" / "mcp-ingest.sh").read_text(encoding="utf-8")
    assert program("context", "script").stdout == own
