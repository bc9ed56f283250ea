"""The ingestion of a repository's context: reading its files, the index, ``state.json``, and two logs beside the index.

The logs are ``ingestion.log``, with a line for each run, and ``errors.log``, with files that could not be read.
"""

from __future__ import annotations

import json
import os
import posixpath
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, timezone
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.context.artifacts import ContextFiles, stored_artifacts
from anvil.context.settings import ContextOptions
from anvil.context.tasks import METADATA_VERSION, TaskCounts, TaskedDocuments
from anvil.documents.document_source import is_failure
from anvil.errors import ArtifactError, BuildError, ConfigError, IndexBusy
from anvil.formats.data_formats import json_object
from anvil.index_file import publish, verify
from anvil.project_indexes import IndexLocation
from anvil.requests import BuildRequest
from anvil.settings.schema import Config, SourceOptions
from anvil.system import safe_files
from anvil.values import Skipped
from anvil.wording import first_of

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider

INDEX, STATE, LOG, ERRORS = "index.db", "state.json", "ingestion.log", "errors.log"
MAX_NAMED_FOLDERS = 5
"""Directories that a note names."""
_WILDCARDS = frozenset("*?[{")
MAX_STATE_BYTES = 100_000_000
"""A larger ``state.json`` is not read. It counts as damaged."""


