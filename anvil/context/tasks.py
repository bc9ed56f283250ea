"""Check boxes as tasks. They are read when a document is parsed, and stored in its metadata."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Literal

from anvil.context.values import TaskItem
from anvil.documents.document_source import SourceWrapper
from anvil.errors import ConfigError
from anvil.formats.characters import LINE_END
from anvil.settings.schema import SourceOptions
from anvil.values import Document, Skipped, Task

KEY = "anvil.tasks"
"""The key of the tasks in a document's metadata."""

_NUMBERED = re.compile(r"[\s>*+-]*(\d+)[.)]\s+\[")
_MARK = re.compile(r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>[A-Z]{1,6}-?\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?")


@dataclass(frozen=True, slots=True)
class TaskMarks:
    """The characters in a check box. ``[ ]`` is open. Case is ignored."""

    open: tuple[str, ...] = ("~", "❌")
    """Marks of open tasks."""
    done: tuple[str, ...] = ("x", "✅", "-")
    """Marks of tasks that are done or dropped."""

    def __post_init__(self) -> None:
        for mark in (*self.open, *self.done):
            if not re.fullmatch(r"[^\[\]\s\\]{1,2}", mark):
                raise ConfigError(f"context.tasks has the mark {mark!r}. Use one or two characters, no brackets.")
        if both := {_bare(mark) for mark in self.open} & {_bare(mark) for mark in self.done}:
            raise ConfigError(f"context.tasks has {min(both)!r} as open and as done. Leave it in one of them.")

    def status(self, mark: str) -> Literal["open", "done"] | None:
        """The status for a mark; None for an unknown mark."""
        if mark == " " or _bare(mark) in map(_bare, self.open):
            return "open"
        return "done" if mark and _bare(mark) in map(_bare, self.done) else None


def _bare(mark: str) -> str:
    return mark.replace("\ufe0f", "").casefold()  # the selector for a coloured emoji


class ContextFiles(SourceOptions):
    """The options that select artifacts. Their size limit is another key than that of documentation."""

    limit_key = "context.max_file_size_bytes"


class TaskedDocuments(SourceWrapper):
    """Documents with their check boxes in the metadata."""

    def read(self, path: str) -> Document | Skipped:
        document = self.plain(path)
        if isinstance(document, Skipped):
            return document
        from anvil.text import markdown_parser

        page = markdown_parser.parse(document.text)
        lines = LINE_END.split(page.text) if page.tasks else []
        tasks = [stored(task, lines[task.line - page.first_line] if task.mark else "") for task in page.tasks]
        return replace(document, page=page, metadata={**document.metadata, KEY: tasks})

    def plain(self, path: str) -> Document | Skipped:
        """The document without parsing it."""
        return super().read(path)


def stored(task: Task, line: str) -> list[Any]:
    """A task as JSON. ``line``: its first line in the source, which may have its number in an ordered list."""
    number = _NUMBERED.match(line)
    return [task.line, task.text, task.mark, task.heading_path, number[1] if number else None, task.group]


def parted(stored: list[Any], known: TaskMarks) -> tuple[list[Any], list[int]]:
    """The stored items with a known mark; and the line numbers of the other items in the same lists."""
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
    while match := _MARK.match(text, at):
        if match["label"]:
            labels.append(match["label"])
        elif id_ is None:
            id_ = match["id"]
        else:
            break
        at = match.end()
    return id_, tuple(labels)
