"""The answers from a context: artifacts, search, tasks and health, for the commands and the tools; its start and end.

Before each answer :class:`anvil.live.live_index.LiveIndex` compares the index with the files. Paths and ids of a caller
are looked up in the index, not on the disk. Only indexed files are read.
"""

from __future__ import annotations

import json
import logging
import os
import posixpath
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from itertools import chain, islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from anvil.context.artifacts import KINDS, Artifact, Inventory, StoredArtifacts, is_within, stored_artifacts
from anvil.context.ingestion import ContextCorpus, Ingestion
from anvil.context.settings import STATUSES, ContextOptions
from anvil.context.tasks import TaskCounts, TaskItem
from anvil.errors import AnvilError, ConfigError, NotFound
from anvil.formats.characters import line_ends
from anvil.formats.data_formats import is_deep, no_constant
from anvil.live.live_index import LiveIndex
from anvil.requests import BuildRequest, OpenRequest, SearchRequest
from anvil.settings.schema import Config
from anvil.system import safe_files
from anvil.values import Progress, Skipped, silent
from anvil.wording import closest_names, closest_note, first_of

if TYPE_CHECKING:
    from anvil.live.memory_copy import MemoryCopy
    from anvil.search.result_texts import SectionSpan


FIRST_READING_S = 60.0
"""Longest time that a server without an index reads files before its first answer. A partial list of artifacts would
look complete."""
MAX_NAMED_FILES = 5
"""Skipped files that a note names."""
MAX_CHARS = 24_000
"""Characters of all contents of a search answer. So a chunk of the usual 800 characters is whole at each rank."""
CLOSE_TIMEOUT_S = 60.0
"""Longest time that closing waits for an ingestion."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Match:
    """A search result.

    ``heading``: the breadcrumb of the section that matches. ``startLine``: the first line of ``content``. ``title``:
    that of the artifact. ``truncated``: whether ``content`` is only a part of the section.
    """

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
class ContextOverview:
    """The answer of context.get: the value of ``context.json`` and the inventory.

    ``context`` is null if the file cannot be read, and ``notes`` has the reason.
    """

    context: Any
    inventory: Inventory
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Health:
    """The state of the context.

    ``status``: ``ok``, or ``degraded`` if files could not be read or vectors could not be made. ``embeddings``: the
    number of vectors. ``lastIngestion``: ISO 8601 in UTC, null before the first run. ``errors``: the number of files
    that the last run could not read. ``notes``: sentences on problems.
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