@dataclass(frozen=True, slots=True)
class Ingestion:
    """The report of a run, which is a line of ``ingestion.log``: its result, and the contents of the index after it.

    ``outcome``: ``built`` or ``unchanged``. ``skipped``: the number of files that a rule excludes, such as too large
    ones. ``errors``: the number of files that could not be read. ``seconds``: the duration of the run.
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

    @property
    def reasons(self) -> tuple[str, ...]:
        """The notes, under the name that they have in the report of a build of documentation."""
        return self.notes


@dataclass(frozen=True, slots=True)
class State:
    """The state after the last run: its time, the hash of each file (git's blob id), errors, and notes on vectors that
    are missing because the provider failed."""

    timestamp: str | None = None
    version: int = METADATA_VERSION
    hashes: Mapping[str, str] = field(default_factory=dict)
    errors: tuple[Skipped, ...] = ()
    notes: tuple[str, ...] = ()


class Records:
    """The files beside the index, in its folder. Methods that write raise :class:`BuildError` if that is impossible."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.index = folder, folder / INDEX

    def prepare(self) -> None:
        """Make the folder, with a ``.gitignore`` for all files in it."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            ignore = self.folder / ".gitignore"
            if safe_files.regular_file(ignore) is None:
                safe_files.write_file(ignore, "*\n")
        except OSError as error:
            raise BuildError(
                f"{self.folder} cannot be created ({error.strerror}). Choose another place with context.index_dir."
            ) from error

    def state(self) -> State:
        """The state of the last run. It is empty if the file is missing or damaged; the next run writes it again."""
        try:
            fields = json_object(safe_files.text(self.folder / STATE, MAX_STATE_BYTES)) or {}
            errors = tuple(Skipped(**error) for error in fields["errors"])
            return State(**{**fields, "errors": errors, "notes": tuple(fields["notes"])})
        except (OSError, ValueError, KeyError, TypeError):
            return State()

    def write(self, run: Ingestion, state: State) -> None:
        """Write a run: a line in the log, its state, and a line for each error that the last run did not have."""
        new_errors = [error for error in state.errors if error not in self.state().errors]
        # The state is written last. If a run is interrupted before, its errors are in the log twice instead of never.
        with safe_files.writing(self.folder):
            self._append(ERRORS, [{"timestamp": run.timestamp, **asdict(error)} for error in new_errors])
            self._append(LOG, [asdict(run)])
            text = json.dumps(asdict(state), ensure_ascii=False, indent=1) + "\n"
            safe_files.write_file(self.folder / STATE, text, replace=True)

    def _append(self, name: str, lines: Sequence[Mapping[str, Any]]) -> None:
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        if text:
            with open(self.folder / name, "a", encoding="utf-8", newline="\n", opener=safe_files.opener) as file:
                file.write(text)


class ContextCorpus:
    """The context files of one repository, and the folder with their index: a :class:`anvil.live.live_index.Corpus`.

    ``notes`` are about the configuration.
    """

    configured: Mapping[str, str | None] = {}
    watched: tuple[Path, bool] | None = None
    is_private = False  # the context has its own interval for updates

    def __init__(self, config: Config, root: Path, notes: tuple[str, ...] = ()) -> None:
        self.options = config.table(ContextOptions)
        self.given_root = Path(root).absolute()
        self.records = Records(self.given_root / self.options.index_dir)
        self.ensure_usable()
        self.location = IndexLocation(self.records.index)
        self.chunking = self.options.fixed or replace(config.chunking, slugs="github")  # anchors are not shown
        self._embedding = config.embedding
        self._notes = notes
        self._provider: EmbeddingProvider | None = None
        self.provider_failure: str | None = None
        """Why the configured provider cannot be used. Set when :attr:`provider` is read for the first time."""

    @property
    def root(self) -> Path:
        """The repository's folder without symbolic links. Resolved each time, as a deployment may change them."""
        return Path(os.path.realpath(self.given_root))

    @cached_property
    def source(self) -> TaskedDocuments:
        from anvil.documents.working_tree import WorkingTree

        folders = [posixpath.normpath(name.replace("\\", "/")) for name in self.options.directories]
        include = tuple(f"{folder}/{glob}" for folder in folders for glob in SourceOptions().include)
        options = ContextFiles(include, (), self.options.max_file_size_bytes, includes=False)
        return TaskedDocuments(WorkingTree(self.given_root, options))

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider, or the provider ``none`` if it cannot be used."""
        if self._provider is None:
            from anvil.embedding.provider import provider_or_none

            name = self.options.embeddings.provider
            self._provider, self.provider_failure = provider_or_none(replace(self._embedding, provider=name))
        return self._provider

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences about the configuration, such as on directories that are missing."""
        missing = missing_directories(self.options, self.root)
        return (*self._notes, missing) if missing else self._notes

    def ensure_usable(self) -> None:
        """Raise :class:`ConfigError` when the index folder is outside the repository, as by a symbolic link."""
        root = self.root
        if not Path(os.path.realpath(root / self.options.index_dir)).is_relative_to(root):
            raise ConfigError(f"context.index_dir is outside {root}. Name a folder inside the repository.")

    def may_build(self, error: ArtifactError) -> bool:
        """True, since the index is always made from files of the repository, in a folder of its own."""
        return True

    def build(self, request: BuildRequest, warn: Callable[[Skipped], None] = lambda skipped: None) -> Ingestion:
        """Update the index from the files, and write the log, also if nothing changed. ``warn`` gets each skipped file.

        Raises :class:`IndexBusy` if another run holds the lock for too long, and other :class:`AnvilError`. Then the
        index is not changed.
        """
        from anvil.build import builder
        from anvil.embedding.provider import LocalExecutor

        self.ensure_usable()
        executor = LocalExecutor(self.provider, never_raises=True, failure=self.provider_failure)
        started = time.perf_counter()
        self.records.prepare()
        with _run_lock(self.records, request):
            last_run = self.records.state()
            force = request.force or (self.records.index.exists() and last_run.version != METADATA_VERSION)
            request = replace(request, force=force, workers=executor)
            report = builder.build(self.source, self.records.index, self.provider, self.chunking, request)
            notes = (f"Vectors are missing; the next run tries again: {executor.failure}",) if executor.failure else ()
            timestamp = datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z")
            with verify.open_checked(self.records.index) as reader:
                contents, hashes = stored_artifacts(reader, self.options.types, self.options.tasks), reader.blob_ids()
            failures = tuple(skipped for skipped in report.skipped if is_failure(skipped.reason))
            state = State(timestamp, hashes=hashes, errors=failures, notes=notes)
            run = Ingestion(
                timestamp=timestamp,
                outcome=report.outcome,
                artifacts=report.pages,
                chunks=report.chunks,
                embeddings=contents.embeddings,
                tasks=contents.counts,
                **{kind: len(paths) for kind, paths in asdict(report.changes).items()},
                skipped=len(report.skipped) - len(failures),
                errors=len(failures),
                seconds=round(time.perf_counter() - started, 3),
                notes=tuple(filter(None, (*self.notes, *notes, *report.reasons, contents.note()))),
            )
            self.records.write(run, state)
        for skipped in report.skipped:
            warn(skipped)
        return run

    def close(self) -> None:
        if self._provider is not None:
            self._provider.close()


def missing_directories(options: ContextOptions, root: Path) -> str | None:
    """A note if none of the directories exists; None if one does, or if one is a glob."""
    names = options.directories
    if any((root / name).is_dir() or not _WILDCARDS.isdisjoint(name) for name in names):
        return None
    return f"There is none of the directories {first_of(names, MAX_NAMED_FOLDERS)} in {root}. Set context.directories."


@contextmanager
def _run_lock(records: Records, request: BuildRequest) -> Iterator[None]:
    """A context that no other run enters at the same time. Raises :class:`IndexBusy`."""
    try:
        with publish.exclusive(records.folder / "ingestion", request.lock_timeout_s, request.progress):
            yield
    except IndexBusy as error:
        raise IndexBusy(f"Another process is writing {records.folder}. Try again when it has finished.") from error
