"""All evidence of a change together: which sections it probably concerns, best first, and how sure that is.

The features of a page are summed with fixed weights, and a logistic function makes a probability of the sum. The
weights are those of a logistic regression; see :data:`WEIGHTS`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from anvil.formats.lazy_pattern import lazy_pattern
from anvil.impact.documentation import Documentation
from anvil.impact.values import Evidence, EvidenceKind, Feature, Finding
from anvil.values import ROOT

INTERCEPT, OF_PAGES = -5.4, -0.25
"""The log-odds of a page without any evidence, and what is added for the natural logarithm of the number of pages."""
WEIGHTS: dict[Feature, float] = {
    "public name gone": 6.0,
    "name gone": 0.4,
    "name new": 0.2,
    "name touched": 1.3,
    "name near": 1.1,
    "text": 1.0,
    "title search": 3.0,
    "title name": 2.7,
    "title path": 2.3,
    "same name": 0.6,
    "path words": 1.6,
    "link": 0.4,
    "joint change": 2.9,
    "joint folder": 2.0,
    "often changed": 2.2,
    "prose": 0.9,
}
"""Feature -> what it adds to the log-odds that a page is edited, in a change that concerns pages.

A logistic regression over 210 commits of eslint, poetry, traefik, trivy, uv, vite and wezterm that edited pages: with
each project left out in turn, .87 of them have a page of theirs in the first three. ``public name gone`` is too rare to
be fitted (14 of 336 commits) and is a judgement: of 58 pages with such a name 17 were edited, and 12 of the 14 commits
edited pages.
"""
CHANGE_INTERCEPT = -1.95
"""The log-odds that a change of code concerns any page at all, for one in four changes of code that do."""
TITLE_NEW, TITLE_FIX, JOINT, NEW_WORDS, FILES, LINES, PROSE, PUBLIC_GONE = 1.6, -0.4, 2.3, 0.4, 0.6, -0.27, 0.65, 3.0
"""What adds to them: a title that says what is new, and one of a fix (half of it is taken off where it does not); the
strongest joint change; the logarithms of the numbers of new literal words, of changed files and of changed lines; the
strongest match of added prose; a public name that goes or has another value. From the same 210 commits and 126 more
that changed code alone."""
MAX_SECTIONS_OF_PAGE = 3
"""Sections of a page that are named."""
SECTION_FLOOR = 0.6
"""A further section of a page is named with at least this share of the evidence of its first."""
EDITED_PAGE = 0.6
"""What is left of the confidence in a section of a page that the same change edits elsewhere: its author saw it."""
MAX_FINDINGS = 60
"""Findings of a change."""
MAX_REASONS = 4
"""Reasons of a finding."""
REASON_SHARE = 0.15
"""A reason is named that weighs at least this share of the strongest."""
MIN_CONFIDENCE = 0.0001
"""Weaker findings are left out."""


@dataclass(frozen=True, slots=True)
class Extent:
    """What a change is as a whole. ``title``: its subject, ``""`` where there is none. ``files``, ``lines``: of code.
    ``new_words``: literal words that only added lines have. ``public_gone``: whether a public name goes, or has another
    value."""

    title: str = ""
    files: int = 1
    lines: int = 1
    new_words: int = 0
    public_gone: bool = False


def findings(
    evidence: Iterable[Evidence],
    docs: Documentation,
    edited: Mapping[str, frozenset[str]],
    kinds: frozenset[EvidenceKind],
    extent: Extent,
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings, best first, and those in sections that the change edits. ``edited``: page -> breadcrumbs of the
    sections that the change edits. ``kinds``: the evidence that counts. ``extent``: of the change."""
    of_page: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        if each.kind in kinds and each.strength > 0:
            of_page[each.path].append(each)
    strengths = {path: features(own) for path, own in of_page.items()}
    concerned = change_probability(strengths.values(), extent)
    base = INTERCEPT + OF_PAGES * math.log(max(2, len(docs.titles)))
    ranked: list[Finding] = []
    for path in sorted(of_page):
        confidence = concerned * probability(base + weight(strengths[path]))
        if confidence >= MIN_CONFIDENCE:
            ranked += _of_page(path, confidence, of_page[path], docs, edited.get(path))
    ranked.sort(key=lambda finding: (-finding.confidence, finding.path, finding.line or 0, finding.heading_path))
    done = [finding for finding in ranked if finding.heading_path in edited.get(finding.path, ())]
    rest = [finding for finding in ranked if finding.heading_path not in edited.get(finding.path, ())]
    return tuple(rest[:MAX_FINDINGS]), tuple(done[:MAX_FINDINGS])


