"""The sections that a change probably concerns, ranked by confidence, from all evidence together.

The weighted sum of the features of a page is turned into a probability by a logistic function. The weights are those of
a logistic regression; see :data:`WEIGHTS`.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from anvil.impact.evidence import Evidence, Feature, IndexedPages
from anvil.impact.names import Name
from anvil.search.confidence import logistic
from anvil.values import ROOT

ChangeFeature = str
"""A feature of a change as a whole that is weighed: a key of :data:`CHANGE_WEIGHTS`."""


@dataclass(frozen=True, slots=True)
class AffectedSection:
    """A section that a change probably concerns.

    ``path``: of the page, from the documentation folder. ``title``: of the page. ``line``: 1-based, in the source file;
    None if it is unknown. ``confidence``: 0 to 1. ``reasons``: clauses for people, the strongest first.
    """

    path: str
    heading_path: str
    title: str
    line: int | None
    confidence: float
    reasons: tuple[str, ...]


INTERCEPT, OF_PAGES = -5.67, -0.24
"""The log-odds of a page without any evidence, and the weight of the natural logarithm of the number of pages."""
WEIGHTS: dict[Feature, float] = {
    "public name gone": 6.0,
    "name gone": 0.5,
    "name new": 0.18,
    "name touched": 1.4,
    "name near": 0.48,
    "text": 2.16,
    "title search": 3.13,
    "title name": 2.69,
    "title path": 2.62,
    "path words": 1.62,
    "link": 1.13,
    "joint change": 5.69,
    "joint folder": 4.57,
    "often changed": 1.76,
    "prose": 0.82,
}
"""Feature -> its weight at full strength in the log-odds that a change which concerns any page concerns this page.

