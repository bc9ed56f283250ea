"""Kinds of pages: which ones rank lower than their words and vectors say.

Records tell what changed or was proposed, such as changelogs, announcements and proposals. They have many words of
everything, so they rank below pages on the subject, unless the question is about a version. They are known by their
path: a folder or file has such a name as a whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from anvil.formats.lazy_pattern import lazy_pattern
from anvil.text import page_weights

RECORD_SHARE = 0.7
"""Share of its score that a record keeps; .5 to .85 gave the same on fourteen documentation sets."""

_RECORD = lazy_pattern(
    r"(?i)(?:^|/)(?:change-?log[^/]*|changes|releases?|release[-_]?notes?[^/]*|whats?[-_]?new|news|history|"
    r"announcements?|proposals?|rfcs?|blog|v?\d[\d.]*-announcement)(?:/|\.\w+$)"
)
_ABOUT_RECORDS = lazy_pattern(r"(?i)\d\.\d|change ?log|releas|version|upgrad|migrat|what'?s new|announce|propos|\brfc")


class PageFactors(NamedTuple):
    """Document -> the factor of the scores of its sections, where it is not 1: for most questions, and for those about
    versions or changes."""

    usual: Mapping[int, float]
    about_records: Mapping[int, float]


NO_FACTORS = PageFactors({}, {})


def factors(pages: Iterable[tuple[int, str]], weights: Mapping[str, float]) -> PageFactors:
    """The factors of ``pages``, each an id and a path. ``weights``: configured globs, which go before the rule for
    records. A record loses nothing where a question is about records."""
    weight_of = page_weights.weigher(weights)
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
    return _ABOUT_RECORDS.search(question) is not None