def features(evidence: Iterable[Evidence]) -> dict[Feature, float]:
    """Feature -> its strength over all evidence of a page or section: the root of the sum of squares, so that many weak
    pieces do not make a strong one. Of pieces about the same subject, the strongest counts."""
    strongest: dict[tuple[Feature, str], float] = {}
    for each in evidence:
        key = (each.feature, each.subject)
        strongest[key] = max(strongest.get(key, 0.0), each.strength)
    squares: dict[Feature, float] = defaultdict(float)
    for (feature, _), strength in strongest.items():
        squares[feature] += strength * strength
    return {feature: math.sqrt(square) for feature, square in squares.items()}


def weight(strengths: Mapping[Feature, float]) -> float:
    """What these features add to the log-odds of a page."""
    return sum(WEIGHTS[feature] * strength for feature, strength in sorted(strengths.items()))


def change_probability(pages: Iterable[Mapping[Feature, float]], extent: Extent) -> float:
    """How likely a change concerns any page at all. ``pages``: the features of each page."""
    joint = prose = 0.0
    for strengths in pages:
        joint = max(joint, strengths.get("joint change", 0.0))
        prose = max(prose, strengths.get("prose", 0.0))
    odds = CHANGE_INTERCEPT + JOINT * joint + PROSE * prose + NEW_WORDS * math.log1p(extent.new_words)
    odds += FILES * math.log1p(extent.files) + LINES * math.log1p(extent.lines)
    odds += PUBLIC_GONE if extent.public_gone else 0.0
    if extent.title:
        odds += TITLE_NEW * (0.5 if _SAYS_NEW.search(extent.title) else -0.5)
        odds += TITLE_FIX * (0.5 if _SAYS_FIX.search(extent.title) else -0.5)
    return probability(odds)


_SAYS_NEW = lazy_pattern(
    r"(?i)\b(?:adds?|added|supports?|allows?|feat|feature|options?|flags?|new|introduce|implement|enable|removes?|removed|"
    r"deprecated?|rename|default|config|configurable|drop|expose|stabilize)\b"
)
_SAYS_FIX = lazy_pattern(
    r"(?i)\b(?:fix|fixes|fixed|refactor|perf|chore|tests?|ci|internal|cleanup|clean|simplify|move|typo|optimi[sz]e|avoid|"
    r"panic|crash|bug|unused)\b"
)


def probability(odds: float) -> float:
    """The probability for log-odds."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700 else 0.0


def _of_page(
    path: str, confidence: float, evidence: list[Evidence], docs: Documentation, edited: frozenset[str] | None
) -> list[Finding]:
    """The findings of one page: its best sections, or its first one where no section is known."""
    sections = docs.sections(path)
    lines = {section.heading_path: section.start_line for section in sections}
    of_section: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        if each.heading_path is not None:
            of_section[each.heading_path].append(each)
    if not of_section:
        of_section[sections[0].heading_path if sections else ROOT] = []
    weights = {heading: weight(features(own)) for heading, own in of_section.items()}
    order = sorted(weights, key=lambda heading: (-weights[heading], lines.get(heading) or 0, heading))
    whole = [each for each in evidence if each.heading_path is None]
    found = []
    for number, heading in enumerate(order):
        share = weights[heading] / weights[order[0]] if weights[order[0]] else 1.0
        is_edited = edited is not None and heading in edited
        if number and not is_edited and (number >= MAX_SECTIONS_OF_PAGE or share < SECTION_FLOOR):
            continue
        own_confidence = confidence * share * (EDITED_PAGE if edited is not None and not is_edited else 1.0)
        strongest = sorted(
            [*of_section[heading], *whole], key=lambda each: (-each.strength * WEIGHTS[each.feature], each.reason)
        )
        least = REASON_SHARE * (strongest[0].strength * WEIGHTS[strongest[0].feature] if strongest else 0.0)
        telling = [each for each in strongest if each.strength * WEIGHTS[each.feature] >= least]
        line = next((each.line for each in strongest if each.line is not None), lines.get(heading))
        found.append(
            Finding(
                path,
                heading,
                docs.titles.get(path, ""),
                line,
                round(own_confidence, 4),
                tuple(dict.fromkeys(each.reason for each in telling))[:MAX_REASONS],
                tuple(dict.fromkeys(each.kind for each in strongest)),
            )
        )
    return found