class Context(AbstractContextManager["Context"]):
    """One repository's context. A context manager. Methods may be called from any thread.

    The table ``[context]`` of ``config`` is used, and ``[chunking]`` and ``[embedding]`` for keys that it does not set.
    ``notes`` are stored with each run. With ``background``, for servers, answers wait until the files are read, but not
    until the index and its vectors are made.
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
        self.options = config.table(ContextOptions)
        self._corpus = ContextCorpus(config, root, notes)
        self.records = self._corpus.records
        self._started_at = time.monotonic()
        self._contents_of: tuple[object, StoredArtifacts] | None = None
        request = OpenRequest(background=background, progress=progress)
        self._live = LiveIndex(self._corpus, request, first_reading_s=FIRST_READING_S)
        self._stop = threading.Event()
        self._refresher: threading.Thread | None = None

    # --- ingestion ---------------------------------------------------------------------------------------

    def ingest(
        self, request: BuildRequest = BuildRequest(), warn: Callable[[Skipped], None] = lambda skipped: None
    ) -> Ingestion:
        """Update the index, see :meth:`ContextCorpus.build`. Raises :class:`AnvilError`."""
        self._live.ensure_open()
        return self._corpus.build(request, warn)

    # --- queries -----------------------------------------------------------------------------------------

    def get(self) -> ContextOverview:
        """The value of the repository's ``context.json``, and the numbers of artifacts, chunks and tasks."""
        context, notes = context_file(self._corpus.root)
        with self._query() as (contents, _):
            return ContextOverview(context, contents.summary(), notes)

    def artifacts(self, type: str | None = None, content: bool = False) -> tuple[Artifact, ...]:
        """All artifacts, or those of a type, sorted by path.

        ``content``: with the text of each, empty if it cannot be read. Raises :class:`ConfigError` for an unknown type.
        """
        _ensure_known(type)
        with self._query() as (contents, _):
            artifacts = [artifact for artifact in contents.artifacts.values() if type in (None, artifact.type)]
        if not content:
            return tuple(artifacts)
        documents = [self._corpus.source.plain(artifact.path) for artifact in artifacts]
        texts = ["" if isinstance(document, Skipped) else document.text for document in documents]
        return tuple(replace(artifact, content=text) for artifact, text in zip(artifacts, texts, strict=True))

    def artifact(self, id: str | None = None, path: str | None = None) -> Artifact:
        """An artifact with its text, by id or by path. Raises :class:`NotFound`, which names the closest."""
        if (id is None) == (path is None):
            raise ConfigError("Give either id or path, as in artifacts.list.")
        with self._query() as (contents, _):
            artifact = self._find(contents, id, path)
        document = self._corpus.source.plain(artifact.path)
        if isinstance(document, Skipped):
            raise NotFound(f"{artifact.path} cannot be read now: {document.reason}.")
        return replace(artifact, content=document.text)

    def search(self, query: str, top_k: int = 5, type: str | None = None) -> tuple[Match, ...]:
        """The chunks that match ``query`` best, by keywords, and by meaning if there are vectors.

        ``type``: only chunks of artifacts of this type. None means all types but templates. ``top_k`` is clamped to
        1..20. Raises :class:`ConfigError` for a blank query or an unknown type.
        """
        return self.search_with_spans(query, top_k, type)[0]

    def search_with_spans(
        self, query: str, top_k: int = 5, type: str | None = None
    ) -> tuple[tuple[Match, ...], tuple[SectionSpan, ...]]:
        """The results of :meth:`search`, and for each the span of the section in ``content`` with its first line."""
        _ensure_known(type)
        request = SearchRequest(query, top_k, max_chars=MAX_CHARS)
        question = self._live.embed_query(request)  # before the index is locked, so that no other query waits for it
        with self._query(request) as (contents, copy):
            artifacts = contents.artifacts
            # Templates have the words of each question about specs and plans, but no answers.
            kinds = {*KINDS} - {"template"} if type is None else {type}
            paths = [path for path, artifact in artifacts.items() if artifact.type in kinds]
            result = copy.searcher.search(replace(request, paths=paths), question)
            keys = copy.reader.chunk_keys(ranked.row for ranked in result.ranked)
            matches = tuple(
                Match(
                    chunkId=f"chunk-{keys[ranked.row].hex()}",
                    artifactPath=ranked.hit.metadata.file_path,
                    score=ranked.hit.score,
                    content=ranked.hit.content,
                    type=artifacts[ranked.hit.metadata.file_path].type,
                    heading=ranked.hit.metadata.heading_path,
                    # if the content is cut, its first line; else there may be lines before the section in it
                    startLine=ranked.hit.lines[0]
                    if ranked.hit.lines
                    else (ranked.span.line or 1) - line_ends(ranked.hit.content, ranked.span.start),
                    truncated=ranked.hit.truncated,
                    title=artifacts[ranked.hit.metadata.file_path].title,
                )
                for ranked in result.ranked
            )
            return matches, tuple(ranked.span for ranked in result.ranked)

    def tasks(
        self, status: str = "open", path: str | None = None, limit: int | None = None, offset: int = 0
    ) -> tuple[TaskItem, ...]:
        """The tasks with a status (``open``, ``done`` or ``all``), by path and line, or of a ``path`` only.

        The first ``offset`` tasks are left out, and ``limit`` are returned (None: all others). Raises
        :class:`NotFound` for a path without artifacts. It names the closest.
        """
        if status not in STATUSES:
            raise ConfigError(f"Unknown status {status!r}. Use open, done or all.")
        within = self._within(path)
        with self._query() as (contents, _):
            files = [file for file in contents.artifacts if is_within(file, within)]
            if within and not files:
                paths = {str(path) for file in contents.artifacts for path in (file, *PurePosixPath(file).parents)}
                raise NotFound(
                    f"No artifact in {path}. Give a path from the repository's root.{_closest(within, paths)}"
                )
            tasks = chain.from_iterable(contents.tasks_by_path[file] for file in files)
            with_status = (task for task in tasks if status in ("all", task.status))
            return tuple(islice(with_status, offset, None if limit is None else offset + limit))

    def unmarked(self, path: str | None = None) -> str | None:
        """A note on items of task lists with an unknown mark; None without such."""
        with self._query() as (contents, _):
            return contents.note(self._within(path))

    def health(self) -> Health:
        """Counts, the last run, and problems."""
        state = self.records.state()
        with self._query() as (contents, copy):
            note, failure = contents.note(), self._corpus.provider_failure
            notes = [*self._corpus.notes, *state.notes, *self._live.notes(copy), *([note] if note else [])]
            # files that are no errors, such as those over the size limit
            if skipped := [f"{each.path} ({each.reason})" for each in self._corpus.source.scan(copy.indexed).skipped]:
                notes.append(f"Skipped: {first_of(skipped, MAX_NAMED_FILES)}.")
            if failure is not None and not any(failure in note for note in notes):
                notes.append(failure)
            return Health(
                status="degraded" if state.errors or failure or state.notes else "ok",
                uptimeSeconds=round(time.monotonic() - self._started_at, 3),
                artifacts=len(contents.artifacts),
                chunks=contents.chunks,
                embeddings=contents.embeddings,
                tasks=contents.counts,
                lastIngestion=state.timestamp,
                errors=len(state.errors),
                notes=tuple(dict.fromkeys(notes)),
            )

    @contextmanager
    def _query(self, search: SearchRequest | None = None) -> Iterator[tuple[StoredArtifacts, MemoryCopy]]:
        """A context with the contents of the index, which are cached until it changes, and the index."""
        with self._live.query(search) as copy:
            if self._contents_of is None or self._contents_of[0] is not copy.indexed:  # replaced when pages change
                artifacts = stored_artifacts(copy.reader, self.options.types, self.options.tasks)
                self._contents_of = copy.indexed, artifacts
            yield self._contents_of[1], copy

    def _find(self, contents: StoredArtifacts, id: str | None, path: str | None) -> Artifact:
        artifacts = contents.artifacts
        if path is not None:
            wanted = path if path in artifacts else self._relative(path)
            message = f"No artifact at path: {path}."
        else:
            artifacts = {artifact.id: artifact for artifact in artifacts.values()}
            wanted = id or ""
            message = f"No artifact with id: {id}."
        if wanted in artifacts:
            return artifacts[wanted]
        raise NotFound(f"{message} Use artifacts.list to see what there is.{_closest(wanted, artifacts)}")

    def _within(self, path: str | None) -> str:
        """A path of a file or folder relative to the repository; empty for the repository itself."""
        within = posixpath.normpath(self._relative(path or ""))
        return "" if within == "." else within

    def _relative(self, path: str) -> str:
        """A path of a caller relative to the repository, as in the index. It is only compared, not opened."""
        for root in (self._corpus.root, Path(os.path.abspath(self._corpus.given_root))):
            if os.path.isabs(path) and Path(path).is_relative_to(root):
                path = Path(path).relative_to(root).as_posix()
        return path.removeprefix("./").lstrip("/")

    # --- start and close ---------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the index, and ingest again at the configured interval, in threads. Returns at once."""
        self._live.start(progress)
        if self._refresher is None:
            self._refresher = threading.Thread(target=self._refresh, name="anvil-context", daemon=True)
            self._refresher.start()

    def _refresh(self) -> None:
        while not self._stop.wait(self.options.refresh_interval_seconds):
            try:
                # without waiting: another process that holds the lock does the same work
                self.ingest(BuildRequest(lock_timeout_s=0.0))
            except AnvilError as error:  # the next run may succeed, and answers are compared with the files anyway
                logger.warning("The context was not ingested again: %s", error)

    def close(self) -> None:
        """Stop the threads, then close files and model. A second call does nothing."""
        self._stop.set()
        self._live.close()
        if self._refresher is not None:
            self._refresher.join(CLOSE_TIMEOUT_S)
        self._corpus.close()

    def __exit__(self, *_: object) -> None:
        self.close()


