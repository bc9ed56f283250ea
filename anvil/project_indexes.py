"""The indexes of a project: its collections, each index's location, and an opened index with documents and model."""

from __future__ import annotations

import functools
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil import registry
from anvil.errors import ArtifactError, ArtifactMissing, BuildError, ConfigError, FolderVanished, NotFound, SourceError
from anvil.formats.version_names import newest
from anvil.index_file.manifests import recorded
from anvil.requests import BuildRequest, OpenRequest
from anvil.settings import index_url
from anvil.settings.configuration import index_file
from anvil.settings.schema import LOCK_NAME, SITE_INDEX, Collection, Config
from anvil.system import safe_files
from anvil.values import MAX_PATH_CHARS, SITE_ENDINGS, Changes, Progress
from anvil.wording import closest_names

if TYPE_CHECKING:
    from anvil.build.report import BuildReport
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.index_file.reader import IndexReader, Reader
    from anvil.live.live_index import LiveIndex
    from anvil.sites.site_folder import SiteFolder

OWN_NAME = "docs"
"""The name of the documentation of ``docs`` and ``index`` at the top of the configuration."""
MAX_SITE_ROUNDS = 3
"""Attempts to build the index of a site that is emptied meanwhile."""


# --- the collections of a project ---


def of_project(config: Config, base: Path) -> tuple[Collection, ...]:
    """All collections of a project: its own documentation, those of the configuration, and those of ``anvil.lock``.

    Collections with a folder come first: they are the project's own, which go before others if results are equal. A
    collection of the configuration replaces one of the lock file with the same name and version. If it has no version,
    or has a folder, the package of the same name gets another name, so that it is not hidden.
    """
    configured = config.collections
    labels = {collection.label for collection in configured}
    names = {OWN_NAME, *(own.name for own in configured if own.docs is not None or own.version is None)}
    locked = registry.part("locked collections")(base, config, names) if (base / LOCK_NAME).is_file() else ()
    others = (*configured, *(collection for collection in locked if collection.label not in labels))
    return tuple(sorted((*_own(config, base, others), *others), key=lambda collection: collection.docs is None))


def _own(config: Config, base: Path, others: Sequence[Collection]) -> Iterable[Collection]:
    """The collection of ``docs`` and ``index`` at the top.

    There is none if another collection has its folder or its name. There is also none without such a folder and index,
    if another collection can answer.
    """
    folder = (base / config.docs).resolve()
    if any(other.name == OWN_NAME or (other.docs and (base / other.docs).resolve() == folder) for other in others):
        return ()
    if others and config.index is None and not folder.is_dir():
        return ()
    is_index_only = config.index is not None and not folder.is_dir()
    return (Collection(OWN_NAME, docs=None if is_index_only else config.docs, index=config.index, of_project=True),)


def chosen(collections: Sequence[Collection], labels: Iterable[str] | None) -> tuple[Collection, ...]:
    """The collections that ``labels`` name, each as ``NAME`` or ``NAME@VERSION``; all for None.

    A name without a version stands for all versions. Raises :class:`ConfigError`, with the closest name.
    """
    if labels is None:
        return tuple(collections)
    picked: list[Collection] = []
    for label in labels:
        matches = [collection for collection in collections if label in (collection.name, collection.label)]
        if not matches:
            raise ConfigError(unknown(label, collections))
        picked += [collection for collection in matches if collection not in picked]
    return tuple(collection for collection in collections if collection in picked)


def unknown(label: str, collections: Sequence[Collection]) -> str:
    """A message for a collection that does not exist, with the closest name, or all names."""
    labels = list(dict.fromkeys([*(c.name for c in collections), *(c.label for c in collections)]))
    near = closest_names(label, labels, cutoff=0.5)
    names = list(dict.fromkeys(collection.name for collection in collections))
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
    return f"There is no collection {label[:160]}. {hint}"


def answering_version(versions: Sequence[Collection]) -> Collection:
    """The version of a collection that answers a question without a version: the default one, else the newest."""
    defaults = [collection for collection in versions if collection.default]
    if defaults:
        return defaults[0]
    best = newest([collection.version or "" for collection in versions])
    return next(collection for collection in versions if (collection.version or "") == best)


