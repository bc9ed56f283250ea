"""The collections of a project, and the choice among them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from anvil import registry
from anvil.errors import ConfigError
from anvil.formats.version_names import newest
from anvil.settings.schema import LOCK_NAME, Collection, Config

OWN_NAME = "docs"
"""The name of the documentation that ``docs`` and ``index`` at the top of the configuration name."""


def project_collections(config: Config, base: Path) -> tuple[Collection, ...]:
    """All collections of a project: its own documentation, those of the configuration, and those of ``anvil.lock``.

    Those with a folder come first: they are the project's own, which go before others where results are equal. A
    collection of the configuration replaces one of the lock file with the same name and version. Where it has no
    version, or is the project's own, the package of that name gets another name, so that it does not hide it.
    """
    configured = config.collections
    labels = {collection.label for collection in configured}
    names = {OWN_NAME, *(each.name for each in configured if each.docs is not None or each.version is None)}
    locked = registry.part("locked collections")(base, config, names) if (base / LOCK_NAME).is_file() else ()
    others = (*configured, *(each for each in locked if each.label not in labels))
    return tuple(sorted((*_own(config, base, others), *others), key=lambda collection: collection.docs is None))


def _own(config: Config, base: Path, others: Sequence[Collection]) -> Iterable[Collection]:
    """The collection of ``docs`` and ``index`` at the top; none where another has its folder or its name, or where
    there is no such folder and another collection to answer."""
    folder = (base / config.docs).resolve()
    if any(other.name == OWN_NAME or (other.docs and (base / other.docs).resolve() == folder) for other in others):
        return ()
    if others and config.index is None and not folder.is_dir():
        return ()
    is_index_only = config.index is not None and not folder.is_dir()
    return (Collection(OWN_NAME, docs=None if is_index_only else config.docs, index=config.index, of_project=True),)


def chosen(collections: Sequence[Collection], labels: Iterable[str] | None) -> tuple[Collection, ...]:
    """The collections that ``labels`` name, each as ``NAME`` or ``NAME@VERSION``; all where it is None.

    A name without a version stands for all versions. Raises :class:`ConfigError`, with the closest names.
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
    """A message for a collection that does not exist, with the closest one, or all."""
    import difflib  # for this message only

    labels = list(dict.fromkeys([*(c.name for c in collections), *(c.label for c in collections)]))
    near = difflib.get_close_matches(label, labels, n=1, cutoff=0.5)
    names = list(dict.fromkeys(collection.name for collection in collections))
    hint = f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
    return f"There is no collection {label[:160]}. {hint}"


def answering_version(versions: Sequence[Collection]) -> Collection:
    """The version of one collection that answers a question that names none: the default one, else the newest."""
    defaults = [collection for collection in versions if collection.default]
    if defaults:
        return defaults[0]
    best = newest([collection.version or "" for collection in versions])
    return next(collection for collection in versions if (collection.version or "") == best)
