"""Artifacts, the files of a context: the type and id of each by its path, its title, and the numbers of its tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Literal, get_args

from anvil.context.settings import ArtifactTypes, TaskMarks
from anvil.context.tasks import TaskCounts, TaskItem, tasks_of
from anvil.formats import patterns
from anvil.settings.schema import SourceOptions
from anvil.values import OPTIONAL
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.index_file.reader import Reader
    from anvil.index_file.table_rows import StoredDocument

Kind = Literal["spec", "plan", "tasks", "checklist", "template", "decision", "generic"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_NOT_IN_IDS = re.compile(r"[^\w-]+")
_USUAL_PATHS: Mapping[Kind, str] = {
    "spec": "specs/*/spec.md",
    "plan": "specs/*/plan.md",
    "tasks": "specs/*/tasks.md",
    "checklist": "specs/*/checklists/*.md",
    "template": ".specify/templates/*.md",
}
"""The usual path of artifacts of a type. The id of an artifact with such a path has only what stars stand for."""


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of the context.

    ``updated``: the time of its last commit in ISO 8601 and UTC, or that of the file if it differs from HEAD.
    ``content``: the whole text, front matter included, if it was requested.
    """

    id: str
    path: str
    type: str
    title: str
    updated: str
    tasks: TaskCounts
    content: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Inventory:
    """The numbers of artifacts, chunks and tasks. ``artifacts``: type -> number, zeros included."""

    artifacts: Mapping[str, int]
    chunks: int
    tasks: TaskCounts


def kind_of(path: str, types: ArtifactTypes) -> Kind:
    """The type of the artifact at ``path`` (POSIX, from the repository's root): the first with a glob that matches."""
    for kind in fields(types):
        if any(patterns.glob(glob, ignore_case=True).matches(path) for glob in getattr(types, kind.name)):
            return kind.name  # type: ignore[return-value]
    return "generic"


def id_of(path: str, kind: Kind) -> str:
    """A readable id, such as ``spec-001-mcp-server`` for ``specs/001-mcp-server/spec.md``.

    It depends on the path and its type only. If another path could have the same readable part, a hash of the path is
    added.
    """
    usual_path = _USUAL_PATHS.get(kind, "")
    match = re.fullmatch(re.escape(usual_path).replace(r"\*", "([^/]+)"), path)
    names = match.groups() if match else path.removesuffix(".md").split("/")
    readable = ".".join(_NOT_IN_IDS.sub("-", name).strip("-") for name in names)
    # An id without a hash must stand for one path alone. So the readable part is turned back into a path: if that is
    # not this path, another path has the same readable part.
    parts, pieces = readable.split("."), usual_path.split("*")
    if len(pieces) == len(parts) + 1:
        path_of_id = "".join(f"{part}{piece}" for part, piece in zip(["", *parts], pieces, strict=True))
    else:
        path_of_id = "/".join(parts) + ".md"
    digest = "" if path_of_id == path else f"-{hashlib.sha256(path.encode()).hexdigest()[:8]}"
    return f"{kind}-{readable}{digest}"


def is_within(path: str, within: str) -> bool:
    """Whether an artifact is the file ``within``, or is in the folder ``within``. All are in ``""``."""
    return not within or f"{path}/".startswith(f"{within}/")


class ContextFiles(SourceOptions):
    """The options that select artifacts. The key of their size limit is not that of documentation."""

    limit_key = "context.max_file_size_bytes"


# --- the contents of an index ----------------------------------------------------------------------------------------

MAX_NAMED_LINES = 5
"""Lines that a note names."""


@dataclass(frozen=True, slots=True)
class StoredArtifacts:
    """The contents of an index: artifacts by path, the tasks of each, and the numbers of chunks and vectors.

    ``unmarked``: path -> lines of items of task lists that have an unknown mark.
    """

    artifacts: dict[str, Artifact]
    tasks_by_path: dict[str, tuple[TaskItem, ...]]
    unmarked: dict[str, tuple[int, ...]]
    chunks: int
    embeddings: int

    @property
    def counts(self) -> TaskCounts:
        return TaskCounts.of(task for tasks in self.tasks_by_path.values() for task in tasks)

    def note(self, within: str = "") -> str | None:
        """A note on items of task lists with an unknown mark, in the file or folder ``within``; None without such."""
        lines = [
            f"{path}:{line}" for path, numbers in self.unmarked.items() if is_within(path, within) for line in numbers
        ]
        if not lines:
            return None
        return (
            f"{counted(len(lines), 'item')} of task lists without a known mark: {first_of(lines, MAX_NAMED_LINES)}. "
            "Set the known marks with context.tasks.open and context.tasks.done."
        )

    def summary(self) -> Inventory:
        kinds = [artifact.type for artifact in self.artifacts.values()]
        return Inventory({kind: kinds.count(kind) for kind in KINDS}, self.chunks, self.counts)


def stored_artifacts(reader: Reader, types: ArtifactTypes, marks: TaskMarks) -> StoredArtifacts:
    """The contents of an index. The check boxes of a template are not tasks."""
    artifacts: dict[str, Artifact] = {}
    tasks: dict[str, tuple[TaskItem, ...]] = {}
    unmarked: dict[str, tuple[int, ...]] = {}
    for document in reader.documents():
        path = document.file_path
        kind = kind_of(path, types)
        tasks[path], unmarked[path] = tasks_of(path, {} if kind == "template" else document.metadata, marks)
        counted_tasks = TaskCounts.of(tasks[path])
        title = _title(reader, document)
        artifacts[path] = Artifact(id_of(path, kind), path, kind, title, document.last_modified, counted_tasks)
    counts = reader.counts()
    return StoredArtifacts(artifacts, tasks, unmarked, counts["chunks"], counts["vectors"])


def _title(reader: Reader, document: StoredDocument) -> str:
    """The title in the front matter or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    sections = reader.sections(document.id)
    return next((section.title for section in sections if section.heading_level), document.title)
