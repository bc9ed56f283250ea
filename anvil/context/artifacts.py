"""The artifacts of a context: the type and id of each by its path, its title, and its check boxes as tasks."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Literal, get_args

from anvil.context.settings import ArtifactTypes, TaskMarks
from anvil.documents.document_source import SourceWrapper
from anvil.formats import patterns
from anvil.formats.characters import LINE_END
from anvil.settings.schema import SourceOptions
from anvil.values import OPTIONAL, Document, Skipped, Task
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.index_file.reader import Reader
    from anvil.index_file.table_rows import StoredDocument

Kind = Literal["spec", "plan", "tasks", "checklist", "template", "decision", "generic"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_LOSSY = re.compile(r"[^\w-]+")
_FEATURE = ("spec", "plan", "tasks")


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Numbers of check boxes: not ticked, and ticked."""

    open: int
    done: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """A file of the context. ``updated``: ISO 8601, UTC, the time of its last commit; of the file if it is not as in
    HEAD. ``content``: its whole text, if requested."""

    id: str
    path: str
    type: str
    title: str
    updated: str
    tasks: TaskCounts
    content: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class ArtifactText(Artifact):
    """An artifact with its whole text, front matter included."""

    content: str


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A check box. ``id`` (``T012``) and ``labels`` (``P``, ``US1``) are read from the beginning of ``text``. Without
    an id it is the number in an ordered list. ``mark``: the character in the box."""

    artifactPath: str
    line: int
    text: str
    status: str
    id: str | None
    labels: tuple[str, ...]
    heading: str
    mark: str = " "


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of the index. ``artifacts``: type -> number, zeros included."""

    artifacts: Mapping[str, int]
    chunks: int
    tasks: TaskCounts


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


# --- check boxes as tasks: read when a document is parsed, and stored in its metadata -------------------------------

TASKS_KEY = "anvil.tasks"
"""The key of the tasks in a document's metadata."""
LINE, TEXT, MARK, HEADING, NUMBER, GROUP = range(6)
"""The places of a stored task's values, which are a list in JSON."""

_NUMBERED = re.compile(r"[\s>*+-]*(\d+)[.)]\s+\[")
_MARK = re.compile(r"\s*(?:\[(?P<label>[A-Za-z][\w-]{0,15})\]|(?P<id>[A-Z]{1,6}-?\d+(?:\.\d+)*)(?=$|[\s:.)]))[:.)]?")


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
        return replace(document, page=page, metadata={**document.metadata, TASKS_KEY: tasks})

    def plain(self, path: str) -> Document | Skipped:
        """The document without parsing it."""
        return super().read(path)


def stored(task: Task, line: str) -> list[Any]:
    """A task as JSON. ``line``: its first line in the source, which may have its number in an ordered list."""
    number = _NUMBERED.match(line)
    return [task.line, task.text, task.mark, task.heading_path, number[1] if number else None, task.group]


def parted(stored: list[Any], known: TaskMarks) -> tuple[list[Any], list[int]]:
    """The stored items with a known mark; and the line numbers of the other items in the same lists."""
    groups = {box[GROUP] for box in stored if known.status(box[MARK])}
    return (
        [box for box in stored if known.status(box[MARK])],
        [box[LINE] for box in stored if box[GROUP] in groups and not known.status(box[MARK])],
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


# --- the contents of an index ----------------------------------------------------------------------------------------

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
    known: dict[str, tuple[TaskItem, ...]] = field(default_factory=dict)
    """A cache: path -> its tasks."""

    @property
    def counts(self) -> TaskCounts:
        """The numbers of all tasks."""
        all_counts = [artifact.tasks for artifact in self.artifacts.values()]
        return TaskCounts(sum(counts.open for counts in all_counts), sum(counts.done for counts in all_counts))

    def tasks(self, status: str, within: str) -> Iterator[TaskItem]:
        """The tasks that are ``open``, ``done`` or ``all``, in the file or folder ``within`` (empty: anywhere)."""
        for path, boxes in self.boxes.items():
            if boxes and (not within or f"{path}/".startswith(f"{within}/")):
                if path not in self.known:
                    self.known[path] = tuple(items(path, boxes, self.marks))
                yield from (task for task in self.known[path] if status in ("all", task.status))

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


def stored_artifacts(reader: Reader, types: ArtifactTypes, marks: TaskMarks) -> StoredArtifacts:
    """The contents of an index. The check boxes of a template are not tasks."""
    artifacts: dict[str, Artifact] = {}
    boxes: dict[str, list[Any]] = {}
    unmarked: dict[str, list[int]] = {}
    for document in reader.documents():
        path = document.file_path
        kind = kind_of(path, types)
        stored = [] if kind == "template" else document.metadata.get(TASKS_KEY, [])
        boxes[path], unmarked[path] = parted(stored, marks)
        done = sum(marks.status(box[MARK]) == "done" for box in boxes[path])
        artifacts[path] = Artifact(
            id_of(path, kind),
            path,
            kind,
            _title(reader, document),
            document.last_modified,
            TaskCounts(len(boxes[path]) - done, done),
        )
    counts = reader.counts()
    return StoredArtifacts(artifacts, boxes, counts["chunks"], counts["vectors"], marks, unmarked)


def _title(reader: Reader, document: StoredDocument) -> str:
    """Front matter's title or the first h1, else the first heading of any level, else the file's name."""
    if document.title != PurePosixPath(document.file_path).stem:
        return document.title
    sections = reader.sections(document.id)
    return next((section.title for section in sections if section.heading_level), document.title)
