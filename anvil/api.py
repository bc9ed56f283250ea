"""The object that a program, the command line and a server all hold: one index over one folder of documents.

Collaborators are chosen here and nowhere below: which source, which embedding provider, which file.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import cached_property
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from anvil import addresses, reporting
from anvil.answering import Answering
from anvil.config import Config
from anvil.configfile import index_file
from anvil.errors import ArtifactError, ArtifactMissing, ConfigError, SourceError
from anvil.models import (
    BuildReport,
    Changes,
    Mode,
    Page,
    PageList,
    Progress,
    SearchResult,
    SectionText,
    silent,
)
from anvil.status import Status

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider
    from anvil.following import Following
    from anvil.health import Health
    from anvil.pages import Outline
    from anvil.remotecopy import Remote
    from anvil.searching import Explained
    from anvil.sources import DocumentSource
    from anvil.watching import Watcher
    from anvil.workingcopy import WorkingCopy


class Anvil:
    """One index, usable from any thread; a context manager. Forgetting :meth:`close` warns."""

    def __init__(
        self,
        config: Config,
        base: Path,
        *,
        index_only: bool = False,
        progress: Progress = silent,
        background: bool = False,
        watch: bool = False,
    ) -> None:
        """``base`` is where relative paths in ``config`` start; ``index_only``: docs may be missing or another's."""
        self.config = config
        self._progress = progress
        self._started = time.monotonic()
        self._background = background
        folder = base / config.docs
        if not folder.is_dir() and not index_only:
            raise SourceError(
                f"{folder} is not a folder. Name the documentation folder with --docs."
                if folder.exists()
                else f"There is no folder {folder}. Name the documentation folder with --docs."
            )
        self.folder: Path | None = folder if folder.is_dir() else None
        """The documentation folder that a build and a check read."""
        self._following, self._remote = self._elsewhere(config.index or "", base)
        self.index_path = index_file(config, base)
        elsewhere = self._following or self._remote
        self.origin = elsewhere.origin if elsewhere else None
        """Where the index is fetched from, or asked, without credentials; None for a file of one's own."""
        if elsewhere is not None:
            self.index_path = elsewhere.path
        self._source: DocumentSource | None = None
        self._index_only = index_only
        self._undecided = index_only and self._following is not None  # until the index is here
        self._provider: EmbeddingProvider | None = None
        self._answering = Answering(
            self._ready, self._working_copy, self._first_index, self._rebuildable, config.chunking,
            background=background, ahead=self._ahead,
            watcher=self._watcher if watch and not (self.origin and self.folder is None) else None,
        )  # fmt: skip

    # --- collaborators -----------------------------------------------------------------------------------

    @property
    def tree(self) -> DocumentSource | None:
        """The documents as they lie in :attr:`folder`."""
        if self._source is None and self.folder is not None:
            from anvil import sources

            self._source = sources.working_tree(self.folder, self.config.source)
        return self._source

    @cached_property
    def docs_root(self) -> Path | None:
        """The documentation folder that answers are compared with; None when there is only an index."""
        return self.folder if not self._index_only or self._is_of_folder() else None

    @property
    def source(self) -> DocumentSource | None:
        """The documents that answers are compared with, or None when there is only an index."""
        return self.tree if self.docs_root is not None else None

    def _elsewhere(self, index: str, base: Path) -> tuple[Following | None, Remote | None]:
        """Whoever keeps an index from elsewhere at hand, or asks it there."""
        if not addresses.is_remote(index):
            return None, None
        if addresses.is_milvus(index):
            from anvil.remotecopy import Remote

            return None, Remote(index, base)
        from anvil.following import Following

        return Following(index, self.config.fetch, self.folder or base, lambda: self._answering.look()), None

    def _ahead(self, patient: bool) -> None:
        if self._following is not None and not self._answering.closed:
            if self._background:
                self._following.start(None)
            self._following.ready(patient)

    def _is_of_folder(self) -> bool:
        """Whether the index that was named alone has at least half of its pages in the configured folder."""
        from anvil.store import checking

        if self.tree is None or self._undecided:
            return False
        try:
            with self._remote or checking.open_checked(self.index_path) as reader:
                indexed = reader.blob_ids()
        except ArtifactError:
            return False  # whoever asks it will be told why
        found = self.tree.scan(indexed).entries
        return len(indexed.keys() & found.keys()) * 2 >= max(len(indexed), 1)

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider; its model is loaded when it is first needed."""
        if self._provider is None:
            from anvil import embedding

            self._provider = embedding.provider(self.config.embedding.provider, self.config.embedding)
        return self._provider

    def _working_copy(self) -> WorkingCopy:
        from anvil.workingcopy import WorkingCopy

        if self._undecided:
            self._undecided = False
            self.__dict__.pop("docs_root", None)  # whatever it was taken for: now there is an index to decide by
        if self._remote is not None:
            return self._remote.copy(self.source, self.provider, self._progress, self._background)
        return WorkingCopy(self.index_path, self.source, self.provider, self._progress, behind=self._background)

    def _watcher(self, moved: Callable[[], None]) -> Watcher:
        from anvil.watching import Watcher

        folder = self.folder if self.origin is not None else self.docs_root
        if folder is not None:
            return Watcher(folder, moved)
        return Watcher(self.index_path.parent, moved, deep=False)  # who knows what else lies beside an index

    def _rebuildable(self, error: ArtifactError) -> bool:
        """Whether an index may be built where none can be used: never over a file that somebody named."""
        if self.source is None or self.origin is not None:
            return False
        return isinstance(error, ArtifactMissing) or not self.config.index

    def _ready(self) -> None:
        self._usable()
        self._there(self.docs_root)

    def _usable(self) -> None:
        if self._answering.closed:
            raise ConfigError("This Anvil is closed. Open another with anvil.open().")

    def _there(self, folder: Path | None) -> None:
        if folder is not None and not folder.is_dir():  # nor is an empty one made in its place
            raise SourceError(f"There is no folder {folder} any more. Put it back, or open another.")

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
        return self.explain(query, top_k, file_filter, max_chars, mode).result

    def explain(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int = 12_000,
        mode: Mode = "hybrid",
    ) -> Explained:
        """As :meth:`search`, with what each score is made of."""
        started = time.perf_counter()
        question = self._answering.question(query, mode)

        def ask(copy: WorkingCopy) -> Explained:
            from anvil.searching import Explained

            threshold = self.config.search.threshold
            found = copy.searcher.search(query, top_k, file_filter, max_chars, mode, threshold, question)
            result = SearchResult(
                found.hits,
                found.total_chunks,
                round((time.perf_counter() - started) * 1000, 3),
                reporting.freshness(copy, [*self._origin_notes(), *self._answering.notes(copy), *found.notes]),
            )
            return Explained(result, found.parts)

        return self._answering.answer(ask, vectors=mode != "keyword")

    def get_page(self, file_path: str) -> Page:
        """A whole page. Raises :class:`NotFound`, naming the closest paths."""
        from anvil import pages

        return self._answering.answer(lambda copy: pages.get_page(copy.reader, file_path, self.docs_root))

    def outline(self, file_path: str) -> Outline:
        """A whole page, and where its sections are in it. Raises :class:`NotFound`, naming the closest paths."""
        from anvil import pages

        return self._answering.answer(lambda copy: pages.outline(copy.reader, file_path, self.docs_root))

    def get_section(self, file_path: str, heading_path: str, include_children: bool = False) -> SectionText:
        """The text under one heading. Raises :class:`NotFound`, naming the closest breadcrumbs."""
        from anvil import pages

        return self._answering.answer(
            lambda copy: pages.get_section(copy.reader, file_path, heading_path, include_children, self.docs_root)
        )

    def headings(self, file_path: str) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order: what :meth:`get_section` can be asked for."""
        from anvil import pages

        return self._answering.answer(lambda copy: pages.headings(copy.reader, file_path, self.docs_root))

    def breadcrumb(self, file_path: str, heading: str) -> str:
        """The exact breadcrumb of a section named by breadcrumb, anchor or, where only one has it, heading text."""
        from anvil import pages

        return self._answering.answer(lambda copy: pages.breadcrumb(copy.reader, file_path, heading, self.docs_root))

    def list_pages(self, prefix: str | None = None) -> PageList:
        """The pages, or those in a folder, sorted by path."""
        from anvil import pages

        return self._answering.answer(lambda copy: pages.list_pages(copy.reader, prefix))

    def get_status(self) -> Status:
        """The server, the index, the embedding and the repository; it does not fail because git does."""
        return self._answering.answer(
            lambda copy: reporting.status(copy, self.docs_root, self._started, self.origin, self._origin_notes())
        )

    def _origin_notes(self) -> list[str]:
        return self._following.notes() if self._following else []

    def health(self) -> Health:
        """What is worth mending in the pages. Nobody else waits while they are compared with one another."""
        from anvil import health

        if self._remote is not None:
            raise ConfigError(f"Health is told of an index file, not of {self.origin}. Open the file it was made from.")
        return self._answering.answer(lambda copy: health.look_over(copy.reader)).judged()

    # --- building ----------------------------------------------------------------------------------------

    def index(
        self,
        force: bool = False,
        previous: Sequence[str | os.PathLike[str]] = (),
        source: DocumentSource | None = None,
        shard: str | None = None,
        executor: str | None = None,
    ) -> BuildReport:
        """Bring the index file in line with the documents; it is not written when it is already.

        ``force`` does all anew. ``previous``: further indexes whose vectors may be taken over. ``source``: other
        documents than the working tree's, such as the staged ones. ``shard``, such as ``3/8``: that share of them
        only, for :func:`anvil.merging.join`. ``executor``, such as ``ray://head:10001``: the cluster that embeds them.
        Raises :class:`BuildError`.
        """
        paths = [Path(path) for path in previous]
        return self._index(force, paths, source or self.tree, self._progress, None, shard, executor)

    def _first_index(self, progress: Progress, patience: float | None) -> BuildReport:
        return self._index(False, (), self.source, progress, patience)

    def _index(
        self, force: bool, previous: Sequence[Path], source: DocumentSource | None, progress: Progress,
        patience: float | None, shard: str | None = None, executor: str | None = None,
    ) -> BuildReport:  # fmt: skip
        from anvil import building, executing, wording
        from anvil.sharding import Shard
        from anvil.store import publishing

        if source is None:
            raise SourceError("There are no documents to index. Name the documentation folder with docs or --docs.")
        if self.origin is not None:
            raise ConfigError(f"The index comes from {self.origin} and is not built here. Name a file with --index.")
        # A server's answers do not wait for a build; what is built is a file of its own, behind a lock of its own.
        with nullcontext() if self._background else self._answering.lock:
            self._usable()
            self._there(self.folder)
            if self.config.index is None:
                publishing.keep_out_of_git(self.index_path.parent)
            return building.build(
                source, self.index_path, self.provider, self.config.chunking, previous=previous, force=force,
                shard=Shard.parse(shard) if shard is not None else None, progress=progress,
                executor=executing.executor(executor, self.provider, self.config.embedding) if executor else None,
                pageless=wording.no_page(self.folder or "the source", self.config.source.include),
                **({} if patience is None else {"patience": patience}),
            )  # fmt: skip

    def check(
        self, source: DocumentSource | None = None, index: str | os.PathLike[str] | None = None
    ) -> Changes:
        """How the documents differ from the index file; needs no model.

        ``source``: other documents than the working tree's; ``index``: another file than :attr:`index_path`.
        Raises :class:`ArtifactError` when there is no usable index, :class:`SourceError` when there are no
        documents.
        """
        from anvil import published

        chosen = source or self.tree
        if chosen is None:
            raise SourceError("There are no documents to compare with. Name the documentation folder with --docs.")
        self._ahead(True)
        with self._answering.lock:
            self._usable()
            self._there(self.folder if source is None else None)
            if self._remote is not None and index is None:
                with self._remote as reader:
                    return published.compared(reader, chosen)
            return published.differences(self.index_path if index is None else Path(index), chosen)

    # --- life --------------------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open the index or build it, and load the model, in the background; returns at once.

        Only with ``background=True``, where the first question does it too; a second call does nothing more.
        ``progress`` is told of the first build by another thread. Questions asked meanwhile are answered from what
        is there, and say so in ``freshness.notes``.
        """
        if not self._background:
            raise ConfigError("Nothing runs behind this Anvil. Open it with anvil.open(..., background=True).")
        if self._following is not None:
            self._following.start(progress)
        self._answering.start(progress)

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Tell ``callback`` which pages changed, came or went, after each refresh that found any.

        It is called by the thread that refreshed, holding no lock. Returns the function that ends it.
        """
        return self._answering.on_change(callback)

    def close(self) -> None:
        """Stop what runs behind; let go of files and model. A second call does nothing."""
        for each in (self._following, self._answering, self._remote, self._provider):
            if each is not None:
                each.close()

    def __enter__(self) -> Anvil:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_answering") and not self._answering.closed:
            warnings.warn(f"{self.index_path} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()
