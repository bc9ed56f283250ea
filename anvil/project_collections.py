"""The collections of a project: which there are, the choice among them, and the sentences in an answer from several:
which of them cannot answer, are searched by words only, or have no such page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import registry
from anvil.errors import AnvilError, ConfigError
from anvil.formats.version_names import newest
from anvil.settings.schema import LOCK_NAME, Collection, Config
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.live.memory_copy import MemoryCopy
    from anvil.opened_index import OpenedIndex
    from anvil.results import Mode

    Opened = list[tuple[OpenedIndex, MemoryCopy]]
    Problems = list[tuple[OpenedIndex, AnvilError]]

OWN_NAME = "docs"
"""The name of the documentation that ``docs`` and ``index`` at the top of the configuration name."""
MAX_NAMED = 5
"""Collections that one sentence names."""


def of_project(config: Config, base: Path) -> tuple[Collection, ...]:
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


# --- sentences -------------------------------------------------------------------------------------------


def cannot_answer(problems: Problems) -> list[str]:
    """Sentences on the collections that cannot answer."""
    if len(problems) <= 2:
        return [_problem(*each) for each in problems]
    names = first_of([member.label for member, _ in problems], MAX_NAMED)
    return [f"{counted(len(problems), 'collection')} cannot answer: {names}. get_status says why."]


def _problem(member: OpenedIndex, error: AnvilError) -> str:
    """A sentence on a collection that cannot answer."""
    return f"{member.label} cannot answer: {error}"


def no_page(file_path: str, paths: dict[str, list[str]], problems: Problems) -> str:
    """The message for a page that no collection has. A path that begins with the name of a collection is explained."""
    from anvil.wording import closest_paths

    shown = file_path[:500]
    for label, own_paths in paths.items():
        for name in dict.fromkeys((label, label.rpartition("@")[0] or label)):
            below = file_path[len(name) + 1 :]
            if file_path.startswith((f"{name}/", f"{name}:")) and below in own_paths:
                return f"No page found at path: {shown}. {name} is a collection: give {below} with collection {name}."
    addresses = [f"{label}:{path}" for label, own_paths in paths.items() for path in own_paths]
    near = closest_paths(file_path, addresses)
    closest = f" Closest: {', '.join(near)}." if near else ""
    more = "".join(f" {_problem(*each)}" for each in problems)
    where = f"{shown} in {first_of(list(paths), MAX_NAMED)}"
    return f"No page found at path: {where}. Use list_pages to discover available pages.{closest}{more}"


def obstacles(opened: Opened) -> list[str]:
    """Why none of these collections can be searched by meaning; empty where one can. Those with the same reason are
    named together."""
    labels: dict[str, list[str]] = {}
    for member, copy in opened:
        if (obstacle := member.live.obstacle(copy)) is None:
            return []
        labels.setdefault(obstacle, []).append(member.label)
    return [f"{first_of(names, MAX_NAMED)}: {obstacle}" for obstacle, names in labels.items()]


def without_meaning(opened: Opened, mode: Mode) -> Iterator[str]:
    """Sentences on the collections that are not searched by meaning although others are."""
    lacking = [(member, copy) for member, copy in opened if not copy.searcher.semantic]
    if mode == "keyword" or not lacking or len(lacking) == len(opened):
        return
    what = "Searched by words only" if mode == "hybrid" else "Not searched"
    names = first_of([member.label for member, _ in lacking], MAX_NAMED)
    yield f"{what}, because they have no vectors of this model: {names}."
    if soon := [member.label for member, copy in lacking if member.live.will_embed_again(copy)]:
        yield f"Embedded again when no page has changed for a minute: {first_of(soon, MAX_NAMED)}."
