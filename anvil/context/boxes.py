"""Check boxes as tasks: read while a document is taken apart, kept with it in the index."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from anvil.context.answers import TaskItem
from anvil.models import Document, Scan, Skipped, Task

if TYPE_CHECKING:
    from anvil.sources import DocumentSource

KEY = "anvil.tasks"
"""Where a document's metadata holds them."""

_MARK = re.compile(r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>[A-Z]{1,6}-?\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?")


class TaskedDocuments:
    """A :class:`DocumentSource` whose documents bring their check boxes along."""

    def __init__(self, source: DocumentSource) -> None:
        self._source = source

    @property
    def name(self) -> str:
        """See :class:`DocumentSource`, as for all below."""
        return self._source.name

    @property
    def root_path(self) -> str:
        return self._source.root_path

    @property
    def problem(self) -> str | None:
        return self._source.problem

    def commit(self) -> str | None:
        return self._source.commit()

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return self._source.scan(indexed)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return self._source.last_modified(paths, known, since)

    def read(self, path: str) -> Document | Skipped:
        found = self._source.read(path)
        if isinstance(found, Skipped):
            return found
        from anvil import markdown

        page = markdown.parse(found.text)
        return replace(found, page=page, metadata={**found.metadata, KEY: [stored(task) for task in page.tasks]})


def stored(task: Task) -> list[Any]:
    """A task as JSON."""
    return [task.line, task.text, int(task.done), task.heading_path]


def is_done(box: list[Any]) -> bool:
    """Whether a stored task is ticked."""
    return bool(box[2])


def items(path: str, boxes: list[Any]) -> Iterator[TaskItem]:
    """The stored tasks of a document, in its order."""
    for line, text, done, heading in boxes:
        id_, labels = marks(text)
        yield TaskItem(path, line, text, "done" if done else "open", id_, labels, heading)


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
