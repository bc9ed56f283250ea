"""Check boxes as tasks: read while a document is taken apart, kept with it in the index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from anvil.backends.sources.git_tree import Over
from anvil.core.config.schema import SourceOptions, TaskMarks
from anvil.core.markdown.lines import LINE_END
from anvil.models.context import TaskItem
from anvil.models.documents import Document, Skipped, Task

KEY = "anvil.tasks"
"""Where a document's metadata holds them."""

_NUMBERED = re.compile(r"[\s>*+-]*(\d+)[.)]\s+\[")
_MARK = re.compile(r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>[A-Z]{1,6}-?\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?")


class ContextFiles(SourceOptions):
    """Which files are artifacts. They have a limit of their own."""

    limit_key = "context.max_file_size_bytes"


class TaskedDocuments(Over):
    """Documents that bring their check boxes along."""

    def read(self, path: str) -> Document | Skipped:
        found = self.plain(path)
        if isinstance(found, Skipped):
            return found
        from anvil.core.markdown import parser

        page = parser.parse(found.text)
        lines = LINE_END.split(page.text) if page.tasks else []
        tasks = [stored(task, lines[task.line - page.first_line] if task.mark else "") for task in page.tasks]
        return replace(found, page=page, metadata={**found.metadata, KEY: tasks})

    def plain(self, path: str) -> Document | Skipped:
        """The document alone, not taken apart."""
        return super().read(path)


def stored(task: Task, line: str) -> list[Any]:
    """A task as JSON; ``line`` is its first line in the source, which knows its number in an ordered list."""
    number = _NUMBERED.match(line)
    return [task.line, task.text, task.mark, task.heading_path, number[1] if number else None, task.group]


def parted(stored: list[Any], known: TaskMarks) -> tuple[list[Any], list[int]]:
    """The stored items that are tasks by the marks that are known; and, of the lists that they are in, the lines of
    those that have none."""
    groups = {box[5] for box in stored if known.status(box[2])}
    return (
        [box for box in stored if known.status(box[2])],
        [box[0] for box in stored if box[5] in groups and not known.status(box[2])],
    )


def items(path: str, boxes: list[Any], known: TaskMarks) -> Iterator[TaskItem]:
    """The tasks among the stored items of a document, in its order."""
    for line, text, mark, heading, number, _ in boxes:
        status = known.status(mark)
        if status is not None:
            id_, labels = marks(text)
            yield TaskItem(path, line, text, status, id_ or number, labels, heading, mark)


def marks(text: str) -> tuple[str | None, tuple[str, ...]]:
    """The id and the labels that a task's text begins with: ``T012 [P] [US1] Write the parser``."""
    id_, labels, at = None, [], 0
    while found := _MARK.match(text, at):
        if found["label"]:
            labels.append(found["label"])
        elif id_ is None:
            id_ = found["id"]
        else:
            break
        at = found.end()
    return id_, tuple(labels)
