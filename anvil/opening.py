"""``anvil.open``: from options and the configuration to one index, or to several collections that share a model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.api import Anvil
from anvil.errors import ArtifactMissing, ConfigError
from anvil.formats.argument_types import checked
from anvil.member import Member
from anvil.requests import OpenRequest
from anvil.settings import index_url
from anvil.settings.files import load_config
from anvil.settings.layers import configured, of_collection
from anvil.settings.schema import Collection, Config
from anvil.values import Progress, silent

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider


@checked
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
) -> Anvil:
    """Open a folder of documents, an index, or both; or several collections.

    ``docs``: the folder. ``index``: the index file (default ``<docs>/.anvil/index.db``), or the address of a published
    one: ``https://...``, ``github:OWNER/REPO#artifact:NAME``. ``provider``: ``local``, ``openai`` or ``none``.
    ``config``: a file or a :class:`Config`. The configuration has the values that are not given. ``site``: the folder
    of a built site, whose pages are indexed as readers see them; its index is ``anvil/index.db`` in it. With ``docs``,
    pages have the paths of their sources. ``site_url``: where the site is published; overrides what its pages say. If
    only an index or a site is given, answers come from it alone. If half of the index's paths exist in the configured
    folder, Anvil compares the two.

    ``collections``: names of collections of the configuration and of ``anvil.lock``, each as ``NAME`` or
    ``NAME@VERSION``, or ``"all"``. One search then answers from all of them; see :class:`Anvil`. Without it, and
    without ``docs`` and ``index``, the project's own documentation is opened. With ``docs`` alone, the keys of the
    collection that has this folder count.

    ``background``, for servers: no answer waits for the first build or for the vectors of a large change; see
    :meth:`Anvil.start`. ``watch``, with ``background``: file events also start a refresh. So the next query is faster,
    and :meth:`Anvil.on_change` reports changes before it.

    ``build_first``, without ``background``: whether a large index that is missing is built before the first answer. If
    not, :attr:`Anvil.provisional` is true after it, and :meth:`Anvil.index` builds the index. Raises
    :class:`AnvilError`.
    """
    return open_index(
        OpenRequest(
            docs=_path(docs),
            index=_path(index),
            config=None if isinstance(config, Config) else _path(config),
            provider=provider,
            collections=collections if collections is None or collections == "all" else tuple(collections),
            site=_path(site),
            site_url=site_url,
            progress=progress,
            background=background,
            watch=watch,
            build_first=build_first,
            settings=config if isinstance(config, Config) else None,
        )
    )


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def open_index(request: OpenRequest) -> Anvil:
    """See :func:`open`."""
    settings, base = _settings(request)
    if request.collections is not None:
        if request.names_index:
            raise ConfigError(
                "collections cannot be combined with docs, index or site. Give the names of collections alone."
            )
        names = None if request.collections == "all" else request.collections
        return _several(settings, base, _chosen(settings, base, names), request)
    if not request.names_index and settings.collections:
        return _of_collection(settings, base, _own(settings, base), request)
    if (opened := _of_folder(settings, base, request)) is not None:
        return opened
    is_elsewhere = request.index is not None or _has_index_elsewhere(settings)
    return _one(Member(settings, base, request, index_only=request.docs is None and is_elsewhere))


def open_project(request: OpenRequest) -> Anvil:
    """What a command or a server of a project opens: one index, or several collections where there are several.

    No name in ``collections`` means all.
    """
    if request.names_index and request.collections:
        raise ConfigError("--collection cannot be combined with --docs, --index or --site. Leave one of them out.")
    settings, base = _settings(request)
    if request.names_index:
        opened = _of_folder(settings, base, request)
        return opened or _one(Member(settings, base, request, index_only=request.docs is None))
    chosen = _chosen(settings, base, request.collections or None)
    if len(chosen) > 1:
        return _several(settings, base, chosen, request)
    [only] = chosen
    if only.missing and only.index and not Path(only.index).is_file():
        raise ArtifactMissing(only.missing)
    return _of_collection(settings, base, only, request)


def _chosen(config: Config, base: Path, names: Iterable[str] | None) -> tuple[Collection, ...]:
    from anvil.settings import collection_choice

    return collection_choice.chosen(collection_choice.project_collections(config, base), names)


def _own(config: Config, base: Path) -> Collection:
    """The collection that is opened where none is named: the first with a folder, else the only one."""
    collections = _chosen(config, base, None)
    if len(collections) == 1 or collections[0].docs is not None:
        return collections[0]
    raise ConfigError(
        f"None of the {len(collections)} collections is a folder of this project. Open them with "
        'collections="all", or name some of them.'
    )


def _of_folder(config: Config, base: Path, request: OpenRequest) -> Anvil | None:
    """The collection whose folder is ``docs``, if that alone is named. Its own keys count there, as where all
    collections are opened."""
    if not config.collections or request.index is not None or request.site is not None:
        return None
    folder = (base / config.docs).resolve()
    for collection in config.collections:
        if collection.docs is not None and (base / collection.docs).resolve() == folder:
            return _of_collection(*_settings(replace(request, docs=None)), collection, request)
    return None


def _one(member: Member) -> Anvil:
    return Anvil([member], member.config)


def _of_collection(config: Config, base: Path, collection: Collection, request: OpenRequest) -> Anvil:
    """One collection of a project by itself."""
    return _one(_member(config, base, collection, request))


def _member(
    config: Config,
    base: Path,
    collection: Collection,
    request: OpenRequest,
    provider: EmbeddingProvider | None = None,
) -> Member:
    """One collection of a project."""
    if collection.of_project:
        settings, index_only, has_folder = replace(config, collections=()), _has_index_elsewhere(config), True
    else:
        has_folder = collection.docs is not None
        settings, index_only = of_collection(config, collection), not has_folder
    return Member(settings, base, request, index_only=index_only, has_folder=has_folder, provider=provider)


def _several(config: Config, base: Path, collections: Sequence[Collection], request: OpenRequest) -> Anvil:
    """Collections that share a model."""
    from anvil.embedding.factory import create_cached_provider

    provider = create_cached_provider(config.embedding.provider, config.embedding)
    members = []
    with ExitStack() as stack:
        stack.callback(provider.close)
        for collection in collections:
            member = _member(config, base, collection, request, provider)
            stack.callback(member.close)
            member.collection = collection
            members.append(member)
        stack.pop_all()
    return Anvil(members, config, provider)


def _has_index_elsewhere(config: Config) -> bool:
    """Whether the index is not that of the documentation folder alone: it is published, or that of a site."""
    return index_url.is_remote(config.index or "") or config.site.folder is not None


def _settings(request: OpenRequest) -> tuple[Config, Path]:
    """The configuration with these options, and the base of its relative paths."""
    flags = {
        "docs": request.docs,
        "index": request.index,
        "embedding.provider": request.provider,
        "site.folder": request.site,
        "site.url": request.site_url,
    }
    if request.settings is not None:
        flags["embedding.provider"] = request.provider or None
        return configured(request.settings, flags), Path.cwd()
    return load_config(request.config, flags)
