"""Check boxes as tasks: read when a document is parsed, stored in its metadata, and chosen by status."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from anvil.context.settings import TaskMarks
from anvil.documents.document_source import SourceWrapper
from anvil.values import Document, Skipped

TASKS_KEY = "anvil.tasks"
"""The key of the tasks in a document's metadata: for each check box the line, text, mark, breadcrumb and group, as in
:class:`anvil.values.Task`."""
METADATA_VERSION = 7
"""Raised when the same files give other tasks or metadata. An index of an older version is built again."""


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of check boxes: not ticked, and ticked."""

    open: int
    done: int


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A check box. ``mark``: the character in it."""

    artifactPath: str
    line: int
    text: str
    status: str
    heading: str
    mark: str = " "


class TaskedDocuments(SourceWrapper):
    """Documents with their check boxes in the metadata."""

    def read(self, path: str) -> Document | Skipped:
        document = super().read(path)
        if isinstance(document, Skipped):
            return document
        from anvil.text import markdown_sections

        page = markdown_sections.parse(document.text)
        # plans have lists of files, which Markdown joins with the steps below them: those have no mark
        boxes = [[box.line, box.text, box.mark, box.heading_path, box.group] for box in page.tasks if box.mark]
        return replace(document, page=page, metadata={**document.metadata, TASKS_KEY: boxes})

    def plain(self, path: str) -> Document | Skipped:
        """The document without parsing it."""
        return super().read(path)


def tasks_of(path: str, metadata: Mapping[str, Any], known: TaskMarks) -> tuple[tuple[TaskItem, ...], tuple[int, ...]]:
    """The tasks of a document by its metadata; and the lines of items in the same lists that have no known mark."""
    boxes = metadata.get(TASKS_KEY, [])
    tasks = [
        TaskItem(path, line, text, status, heading, mark)
        for line, text, mark, heading, *_ in boxes
        if (status := known.status(mark)) is not None
    ]
    groups = {group for _, _, mark, *_, group in boxes if known.status(mark)}
    return tuple(tasks), tuple(line for line, _, mark, *_, group in boxes if group in groups and not known.status(mark))
