"""Weights of pages in the ranking: configured globs over paths, and kinds of pages that rank lower by themselves.

Records tell what changed or was proposed, such as changelogs, announcements and proposals. They have many words of
everything, so they rank below pages on the subject, unless the question is about a version. They are known by their
path: a folder or file has such a name as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from anvil.formats import patterns
from anvil.formats.patterns import lazy_pattern

RECORD_SHARE = 0.7
"""Share of its score that a record keeps; .5 to .85 gave the same on fourteen documentation sets."""

_RECORD = lazy_pattern(
    r"(?i)(?:^|/)(?:change-?log[^/]*|changes|releases?|release[-_]?notes?[^/]*|whats?[-_]?new|news|history|"
    r"announcements?|proposals?|rfcs?|blog|v?\d[\d.]*-announcement)(?:/|\.\w+$)"
)
ABOUT_RECORDS = lazy_pattern(r"(?i)\d\.\d|change ?log|releas|version|upgrad|migrat|what'?s new|announce|propos|\brfc")
"""Words of a question about versions, changes or proposals."""


class PageFactors(NamedTuple):
    """Document -> the factor of the scores of its sections, where it is not 1: for most questions, and for those about
    versions or changes."""

    usual: Mapping[int, float]
    about_records: Mapping[int, float]


NO_FACTORS = PageFactors({}, {})


def factors(pages: Iterable[tuple[int, str]], weights: Mapping[str, float]) -> PageFactors:
    """The factors of ``pages``, each an id and a path. ``weights``: configured globs, which go before the rule for
    records. A record loses nothing where a question is about records."""
    weight_of = weigher(weights)
    # Both factors of a page are made at once, so that a question costs no look at globs and paths.
    usual: dict[int, float] = {}
    about_records: dict[int, float] = {}
    for id_, path in pages:
        weight, recorded = weight_of(path), is_record(path)
        if weight is not None or recorded:
            usual[id_] = factor = RECORD_SHARE if weight is None else weight
            about_records[id_] = max(factor, 1.0) if recorded else factor
    return PageFactors(usual, about_records)


def is_record(path: str) -> bool:
    """Whether a page records changes, by its path."""
    return _RECORD.search(path) is not None


def asks_for_records(question: str) -> bool:
    """Whether a question is about versions, changes or proposals."""
    return ABOUT_RECORDS.search(question) is not None


def weigher(weights: Mapping[str, float]) -> Callable[[str], float | None]:
    """A function path -> the weight of the first glob that it matches; None if it matches none."""
    selectors = [(patterns.selects(glob), weight) for glob, weight in weights.items()]
    return lambda path: next((weight for is_selected, weight in selectors if is_selected(path)), None)
