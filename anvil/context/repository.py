"""The object that the command line and the server hold: the context of one repository.

Questions meet the index as those to the documentation do: compared with the files first, by
:class:`anvil.answering.Answering`. Nothing that a caller names is looked for on the disk: paths and ids are looked up
in the index, and only what is found there is read.
"""

from __future__ import annotations

import difflib
import logging
import os
import posixpath
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, TypeVar

from anvil.answering import Answering
from anvil.config import Config, SourceOptions
from anvil.context import contextfile
from anvil.context.answers import (
    Artifact,
    ArtifactText,
    Health,
    Ingestion,
    Match,
    RepositoryContext,
    TaskItem,
)
from anvil.context.artifacts import KINDS
from anvil.context.records import Records
from anvil.errors import AnvilError, ArtifactError, ConfigError, NotFound
from anvil.models import Progress, Skipped, silent

if TYPE_CHECKING:
    from anvil.context.boxes import TaskedDocuments
    from anvil.context.inventory import Contents
    from anvil.embedding import EmbeddingProvider
    from anvil.workingcopy import WorkingCopy

T = TypeVar("T")
PATIENCE = 600.0
"""Seconds that a run waits for another one."""
AHEAD = 60.0
"""Seconds of reading that the very first answer of a server waits for: a list has no place for "there is more"."""
BUDGET = 12_000
"""Characters of all the contents of a search answer together; lower ranks are cut to what matched."""

logger = logging.getLogger(__name__)


