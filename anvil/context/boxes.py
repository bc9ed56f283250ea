"""Check boxes as tasks: read while a document is taken apart, kept with it in the index."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from anvil.context.answers import TaskItem
from anvil.cutting import LINE_END
from anvil.models import Document, Skipped, Task
from anvil.sources import Over

KEY = "anvil.tasks"
"""Where a document's metadata holds them."""

_NUMBERED = re.compile(r"[\s>*+-]*(\d+)[.)]\s+\[")
_MARK = re.compile(r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>[A-Z]{1,6}-?\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?")


class TaskedDocuments(Over):
    """Documents that bring their check boxes along."""

    def read(self, path: str) -> Document | Skipped:
        found = self.plain(path)
        if isinstance(found, Skipped):
            return found
        from anvil import markdown

        page = markdown.parse(found.text)
        lines = LINE_END.split(page.text) if page.tasks else []
        tasks = [stored(task, lines[task.line - page.first_line]) for task in page.tasks]
        return replace(found, page=page, metadata={**found.metadata, KEY: tasks})

    def plain(self, path: str) -> Document | Skipped:
        """The document alone, not taken apart."""
        return super().read(path)


def stored(task: Task, line: str) -> list[Any]:
    """A task as JSON; ``line`` is its first line in the source, which knows its number in an ordered list."""
    number = _NUMBERED.match(line)
    return [task.line, task.text, int(task.done), task.heading_path, number[1] if number else None]


def is_done(box: list[Any]) -> bool:
    """Whether a stored task is ticked."""
    return bool(box[2])


def items(path: str, boxes: list[Any]) -> Iterator[TaskItem]:
    """The stored tasks of a document, in its order."""
    for line, text, done, heading, number in boxes:
        id_, labels = marks(text)
        yield TaskItem(path, line, text, "done" if done else "open", id_ or number, labels, heading)


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
