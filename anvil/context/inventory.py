"""What an index of a repository's context holds, by artifact."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from anvil.config import ArtifactTypes
from anvil.context import boxes
from anvil.context.answers import Artifact, Inventory, TaskCounts, TaskItem
from anvil.context.artifacts import KINDS, id_of, kind_of

if TYPE_CHECKING:
    from anvil.store.reading import Reader, StoredDocument


@dataclass(frozen=True, slots=True)
class Contents:
    """The artifacts by path, the check boxes of each as the index holds them, and the numbers of chunks and vectors."""

    artifacts: dict[str, Artifact]
    boxes: dict[str, list[Any]]
    chunks: int
    embeddings: int

    @property
    def counts(self) -> TaskCounts:
        """All tasks."""
        each = [artifact.tasks for artifact in self.artifacts.values()]
        return TaskCounts(sum(counts.open for counts in each), sum(counts.done for counts in each))

    def tasks(self, status: str, within: str) -> Iterator[TaskItem]:
        """The tasks that are ``open``, ``done`` or ``all``, in the file or folder ``within`` (empty: anywhere)."""
        for path, found in self.boxes.items():
            if not within or f"{path}/".startswith(f"{within}/"):
                yield from (task for task in boxes.items(path, found) if status in ("all", task.status))

    def summary(self) -> Inventory:
        """The numbers."""
        kinds = [artifact.type for artifact in self.artifacts.values()]
        return Inventory({kind: kinds.count(kind) for kind in KINDS}, self.chunks, self.counts)


def contents(reader: Reader, types: ArtifactTypes) -> Contents:
    """All of it, from one look at the documents. A template's boxes are not tasks: nobody is to do them."""
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
    return Contents(artifacts, found, counts["chunks"], counts["vectors"])


def _title(reader: Reader, document: StoredDocument) -> str:
    """Front matter's title or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    return next((each.title for each in reader.sections(document.id) if each.heading_level), document.title)