def _closest(wanted: str, known: Iterable[str]) -> str:
    return closest_note(closest_names(wanted, sorted(known), 3, 0.5))


def _ensure_known(type: str | None) -> None:
    if type is not None and type not in KINDS:
        raise ConfigError(f"Unknown type {type[:60]!r}. Use one of {', '.join(KINDS)}.")


NAME = "context.json"
MAX_BYTES, MAX_LEVELS = 1_000_000, 64
"""Limits of ``context.json`` in size and nesting, since the programs of clients must be able to read it."""


def context_file(root: Path) -> tuple[Any, tuple[str, ...]]:
    """The value of ``context.json``, or None and a note with the reason. ``root`` is a path without symbolic links."""
    path = root / NAME
    if not Path(os.path.realpath(path)).is_relative_to(root):
        return None, (f"{NAME} is a link to a place outside the repository and is not read.",)
    try:
        value = json.loads(safe_files.text(path, MAX_BYTES), parse_constant=no_constant)
        json.dumps(value, ensure_ascii=False).encode()  # raises for half a surrogate pair
        if is_deep(value, MAX_LEVELS):
            raise ValueError(f"it is nested deeper than {MAX_LEVELS} levels")
        return value, ()
    except FileNotFoundError:
        return None, (f"There is no {NAME} in the repository.",)
    except json.JSONDecodeError as error:
        return None, (f"{NAME} is not JSON: {error.msg} in line {error.lineno}, column {error.colno}.",)
    except (OSError, ValueError, RecursionError) as error:
        return None, (f"{NAME} cannot be read: {safe_files.reason(error)[:200]}.",)
