"""Weights of pages in the ranking: configured globs over paths, records such as changelogs, and deprecated pages.

A record tells what changed or was proposed: a changelog, an announcement, a proposal. It has many words of everything,
so it ranks below pages on the subject, unless the question is about a version. It is known by its path, in which a
folder or file has such a name as a whole. A page that says that it is deprecated is treated like a record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from anvil.formats import patterns
from anvil.formats.patterns import lazy_pattern
from anvil.index_file.manifests import recalled_weights

RECORD_SHARE = 0.7
"""Share of its score that a record keeps; .5 to .85 gave the same on fourteen documentation sets."""
_RECORD = lazy_pattern(
    r"(?i)(?:^|/)(?:change-?log[^/]*|changes|releases?|release[-_]?notes?[^/]*|whats?[-_]?new|news|history|"
    r"announcements?|proposals?|rfcs?|blog|v?\d[\d.]*-announcement)(?:/|\.\w+$)"
)
ABOUT_RECORDS = lazy_pattern(
    r"(?i)\d\.\d|change ?log|releas|version|upgrad|migrat|deprecat|what'?s new|announce|propos|\brfc"
)
"""Words of a question about versions, changes or proposals. The search page has this pattern, too."""
_NOT_DECLARED = frozenset({"", "none", "null", "no", "false", "off", "0", "[]", "{}"})
"""Values of ``deprecated`` in front matter that do not deprecate a page: as SQLite gives them, or as people quote
them."""
_DEPRECATED_TITLE = lazy_pattern(
    r"(?i)[(\[]deprecated\b[^()\[\]]*[)\]]\W*$|^\W*deprecated:|[-\u2013\u2014:] ?deprecated$"
)
"""Not "Deprecated features": that page is about them."""
_DEPRECATED_OPENING = lazy_pattern(
    r"(?im)^(?:> ?| ?)(?:[*_]{2}|[:!?]{3,} ?\w+ [\"\[]?)deprecated\b|"
    r"\bthis (?![\w ]*(?:argument|attribute|field|flag|key|option|parameter|property|setting|value|variable))"
    r"[\w ]{1,40} (?:is|was|has been)[*_ ]+(?:now[*_ ]+)?deprecated\b"
)


class PageFactors(NamedTuple):
    """Document id -> the factor of the scores of its sections; 1 if it is missing.

    ``usual``: for most questions. ``about_records``: for questions about versions, changes or proposals.
    """

    usual: Mapping[int, float]
    about_records: Mapping[int, float]


NO_FACTORS = PageFactors({}, {})


def factors(
    pages: Iterable[tuple[int, str]], meta: Mapping[str, str], signs: Iterable[tuple[int, Any, str, str]] = ()
) -> PageFactors:
    """The factors of pages. A configured weight goes before the rule for records and deprecated pages. These lose
    nothing where the question is about records.

    ``pages``: (id, path). ``meta``: the manifest, which has the configured weights. ``signs``: (id, and the three
    arguments of :func:`is_deprecated`).
    """
    deprecated = {id_ for id_, *signs_of_page in signs if is_deprecated(*signs_of_page)}
    weight_of = weigher(recalled_weights(meta.get("weights")))
    # Both factors of a page are made at once, so that a question costs no look at globs and paths.
    usual: dict[int, float] = {}
    about_records: dict[int, float] = {}
    for id_, path in pages:
        weight, recorded = weight_of(path), is_record(path) or id_ in deprecated
        if weight is not None or recorded:
            usual[id_] = factor = RECORD_SHARE if weight is None else weight
            about_records[id_] = max(factor, 1.0) if recorded else factor
    return PageFactors(usual, about_records)


def is_record(path: str) -> bool:
    """Whether a page records changes, by its path."""
    return _RECORD.search(path) is not None


def is_deprecated(declared: Any, title: str, opening: str) -> bool:
    """Whether a page is deprecated: by the value of ``deprecated`` in its front matter, by its title, or by the first
    characters of its text."""
    is_declared = str(declared).strip().lower() not in _NOT_DECLARED
    return is_declared or bool(_DEPRECATED_TITLE.search(title) or _DEPRECATED_OPENING.search(opening))


def weigher(weights: Mapping[str, float]) -> Callable[[str], float | None]:
    """A function path -> the weight of the first glob that it matches; None if it matches none."""
    selectors = [(patterns.selects(glob), weight) for glob, weight in weights.items()]
    return lambda path: next((weight for is_selected, weight in selectors if is_selected(path)), None)


def asks_for_records(question: str) -> bool:
    """Whether a question is about versions, changes or proposals."""
    return ABOUT_RECORDS.search(question) is not None
