"""What the linter of documentation says: the rules' names, a finding, and the report of a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from anvil.lint.settings import Level

LEVELS: tuple[Level, ...] = ("note", "warning", "error")
"""All levels, the lowest first."""
RuleName = Literal[
    "broken-link",
    "broken-anchor",
    "broken-include",
    "undefined-reference",
    "unclosed-fence",
    "orphan-page",
    "near-duplicate",
    "repeated-heading",
    "empty-section",
    "long-page",
    "image-without-alt",
    "fence-without-language",
    "unknown-suppression",
]


@dataclass(frozen=True, slots=True)
class LintFinding:
    """One thing that is wrong in a page.

    ``path``: the page, from the documentation folder. ``line``: 1-based, in the source file. ``message``: one or two
    sentences for people.
    """

    rule: RuleName
    level: Level
    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class LintReport:
    """What was found in ``pages`` pages, by path and line.

    ``suppressed``: how many findings comments in the pages silence. ``generator``: whose rules the links were resolved
    by. ``folder``: the documentation folder from the repository's root, POSIX, ``""`` for the same. ``notes``:
    sentences on what could not be examined. ``looked_up``: whether the built site decided where it shows a link.
    """

    findings: tuple[LintFinding, ...]
    pages: int
    suppressed: int
    generator: str
    folder: str = ""
    notes: tuple[str, ...] = ()
    looked_up: bool = False

    def at_least(self, level: Level) -> tuple[LintFinding, ...]:
        """The findings of a level and those above."""
        lowest = LEVELS.index(level)
        return tuple(finding for finding in self.findings if LEVELS.index(finding.level) >= lowest)
