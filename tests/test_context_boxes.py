"""Check boxes as tasks: what they begin with, and the source that brings them along."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil import sources
from anvil.context import boxes
from anvil.context.boxes import TaskedDocuments
from anvil.models import Document, Skipped
from tests.conftest import write
from tests.contexts import FILES

TEXTS = {
    "T012 [P] [US1] Write the parser": ("T012", ("P", "US1")),
    "[P] Create the file": (None, ("P",)),
    "[P] T004 Both ways round": ("T004", ("P",)),
    "CHK001: is it testable?": ("CHK001", ()),
    "FR-012 holds": ("FR-012", ()),
    "T1.2.3. A part": ("T1.2.3", ()),
    "T012": ("T012", ()),
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
    documents = TaskedDocuments(sources.working_tree(root))
    path = "specs/001-booking/tasks.md"
    found = documents.read(path)
    assert isinstance(found, Document) and found.page is not None
    tasks = list(boxes.items(path, found.metadata[boxes.KEY]))
    assert [(task.line, task.status, task.id) for task in tasks] == [
        (5, "done", "T001"), (6, "open", "T002"), (7, "open", "T002.1"), (8, "done", None),
        (12, "open", "T012"), (13, "done", "T013"), (14, "open", None), (15, "done", None),
    ]  # fmt: skip
    assert tasks[4].heading == "Tasks: Booking > Phase 2: User Story 1" and tasks[4].labels == ("P", "US1")
    assert tasks[1].text == "T002 [P] Lay out the booking table in db/schema.sql"
    assert isinstance(documents.read("specs/none.md"), Skipped)
    assert documents.scan() is documents.scan()  # the same object while nothing changed, as comparing relies on
