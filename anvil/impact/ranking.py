"""All evidence of a change together: which sections it probably concerns, best first, and how sure that is."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from anvil.impact.documentation import Documentation
from anvil.impact.values import Evidence, EvidenceKind, Finding
from anvil.values import ROOT

WEIGHTS: dict[EvidenceKind, float] = {
    "names": 0.55,
    "texts": 0.7,
    "title": 0.5,
    "paths": 0.25,
    "links": 0.7,
    "co-change": 0.7,
    "prose": 0.3,
}
"""What a full-strength piece of each kind makes of the probability. First guesses; ``benchmarks/impact.py`` measures
each kind alone and left out."""
NEXT = 0.5
"""What a second piece of the same kind counts, of the first; a third counts this of the second, and so on."""
MAX_PIECES = 5
"""Pieces of a kind in a section that count."""
PAGE_SHARE = 0.5
"""What the evidence in other sections of a page counts for each of them."""
MAX_SECTIONS_OF_PAGE = 3
"""Sections of a page that are named."""
SECTION_FLOOR = 0.6
"""A further section of a page is named with at least this share of the confidence of its first."""
EDITED_PAGE = 0.6
"""What is left of the confidence in a section of a page that the same change edits elsewhere: its author saw it."""
MAX_FINDINGS = 60
"""Findings of a change."""
MAX_REASONS = 4
"""Reasons of a finding."""
MIN_CONFIDENCE = 0.05
"""Weaker findings are left out."""

_Scores = dict[EvidenceKind, list[float]]


def findings(
    evidence: Iterable[Evidence],
    docs: Documentation,
    edited: Mapping[str, frozenset[str]],
    kinds: frozenset[EvidenceKind],
) -> tuple[tuple[Finding, ...], tuple[Finding, ...]]:
    """The findings, best first, and those in sections that the change edits. ``edited``: page -> breadcrumbs of the
    sections that the change edits. ``kinds``: the evidence that counts."""
    of_section: dict[tuple[str, str], list[Evidence]] = defaultdict(list)
    of_page: dict[str, list[Evidence]] = defaultdict(list)
    for each in evidence:
        if each.kind not in kinds:
            continue
        if each.heading_path is None:
            of_page[each.path].append(each)
        else:
            of_section[each.path, each.heading_path].append(each)
    ranked: list[Finding] = []
    by_page: dict[str, list[str]] = defaultdict(list)
    for path, heading in of_section:
        by_page[path].append(heading)
    for path in sorted({*by_page, *of_page}):
        ranked += _of_page(path, sorted(by_page[path]), of_section, of_page[path], docs, edited.get(path))
    ranked.sort(key=lambda finding: (-finding.confidence, finding.path, finding.line or 0, finding.heading_path))
    done = [finding for finding in ranked if finding.heading_path in edited.get(finding.path, ())]
    rest = [finding for finding in ranked if finding.heading_path not in edited.get(finding.path, ())]
    return tuple(rest[:MAX_FINDINGS]), tuple(done[:MAX_FINDINGS])


def _of_page(
    path: str,
    headings: list[str],
    of_section: Mapping[tuple[str, str], list[Evidence]],
    whole: list[Evidence],
    docs: Documentation,
    edited: frozenset[str] | None,
) -> list[Finding]:
    """The findings of one page: its best sections, or the page where no section is known."""
    sections = docs.sections(path)
    lines = {section.heading_path: section.start_line for section in sections}
    if not headings:
        headings = [sections[0].heading_path if sections else ROOT]
    everywhere = [each for heading in headings for each in of_section.get((path, heading), ())]
    page_missing = missing([*everywhere, *whole])
    found = []
    for heading in headings:
        own = of_section.get((path, heading), [])
        here = missing([*own, *whole])
        # What other sections of the page say counts in part: the page is about the change, and one section more so.
        probability = 1.0 - here * (page_missing / here if here else 1.0) ** PAGE_SHARE
        if edited is not None and heading not in edited:
            probability *= EDITED_PAGE
        strongest = sorted([*own, *whole], key=lambda each: (-each.strength * WEIGHTS[each.kind], each.reason))
        line = next((each.line for each in strongest if each.line is not None and each.heading_path == heading), None)
        reasons = tuple(dict.fromkeys(each.reason for each in strongest if each.strength > 0))[:MAX_REASONS]
        found.append(
            Finding(
                path,
                heading,
                docs.titles.get(path, ""),
                line if line is not None else lines.get(heading),
                round(probability, 3),
                reasons,
                tuple(dict.fromkeys(each.kind for each in strongest)),
            )
        )
    found.sort(key=lambda finding: (-finding.confidence, finding.line or 0, finding.heading_path))
    best = found[0].confidence if found else 0.0
    return [
        finding
        for number, finding in enumerate(found)
        if finding.confidence >= MIN_CONFIDENCE
        and (
            number == 0
            or finding.heading_path in (edited or ())
            or (number < MAX_SECTIONS_OF_PAGE and finding.confidence >= SECTION_FLOOR * best)
        )
    ]


def missing(evidence: Iterable[Evidence]) -> float:
    """The probability that none of the evidence means anything: each piece is taken as independent of those of other
    kinds, and further pieces of a kind count less and less. Of pieces about the same, the strongest counts."""
    strongest: dict[tuple[EvidenceKind, str], float] = {}
    for each in evidence:
        key = (each.kind, each.subject)
        strongest[key] = max(strongest.get(key, 0.0), each.strength)
    scores: _Scores = defaultdict(list)
    for (kind, _), strength in strongest.items():
        scores[kind].append(strength)
    product = 1.0
    for kind, values in sorted(scores.items()):
        for number, strength in enumerate(sorted(values, reverse=True)[:MAX_PIECES]):
            product *= 1.0 - min(0.98, WEIGHTS[kind] * strength * NEXT**number)
    return product
