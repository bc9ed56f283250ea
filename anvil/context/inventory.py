"""What an index of a repository's context holds, by artifact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from anvil.config import ArtifactTypes
from anvil.context import boxes
from anvil.context.answers import Artifact, Inventory, TaskCounts, TaskItem
from anvil.context.artifacts import KINDS, id_of, kind_of

if TYPE_CHECKING:
    from anvil.store.reading import Reader
    from anvil.store.stored import StoredDocument


@dataclass(frozen=True, slots=True)
class Contents:
    """The artifacts by path, the check boxes of each as the index holds them, and the numbers of chunks and vectors."""

    artifacts: dict[str, Artifact]
    boxes: dict[str, list[Any]]
    chunks: int
    embeddings: int
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
                    self.known[path] = found, tuple(boxes.items(path, found))
                yield from (task for task in self.known[path][1] if status in ("all", task.status))

    def summary(self) -> Inventory:
        """The numbers."""
        kinds = [artifact.type for artifact in self.artifacts.values()]
        return Inventory({kind: kinds.count(kind) for kind in KINDS}, self.chunks, self.counts)


def contents(reader: Reader, types: ArtifactTypes, before: Contents | None = None) -> Contents:
    """All of it, from one look at the documents; ``before`` is what there was at the last one.

    A template's boxes are not tasks: nobody is to do them.
    """
    artifacts: dict[str, Artifact] = {}
    found: dict[str, list[Any]] = {}
    for document in reader.documents():
        path = document.file_path
        kind = kind_of(path, types)
        found[path] = [] if kind == "template" else document.metadata.get(boxes.KEY, [])
        done = sum(boxes.is_done(box) for box in found[path])
        artifacts[path] = Artifact(
            id_of(path, kind), path, kind, _title(reader, document), document.last_modified,
            TaskCounts(len(found[path]) - done, done),
        )  # fmt: skip
    counts = reader.counts()
    known = {path: each for path, each in before.known.items() if path in found} if before else {}
    return Contents(artifacts, found, counts["chunks"], counts["vectors"], known)


def _title(reader: Reader, document: StoredDocument) -> str:
    """Front matter's title or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    return next((each.title for each in reader.sections(document.id) if each.heading_level), document.title)