# --- one index ---


class IndexLocation:
    """An index file on this machine. Subclasses are for an index that is fetched, and for one in Milvus."""

    is_file = True
    origin: str | None = None
    """The address of a published index or of Milvus, without credentials; None for a local file."""
    copy_class: Any = None
    """The class of the copy for queries; None: :class:`anvil.live.memory_copy.MemoryCopy`."""
    published_at: str | None = None
    """The time at which the index was published, from its server (ISO 8601, UTC); None if unknown."""

    def __init__(self, path: Path, *, built_here: bool = True) -> None:
        """``built_here``: whether the index is built from documents or a site of this project."""
        self._built_here = built_here
        self.path = path
        """The index file. For an index in Milvus: a path for messages and locks, at which there is no file."""
        self.on_replaced: Callable[[], None] = lambda: None
        """Called when another index was put at :attr:`path`, by the thread that did so."""

    @property
    def fetched(self) -> bool:
        """Whether the first attempt to find the index is done."""
        return True

    def start(self, progress: Progress | None = None) -> None:
        """Fetch the index, and keep it up to date, in a thread; returns at once. A second call does nothing more."""

    def ensure_fetched(self, wait: bool) -> None:
        """Return when there is an index at :attr:`path`. ``wait``: however long it takes.

        Raises :class:`FetchError` if there is none yet.
        """

    def notes(self) -> list[str]:
        """Sentences on how the index was fetched."""
        return []

    def open(self) -> AbstractContextManager[IndexReader]:
        """A reader of the index. Raises :class:`ArtifactError` if it cannot be used."""
        return self.open_file()

    def open_file(self) -> Reader:
        """The reader of :attr:`path`."""
        from anvil.index_file import verify

        # The two differ only in the advice of messages: to build the index here, or where it was built.
        return verify.open_checked(self.path) if self._built_here else verify.open_foreign(self.path)

    def compare(self, source: DocumentSource) -> Changes:
        """The differences of documents and index. Raises :class:`ArtifactError` for an unusable index or shard."""
        from anvil.index_file import verify
        from anvil.live import site_view

        with self.open() as reader:
            verify.refuse_part(reader, self.path)
            return site_view.compared(reader, source)

    def stop(self) -> None:
        """End the thread; queries still work. A second call does nothing."""

    def close(self) -> None:
        """Close the connection, once no memory copy uses it."""


