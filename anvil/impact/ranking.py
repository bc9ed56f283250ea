"""All evidence of a change together: which sections it probably concerns, best first, and how sure that is.

The features of a page are summed with fixed weights, and a logistic function makes a probability of the sum. The
weights are those of a logistic regression; see :data:`WEIGHTS`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from anvil.impact.documentation import Documentation
from anvil.impact.values import Evidence, EvidenceKind, Feature, Finding
from anvil.values import ROOT

INTERCEPT = -5.0
"""The log-odds of a page without any evidence."""
WEIGHTS: dict[Feature, float] = {
    "name gone": 3.0,
    "name new": 2.0,
    "name touched": 2.0,
    "name near": 2.0,
    "text": 3.0,
    "title search": 2.0,
    "title name": 2.0,
    "title path": 2.0,
    "same name": 2.0,
    "path words": 1.5,
    "link": 2.0,
    "joint change": 5.0,
    "joint folder": 3.0,
    "often changed": 1.0,
    "prose": 1.0,
}
"""Feature -> what it adds to the log-odds that a page is concerned, at full strength."""
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
MIN_CONFIDENCE = 0.02
"""Weaker findings are left out."""


def findings(
    evidence: Iterable[Evidence],
    docs: Documentation,
    edited: Mapping[str, frozenset[str]],
    kinds: frozenset[EvidenceKind],
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings, best first, and those in sections that the change edits. ``edited``: page -> breadcrumbs of the
    sections that the change edits. ``kinds``: the evidence that counts."""
    of_page: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        if each.kind in kinds and each.strength > 0:
            of_page[each.path].append(each)
    ranked: list[Finding] = []
    for path in sorted(of_page):
        ranked += _of_page(path, of_page[path], docs, edited.get(path))
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


def log_odds(strengths: Mapping[Feature, float]) -> float:
    """The log-odds that a page with these features is concerned."""
    return INTERCEPT + sum(WEIGHTS[feature] * strength for feature, strength in sorted(strengths.items()))


def probability(odds: float) -> float:
    """The probability for log-odds."""
    return 1.0 / (1.0 + math.exp(-odds)) if odds > -700 else 0.0


def _of_page(path: str, evidence: list[Evidence], docs: Documentation, edited: frozenset[str] | None) -> list[Finding]:
    """The findings of one page: its best sections, or its first one where no section is known."""
    confidence = probability(log_odds(features(evidence)))
    if confidence < MIN_CONFIDENCE:
        return []
    sections = docs.sections(path)
    lines = {section.heading_path: section.start_line for section in sections}
    of_section: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        if each.heading_path is not None:
            of_section[each.heading_path].append(each)
    if not of_section:
        of_section[sections[0].heading_path if sections else ROOT] = []
    weight = {heading: log_odds(features(own)) - INTERCEPT for heading, own in of_section.items()}
    order = sorted(weight, key=lambda heading: (-weight[heading], lines.get(heading) or 0, heading))
    whole = [each for each in evidence if each.heading_path is None]
    found = []
    for number, heading in enumerate(order):
        share = weight[heading] / weight[order[0]] if weight[order[0]] else 1.0
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
