"""Records: pages that tell what changed or was proposed, such as changelogs, announcements and proposals.

They have many words of everything, so they rank below pages on the subject, unless the question is about a version.
They are known by their path: a folder or file has such a name as a whole.
"""

from __future__ import annotations

from anvil.formats.lazy_pattern import lazy_pattern

RECORD_SHARE = 0.7
"""Share of its score that a record keeps; .5 to .85 gave the same on fourteen documentation sets."""

_RECORD = lazy_pattern(
    r"(?i)(?:^|/)(?:change-?log[^/]*|changes|releases?|release[-_]?notes?[^/]*|whats?[-_]?new|news|history|"
    r"announcements?|proposals?|rfcs?|blog|v?\d[\d.]*-announcement)(?:/|\.\w+$)"
)
_ABOUT_RECORDS = lazy_pattern(r"(?i)\d\.\d|change ?log|releas|version|upgrad|migrat|what'?s new|announce|propos|\brfc")


def is_record(path: str) -> bool:
    """Whether a page records changes, by its path."""
    return _RECORD.search(path) is not None


def asks_for_records(question: str) -> bool:
    """Whether a question is about versions, changes or proposals."""
    return _ABOUT_RECORDS.search(question) is not None