class OpenedIndex:
    """One opened index, with the folder or the built site that it is built from, if there is one.

    ``folder``: the documentation folder; None if there is only an index. ``site_folder``: the built site whose pages
    are indexed. ``collection``: None for an index that was opened by itself.
    """

    def __init__(
        self,
        config: Config,
        base: Path,
        request: OpenRequest,
        *,
        index_only: bool = False,
        has_folder: bool = True,
        provider: EmbeddingProvider | None = None,
        collection: Collection | None = None,
    ) -> None:
        """``base``: the start of relative paths in ``config``. ``index_only``: an index was named and no folder, so
        ``docs``, from the configuration, may be missing or unrelated. ``has_folder``: whether ``docs`` counts at all.
        ``provider``: one that several indexes share; the caller closes it."""
        folder = base / config.docs
        is_missing = not folder.is_dir() and not index_only and not request.docs_in_git
        if is_missing and collection is None:  # of several collections, the others answer, with a note on this one
            from anvil.documents.folder_advice import no_folder

            raise SourceError(no_folder(folder, named=_named(config, request)))
        self.config = config
        self.base = base
        self.request = request
        self.started_at = time.monotonic()
        self.collection = collection
        self.folder = folder if has_folder and (is_missing or folder.is_dir()) else None
        self.location = _location(config, base, self.folder, has_folder=has_folder)
        self.site_folder = base / config.site.folder if config.site.folder else None
        self.chunking = config.chunking
        self.configured = recorded(config)
        self.lock = threading.RLock()
        """Guards the memory copy of :attr:`live`; a build outside of a server holds it too."""
        self.closed = False
        self._index_only = index_only
        self._provider = provider
        self._owns_provider = provider is None
        self._site_source: SiteFolder | None = None
        self._live: LiveIndex | None = None
        self._live_lock = threading.Lock()

    @property
    def label(self) -> str:
        """``NAME``, or ``NAME@VERSION``; empty for an index that was opened by itself."""
        return self.collection.label if self.collection is not None else ""

    @property
    def collection_name(self) -> str | None:
        """The name of the collection; None for an index that was opened by itself."""
        return None if self.collection is None else self.collection.name

    @property
    def version(self) -> str | None:
        return None if self.collection is None else self.collection.version

    @property
    def is_own(self) -> bool:
        """Whether this collection is built from a folder of the project."""
        return self.collection is not None and self.collection.docs is not None

    @property
    def name(self) -> str:
        """What is searched: the documentation folder, else the origin of the index."""
        return str(self.docs_root or self.location.origin or self.location.path)

    # --- documents -----------------------------------------------------------------------------------------

    @cached_property
    def tree(self) -> DocumentSource | None:
        """The documents as they are in :attr:`folder`."""
        if self.folder is None:
            return None
        from anvil.documents.working_tree import WorkingTree

        return WorkingTree(self.folder, self.config.source)

    @cached_property
    def site_tree(self) -> DocumentSource | None:
        """The sources of a site's pages in :attr:`folder`. They have more formats, which a site generator may read."""
        if self.folder is None:
            return None
        from anvil.documents.working_tree import WorkingTree

        options, globs = self.config.source, [f"**/*{ending}" for ending in SITE_ENDINGS]
        return WorkingTree(self.folder, replace(options, include=(*options.include, *globs)))

    @property
    def page_files(self) -> DocumentSource | None:
        """The files in :attr:`folder` that may be pages of the index, which must have been fetched."""
        from anvil.index_file import connection

        is_of_site = self.site_folder is not None or connection.is_marked_as_site(self.location.path)
        return self.site_tree if is_of_site else self.tree

    @property
    def documents(self) -> DocumentSource | None:
        """The documents that are indexed: the pages of the site, else those in :attr:`folder`."""
        return self.tree if self.site_folder is None else self.site_pages()

    def site_pages(self) -> SiteFolder:
        """The built site whose pages are indexed. Raises :class:`ConfigError` without one."""
        if self.site_folder is None:
            named = self.request.named("site")
            raise ConfigError(f"There is no built site. Name the folder of the site with {named}, or set site.folder.")
        if self._site_source is None:
            self._site_source = self._site_in(self.site_folder)
        return self._site_source

    def built_site(self, folder: Path | None, *, by_default: bool) -> SiteFolder | None:
        """The built site in a folder, or None. ``by_default``: without a folder, the configured one, if it exists."""
        if folder is None and by_default and self.site_folder is not None and self.site_folder.is_dir():
            folder = self.site_folder
        return None if folder is None else self._site_in(folder)

    def _site_in(self, folder: Path) -> SiteFolder:
        site: SiteFolder = registry.part("site")(
            folder,
            self.config.site,
            self.site_tree,
            docs=self.folder,
            is_certain=not self._index_only,
            limit=self.config.source.max_file_bytes,
            progress=self.request.progress,
        )
        return site

    @property
    def docs_root(self) -> Path | None:
        """The folder with which answers are compared; None if there is only an index."""
        if not self._index_only:
            return self.folder
        return self.folder if self.location.fetched and self._is_of_folder else None

    @cached_property
    def _is_of_folder(self) -> bool:
        """Whether at least half of the pages of the index are in the folder, by their paths."""
        tree = self.page_files
        if tree is None:
            return False
        try:
            with self.location.open() as reader:
                indexed = reader.blob_ids()
        except ArtifactError:
            return False  # the first query raises it
        entries = tree.scan(indexed).entries
        # Not all of the pages: some come and go. More than a few: each project has an index.md.
        return len(indexed.keys() & entries.keys()) * 2 >= max(len(indexed), 1)

    @property
    def source(self) -> DocumentSource | None:
        """The documents with which answers are compared; None if there is only an index. Sources in formats that are
        read by a site's generator only are left out."""
        return self.tree if self.docs_root is not None else None

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider; its model is loaded when it is first needed."""
        if self._provider is None:
            from anvil.embedding.provider import create_cached_provider

            self._provider = create_cached_provider(self.config.embedding.provider, self.config.embedding)
        return self._provider

    @property
    def watched(self) -> tuple[Path, bool] | None:
        """The folder to watch for changes, and whether its subfolders count; None if there is none."""
        folder = self.folder if self.location.origin is not None else self.docs_root
        if folder is not None:
            return folder, True
        if self.location.origin is not None:
            return None
        return self.location.path.parent, False  # below it may be many files that have nothing to do with the index

    @property
    def is_private(self) -> bool:
        """Whether the index is at its default path, in a folder that git ignores."""
        if self.config.index is not None or self.location.origin is not None or self.docs_root is None:
            return False
        from anvil.index_file import publish

        return publish.is_kept_out_of_git(self.location.path.parent)

    def ensure_usable(self) -> None:
        """Raise :class:`SourceError` if the folder with which answers are compared no longer exists."""
        self.ensure_folder(self.docs_root)

    def ensure_folder(self, folder: Path | None) -> None:
        """Raise :class:`SourceError` if the folder no longer exists. No empty one is made in its place."""
        if folder is not None and not folder.is_dir():
            if self.collection is not None:
                raise SourceError(f"There is no folder {folder}. Make it, or correct docs of this collection.")
            raise SourceError(f"There is no folder {folder} any more. Put it back, or open another.")

    def may_build(self, error: ArtifactError) -> bool:
        """Whether an index may be built because of ``error``: never in place of a file that the user named, and for a
        site only from its pages."""
        # as it is named, because a folder of documents may be called "anvil", too
        named = Path(self.request.index or self.config.index or "")
        is_of_site = f"/{named.as_posix()}".endswith(f"/{SITE_INDEX}")
        if self.source is None or self.location.origin is not None or (is_of_site and self.site_folder is None):
            return False
        return isinstance(error, ArtifactMissing) or not self.config.index

    def build(self, request: BuildRequest) -> BuildReport:
        """Bring the index file in line with the documents; see :meth:`anvil.Anvil.index`."""
        from anvil.build import builder
        from anvil.documents.folder_advice import folder_advice, no_page, other_formats_note
        from anvil.documents.git_tree import StagedTree
        from anvil.embedding.provider import uncached
        from anvil.index_file import publish

        of_site = self.site_folder is not None and request.source is None
        source = request.source or self.documents
        if source is None:
            named = self.request.named("docs")
            raise SourceError(f"There are no documents to index. Name the documentation folder with {named}.")
        if self.location.origin is not None:
            raise ConfigError(
                f"The index comes from {self.location.origin} and is not built here. Name a file with "
                f"{self.request.named('index')}."
            )
        if request.executor:
            cluster = registry.part("cluster")
            workers = cluster(request.executor, uncached(self.provider), self.config.embedding)
            request = replace(request, workers=workers)
        build = functools.partial(
            builder.build,
            source,
            self.location.path,
            uncached(self.provider) if request.force else self.provider,  # "embed again" means the model, not a cache
            self.config.chunking,
            configured={**self.configured, "site": None},  # the pages of a site name their addresses
        )
        if of_site:
            if self.config.index is None:
                safe_files.ensure_inside_parent(self.location.path.parent)
            return self._build_site(build, request)
        self.ensure_folder(self.folder)
        if self.config.index is None:
            publish.keep_out_of_git(self.location.path.parent, parents=self.folder is None)
        is_staged = source.name == StagedTree.name

        def about_pages(count: int) -> str | None:
            """A note on a folder with so many pages: it has none, or it has files of other formats."""
            reason = no_page(self.folder or "the source", self.config.source.include, staged=is_staged)
            if is_staged or self.folder is None:
                return None if count else reason
            return other_formats_note(self.folder, count) or (
                None if count else f"{reason} {folder_advice(self.folder, _named(self.config, self.request))}"
            )

        return build(request, configured=self.configured, about_pages=about_pages)

    def _build_site(self, build: Callable[[BuildRequest], BuildReport], request: BuildRequest) -> BuildReport:
        """Build the index of a site, with its manifest; again if a generator empties the folder meanwhile."""
        for _ in range(MAX_SITE_ROUNDS):
            try:
                return self._build_site_once(build, request)
            except (FolderVanished, ArtifactMissing, FileNotFoundError):  # the generator has emptied it
                if self.location.path.exists():
                    raise
        raise BuildError(
            f"{self.location.path} was deleted while it was written, because the site is being built. Try again when "
            "the site is built."
        )

    def _build_site_once(self, build: Callable[[BuildRequest], BuildReport], request: BuildRequest) -> BuildReport:
        """Build the index once, and keep a copy in the user's cache folder, as generators empty the site's folder."""
        from anvil.index_file import manifests, publish

        assert self.site_folder is not None and self._site_source is not None
        index, index_copy = self.location.path, registry.part("site cache")(self.site_folder) / "index.db"
        # Without an index, a build begins with the first previous one: the copy, before those that the user names.
        copies = [] if index.exists() or not index_copy.exists() else [index_copy]
        report = build(replace(request, previous=(*copies, *request.previous)))
        if report.outcome == "built" or not manifests.manifest_path(index).is_file():
            publish.write_manifest(index)
        reasons = [*report.reasons, *self._site_source.notes]
        if report.outcome == "built" or not index_copy.exists():
            try:
                publish.place(index, index_copy)
            except (BuildError, OSError) as error:
                reasons.append(f"No copy of the index is kept for a site that is emptied: {error}")
        return replace(report, reasons=tuple(reasons))

    # --- answers -------------------------------------------------------------------------------------------

    @property
    def live(self) -> LiveIndex:
        """The index that is refreshed before each answer. A build and a check need none."""
        if self._live is None:
            from anvil.live.live_index import LiveIndex

            # Not :attr:`lock`: a build may hold it, and close() must not wait for a build.
            with self._live_lock:
                if self._live is None:  # another thread may have made it meanwhile
                    request = replace(self.request, watch=self.request.watch and not self.closed)
                    live = LiveIndex(self, request, lock=self.lock)
                    live.closed = self.closed
                    self._live = live
        return self._live

    def path_of(self, file_path: str) -> str | None:
        """A page's path as in the index; None if it cannot be one."""
        from anvil.search import pages

        if len(file_path) > MAX_PATH_CHARS:
            return None
        try:
            return pages.normalize_path(file_path, self.docs_root)
        except NotFound:
            return None

    # --- open and close ------------------------------------------------------------------------------------

    def ensure_open(self) -> None:
        """Raise :class:`ConfigError` after :meth:`close`."""
        if self.closed:
            from anvil.live.live_index import CLOSED

            raise ConfigError(CLOSED)

    def close(self) -> None:
        """Stop the background work, and close the files and the model. A second call does nothing."""
        with self._live_lock:  # so that no live index is made after this, with threads that nobody ends
            self.closed = True
        if self._live is not None:
            self._live.close()
        else:
            self.location.stop()
        self.location.close()
        if self._site_source is not None:
            self._site_source.close()
        if self._provider is not None and self._owns_provider:
            self._provider.close()


def _named(config: Config, request: OpenRequest) -> str:
    """The name of the documentation folder's setting in messages: the key, or the option of the caller."""
    return "the key docs" if request.docs is None and config.docs != Config().docs else request.named("docs")


def _location(config: Config, base: Path, folder: Path | None, *, has_folder: bool) -> IndexLocation:
    """The location of the configured index: a file, an address from which it is fetched, or Milvus.

    ``has_folder``: whether it is built from ``folder``.
    """
    index = config.index or ""
    if index_url.is_milvus(index):
        location: IndexLocation = registry.part("index in Milvus")(index, base)
        return location
    if index_url.is_remote(index):
        updater: IndexLocation = registry.part("published index")(config, base, folder or base)
        return updater
    return IndexLocation(index_file(config, base), built_here=has_folder or config.site.folder is not None)
