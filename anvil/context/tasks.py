"""Check boxes as tasks: read when a document is parsed, stored in its metadata, and chosen by status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anvil.context.settings import TaskMarks
from anvil.documents.document_source import SourceWrapper
from anvil.values import Box, Document, Skipped

TASKS_KEY = "anvil.tasks"
"""The key of the tasks in a document's metadata: a :class:`anvil.values.Box` with its fields for each check box."""
METADATA_VERSION = 8
"""Raised when the same files give other tasks or metadata. An index of an older version is built again."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of check boxes: not ticked, and ticked."""

    open: int = 0
    done: int = 0

    @classmethod
    def of(cls, tasks: Iterable[TaskItem]) -> TaskCounts:
        return cls(**Counter(task.status for task in tasks))

    def __str__(self) -> str:
        return f"{self.open} open, {self.done} done"


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A check box. ``mark``: the character in it."""

    artifactPath: str
    line: int
    text: str
    status: str
    heading: str
    mark: str = " "

    def __str__(self) -> str:
        return f"{self.artifactPath}:{self.line}: [{self.mark}] {self.text}"


class TaskedDocuments(SourceWrapper):
    """Documents with their check boxes in the metadata."""

    def read(self, path: str) -> Document | Skipped:
        document = super().read(path)
        if isinstance(document, Skipped):
            return document
        from anvil.text import markdown_sections

        page = markdown_sections.parse(document.text)
        # plans have lists of files, which Markdown joins with the steps below them: those have no mark
        boxes = [box._asdict() for box in page.boxes if box.mark]
        return replace(document, page=page, metadata={**document.metadata, TASKS_KEY: boxes})

    def plain(self, path: str) -> Document | Skipped:
        """The document without parsing it."""
        return super().read(path)


def tasks_of(path: str, metadata: Mapping[str, Any], known: TaskMarks) -> tuple[tuple[TaskItem, ...], tuple[int, ...]]:
    """The tasks of a document by its metadata; and the lines of items in the same lists that have no known mark."""
    boxes = [Box(**box) if isinstance(box, dict) else _earlier(*box) for box in metadata.get(TASKS_KEY, [])]
    tasks = [
        TaskItem(path, box.line, box.text, status, box.heading_path, box.mark)
        for box in boxes
        if (status := known.status(box.mark)) is not None
    ]
    groups = {box.group for box in boxes if known.status(box.mark)}
    return tuple(tasks), tuple(box.line for box in boxes if box.group in groups and not known.status(box.mark))


def _earlier(line: int, text: str, mark: str, heading: str, *rest: Any) -> Box:
    """A box as earlier versions stored it, until the next ingestion."""
    return Box(line, 1, mark, rest[-1], text, heading)