From a logistic regression over 160 commits of eight projects that changed pages, by ``benchmarks/impact.py --fit``. Two
weights are set by hand. ``public name gone`` is too rare to be fitted. For ``name gone`` the regression has 0, because
authors often leave pages with such names as they are, although these pages are wrong.
"""
SECTION_WEIGHTS = WEIGHTS | {"name near": 2.0, "name touched": 0.8, "title name": 1.7, "prose": 1.8}
"""The weights that choose the sections of a page. A new thing is documented next to its neighbours in the code. On 173
commits of 18 projects, one of the first three sections of a page is right for .80 of the pages, by :data:`WEIGHTS` for
.77."""
CHANGE_INTERCEPT = -2.65
"""The log-odds that a change of code concerns any page, where one of four changes does."""
CHANGE_WEIGHTS: dict[ChangeFeature, float] = {
    "words new": 0.47,
    "words fix": -0.3,
    "words internal": -0.56,
    "first word new": 0.35,
    "first word fix": -0.65,
    "breaking": 2.0,
    "tests": 0.7,
    "surface files": 0.49,
    "new words in code": 0.44,
    "public name gone": 3.0,
    "joint change": 3.86,
    "prose": 1.2,
}
"""Feature of a change -> its weight in these log-odds. From a logistic regression over 897 commits of 29 projects, each
with and without its title, by ``benchmarks/impact.py --unsorted --fit``. ``breaking`` and ``public name gone`` are set
by hand."""
MAX_SECTIONS_OF_PAGE = 3
"""Sections of a page that are named."""
SECTION_FLOOR = 0.6
"""A further section of a page is named with at least this share of the evidence of its first."""
EDITED_PAGE = 0.6
"""Factor for a section of a page that the same change edits elsewhere, because its author saw the page."""
MAX_FINDINGS = 60
"""Findings of a change."""
MAX_REASONS = 4
"""Reasons of a finding."""
REASON_SHARE = 0.15
"""A reason is named if it weighs at least this share of the strongest reason."""
MIN_CONFIDENCE = 0.0001
"""Weaker findings are left out."""


def findings(
    evidence: Iterable[Evidence],
    change: Mapping[ChangeFeature, float],
    docs: IndexedPages,
    edited: Mapping[str, frozenset[str]],
) -> tuple[tuple[AffectedSection, ...], tuple[AffectedSection, ...]]:
    """The findings in sections that the change does not edit, and in sections that it edits, both best first.

    ``change``: the features of the change as a whole. ``edited``: page -> breadcrumbs of its edited sections.
    """
    by_page: dict[str, list[Evidence]] = defaultdict(list)
    for piece in evidence:
        if piece.strength > 0:
            by_page[piece.path].append(piece)
    # confidence = P(the change concerns any page) * P(it concerns this page, if it concerns any)
    any_page = change_probability(change)
    ranked: list[AffectedSection] = []
    for path in sorted(by_page):
        confidence = any_page * logistic(log_odds(features(by_page[path]), len(docs.titles)))
        ranked += _page_findings(path, by_page[path], confidence, docs, edited.get(path))
    ranked.sort(key=lambda finding: (-finding.confidence, finding.path, finding.line or 0, finding.heading_path))
    # Of the translations of a page, those that the change edits are named, else the best one. Translators follow it.
    named = {docs.untranslated.get(path, path): path for path in edited}
    ranked = [
        finding
        for finding in ranked
        if finding.path in edited
        or named.setdefault(docs.untranslated.get(finding.path, finding.path), finding.path) == finding.path
    ]
    done = [finding for finding in ranked if finding.heading_path in edited.get(finding.path, ())]
    open_findings = [finding for finding in ranked if finding.heading_path not in edited.get(finding.path, ())]
    return tuple(open_findings[:MAX_FINDINGS]), tuple(done[:MAX_FINDINGS])


def features(evidence: Iterable[Evidence]) -> dict[Feature, float]:
    """Feature -> its strength over all evidence of a page or section.

    It is the root of the sum of squares, so that many weak pieces of evidence do not make a strong one. Of the pieces
    about one subject, the strongest counts.
    """
    strongest: dict[tuple[Feature, str], float] = {}
    for piece in evidence:
        key = (piece.feature, piece.subject)
        strongest[key] = max(strongest.get(key, 0.0), piece.strength)
    squares: dict[Feature, float] = defaultdict(float)
    for (feature, _), strength in strongest.items():
        squares[feature] += strength * strength
    return {feature: math.sqrt(square) for feature, square in squares.items()}


def log_odds(strengths: Mapping[Feature, float], pages: int) -> float:
    """The log-odds that a change which concerns any of so many pages concerns the page with these features."""
    return INTERCEPT + OF_PAGES * math.log(max(2, pages)) + weight(strengths, WEIGHTS)


def weight(strengths: Mapping[Feature, float], weights: Mapping[Feature, float]) -> float:
    """The weighted sum of features."""
    return sum(weights[feature] * strength for feature, strength in sorted(strengths.items()))


def change_probability(change: Mapping[ChangeFeature, float]) -> float:
    """The probability that a change concerns any page, from the features of the change as a whole."""
    return logistic(CHANGE_INTERCEPT + sum(CHANGE_WEIGHTS[name] * value for name, value in sorted(change.items())))


def _page_findings(
    path: str, evidence: list[Evidence], confidence: float, docs: IndexedPages, edited: frozenset[str] | None
) -> list[AffectedSection]:
    """The findings of one page: its best sections, or its first section if all evidence is for the whole page."""
    if confidence < MIN_CONFIDENCE:
        return []
    sections = docs.sections(path)
    lines = {section.heading_path: section.start_line for section in sections}
    by_section: dict[str, list[Evidence]] = defaultdict(list)
    for piece in evidence:
        if piece.heading_path is not None:
            by_section[piece.heading_path].append(piece)
    if not by_section:
        by_section[sections[0].heading_path if sections else ROOT] = []
    weights = {heading: weight(features(own), SECTION_WEIGHTS) for heading, own in by_section.items()}
    order = sorted(weights, key=lambda heading: (-weights[heading], lines.get(heading) or 0, heading))
    whole_page = [piece for piece in evidence if piece.heading_path is None]
    affected = []
    for rank, heading in enumerate(order):
        share = weights[heading] / weights[order[0]] if weights[order[0]] else 1.0
        is_edited = edited is not None and heading in edited
        if rank and not is_edited and (rank >= MAX_SECTIONS_OF_PAGE or share < SECTION_FLOOR):
            continue
        section_confidence = confidence * share * (EDITED_PAGE if edited is not None and not is_edited else 1.0)
        pieces = [*by_section[heading], *whole_page]
        weighted = [(piece.strength * WEIGHTS[piece.feature], piece) for piece in pieces]
        weighted.sort(key=lambda pair: (-pair[0], pair[1].reason))
        min_weight = REASON_SHARE * weighted[0][0] if weighted else 0.0
        reasons = dict.fromkeys(piece.reason for own_weight, piece in weighted if own_weight >= min_weight)
        affected.append(
            AffectedSection(
                path,
                heading,
                docs.titles.get(path, ""),
                next((piece.line for _, piece in weighted if piece.line is not None), lines.get(heading)),
                round(section_confidence, 4),
                tuple(reasons)[:MAX_REASONS],
            )
        )
    return affected


MAX_WORDS = 3
"""Words of one kind that count in a title."""

_NEW = frozenset(
    """
    add adds added adding allow allows api change changed change command config configurable configuration configure
    customize default defaults deprecate deprecated deprecates drop enable enables experimental expose exposes feat
    feature flag flags implement implemented implements introduce introduces new opt option options param parameter
    rename renames require setting settings support supports variable
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Words in titles of changes that users notice."""
_FIX = frozenset(
    """
    avoid avoids broken bug correct correctly crash ensure error errors failing fix fixed fixes handle handling if
    incorrect incorrectly invalid issue keep leak missing only panic preserve prevent properly race regression resolve
    respect when wrong
    """.split()  # noqa: SIM905
)
"""Words in titles of fixes, after which the code does what the pages say already."""
_INTERNAL = frozenset(
    """
    build chore ci clean cleanup code comment comments duplicate extract faster flaky improve internal log logging logs
    minor move moves nit optimize perf performance refactor refactoring reuse separate simplify speed split switch test
    testing tests types typing typo unnecessary unused use
    """.split()  # noqa: SIM905
)
"""Words in titles of changes that users do not notice."""
_SCOPE = re.compile(r"\s*(?P<type>[\w./@-]+)(?:\([^)]*\))?(?P<breaking>!?):\s*(?P<rest>.*)", re.S)
_SURFACE = re.compile(r"(?i)(?:schema|config|option|setting|flag|arg|cli|cmd|command|env)")
"""Words in the paths of files that users meet."""


def title_features(title: str) -> dict[ChangeFeature, float]:
    """The features of a title; empty for an empty title."""
    text = re.sub(r"\(#\d+\)", "", title)
    scope = _SCOPE.fullmatch(text)
    all_words = re.findall(r"[a-z]+", text.lower())
    body = re.findall(r"[a-z]+", scope["rest"].lower()) if scope else all_words
    if not all_words:
        return {}
    words, first = set(all_words), body[0] if body else ""
    # the type of a conventional commit: "feat(cli): sizes"
    kind = scope["type"].lower() if scope else ""
    return {
        "words new": float(min(MAX_WORDS, len(words & _NEW))),
        "words fix": float(min(MAX_WORDS, len(words & _FIX))),
        "words internal": float(min(MAX_WORDS, len(words & _INTERNAL))),
        "first word new": float(first in _NEW or kind in ("feat", "feature")),
        "first word fix": float(first in _FIX or kind == "fix"),
        "breaking": float(bool(scope and scope["breaking"])),
    }


def file_features(code: Sequence[str], tests: int) -> dict[ChangeFeature, float]:
    """The features of the changed files. ``code``: the paths of files of code. ``tests``: the number of test files."""
    return {
        "tests": tests / (tests + len(code)) if code else 0.0,
        "surface files": float(any(_SURFACE.search(path) for path in code)),
    }


def name_features(names: Iterable[Name]) -> dict[ChangeFeature, float]:
    """The features of the names in the changed lines."""
    return {"new words in code": math.log1p(sum(name.is_new and name.kind == "word" for name in names))}


def evidence_features(evidence: Iterable[Evidence]) -> dict[ChangeFeature, float]:
    """The features of the evidence: three kinds of evidence, each with the strength of the page that has most of it."""
    by_page: dict[str, list[Evidence]] = defaultdict(list)
    for piece in evidence:
        by_page[piece.path].append(piece)
    strengths = [features(own) for own in by_page.values()]
    kinds = ("public name gone", "joint change", "prose")
    return {kind: max((own.get(kind, 0.0) for own in strengths), default=0.0) for kind in kinds}
