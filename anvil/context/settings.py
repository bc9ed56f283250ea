"""The table ``[context]`` of the configuration, and ``mcp.config.json``, which has its keys too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, Literal

from anvil.errors import ConfigError
from anvil.settings.configuration import CONFIG_NAME, key_of, keys, load_config
from anvil.settings.schema import MAX_INTERVAL_S, Config, FixedChunks, within
from anvil.system import safe_files

CONTEXT_NAME = "mcp.config.json"
"""A file with keys of the context. Other MCP servers read it too."""
DIRECTORIES: Mapping[str, tuple[str, ...]] = {
    "Any": ("architecture", "perspectives", "operations"),
    "Spec Kit": ("specs", ".specify/memory", ".specify/specs", ".specify/templates"),
    "OpenSpec": ("openspec",),
    "Kiro": (".kiro/specs", ".kiro/steering"),
    "BMAD": ("_bmad-output", "docs/prd", "docs/stories"),
    "Taskmaster": (".taskmaster/docs",),
    "Agent OS": (
        *("agent-os/product", "agent-os/specs", "agent-os/standards"),
        *(".agent-os/product", ".agent-os/specs", ".agent-os/standards"),
    ),
    "Backlog.md": ("backlog/tasks", "backlog/docs", "backlog/decisions"),
    "Superpowers": ("docs/superpowers",),
    "GSD": (".planning",),
    "Cline": ("memory-bank",),
    "Cursor": (".cursor/plans",),
    "Decision records": ("docs/adr", "docs/adrs", "docs/decisions", "docs/architecture/decisions", "doc/adr"),
}
"""Tool -> the folders where it keeps specs, plans and tasks. Folders that mostly have other files, and instructions for
agents, are left out."""


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """Globs of each type over paths from the repository's root. The first type with a glob that matches counts."""

    template: tuple[str, ...] = ("**/.specify/templates/**",)
    """Globs of templates. The types are tried in this order; other files are ``generic``."""
    checklist: tuple[str, ...] = ("**/checklists/**", "**/checklist.md")
    """Of checklists."""
    spec: tuple[str, ...] = (
        *("**/spec.md", "**/.kiro/specs/*/requirements.md", "**/openspec/changes/**/proposal.md"),
        *("**/prd.md", "**/docs/prd/**", "**/.taskmaster/docs/**", "**/docs/superpowers/specs/**"),
        "**/.planning/requirements.md",
    )
    """Of specs."""
    plan: tuple[str, ...] = (
        *("**/plan.md", "**/.kiro/specs/*/design.md", "**/openspec/changes/**/design.md"),
        *("**/*-plan.md", "**/docs/superpowers/plans/**", "**/.cursor/plans/**", "**/roadmap.md"),
    )
    """Of plans."""
    tasks: tuple[str, ...] = (
        *("**/tasks.md", "**/backlog/tasks/*.md", "**/docs/stories/**"),
        "**/_bmad-output/implementation-artifacts/**",
    )
    """Of task lists."""
    decision: tuple[str, ...] = ("**/adr/**", "**/adrs/**", "**/decisions/**")
    """Of decisions."""


STATUSES = ("open", "done", "all")
"""The values of ``--status`` and of the parameter ``status``: which tasks are listed."""


@dataclass(frozen=True, slots=True)
class TaskMarks:
    """Marks in check boxes, and their meaning. ``[ ]`` is always open. Case is ignored."""

    open: tuple[str, ...] = ("~", "❌")
    """Marks of open tasks."""
    done: tuple[str, ...] = ("x", "✅", "-")
    """Marks of tasks that are done or dropped."""

    def __post_init__(self) -> None:
        for mark in (*self.open, *self.done):
            if not re.fullmatch(r"[^\[\]\s\\]{1,2}", mark):
                raise ConfigError(f"context.tasks has the mark {mark!r}. Use one or two characters, no brackets.")
        if both := {_bare(mark) for mark in self.open} & {_bare(mark) for mark in self.done}:
            raise ConfigError(f"context.tasks has {min(both)!r} as open and as done. Leave it in one of them.")

    def status(self, mark: str) -> Literal["open", "done"] | None:
        """The status for a mark; None for an unknown mark."""
        if mark == " " or _bare(mark) in map(_bare, self.open):
            return "open"
        return "done" if mark and _bare(mark) in map(_bare, self.done) else None


def _bare(mark: str) -> str:
    """A mark without case, and without the character that selects the coloured form of an emoji."""
    return mark.replace("\ufe0f", "").casefold()