class Context:
    """One repository's context, usable from any thread; a context manager.

    ``config`` is the whole configuration, of which ``context`` counts here, and ``chunking`` and ``embedding`` for what
    it leaves open; ``notes`` are kept with each run. ``background``, for servers: answers wait until the files are
    read, but not for the index or its vectors.
    """

    def __init__(
        self,
        config: Config,
        root: Path,
        notes: tuple[str, ...] = (),
        *,
        background: bool = False,
        progress: Progress = silent,
    ) -> None:
        self.options = config.context
        self._spelled = Path(root).absolute()
        self._config = config
        self._notes = notes
        self._background = background
        self._progress = progress
        self._started = time.monotonic()
        self.records = Records(self._spelled / self.options.index_dir)
        self._keep_inside()
        self._chunking = self.options.fixed or replace(config.chunking, slugs="github")  # anchors are not shown
        self._documents: TaskedDocuments | None = None
        self._provider: EmbeddingProvider | None = None
        self._failure: str | None = None
        self._held: tuple[object, Contents] | None = None
        self._answering = Answering(
            self._ready, self._working_copy, self._first_index, self._rebuildable, self._chunking,
            background=background, reading=AHEAD,
        )  # fmt: skip
        self._stop = threading.Event()
        self._refresher: threading.Thread | None = None

    # --- collaborators -----------------------------------------------------------------------------------

    @property
    def root(self) -> Path:
        """The repository's folder without links: each time as they lead now, for a deployment moves them on."""
        return Path(os.path.realpath(self._spelled))

    def _keep_inside(self) -> None:
        root = self.root
        if not Path(os.path.realpath(root / self.options.index_dir)).is_relative_to(root):
            raise ConfigError(f"context.index_dir leads out of {root}. Name a folder inside the repository.")

    @property
    def documents(self) -> TaskedDocuments:
        """The files of the configured directories, as they lie there."""
        if self._documents is None:
            from anvil import sources
            from anvil.context.boxes import TaskedDocuments

            folders = [posixpath.normpath(each.replace("\\", "/")) for each in self.options.directories]
            include = tuple(f"{folder}/{glob}" for folder in folders for glob in SourceOptions().include)
            options = SourceOptions(include, (), self.options.max_file_size_bytes)
            self._documents = TaskedDocuments(sources.working_tree(self._spelled, options))
        return self._documents

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider, or the one without vectors when that cannot be had."""
        if self._provider is None:
            from anvil.embedding.yielding import settled

            name = self.options.embeddings.provider
            self._provider, self._failure = settled(replace(self._config.embedding, provider=name))
        return self._provider

    def _working_copy(self) -> WorkingCopy:
        from anvil.workingcopy import WorkingCopy

        return WorkingCopy(self.records.index, self.documents, self.provider, self._progress, behind=self._background)

    def _rebuildable(self, error: ArtifactError) -> bool:
        return True  # the index is made from the files alone, in a folder of its own

    def _first_index(self, progress: Progress, patience: float | None) -> Ingestion:
        return self.ingest(progress=progress, patience=PATIENCE if patience is None else patience)

    def _ready(self) -> None:
        if self._answering.closed:
            raise ConfigError("This context is closed. Open another.")
        self._keep_inside()

    # --- ingestion ---------------------------------------------------------------------------------------

    def ingest(
        self,
        *,
        force: bool = False,
        progress: Progress = silent,
        patience: float = PATIENCE,
        warn: Callable[[Skipped], None] = lambda skipped: None,
    ) -> Ingestion:
        """One run, see :func:`anvil.context.ingesting.ingest`. Raises :class:`AnvilError`."""
        from anvil.context.ingesting import ingest
        from anvil.embedding.yielding import Yielding

        self._ready()
        provider = Yielding(self.provider)
        if self._failure is not None:
            provider.failure = self._failure
        return ingest(
            self.documents, self.records, provider, self._chunking, self.options.types,
            notes=(*self._notes, *self._nowhere()), force=force, progress=progress, patience=patience, warn=warn,
        )  # fmt: skip

    def _nowhere(self) -> list[str]:
        """A note when there is none of the directories."""
        names = self.options.directories
        if any((self.root / name).is_dir() or any(c in name for c in "*?[{") for name in names):
            return []
        return [f"There is none of the directories {', '.join(names)} in {self.root}. Set context.directories."]

    # --- questions ---------------------------------------------------------------------------------------

    def get(self) -> RepositoryContext:
        """The repository's ``context.json`` as it is, and what the index holds."""
        said, notes = contextfile.read(self.root)
        return RepositoryContext(said, self._ask(lambda held, _: held.summary()), notes)

    def artifacts(self, type: str | None = None) -> tuple[Artifact, ...]:
        """The artifacts, or those of a type, sorted by path. Raises :class:`ConfigError` for an unknown type."""
        _known(type)
        return self._ask(
            lambda held, _: tuple(each for each in held.artifacts.values() if type in (None, each.type))
        )

    def artifact(self, id: str | None = None, path: str | None = None) -> ArtifactText:
        """An artifact and its text, by id or by path. Raises :class:`NotFound`, naming the closest."""
        if (id is None) == (path is None):
            raise ConfigError("Give either id or path, as in artifacts.list.")
        found = self._ask(lambda held, _: self._find(held, id, path))
        document = self.documents.plain(found.path)
        if isinstance(document, Skipped):
            raise NotFound(f"{found.path} cannot be read just now: {document.reason}.")
        return ArtifactText(
            found.id, found.path, found.type, found.title, found.updated, found.tasks, document.text
        )

    def search(self, query: str, top_k: int = 5, type: str | None = None) -> tuple[Match, ...]:
        """The chunks that answer ``query`` best: by words, and by meaning where there are vectors.

        ``top_k`` is clamped to 1..20. Raises :class:`ConfigError` for a blank query or an unknown type.
        """
        _known(type)
        question = self._answering.question(query, "hybrid")

        def ask(held: Contents, copy: WorkingCopy) -> tuple[Match, ...]:
            paths = None if type is None else [each.path for each in held.artifacts.values() if each.type == type]
            found = copy.searcher.search(query, top_k, None, BUDGET, "hybrid", 0.0, question, paths)
            keys = copy.reader.chunk_keys(found.rows)
            self._answering.notes(copy)
            return tuple(
                Match(
                    f"chunk-{keys[row].hex()}", hit.metadata.file_path, hit.score, hit.content,
                    held.artifacts[hit.metadata.file_path].type, hit.metadata.heading_path, hit.metadata.start_line,
                    hit.truncated,
                )
                for row, hit in zip(found.rows, found.hits, strict=True)
            )  # fmt: skip

        return self._ask(ask, vectors=True)

    def tasks(self, status: str = "open", path: str | None = None) -> tuple[TaskItem, ...]:
        """Check boxes: ``open``, ``done`` or ``all``, by path and line; with ``path`` those of a file or a folder."""
        if status not in ("open", "done", "all"):
            raise ConfigError(f"Unknown status {status!r}. Use open, done or all.")
        within = "" if path is None else self._relative(path).rstrip("/")
        return self._ask(lambda held, _: tuple(held.tasks(status, within)))

    def health(self) -> Health:
        """How the context is: counts, the last run, and what is not as it should be."""
        state = self.records.state()

        def ask(held: Contents, copy: WorkingCopy) -> Health:
            notes = [*state.notes, *self._answering.notes(copy)]
            if self._failure is not None and not any(self._failure in note for note in notes):
                notes.append(self._failure)
            degraded = bool(state.errors or self._failure or state.degraded)
            return Health(
                "degraded" if degraded else "ok", round(time.monotonic() - self._started, 3), len(held.artifacts),
                held.chunks, held.embeddings, held.counts, state.timestamp, len(state.errors), tuple(notes),
            )  # fmt: skip

        return self._ask(ask)

    def _ask(self, ask: Callable[[Contents, WorkingCopy], T], *, vectors: bool = False) -> T:
        def asked(copy: WorkingCopy) -> T:
            return ask(self._contents(copy), copy)

        return self._answering.answer(asked, vectors=vectors)

    def _contents(self, copy: WorkingCopy) -> Contents:
        from anvil.context.inventory import contents

        if self._held is None or self._held[0] is not copy.indexed:
            before = self._held[1] if self._held else None
            self._held = copy.indexed, contents(copy.reader, self.options.types, before)
        return self._held[1]

    def _find(self, held: Contents, id: str | None, path: str | None) -> Artifact:
        if path is not None:
            wanted = path if path in held.artifacts else self._relative(path)
            if wanted in held.artifacts:
                return held.artifacts[wanted]
            near = difflib.get_close_matches(wanted, held.artifacts, n=3, cutoff=0.5)
            told = f"No artifact at path: {path}."
        else:
            ids = {each.id: each for each in held.artifacts.values()}
            if id in ids:
                return ids[id]
            near = difflib.get_close_matches(id or "", ids, n=3, cutoff=0.5)
            told = f"No artifact with id: {id}."
        more = f" Closest: {', '.join(near)}." if near else ""
        raise NotFound(f"{told} Use artifacts.list to see what there is.{more}")

    def _relative(self, path: str) -> str:
        """A path as the index spells it; it is compared, never opened."""
        for root in (self.root, Path(os.path.abspath(self._spelled))):
            if os.path.isabs(path) and Path(path).is_relative_to(root):
                path = Path(path).relative_to(root).as_posix()
        return path.removeprefix("./").lstrip("/")

    # --- life --------------------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open the index or make it, and read it again at the configured interval; returns at once."""
        self._answering.start(progress)
        if self._refresher is None:
            self._refresher = threading.Thread(target=self._refresh, name="anvil-context", daemon=True)
            self._refresher.start()

    def _refresh(self) -> None:
        while not self._stop.wait(self.options.refresh_interval_seconds):
            try:
                self.ingest(patience=0.0)
            except AnvilError as error:  # the next one may succeed; answers look at the files themselves
                logger.warning("The context was not read again: %s", error)

    def close(self) -> None:
        """Stop what runs behind; let go of files and model. A second call does nothing."""
        self._stop.set()
        self._answering.close()
        if self._refresher is not None:
            self._refresher.join(60)
        if self._provider is not None:
            self._provider.close()

    def __enter__(self) -> Context:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _known(type: str | None) -> None:
    if type is not None and type not in KINDS:
        raise ConfigError(f"Unknown type {type[:60]!r}. Use one of {', '.join(KINDS)}.")
