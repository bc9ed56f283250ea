"""Sentences in an answer from several collections: which of them cannot answer, are searched by words only, or have no
such page; and how fresh all are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.errors import AnvilError
    from anvil.live.working_copy import WorkingCopy
    from anvil.opened_index import OpenedIndex
    from anvil.results import Freshness, Mode

    Opened = list[tuple[OpenedIndex, WorkingCopy]]
    Problems = list[tuple[OpenedIndex, AnvilError]]

MAX_NAMED = 5
"""Collections that one sentence names."""


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


def freshness(opened: Opened, shown: frozenset[int], notes: Sequence[str]) -> Freshness:
    """The freshness of an answer from several collections. ``shown``: the places of those that have results; others
    have no notes here."""
    from anvil.results import Freshness

    parts = [(member.label, member.live.freshness(copy)) for member, copy in opened]
    own = [f"{label}: {note}" for place, (label, part) in enumerate(parts) if place in shown for note in part.notes]
    return Freshness(
        next((part.checked for _, part in parts if part.checked), None),
        next((part.commit for _, part in parts if part.checked), None),
        tuple(f"{label}:{path}" for label, part in parts for path in part.refreshed),
        sum(part.pending_vectors for _, part in parts),
        (*own, *notes),
    )