@dataclass(frozen=True, slots=True)
class ContextEmbeddings:
    """Whether the context has vectors."""

    provider: str = "none"
    """``none``, or another value of ``embedding.provider``; the model is that of ``[embedding]``."""


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """A repository's working knowledge. ``directories`` and ``index_dir`` start from the repository's root.

    Without ``chunk_size`` and ``chunk_overlap`` (characters) chunks are sections, as ``[chunking]`` says.
    """

    directories: tuple[str, ...] = tuple(chain.from_iterable(DIRECTORIES.values()))
    """Folders of the context, from the repository's root."""
    chunk_size: int | None = None
    """Characters of a chunk; not set, with the next, means sections as ``chunking`` says, else 800."""
    chunk_overlap: int | None = None
    """Characters that neighbouring chunks share; 100 when only the size is set."""
    refresh_interval_seconds: int = 1800
    """Seconds between two ingestions by a server."""
    max_file_size_bytes: int = 1_000_000
    """A larger file is skipped, with a warning."""
    index_dir: str = ".context/index"
    """The folder of the context's index, inside the repository."""
    embeddings: ContextEmbeddings = field(default_factory=ContextEmbeddings)
    types: ArtifactTypes = field(default_factory=ArtifactTypes)
    tasks: TaskMarks = field(default_factory=TaskMarks)

    def __post_init__(self) -> None:
        for key, path in [*(("directories", path) for path in self.directories), ("index_dir", self.index_dir)]:
            if re.match(r"[/\\~]|[A-Za-z]:", path) or ".." in re.split(r"[/\\]", path) or not path.strip():
                raise ConfigError(f"context.{key} names {path!r}. Name a folder inside the repository, relative to it.")
        if self.chunk_size is not None:
            within("context.chunk_size", self.chunk_size, 200, 100_000)
        if self.chunk_overlap is not None and not 0 <= self.chunk_overlap <= (self.chunk_size or 800) // 2:
            raise ConfigError(f"context.chunk_overlap is {self.chunk_overlap}. Use a value from 0 to half a chunk.")
        within("context.refresh_interval_seconds", self.refresh_interval_seconds, 1, MAX_INTERVAL_S)
        within("context.max_file_size_bytes", self.max_file_size_bytes, 1)

    @property
    def fixed(self) -> FixedChunks | None:
        """The fixed sizes of chunks, if one of the keys is set; else None."""
        if self.chunk_size is None and self.chunk_overlap is None:
            return None
        size = self.chunk_size or FixedChunks().size
        overlap = min(FixedChunks().overlap, size // 2) if self.chunk_overlap is None else self.chunk_overlap
        return FixedChunks(size, overlap)


def load_context(
    root: str | os.PathLike[str] | None = None,
    path: str | os.PathLike[str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> tuple[Config, Path, tuple[str, ...]]:
    """The configuration of a repository's context, the repository's root, and notes on ignored keys.

    Without ``root``, the root is the nearest folder, from the working folder up, with ``mcp.config.json``,
    ``anvil.toml`` or ``.git``, else the working folder. Anvil's own configuration (``path``, or the nearest one from
    the root up) overrides ``mcp.config.json``. Raises :class:`ConfigError`.
    """
    if root is not None and not str(root).strip():
        raise ConfigError("The repository's folder is empty. Name it with --root; '.' is the working folder.")
    start, root_files = Path.cwd(), (CONTEXT_NAME, CONFIG_NAME, ".git")
    roots = (folder for folder in (start, *start.parents) if any((folder / name).exists() for name in root_files))
    folder = Path(os.path.abspath(root)) if root is not None else next(roots, start)
    if not folder.is_dir():
        raise ConfigError(f"There is no folder {folder}. Name the repository with --root.")
    table, notes = _context_table(folder / CONTEXT_NAME)
    beneath = ({"context": table}, CONTEXT_NAME) if table else None
    return load_config(path, flags, start=folder, beneath=beneath)[0], folder, notes


def _context_table(path: Path) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The keys of an ``mcp.config.json`` that Anvil uses, and a note on the others."""
    try:
        table = json.loads(safe_files.text(path))
    except FileNotFoundError:
        return {}, ()
    except (OSError, UnicodeDecodeError, ValueError, RecursionError) as error:
        raise ConfigError(f"{path} cannot be read: {safe_files.reason(error)}. Correct the file.") from None
    if not isinstance(table, dict):
        raise ConfigError(f"{path} must hold a JSON object. Correct the file.")
    own_keys = {key: value for key, value in table.items() if key_of(key) in keys(ContextOptions)}
    ignored = sorted(str(key) for key in table.keys() - own_keys.keys() if not str(key).startswith("$"))
    embeddings = own_keys.get("embeddings")
    if isinstance(embeddings, dict):  # other servers have keys for model and address
        ignored += sorted(f"embeddings.{key}" for key in embeddings if key_of(str(key)) != "provider")
        own_keys["embeddings"] = {key: value for key, value in embeddings.items() if key_of(str(key)) == "provider"}
    return own_keys, (f"{CONTEXT_NAME}: not used here: {', '.join(ignored)}.",) if ignored else ()
