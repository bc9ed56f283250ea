"""The table ``[lint]`` of the configuration: levels of rules, ignored pages, and the level that fails."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Literal

from anvil.settings.schema import one_of, within

Level = Literal["error", "warning", "note"]
"""The severity of a finding."""
RuleLevel = Literal[Level, "off"]
"""The severity of a rule's findings; ``off``: the rule is not run."""
LEVELS: tuple[Level, ...] = ("note", "warning", "error")
"""All levels, the lowest first."""


@dataclass(frozen=True, slots=True)
class LintLevels:
    """The level of each rule: ``error``, ``warning``, ``note`` or ``off``."""

    broken_link: RuleLevel = "error"
    """A link or image whose page or file does not exist."""
    broken_anchor: RuleLevel = "error"
    """A link to an anchor that its page does not have."""
    broken_include: RuleLevel = "error"
    """A line that includes a file that does not exist."""
    undefined_reference: RuleLevel = "warning"
    """A reference link, ``[text][label]``, whose label is not defined."""
    unclosed_fence: RuleLevel = "error"
    """Fenced code that is not closed."""
    orphan_page: RuleLevel = "warning"
    """A page that no page links to and no navigation shows."""
    near_duplicate: RuleLevel = "note"
    """Two sections of different pages that say the same, or nearly."""
    repeated_heading: RuleLevel = "note"
    """A heading that its page has more than once, so that its anchor has a number."""
    empty_section: RuleLevel = "warning"
    """A heading without any text under it."""
    long_page: RuleLevel = "note"
    """A page of more than ``lint.max_page_chars`` characters."""
    image_without_alt: RuleLevel = "warning"
    """An image without alternative text."""
    fence_without_language: RuleLevel = "note"
    """Fenced code without a language."""
    unknown_suppression: RuleLevel = "warning"
    """A comment ``anvil-lint-...`` with a rule or an action that does not exist."""

    def __post_init__(self) -> None:
        for each in fields(self):
            one_of(f"lint.levels.{each.name.replace('_', '-')}", getattr(self, each.name), RuleLevel)


RULE_NAMES = tuple(each.name.replace("_", "-") for each in fields(LintLevels))


@dataclass(frozen=True, slots=True)
class LintOptions:
    """The linter's options."""

    ignore: tuple[str, ...] = ()
    """Globs of pages in which nothing is reported. Links to them are still checked."""
    fail_level: Level = "error"
    """The lowest level that makes ``anvil lint`` exit with 1: ``error``, ``warning`` or ``note``."""
    max_page_chars: int = 60_000
    """The number of characters above which a page is too long to be read at once; 60,000 are about 15,000 tokens."""
    levels: LintLevels = field(default_factory=LintLevels)

    def __post_init__(self) -> None:
        one_of("lint.fail_level", self.fail_level, Level)
        within("lint.max_page_chars", self.max_page_chars, 1)
