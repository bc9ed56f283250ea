"""The contents of a context index, by artifact: its type and its id by its path, its title and its tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, get_args

from anvil.context import tasks
from anvil.context.tasks import TaskMarks
from anvil.context.values import Artifact, Inventory, TaskCounts, TaskItem
from anvil.formats import patterns
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.index_file.reader import Reader
    from anvil.index_file.table_rows import StoredDocument


Kind = Literal["spec", "plan", "tasks", "checklist", "template", "decision", "generic"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_LOSSY = re.compile(r"[^\w-]+")
_FEATURE = ("spec", "plan", "tasks")


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """Globs over paths from the repository's root. The first that matches decides the type, else it is ``generic``."""

    template: tuple[str, ...] = ("**/.specify/templates/**",)
    """Globs of templates. The types are tried in this order; other files are ``generic``."""
    checklist: tuple[str, ...] = ("**/checklists/**", "**/checklist.md")
    """Of checklists."""
    spec: tuple[str, ...] = ("**/spec.md",)
    """Of specs."""
    plan: tuple[str, ...] = ("**/plan.md",)
    """Of plans."""
    tasks: tuple[str, ...] = ("**/tasks.md",)
    """Of task lists."""
    decision: tuple[str, ...] = ("**/adr/**", "**/adrs/**", "**/decisions/**")
    """Of decisions."""


def kind_of(path: str, types: ArtifactTypes) -> Kind:
    """The type of the artifact at ``path`` (POSIX, from the repository's root): the first whose globs fit."""
    for kind in fields(types):
        if any(patterns.glob(glob, ignore_case=True).matches(path) for glob in getattr(types, kind.name)):
            return kind.name  # type: ignore[return-value]
    return "generic"


def id_of(path: str, kind: Kind) -> str:
    """A readable id: ``spec-001-mcp-server`` for ``specs/001-mcp-server/spec.md``.

    It depends on the path and its type only. If another path could have the same readable part, a hash of the path is
    added.
    """
    readable = _readable(path, kind)
    if _path_of(readable, kind) == path:
        return f"{kind}-{readable}"
    return f"{kind}-{readable}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def _readable(path: str, kind: Kind) -> str:
    folders, _, name = path.removesuffix(".md").rpartition("/")
    names = folders.split("/") if folders else []
    if kind in _FEATURE and len(names) == 2 and names[0] == "specs" and name == kind:
        names = names[1:]
    elif kind == "checklist" and len(names) == 3 and names[0] == "specs" and names[2] == "checklists":
        names = [names[1], name]
    elif kind == "template" and names == [".specify", "templates"]:
        names = [name]
    else:
        names = [*names, name]
    return ".".join(_LOSSY.sub("-", part).strip("-") for part in names)


def _path_of(readable: str, kind: Kind) -> str:
    """The path of a readable part, with the folders and suffixes that :func:`_readable` leaves out."""
    names = readable.split(".")
    if kind in _FEATURE and len(names) == 1:
        return f"specs/{names[0]}/{kind}.md"
    if kind == "checklist" and len(names) == 2:
        return f"specs/{names[0]}/checklists/{names[1]}.md"
    if kind == "template" and len(names) == 1:
        return f".specify/templates/{names[0]}.md"
    return "/".join(names) + ".md"


MAX_NAMED_LINES = 5
"""Lines that a note names."""


@dataclass(frozen=True, slots=True)
class StoredArtifacts:
    """The artifacts by path, the stored check boxes of each, and the numbers of chunks and vectors."""

    artifacts: dict[str, Artifact]
    boxes: dict[str, list[Any]]
    chunks: int
    embeddings: int
    marks: TaskMarks = field(default_factory=TaskMarks)
    unmarked: dict[str, list[int]] = field(default_factory=dict)
    """Path -> lines of items in task lists with an unknown mark."""
    known: dict[str, tuple[list[Any], tuple[TaskItem, ...]]] = field(default_factory=dict)
    """A cache: path -> its check boxes, and their tasks. The next :class:`StoredArtifacts` gets it too."""

    @property
    def counts(self) -> TaskCounts:
        """The numbers of all tasks."""
        all_counts = [artifact.tasks for artifact in self.artifacts.values()]
        return TaskCounts(sum(counts.open for counts in all_counts), sum(counts.done for counts in all_counts))

    def tasks(self, status: str, within: str) -> Iterator[TaskItem]:
        """The tasks that are ``open``, ``done`` or ``all``, in the file or folder ``within`` (empty: anywhere)."""
        for path, boxes in self.boxes.items():
            if boxes and (not within or f"{path}/".startswith(f"{within}/")):
                if path not in self.known or self.known[path][0] != boxes:
                    self.known[path] = boxes, tuple(tasks.items(path, boxes, self.marks))
                yield from (task for task in self.known[path][1] if status in ("all", task.status))

    def note(self, within: str = "") -> str | None:
        """A note on items of task lists with an unknown mark, in the file or folder ``within``; None without any."""
        lines = [
            f"{path}:{line}"
            for path, numbers in self.unmarked.items()
            for line in numbers
            if not within or f"{path}/".startswith(f"{within}/")
        ]
        if not lines:
            return None
        return (
            f"{counted(len(lines), 'item')} of task lists without a known mark: {first_of(lines, MAX_NAMED_LINES)}. "
            "Set the known marks with context.tasks.open and context.tasks.done."
        )

    def summary(self) -> Inventory:
        """The numbers of artifacts, chunks and tasks."""
        kinds = [artifact.type for artifact in self.artifacts.values()]
        return Inventory({kind: kinds.count(kind) for kind in KINDS}, self.chunks, self.counts)


def contents(
    reader: Reader, types: ArtifactTypes, marks: TaskMarks, before: StoredArtifacts | None = None
) -> StoredArtifacts:
    """The contents of an index. ``before``: the last contents, for their cache.

    The check boxes of a template are not tasks.
    """
    artifacts: dict[str, Artifact] = {}
    boxes: dict[str, list[Any]] = {}
    unmarked: dict[str, list[int]] = {}
    for document in reader.documents():
        path = document.file_path
        kind = kind_of(path, types)
        stored = [] if kind == "template" else document.metadata.get(tasks.KEY, [])
        boxes[path], unmarked[path] = tasks.parted(stored, marks)
        done = sum(marks.status(box[2]) == "done" for box in boxes[path])
        artifacts[path] = Artifact(
            id_of(path, kind),
            path,
            kind,
            _title(reader, document),
            document.last_modified,
            TaskCounts(len(boxes[path]) - done, done),
        )
    counts = reader.counts()
    known = {path: cached for path, cached in before.known.items() if path in boxes} if before else {}
    return StoredArtifacts(artifacts, boxes, counts["chunks"], counts["vectors"], marks, unmarked, known)


def _title(reader: Reader, document: StoredDocument) -> str:
    """Front matter's title or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    sections = reader.sections(document.id)
    return next((section.title for section in sections if section.heading_level), document.title)
