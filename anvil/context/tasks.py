"""Tasks: check boxes are read when a document is parsed, stored in its metadata, and get a status by their marks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from anvil.context.settings import TaskMarks
from anvil.documents.document_source import SourceWrapper
from anvil.values import Box, Document, Skipped

TASKS_KEY = "anvil.tasks"
"""The key of the check boxes in a document's metadata. Each is a dict with the fields of :class:`anvil.values.Box`."""
METADATA_VERSION = 8
"""Increase it when the same files give other tasks or metadata. An index of an older version is built again."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of open and done tasks."""

    open: int = 0
    done: int = 0

    @classmethod
    def of(cls, tasks: Iterable[TaskItem]) -> TaskCounts:
        return cls(**Counter(task.status for task in tasks))

    def __str__(self) -> str:
        return f"{self.open} open, {self.done} done"


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A task. ``mark``: the character in its check box."""

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
        # Plans have lists of files, which Markdown joins with the steps below them. Their items have no mark.
        boxes = [box._asdict() for box in page.boxes if box.mark]
        return replace(document, page=page, metadata={**document.metadata, TASKS_KEY: boxes})

    def plain(self, path: str) -> Document | Skipped:
        """The document without its check boxes, so without parsing it."""
        return super().read(path)


def tasks_of(path: str, metadata: Mapping[str, Any], marks: TaskMarks) -> tuple[tuple[TaskItem, ...], tuple[int, ...]]:
    """The tasks of a document, and the lines of items in the same lists whose mark is unknown."""
    boxes = [Box(**box) for box in metadata.get(TASKS_KEY, [])]
    tasks = [
        TaskItem(path, box.line, box.text, status, box.heading_path, box.mark)
        for box in boxes
        if (status := marks.status(box.mark)) is not None
    ]
    groups = {box.group for box in boxes if marks.status(box.mark)}
    return tuple(tasks), tuple(box.line for box in boxes if box.group in groups and not marks.status(box.mark))
