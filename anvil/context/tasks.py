"""Check boxes as tasks: read when a document is parsed, stored in its metadata, and chosen by status."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import chain, islice
from typing import Any

from anvil.context.settings import TASKMASTER, TaskMarks
from anvil.documents.document_source import SourceWrapper
from anvil.errors import ConfigError
from anvil.formats.characters import LINE_END
from anvil.formats.data_formats import json_object, objects
from anvil.values import Document, Skipped

TASKS_KEY = "anvil.tasks"
"""The key of the tasks in a document's metadata: for each check box the line, text, mark and breadcrumb,
the number in an ordered list or None, and the group, as in :class:`anvil.values.Task`."""
LABELS_KEY = "anvil.labels"
"""That of the labels, assignees and status in its front matter, which are labels of all its tasks."""
MAX_LABELS = 50
"""Labels of a file that are kept: each of its tasks has them all."""
METADATA_VERSION = 6
"""Raised when the same files give other tasks or metadata. An index of an older version is built again."""

_NUMBERED = re.compile(r"[\s>*+-]*(\d+)[.)]\s+\[")
"""The first line of a task in the source, with its number in an ordered list."""
_MARK = re.compile(
    r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>(?:#|[A-Z]{1,6}-?)\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?"
)


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of check boxes: not ticked, and ticked."""

    open: int
    done: int


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A check box. ``id`` (``T012``) and ``labels`` (``P``, ``US1``) are read from the beginning of ``text``; further
    labels are those of its file's front matter. Without an id it is the number in an ordered list. ``mark``: the
    character in the box."""

    artifactPath: str
    line: int
    text: str
    status: str
    id: str | None
    labels: tuple[str, ...]
    heading: str
    mark: str = " "


class TaskedDocuments(SourceWrapper):
    """Documents with their check boxes in the metadata."""

    def read(self, path: str) -> Document | Skipped:
        document = self.plain(path)
        if isinstance(document, Skipped):
            return document
        from anvil.text import markdown_sections

        page = markdown_sections.parse(document.text)
        lines = LINE_END.split(page.text) if page.tasks else []
        boxes = []
        for task in page.tasks:
            if not task.mark:  # plans have lists of files, which Markdown joins with the steps below them
                continue
            number = _NUMBERED.match(lines[task.line - page.first_line])
            boxes.append([task.line, task.text, task.mark, task.heading_path, number and number[1], task.group])
        fields = [page.metadata.get(key) for key in ("status", "assignee", "labels")] if boxes else []
        labels = chain.from_iterable(field if isinstance(field, list) else [field] for field in fields)
        named = [label for label in labels if isinstance(label, str)]
        own = {TASKS_KEY: boxes, LABELS_KEY: named[:MAX_LABELS]}
        return replace(document, page=page, metadata={**document.metadata, **own})

    def plain(self, path: str) -> Document | Skipped:
        """The document without parsing it."""
        document = super().read(path)
        if path != TASKMASTER or isinstance(document, Skipped):
            return document
        return replace(document, text=taskmaster_page(document.text))


def taskmaster_page(text: str) -> str:
    """Taskmaster's JSON as Markdown: a heading and a check box for each task and subtask."""
    value = json_object(text) or {}
    tags = {"Tasks": value} if objects(value, "tasks") else value  # its first versions had no tags
    by_tag = {tag: objects(table, "tasks") for tag, table in tags.items()}
    return "\n\n".join(block for tag, tasks in by_tag.items() if tasks for block in (f"# {tag}", *_blocks(tasks)))


def _blocks(tasks: Iterable[Mapping[str, Any]], above: str = "", level: str = "##") -> Iterator[str]:
    for task in tasks:
        number, title = f"{above}{task.get('id')}", " ".join(str(task.get("title")).split())
        mark = {"done": "x", "cancelled": "-"}.get(str(task.get("status")), " ")
        labels = (task.get(key) for key in ("status", "priority"))
        shown = "".join(f"[{label}] " for label in labels if label not in (None, "pending", "done"))
        yield f"{level} {number} {title}"
        yield f"- [{mark}] #{number} {shown}{title}"
        if isinstance(needed := task.get("dependencies"), list) and needed:
            yield f"After {', '.join(map(str, needed))}."
        texts = (task.get(key) for key in ("description", "details", "testStrategy"))
        yield from (text for text in texts if isinstance(text, str) and text.strip())
        if level != "######":  # Markdown has no deeper heading
            yield from _blocks(objects(task, "subtasks"), f"{number}.", f"{level}#")


def tasks_of(path: str, metadata: Mapping[str, Any], known: TaskMarks) -> tuple[tuple[TaskItem, ...], tuple[int, ...]]:
    """The tasks of a document by its metadata; and the lines of items in the same lists that have no known mark."""
    boxes, of_all = metadata.get(TASKS_KEY, []), metadata.get(LABELS_KEY, [])
    tasks, groups = [], set()
    for line, text, mark, heading, number, group in boxes:
        if (status := known.status(mark)) is not None:
            id_, labels = marks(text)
            tasks.append(TaskItem(path, line, text, status, id_ or number, (*labels, *of_all), heading, mark))
            groups.add(group)
    return tuple(tasks), tuple(line for line, _, mark, *_, group in boxes if group in groups and not known.status(mark))


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


def chosen(
    tasks: Iterable[TaskItem], status: str, label: str | None, limit: int | None, offset: int
) -> tuple[TaskItem, ...]:
    """The tasks that are ``open``, ``done`` or ``all``, with a label (None: any): ``limit`` of them (None: all), after
    the first ``offset``."""
    if status not in ("open", "done", "all"):
        raise ConfigError(f"Unknown status {status!r}. Use open, done or all.")
    wanted = None if label is None else label.strip(" []").casefold()  # "[US1]", as it is in the text, too
    if wanted == "":
        raise ConfigError("The label is empty. Name one such as US1, or none for all tasks.")
    fitting = (
        task
        for task in tasks
        if status in ("all", task.status) and (wanted is None or wanted in map(str.casefold, task.labels))
    )
    return tuple(islice(fitting, offset, None if limit is None else offset + limit))
