"""``anvil.open``: from options and the configuration to one index, or to several collections that share a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypedDict, overload

from anvil.api import Anvil
from anvil.backends.config_files import load_config
from anvil.core import index_url
from anvil.core.config.layers import configured, of_collection
from anvil.core.config.schema import Collection, Config
from anvil.errors import ArtifactMissing, ConfigError
from anvil.models.documents import Progress, silent

if TYPE_CHECKING:
    from anvil.backends.embedding.provider import EmbeddingProvider
    from anvil.several import Collections


@overload
def open(
    docs: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    collections: None = None,
    site: str | os.PathLike[str] | None = None,
    site_url: str | None = None,
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
    build_first: bool = True,
) -> Anvil: ...


@overload
def open(
    docs: None = None,
    index: None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    collections: Iterable[str] | Literal["all"],
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
    build_first: bool = True,
) -> Collections: ...


def open(
    docs: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    collections: Iterable[str] | Literal["all"] | None = None,
    site: str | os.PathLike[str] | None = None,
    site_url: str | None = None,
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
    build_first: bool = True,
) -> Anvil | Collections:
    """Open a folder of documents, an index, or both; or several collections.

    ``docs``: the folder. ``index``: the index file (default ``<docs>/.anvil/index.db``), or the address of a published
    one: ``https://...``, ``github:OWNER/REPO#artifact:NAME``. ``provider``: ``local``, ``openai`` or ``none``.
    ``config``: a file or a :class:`Config`. The configuration has the values that are not given. ``site``: the folder
    of a built site, whose pages are indexed as readers see them; its index is ``anvil/index.db`` in it. With ``docs``,
    pages have the paths of their sources. ``site_url``: where the site is published; overrides what its pages say. If
    only an index or a site is given, answers come from it alone. But if the configured folder has at least half of its
    pages, by their paths, the index belongs to that folder and is compared with it.

    ``collections``: names of collections of the configuration and of ``anvil.lock``, each as ``NAME`` or
    ``NAME@VERSION``, or ``"all"``. One search then answers from all of them; see :class:`Collections`. Without it, and
    without ``docs`` and ``index``, the project's own documentation is opened. With ``docs`` alone, the keys of the
    collection that has this folder count.

    ``background``, for servers: no answer waits for the first build or for the vectors of a large change; see
    :meth:`Anvil.start`. ``watch``, with ``background``: file events also start a refresh. So the next query is faster,
    and :meth:`Anvil.on_change` reports changes before it.

    ``build_first``, without ``background``: whether a large index that is missing is built before the first answer. If
    not, :attr:`Anvil.provisional` is true after it, and :meth:`Anvil.index` builds the index. Raises
    :class:`AnvilError`.
    """
    settings, base = _settings(docs, index, provider, config, site, site_url)
    options = _Options(progress=progress, background=background, watch=watch, build_first=build_first)
    is_named = docs is not None or index is not None or site is not None
    if collections is not None:
        if is_named:
            raise ConfigError(
                "collections cannot be combined with docs, index or site. Give the names of collections alone."
            )
        return _several(settings, base, _chosen(settings, base, None if collections == "all" else collections), options)
    if not is_named and settings.collections:
        return _one(settings, base, _own(settings, base), options)
    if index is None and site is None and (collection := _of_folder(settings, base)) is not None:
        settings, base = _settings(None, None, provider, config, None, site_url)
        return _one(settings, base, collection, options)
    index_only = docs is None and (index is not None or _has_index_elsewhere(settings))
    return Anvil(settings, base, index_only=index_only, **options)


def open_project(
    docs: str | None = None,
    index: str | None = None,
    provider: str | None = None,
    config: str | None = None,
    *,
    collections: Sequence[str] = (),
    site: str | None = None,
    site_url: str | None = None,
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
    build_first: bool = True,
) -> Anvil | Collections:
    """What a command or a server of a project opens: one index, or several collections where there are several.

    The arguments are those of :func:`open`; no name in ``collections`` means all.
    """
    is_named = docs is not None or index is not None or site is not None
    if is_named and collections:
        raise ConfigError("--collection cannot be combined with --docs, --index or --site. Leave one of them out.")
    settings, base = _settings(docs, index, provider, config, site, site_url)
    options = _Options(progress=progress, background=background, watch=watch, build_first=build_first)
    if is_named and index is None and site is None and (collection := _of_folder(settings, base)) is not None:
        settings, base = _settings(None, None, provider, config, None, site_url)
        return _one(settings, base, collection, options)
    if is_named:
        return Anvil(settings, base, index_only=docs is None, **options)
    chosen = _chosen(settings, base, collections or None)
    return _alone(settings, base, chosen[0], options) if len(chosen) == 1 else _several(settings, base, chosen, options)


class _Options(TypedDict):
    """The arguments of :func:`open` that are the same for all collections."""

    progress: Progress
    background: bool
    watch: bool
    build_first: bool


def _chosen(config: Config, base: Path, names: Iterable[str] | None) -> tuple[Collection, ...]:
    from anvil.services.collections import project

    return project.chosen(project.project_collections(config, base), names)


def _own(config: Config, base: Path) -> Collection:
    """The collection that is opened where none is named: the first with a folder, else the only one."""
    collections = _chosen(config, base, None)
    if len(collections) == 1 or collections[0].docs is not None:
        return collections[0]
    raise ConfigError(
        f"None of the {len(collections)} collections is a folder of this project. Open them with "
        'collections="all", or name some of them.'
    )


def _of_folder(config: Config, base: Path) -> Collection | None:
    """The collection of the folder ``docs``. Its own keys count there, as where all collections are opened."""
    folder = (base / config.docs).resolve() if config.collections else None
    own = (each for each in config.collections if each.docs is not None and (base / each.docs).resolve() == folder)
    return next(own, None)


def _one(
    config: Config, base: Path, collection: Collection, options: _Options, provider: EmbeddingProvider | None = None
) -> Anvil:
    """One collection of a project."""
    if collection.of_project:
        settings = replace(config, collections=())
        return Anvil(settings, base, index_only=_has_index_elsewhere(config), provider=provider, **options)
    settings, has_folder = of_collection(config, collection), collection.docs is not None
    return Anvil(settings, base, index_only=not has_folder, has_folder=has_folder, provider=provider, **options)


def _alone(config: Config, base: Path, collection: Collection, options: _Options) -> Anvil:
    """The only collection. Raises :class:`ArtifactMissing` for one of ``anvil.lock`` that is not on this machine."""
    if collection.missing and collection.index and not Path(collection.index).is_file():
        raise ArtifactMissing(collection.missing)
    return _one(config, base, collection, options)


def _several(config: Config, base: Path, collections: Sequence[Collection], options: _Options) -> Collections:
    """Collections that share a model."""
    from anvil.backends.embedding.factory import create_cached_provider
    from anvil.several import Collections, Member

    provider = create_cached_provider(config.embedding.provider, config.embedding)
    members = []
    with ExitStack() as stack:
        stack.callback(provider.close)
        for collection in collections:
            opened = _one(config, base, collection, options, provider)
            stack.callback(opened.close)
            members.append(Member(collection, opened, opened._live))
        stack.pop_all()
    return Collections(members, config, provider)


def _has_index_elsewhere(config: Config) -> bool:
    """Whether the index is not that of the documentation folder alone: it is published, or that of a site."""
    return index_url.is_remote(config.index or "") or config.site.folder is not None


def _settings(
    docs: str | os.PathLike[str] | None,
    index: str | os.PathLike[str] | None,
    provider: str | None,
    config: str | os.PathLike[str] | Config | None,
    site: str | os.PathLike[str] | None,
    site_url: str | None,
) -> tuple[Config, Path]:
    """The configuration with these options, and the base of its relative paths."""
    flags = {
        "docs": os.fspath(docs) if docs is not None else None,
        "index": os.fspath(index) if index is not None else None,
        "embedding.provider": provider,
        "site.folder": os.fspath(site) if site is not None else None,
        "site.url": site_url,
    }
    if isinstance(config, Config):
        return configured(config, {**flags, "embedding.provider": provider or None}), Path.cwd()
    return load_config(config, flags)
