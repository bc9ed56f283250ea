"""The object that a program, the command line and a server all hold: one index over one folder of documents.

Collaborators are chosen here and nowhere below: which source, which embedding provider, which file.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from anvil import __version__
from anvil.config import Config
from anvil.configfile import load_config
from anvil.errors import ArtifactError, ArtifactMissing, ConfigError, SourceError
from anvil.models import (
    ArtifactStatus,
    BuildReport,
    Changes,
    EmbeddingStatus,
    Freshness,
    GitStatus,
    IndexStatus,
    Mode,
    Page,
    PageList,
    Progress,
    SearchResult,
    SectionText,
    ServerStatus,
    StaleCounts,
    Status,
    silent,
)

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider
    from anvil.sources import DocumentSource
    from anvil.workingcopy import WorkingCopy

T = TypeVar("T")
INDEX_FOLDER = ".anvil"
INDEX_NAME = "index.db"


def open(
    docs: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    progress: Progress = silent,
) -> Anvil:
    """Open a folder of documents, an index, or both.

    ``docs``: the folder; ``index``: the index file (default ``<docs>/.anvil/index.db``); ``provider``:
    ``local``, ``openai`` or ``none``; ``config``: a file or a :class:`Config`. What is not given comes from the
    configuration. With an index alone, answers come from it as it is. Raises :class:`AnvilError`.
    """
    flags = {
        "docs": os.fspath(docs) if docs is not None else None,
        "index": os.fspath(index) if index is not None else None,
        "embedding.provider": provider,
    }
    if isinstance(config, Config):
        given = {key: value for key, value in flags.items() if value is not None}
        embedding = replace(config.embedding, provider=provider) if provider else config.embedding
        paths: dict[str, Any] = {key: given[key] for key in ("docs", "index") if key in given}
        settled, base = replace(config, embedding=embedding, **paths), Path.cwd()
    else:
        settled, base = load_config(config, flags)
    wants_docs = docs is not None or index is None
    return Anvil(settled, base, index_only=not wants_docs, progress=progress)


class Anvil:
    """One index, usable from any thread; a context manager. Forgetting :meth:`close` warns."""

    def __init__(
        self, config: Config, base: Path, *, index_only: bool = False, progress: Progress = silent
    ) -> None:
        """``base`` is where relative paths in ``config`` start; ``index_only`` allows the docs to be missing."""
        self.config = config
        self._progress = progress
        self._started = time.monotonic()
        self._lock = threading.RLock()
        self._closed = False
        folder = base / config.docs
        self.docs_root: Path | None = folder
        if not folder.is_dir():
            if not index_only:
                self._closed = True
                raise SourceError(
                    f"{folder} is not a folder. Name the documentation folder with --docs."
                    if folder.exists()
                    else f"There is no folder {folder}. Name the documentation folder with --docs."
                )
            self.docs_root = None
        self.index_path = base / config.index if config.index else folder / INDEX_FOLDER / INDEX_NAME
        self._source: DocumentSource | None = None
        self._provider: EmbeddingProvider | None = None
        self._copy: WorkingCopy | None = None

    # --- collaborators -----------------------------------------------------------------------------------

    @property
    def source(self) -> DocumentSource | None:
        """The documents, or None when there is only an index."""
        if self._source is None and self.docs_root is not None:
            from anvil import sources

            self._source = sources.working_tree(self.docs_root, self.config.source)
        return self._source

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider; its model is loaded when it is first needed."""
        if self._provider is None:
            from anvil import embedding

            self._provider = embedding.provider(self.config.embedding.provider, self.config.embedding)
        return self._provider

    def _working_copy(self) -> WorkingCopy:
        if self._copy is None:
            from anvil.workingcopy import WorkingCopy

            self._copy = WorkingCopy(self.index_path, self.source, self.provider, self._progress)
        return self._copy

    def _answer(self, ask: Callable[[WorkingCopy], T]) -> T:
        """Make sure that the index says what the documents say, then ask it."""
        with self._lock:
            self._ready()
            copy = self._working_copy()
            try:
                copy.refresh()
            except ArtifactError as error:
                if self.source is None or (not isinstance(error, ArtifactMissing) and self.config.index):
                    raise
                self.index()
                copy.refresh()
            return ask(copy)

    def _ready(self) -> None:
        if self._closed:
            raise ConfigError("This Anvil is closed. Open another with anvil.open().")
        if self.docs_root is not None and not self.docs_root.is_dir():  # nor is an empty one made in its place
            raise SourceError(f"There is no folder {self.docs_root} any more. Put it back, or open another.")

    # --- questions ---------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int = 12_000,
        mode: Mode = "hybrid",
    ) -> SearchResult:
        """The chunks that answer ``query`` best.

        ``top_k`` is clamped to 1..20. ``file_filter``: a glob over paths, applied before ranking.
        ``max_chars``: the budget for all contents together. Raises :class:`ConfigError` for a blank query.
        """
        started = time.perf_counter()

        def ask(copy: WorkingCopy) -> SearchResult:
            found = copy.searcher.search(query, top_k, file_filter, max_chars, mode, self.config.search.threshold)
            return SearchResult(
                found.hits,
                found.total_chunks,
                round((time.perf_counter() - started) * 1000, 3),
                self._freshness(copy, found.notes),
            )

        return self._answer(ask)

    def get_page(self, file_path: str) -> Page:
        """A whole page. Raises :class:`NotFound`, naming the closest paths."""
        from anvil import pages

        return self._answer(lambda copy: pages.get_page(copy.reader, file_path, self.docs_root))

    def get_section(self, file_path: str, heading_path: str, include_children: bool = False) -> SectionText:
        """The text under one heading. Raises :class:`NotFound`, naming the closest breadcrumbs."""
        from anvil import pages

        return self._answer(
            lambda copy: pages.get_section(copy.reader, file_path, heading_path, include_children, self.docs_root)
        )

    def headings(self, file_path: str) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order: what :meth:`get_section` can be asked for."""
        from anvil import pages

        return self._answer(lambda copy: pages.headings(copy.reader, file_path, self.docs_root))

    def breadcrumb(self, file_path: str, heading: str) -> str:
        """The exact breadcrumb of a section named by breadcrumb, anchor or, where only one has it, heading text."""
        from anvil import pages

        return self._answer(lambda copy: pages.breadcrumb(copy.reader, file_path, heading, self.docs_root))

    def list_pages(self, prefix: str | None = None) -> PageList:
        """The pages, or those in a folder, sorted by path."""
        from anvil import pages

        return self._answer(lambda copy: pages.list_pages(copy.reader, prefix))

    def get_status(self) -> Status:
        """The server, the index, the embedding and the repository; it does not fail because git does."""
        return self._answer(self._status)

    def _freshness(self, copy: WorkingCopy, notes: Sequence[str] = ()) -> Freshness:
        meta = copy.artifact_meta
        refreshed = (*copy.stale.changed, *copy.stale.added, *copy.stale.removed)
        return Freshness(
            "working tree" if copy.source else None,
            meta.get("commit"),
            tuple(sorted(refreshed)),
            int(copy.reader.meta()["needs_reembed"]),
            tuple(notes),
        )

    def _status(self, copy: WorkingCopy) -> Status:
        meta, own = copy.reader.meta(), copy.artifact_meta
        counts = copy.reader.counts()
        stale = copy.stale
        return Status(
            ServerStatus(
                __version__, round(time.monotonic() - self._started, 3), str(self.docs_root) if self.docs_root else None
            ),
            IndexStatus(
                counts["documents"], counts["chunks"], meta["last_index_timestamp"], str(self.index_path),
                self.index_path.stat().st_size,
                ArtifactStatus(str(self.index_path), own["digest"], own.get("commit"), own["last_index_timestamp"]),
                StaleCounts(len(stale.changed), len(stale.added), len(stale.removed)),
                int(meta["needs_reembed"]),
            ),
            EmbeddingStatus(meta["embedding_model"], int(meta["embedding_dimensions"]), meta["embedding_provider"]),
            self._git(),
        )  # fmt: skip

    def _git(self) -> GitStatus | None:
        from anvil import git

        return git.status(self.docs_root or self.index_path.parent)

    # --- building ----------------------------------------------------------------------------------------

    def index(
        self,
        force: bool = False,
        previous: Sequence[str | os.PathLike[str]] = (),
        source: DocumentSource | None = None,
    ) -> BuildReport:
        """Bring the index file in line with the documents; it is not written when it is already.

        ``force`` does all anew. ``previous``: further indexes whose vectors may be taken over. ``source``: other
        documents than the working tree's, such as the staged ones. Raises :class:`BuildError`.
        """
        from anvil import building

        chosen = source or self.source
        if chosen is None:
            raise SourceError("There are no documents to index. Name the documentation folder with docs or --docs.")
        with self._lock:
            self._ready()
            if self.config.index is None:
                self._keep_out_of_git()
            return building.build(
                chosen, self.index_path, self.provider, self.config.chunking,
                previous=[Path(path) for path in previous], force=force, progress=self._progress,
            )  # fmt: skip

    def check(self, source: DocumentSource | None = None) -> Changes:
        """How the documents differ from the index file; needs no model.

        Raises :class:`ArtifactError` when there is no usable index, :class:`SourceError` when there are no
        documents.
        """
        from anvil import freshness
        from anvil.store import checking

        chosen = source or self.source
        if chosen is None:
            raise SourceError("There are no documents to compare with. Name the documentation folder with --docs.")
        with self._lock:
            self._ready()
            reader = checking.open_checked(self.index_path)
            try:
                indexed = reader.blob_ids()
                return freshness.compare(indexed, chosen.scan(indexed).entries)
            finally:
                reader.close()

    def _keep_out_of_git(self) -> None:
        """The default place is private until 'anvil init' says otherwise: nothing of ours is committed by chance."""
        folder = self.index_path.parent
        if not folder.exists():
            try:
                folder.mkdir(parents=True)
                (folder / ".gitignore").write_text("*\n", encoding="utf-8")
            except OSError as error:
                from anvil.errors import BuildError

                raise BuildError(
                    f"{folder} cannot be made ({error.strerror}). Choose another place with --index."
                ) from error

    # --- life --------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Let go of files and model. A second call does nothing."""
        with self._lock:
            self._closed = True
            if self._copy is not None:
                self._copy.close()
            if self._provider is not None:
                self._provider.close()

    def __enter__(self) -> Anvil:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            warnings.warn(f"{self.index_path} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()
