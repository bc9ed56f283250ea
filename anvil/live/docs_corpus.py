"""The corpus of a live index of documentation: a folder, the model that embeds it, and the place of the index."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import registry
from anvil.errors import ArtifactError, ArtifactMissing, BuildError, ConfigError, SourceError
from anvil.live.location import IndexLocation
from anvil.requests import BuildRequest
from anvil.settings.schema import Config
from anvil.system import safe_write
from anvil.text import page_urls, page_weights
from anvil.values import BuildReport, Progress, silent

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.executor import Executor
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.sites.site_folder import SiteFolder

MAX_SITE_ROUNDS = 3
"""Attempts to build the index of a site that is emptied meanwhile."""


def configured(config: Config) -> dict[str, str | None]:
    """The optional keys of the manifest (:data:`anvil.index_file.writer.OPTIONAL_SETTINGS`) as the configuration says;
    None for what is not configured."""
    return {"site": page_urls.recorded(config.site), "weights": page_weights.recorded(config.search.weights)}


class DocsCorpus:
    """One documentation folder and its index.

    ``folder``: None when there is only an index. ``index_only``: an index was named and no folder, so ``folder``,
    from the configuration, may have nothing to do with it. ``provider``: one that several share; the caller closes it.
    ``site_folder``: the built site whose pages are indexed.
    """

    def __init__(
        self,
        config: Config,
        folder: Path | None,
        location: IndexLocation,
        *,
        index_only: bool,
        provider: EmbeddingProvider | None = None,
        site_folder: Path | None = None,
    ) -> None:
        self.config = config
        self.folder = folder
        self.location = location
        self.site_folder = site_folder
        self._site_source: SiteFolder | None = None
        self.chunking = config.chunking
        self.configured = configured(config)
        self._index_only = index_only
        self._provider = provider
        self._owns_provider = provider is None

    @cached_property
    def tree(self) -> DocumentSource | None:
        """The documents as they are in :attr:`folder`."""
        if self.folder is None:
            return None
        from anvil.documents.working_tree import WorkingTree

        return WorkingTree(self.folder, self.config.source)

    @cached_property
    def site_tree(self) -> DocumentSource | None:
        """The sources of the pages of a site in :attr:`folder`, of which a site generator may read other formats."""
        if self.folder is None:
            return None
        from anvil.documents.working_tree import WorkingTree

        options = self.config.source
        return WorkingTree(self.folder, replace(options, include=(*options.include, *registry.part("site sources"))))

    @property
    def _compared(self) -> DocumentSource | None:
        """The documents that an index is compared with, if it is of this folder."""
        return self.tree if self.site_folder is None else self.site_tree

    def documents(self, progress: Progress = silent) -> DocumentSource | None:
        """What is indexed: the pages of the site, else the documents in :attr:`folder`."""
        return self.tree if self.site_folder is None else self.site_pages(progress)

    def site_pages(self, progress: Progress = silent) -> SiteFolder:
        """The built site whose pages are indexed. Raises :class:`ConfigError` without one."""
        if self.site_folder is None:
            raise ConfigError("There is no built site. Name the folder of the site with --site, or set site.folder.")
        if self._site_source is None:
            self._site_source = self._site_in(self.site_folder, progress)
        return self._site_source

    def built_site(self, folder: Path | None, *, by_default: bool) -> SiteFolder | None:
        """The built site in a folder. ``by_default``: that of the configuration where none is named, if it exists."""
        if folder is None and by_default and self.site_folder is not None and self.site_folder.is_dir():
            folder = self.site_folder
        return None if folder is None else self._site_in(folder)

    def _site_in(self, folder: Path, progress: Progress = silent) -> SiteFolder:
        site: SiteFolder = registry.part("site")(
            folder,
            self.config.site,
            self.site_tree,
            docs=self.folder,
            is_certain=not self._index_only,
            limit=self.config.source.max_file_bytes,
            progress=progress,
        )
        return site

    @property
    def docs_root(self) -> Path | None:
        """The folder that answers are compared with; None when there is only an index."""
        if not self._index_only:
            return self.folder
        return self.folder if self.location.fetched and self._is_of_folder else None

    @cached_property
    def _is_of_folder(self) -> bool:
        """Whether at least half of the pages of the index are in the folder, by their paths."""
        tree = self._compared
        if tree is None:
            return False
        try:
            with self.location.open() as reader:
                indexed = reader.blob_ids()
        except ArtifactError:
            return False  # the first query raises it
        entries = tree.scan(indexed).entries
        return len(indexed.keys() & entries.keys()) * 2 >= max(len(indexed), 1)

    @property
    def source(self) -> DocumentSource | None:
        """The documents that answers are compared with; None when there is only an index."""
        return self._compared if self.docs_root is not None else None

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider; its model is loaded when it is first needed."""
        if self._provider is None:
            from anvil.embedding.factory import create_cached_provider

            self._provider = create_cached_provider(self.config.embedding.provider, self.config.embedding)
        return self._provider

    @property
    def watched(self) -> tuple[Path, bool] | None:
        """The folder to watch for changes, and whether its subfolders count; None: there is none."""
        folder = self.folder if self.location.origin is not None else self.docs_root
        if folder is not None:
            return folder, True
        if self.location.origin is not None:
            return None
        return self.location.path.parent, False  # other files there may be many and have nothing to do with the index

    @property
    def is_private(self) -> bool:
        """Whether the index is at its default place, in a folder that git ignores."""
        if self.config.index is not None or self.location.origin is not None or self.docs_root is None:
            return False
        from anvil.index_file import publish

        return publish.is_kept_out_of_git(self.location.path.parent)

    def ensure_usable(self) -> None:
        """Raise :class:`SourceError` when the folder no longer exists. No empty one replaces it."""
        self.ensure_folder(self.docs_root)

    def ensure_folder(self, folder: Path | None) -> None:
        """Raise :class:`SourceError` when the folder no longer exists."""
        if folder is not None and not folder.is_dir():
            raise SourceError(f"There is no folder {folder} any more. Put it back, or open another.")

    def may_build(self, error: ArtifactError) -> bool:
        """Whether an index may be built because of ``error``: never in place of a file that the user named."""
        if self.source is None or self.location.origin is not None:
            return False
        return isinstance(error, ArtifactMissing) or not self.config.index

    def build(self, request: BuildRequest) -> BuildReport:
        """Bring the index file in line with the documents; see :meth:`anvil.Anvil.index`."""
        from anvil import wording
        from anvil.build import builder
        from anvil.documents.git_tree import StagedTree
        from anvil.embedding.cached import uncached
        from anvil.index_file import publish

        of_site = self.site_folder is not None and request.source is None
        source = request.source or self.documents(request.progress)
        if source is None:
            raise SourceError("There are no documents to index. Name the documentation folder with docs or --docs.")
        if self.location.origin is not None:
            raise ConfigError(
                f"The index comes from {self.location.origin} and is not built here. Name a file with --index."
            )
        build = functools.partial(
            builder.build,
            source,
            self.location.path,
            uncached(self.provider) if request.force else self.provider,
            self.config.chunking,
            configured={**self.configured, "site": None},  # the pages of a site name their addresses
        )
        if of_site:
            if self.config.index is None:
                safe_write.ensure_inside_parent(self.location.path.parent)
            return self._build_site(build, request)
        self.ensure_folder(self.folder)
        if self.config.index is None:
            publish.keep_out_of_git(self.location.path.parent)
        staged = source.name == StagedTree.name
        pageless = wording.no_page(self.folder or "the source", self.config.source.include, staged=staged)
        return build(request, configured=self.configured, pageless=pageless)

    def cluster(self, address: str) -> Executor:
        """The cluster that embeds. Raises :class:`ConfigError` for another address."""
        from anvil.embedding.cached import uncached

        executor: Executor = registry.part("cluster")(address, uncached(self.provider), self.config.embedding)
        return executor

    def _build_site(self, build: Callable[[BuildRequest], BuildReport], request: BuildRequest) -> BuildReport:
        """Build the index of a site, with its manifest; again if a generator empties the folder meanwhile."""
        for _ in range(MAX_SITE_ROUNDS):
            try:
                return self._build_site_once(build, request)
            except FileNotFoundError:
                if self.location.path.exists():
                    raise
        raise BuildError(
            f"{self.location.path} was deleted while it was written, because the site is being built. Try again when "
            "the site is built."
        )

    def _build_site_once(self, build: Callable[[BuildRequest], BuildReport], request: BuildRequest) -> BuildReport:
        """A copy of the index is kept in the user's cache folder, because generators empty the site's folder."""
        from anvil.index_file import manifest, publish

        assert self.site_folder is not None and self._site_source is not None
        index, kept = self.location.path, registry.part("site cache")(self.site_folder) / "index.db"
        existing = [] if index.exists() or not kept.exists() else [kept]
        report = build(replace(request, previous=(*existing, *request.previous)))
        if report.outcome == "built" or not manifest.manifest_path(index).is_file():
            manifest.write_manifest(index)
        reasons = [*report.reasons, *self._site_source.notes]
        if report.outcome == "built" or not kept.exists():
            try:
                publish.copy(index, kept)
            except (BuildError, OSError) as error:
                reasons.append(f"No copy of the index is kept for a site that is emptied: {error}")
        return replace(report, reasons=tuple(reasons))

    def close(self) -> None:
        """Close the model and the connection to the index."""
        self.location.close()
        if self._site_source is not None:
            self._site_source.close()
        if self._provider is not None and self._owns_provider:
            self._provider.close()
