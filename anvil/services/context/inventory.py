"""What an index of a repository's context holds, by artifact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from anvil.core.config.schema import ArtifactTypes, TaskMarks
from anvil.core.pluralize import counted
from anvil.models.context import Artifact, Inventory, TaskCounts, TaskItem
from anvil.services.context import tasks
from anvil.services.context.classify import KINDS, id_of, kind_of

if TYPE_CHECKING:
    from anvil.backends.store.reader import Reader
    from anvil.backends.store.rows import StoredDocument


NAMED = 5
"""Lines that a note names."""


@dataclass(frozen=True, slots=True)
class Contents:
    """The artifacts by path, the check boxes of each as the index holds them, and the numbers of chunks and vectors."""

    artifacts: dict[str, Artifact]
    boxes: dict[str, list[Any]]
    chunks: int
    embeddings: int
    marks: TaskMarks = field(default_factory=TaskMarks)
    unmarked: dict[str, list[int]] = field(default_factory=dict)
    """Path -> lines of the items beside tasks that have no known mark."""
    known: dict[str, tuple[list[Any], tuple[TaskItem, ...]]] = field(default_factory=dict)
    """Path -> its check boxes, and the tasks made of them; filled when they are asked for, handed on to the next."""

    @property
    def counts(self) -> TaskCounts:
        """All tasks."""
        each = [artifact.tasks for artifact in self.artifacts.values()]
        return TaskCounts(sum(counts.open for counts in each), sum(counts.done for counts in each))

    def tasks(self, status: str, within: str) -> Iterator[TaskItem]:
        """The tasks that are ``open``, ``done`` or ``all``, in the file or folder ``within`` (empty: anywhere)."""
        for path, found in self.boxes.items():
            if found and (not within or f"{path}/".startswith(f"{within}/")):
                if path not in self.known or self.known[path][0] != found:
                    self.known[path] = found, tuple(tasks.items(path, found, self.marks))
                yield from (task for task in self.known[path][1] if status in ("all", task.status))

    def note(self, within: str = "") -> str | None:
        """What to say of items beside tasks that are not counted as such, in the file or folder ``within``."""
        lines = [
            f"{path}:{line}"
            for path, found in self.unmarked.items()
            for line in found
            if not within or f"{path}/".startswith(f"{within}/")
        ]
        if not lines:
            return None
        more = f" and {len(lines) - NAMED} more" if len(lines) > NAMED else ""
        return (
            f"{counted(len(lines), 'item')} of task lists without a known mark: {', '.join(lines[:NAMED])}{more}. "
            "context.tasks.open and context.tasks.done say which marks are known."
        )

    def summary(self) -> Inventory:
        """The numbers."""
        kinds = [artifact.type for artifact in self.artifacts.values()]
        return Inventory({kind: kinds.count(kind) for kind in KINDS}, self.chunks, self.counts)


def contents(reader: Reader, types: ArtifactTypes, marks: TaskMarks, before: Contents | None = None) -> Contents:
    """All of it, from one look at the documents; ``before`` is what there was at the last one.

    A template's boxes are not tasks: nobody is to do them.
    """
    artifacts: dict[str, Artifact] = {}
    found: dict[str, list[Any]] = {}
    unmarked: dict[str, list[int]] = {}
    for document in reader.documents():
        path = document.file_path
        kind = kind_of(path, types)
        stored = [] if kind == "template" else document.metadata.get(tasks.KEY, [])
        found[path], unmarked[path] = tasks.parted(stored, marks)
        done = sum(marks.status(box[2]) == "done" for box in found[path])
        artifacts[path] = Artifact(
            id_of(path, kind),
            path,
            kind,
            _title(reader, document),
            document.last_modified,
            TaskCounts(len(found[path]) - done, done),
        )
    counts = reader.counts()
    known = {path: each for path, each in before.known.items() if path in found} if before else {}
    return Contents(artifacts, found, counts["chunks"], counts["vectors"], marks, unmarked, known)


def _title(reader: Reader, document: StoredDocument) -> str:
    """Front matter's title or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    return next((each.title for each in reader.sections(document.id) if each.heading_level), document.title)
