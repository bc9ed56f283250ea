"""What the context answers with: fields exactly as in the tool contract, and a few more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from anvil.models.library import OPTIONAL

Status = Literal["open", "done"]


@dataclass(frozen=True, slots=True)
class TaskCounts:
    """Check boxes: not ticked, and ticked."""

    open: int
    done: int


@dataclass(frozen=True, slots=True)
class Artifact:
    """One file of the context. ``updated``: ISO 8601, UTC, the last commit that touched it, else the file's time.
    ``content``: its whole text, where that was asked for."""

    id: str
    path: str
    type: str
    title: str
    updated: str
    tasks: TaskCounts
    content: str | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class ArtifactText:
    """An artifact with its whole text as it lies in the repository, front matter included."""

    id: str
    path: str
    type: str
    title: str
    updated: str
    tasks: TaskCounts
    content: str


@dataclass(frozen=True, slots=True)
class TaskItem:
    """A check box. ``id`` (``T012``) and ``labels`` (``P``, ``US1``) are read from the beginning of ``text``; where
    no id stands, it is the number in an ordered list. ``mark`` is what stands in the box."""

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
    """A search result. ``heading`` is the breadcrumb of the section in it that matched, ``startLine`` the line on which
    ``content`` begins, ``title`` the artifact's; ``truncated``: ``content`` does not hold that section whole."""

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
    """What the index holds; ``artifacts`` is the number of each type, zeros included."""

    artifacts: Mapping[str, int]
    chunks: int
    tasks: TaskCounts


@dataclass(frozen=True, slots=True)
class RepositoryContext:
    """``context.json`` as it is, null where there is none that can be read (``notes`` says why), and the inventory."""

    context: Any
    inventory: Inventory
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """How the context is. ``status``: ``ok``, or ``degraded`` when files failed or vectors could not be made.

    ``embeddings`` counts vectors; ``lastIngestion`` is ISO 8601 in UTC, null before the first run; ``errors`` counts
    the files that the last run could not read; ``notes`` are sentences on what is not as it should be.
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
    """What one run did, and what the index holds after it: a line of ``ingestion.log``.

    ``outcome`` is ``built`` or ``unchanged``. ``skipped`` are files left out by a rule, such as too large ones;
    ``errors`` those that could not be read. ``seconds`` is how long the run took.
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
