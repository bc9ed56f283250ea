"""What a change of code means for documentation: findings, their evidence, and additions that no page has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Feature = str
"""What is weighed of a page, a key of :data:`anvil.impact.ranking.WEIGHTS`: each kind of evidence has one or several.
The functions of :mod:`anvil.impact.evidence` say what each one is."""
ChangeFeature = str
"""What is weighed of a change as a whole, a key of :data:`anvil.impact.ranking.CHANGE_WEIGHTS`."""


@dataclass(frozen=True, slots=True)
class Evidence:
    """One reason why a change concerns a section, or a page as a whole.

    ``path``: the page, as in the index. ``heading_path``: the breadcrumb of the section; None for the page as a whole.
    ``strength``: 0 to 1. ``reason``: a clause for people, such as ``names `--max-size```. ``line``: where the page says
    it, 1-based, if that is known. ``subject``: what the evidence is about; of several about the same in a section, the
    strongest counts.
    """

    feature: Feature
    path: str
    heading_path: str | None
    strength: float
    reason: str
    line: int | None = None
    subject: str = ""


@dataclass(frozen=True, slots=True)
class AffectedSection:
    """A section that a change probably concerns.

    ``path``: the page, from the documentation folder. ``title``: of the page. ``line``: 1-based, in the source file;
    None where the text stands in none. ``confidence``: 0 to 1. ``reasons``: clauses for people, the strongest first.
    """

    path: str
    heading_path: str
    title: str
    line: int | None
    confidence: float
    reasons: tuple[str, ...]


PublicKind = Literal["flag", "variable", "setting", "route"]
"""What users of a program meet; ``variable``: of the environment."""


@dataclass(frozen=True, slots=True)
class Undocumented:
    """A public name that the change adds and no page has. ``path``, from the repository's root, has it at ``line``."""

    kind: PublicKind
    name: str
    path: str
    line: int


@dataclass(frozen=True, slots=True)
class Impact:
    """What a change means for the documentation.

    ``findings``: sections that it probably makes wrong, best first. ``undocumented``: additions that no page has.
    ``done``: sections that the same change edits. ``notes``: sentences on what could not be examined. ``files``: number
    of changed files that were examined. ``evidence``: all that the findings are made of. ``change``: the features of
    the change as a whole.
    """

    findings: tuple[AffectedSection, ...]
    undocumented: tuple[Undocumented, ...] = ()
    done: tuple[AffectedSection, ...] = ()
    notes: tuple[str, ...] = ()
    files: int = 0
    evidence: tuple[Evidence, ...] = field(default=(), compare=False)
    change: Mapping[ChangeFeature, float] = field(default_factory=dict, compare=False)

    def at_least(self, confidence: float) -> tuple[AffectedSection, ...]:
        """The findings of this confidence and above."""
        return tuple(finding for finding in self.findings if finding.confidence >= confidence)
