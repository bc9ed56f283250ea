"""Check boxes as tasks: what they begin with, and the source that brings them along."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anvil.context import tasks as boxes
from anvil.context.repository_context import Context
from anvil.context.settings import ContextOptions, TaskMarks
from anvil.documents.working_tree import WorkingTree
from anvil.errors import ConfigError
from anvil.settings.schema import Config
from anvil.values import Document, Skipped
from tests.conftest import write
from tests.support.context_folders import FILES
from tests.support.in_process import program

TEXTS = {
    "T012 [P] [US1] Write the parser": ("T012", ("P", "US1")),
    "[P] Create the file": (None, ("P",)),
    "[P] T004 Both ways round": ("T004", ("P",)),
    "CHK001: is it testable?": ("CHK001", ()),
    "FR-012 holds": ("FR-012", ()),
    "T1.2.3. A part": ("T1.2.3", ()),
    "T012": ("T012", ()),
    "#3 The list is empty": ("#3", ()),
    "#12.3 [high] A subtask": ("#12.3", ("high",)),
    "# a heading": (None, ()),
    "Use [P] in the middle": (None, ()),
    "TODAY is no id": (None, ()),
    "T012a is none either": (None, ()),
    "HTTP2 and T2 begin differently": ("HTTP2", ()),
    "T001 T002 only the first": ("T001", ()),
    "": (None, ()),
}


@pytest.mark.parametrize("text", TEXTS)
def test_ids_and_labels(text: str) -> None:
    assert boxes.marks(text) == TEXTS[text]


def test_documents_bring_their_boxes_along(tmp_path: Path) -> None:
    root = write(tmp_path, FILES)
    documents = boxes.TaskedDocuments(WorkingTree(root))
    path = "specs/001-booking/tasks.md"
    found = documents.read(path)
    assert isinstance(found, Document) and found.page is not None
    tasks, _ = boxes.tasks_of(path, found.metadata, TaskMarks())
    assert [(task.line, task.status, task.id) for task in tasks] == [
        (5, "done", "T001"),
        (6, "open", "T002"),
        (7, "open", "T002.1"),
        (8, "done", None),
        (12, "open", "T012"),
        (13, "done", "T013"),
        (14, "open", "1"),
        (15, "done", "2"),
    ]
    assert tasks[4].heading == "Tasks: Booking > Phase 2: User Story 1" and tasks[4].labels == ("P", "US1")
    assert tasks[1].text == "T002 [P] Lay out the booking table in db/schema.sql"
    assert isinstance(documents.read("specs/none.md"), Skipped)
    assert documents.scan() is documents.scan()  # the same object while nothing changed, as comparing relies on


BACKLOG = "---\nstatus: In Progress\nassignee:\n  - '@ada'\nlabels: ui\n---\n- [ ] It has an owner\n"


@pytest.mark.parametrize("is_tagged", [True, False])
def test_tasks_of_taskmaster(is_tagged: bool, tmp_path: Path) -> None:
    sub = {"id": 1, "title": "Moor the\nboat", "status": "in-progress", "dependencies": [], "details": "At pier 4."}
    tasks = [
        {"id": 7, "title": "Cross", "status": "done", "priority": "high", "subtasks": [sub], "dependencies": [5, "6"]},
        {"id": 8, "title": "Wait", "status": "cancelled", "priority": None, "testStrategy": "See the narwhal."},
    ]
    written = {"tasks": tasks, "metadata": {"projectName": "ferry"}}
    text = json.dumps({"master": written, "empty": {"tasks": []}} if is_tagged else written)
    write(tmp_path, {".taskmaster/tasks/tasks.json": text, ".taskmaster/tasks/other.json": "{}"})
    with Context(Config(), tmp_path) as context:
        found = [(task.id, task.status, task.labels, task.text) for task in context.tasks("all")]
        (artifact,) = context.artifacts(content=True)
        lines = (artifact.content or "").splitlines()
        assert [lines[task.line - 1][:7] for task in context.tasks("all")] == ["- [x] #", "- [ ] #", "- [-] #"]
        assert context.search("narwhal")[0].startLine <= lines.index("See the narwhal.") + 1
    assert found == [
        ("#7", "done", ("high",), "#7 [high] Cross"),
        ("#7.1", "open", ("in-progress",), "#7.1 [in-progress] Moor the boat"),
        ("#8", "done", ("cancelled",), "#8 [cancelled] Wait"),
    ]
    assert (artifact.type, lines[0]) == ("tasks", "# master" if is_tagged else "# Tasks")
    assert "After 5, 6." in lines and "At pier 4." in lines


def test_a_file_of_taskmaster_with_anything_else_in_it_has_no_tasks(tmp_path: Path) -> None:
    for text in ("{", "[1]", '{"tasks": 3}', '{"master": 1, "x": {"tasks": [2]}}'):
        assert boxes.taskmaster_page(text) == ""


def test_labels_of_the_front_matter_are_those_of_all_tasks_of_a_file(tmp_path: Path) -> None:
    listed = "---\nlabels:\n  - web-ui\n  - 7\n  - bug\n---\n- [ ] #1 It is saved\n- [x] [P] #2 It is shown\n"
    root = write(tmp_path, {"specs/1.md": listed, "specs/2.md": BACKLOG})
    with Context(Config(), root) as context:
        assert [(each.id, each.labels) for each in context.tasks("all", label="Bug")] == [
            ("#1", ("web-ui", "bug")),
            ("#2", ("P", "web-ui", "bug")),
        ]
        assert [each.id for each in context.tasks(label="web-ui")] == ["#1"] and len(context.tasks()) == 2
        for label in ("@ada", "in progress", "ui"):
            assert [each.artifactPath for each in context.tasks(label=label)] == ["specs/2.md"]


def test_a_file_has_50_labels_at_most(tmp_path: Path) -> None:
    """Each task has them all: many labels and many tasks in one file would fill the memory."""
    many = "".join(f"  - l{number}\n" for number in range(60))
    with Context(Config(), write(tmp_path, {"specs/1.md": f"---\nlabels:\n{many}---\n- [ ] it\n"})) as context:
        (task,) = context.tasks()
        assert len(task.labels) == 50 and task.labels[-1] == "l49"


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
        assert [(task.id, task.status, task.mark) for task in found] == [
            ("T001", "open", " "),
            ("T002", "done", "x"),
            ("T003", "done", "X"),
            ("T004", "done", "✅"),
            ("T005", "open", "❌"),
            ("T006", "open", "❌\ufe0f"),
            ("T007", "done", "-"),
            ("T008", "open", "~"),
            ("2", "open", " "),
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
        assert [(task.id, task.status) for task in found if task.mark in ">?"] == [("T009", "done"), ("1", "open")]
        assert not [task for task in found if task.id == "T004"]
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
