"""Results of the context tools: the fields of the tool contract, and a few more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anvil.values import OPTIONAL

Status = Literal["open", "done"]


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
class Match:
    """A search result. ``heading``: breadcrumb of the section that matched. ``startLine``: the first line of
    ``content``. ``title``: the artifact's. ``truncated``: ``content`` is not the whole section."""

    chunkId: str
    artifactPath: str
    score: float
    content: str
    type: str
    heading: str
    startLine: int
    truncated: bool
    title: str = ""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The content of the index. ``artifacts``: type -> number, zeros included."""

    artifacts: Mapping[str, int]
    chunks: int
    tasks: TaskCounts


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """``context.json``, null when it cannot be read (``notes`` says why), and the inventory."""

    context: Any
    inventory: Inventory
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the context. ``status``: ``ok``, or ``degraded`` when files failed or vectors could not be made.

    ``embeddings`` counts vectors; ``lastIngestion`` is ISO 8601 in UTC, null before the first run; ``errors`` counts
    the files that the last run could not read; ``notes``: sentences on problems.
    """

    status: str
    uptimeSeconds: float
    artifacts: int
    chunks: int
    embeddings: int
    tasks: TaskCounts
    lastIngestion: str | None
    errors: int
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Ingestion:
    """A line of ``ingestion.log``: the result of one run, and the content of the index after it.

    ``outcome``: ``built`` or ``unchanged``. ``skipped``: files that a rule excludes, such as too large ones.
    ``errors``: files that could not be read. ``seconds``: the duration of the run.
    """

    timestamp: str
    outcome: str
    artifacts: int
    chunks: int
    embeddings: int
    tasks: TaskCounts
    added: int
    changed: int
    removed: int
    skipped: int
    errors: int
    seconds: float
    notes: tuple[str, ...] = ()
