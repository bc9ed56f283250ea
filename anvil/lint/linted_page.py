"""A page for the rules: its headings, anchors, references, and the lines of its file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from anvil.lint.settings import RULE_NAMES
from anvil.settings.schema import Slugs
from anvil.text.headings import UNTITLED, Anchors, attributes
from anvil.text.includes import source_line
from anvil.text.references import References
from anvil.wording import closest_names

_OPENING_MARKS = re.compile(r"[ \t]*#+")


class PageHeading(NamedTuple):
    """A top-level heading: its line in the page's text, its level and its plain text."""

    line: int
    level: int
    title: str


@dataclass
class LintPage:
    """A page. Lines of ``references`` are lines of its text, which begins at line ``first_line`` of its file.

    ``headings``: the top-level ones. ``stored_anchors``: those that the index knows from the published page.
    ``inserted``: (line of the file, lines of other files that follow it), in order. ``included``: those files, from the
    root. ``missing_includes``: (line of the file, path, candidates from the root).
    """

    path: str
    references: References
    headings: Sequence[PageHeading]
    metadata: Mapping[str, Any] = field(default_factory=dict)
    first_line: int = 1
    inserted: Sequence[tuple[int, int]] = ()
    included: Sequence[str] = ()
    missing_includes: Sequence[tuple[int, str, tuple[str, ...]]] = ()
    stored_anchors: frozenset[str] = frozenset()
    _anchors: dict[Slugs, dict[str, int]] = field(default_factory=dict)

    def source_line(self, line: int) -> int | None:
        """The line of the file for a line of the text; None for a line of an included file."""
        line += self.first_line - 1
        source = source_line(line, self.inserted)
        return None if source == source_line(line - 1, self.inserted) else source  # included lines have one number

    def anchors(self, style: Slugs) -> dict[str, int]:
        """Anchor -> line of its heading; 0 for the id of another element."""
        lines_by_anchor = self._anchors.get(style)
        if lines_by_anchor is None:
            lines_by_anchor = self._anchors[style] = dict.fromkeys(self.references.ids | self.stored_anchors, 0)
            headings = self.all_headings()
            slugs = Anchors(style, {own for _, _, own in headings if own})
            for line, title, own in headings:
                lines_by_anchor[own or slugs.claim(title)] = line
        return lines_by_anchor

    def all_headings(self) -> list[tuple[int, str, str]]:
        """(line, plain text, own id or ``""``) of every heading, nested ones too, in order."""
        rows = [(line, "" if title == UNTITLED else title, self.own_id(line)) for line, _, title in self.headings]
        top = {line for line, _, _ in rows}
        nested = [(line, title, own) for line, _, title, own in self.references.headings if line not in top]
        return sorted(rows + nested) if nested else rows

    def own_id(self, line: int) -> str:
        """The id in the heading at a line, such as ``{#id}``, or ``""``."""
        source = self.references.line_text(line).rstrip()
        return attributes(_OPENING_MARKS.sub("", source, count=1))[1] if "}" in source[-12:] else ""

    def end(self, index: int) -> int:
        """The last line of the text under the heading ``index``, up to the next heading."""
        if index + 1 < len(self.headings):
            return self.headings[index + 1].line - 1
        return len(self.references.starts)


class Silence(NamedTuple):
    """Lines of a file, both inclusive, in which a rule is silent; ``last`` infinite: to the end of the page."""

    first: int
    last: float
    rule: str


def silences(page: LintPage) -> list[Silence]:
    """The rules that the comments of a page silence, with the lines of its file."""
    spans: list[Silence] = []
    opened: dict[str, int] = {}
    for directive in page.references.directives:
        line = page.source_line(directive.line)
        if line is None:
            continue
        rules = [rule for rule in directive.rules if rule in RULE_NAMES] if directive.rules else list(RULE_NAMES)
        for rule in rules:
            if directive.action == "disable":
                opened.setdefault(rule, line)
            elif directive.action == "enable" and rule in opened:
                spans.append(Silence(opened.pop(rule), line, rule))
            elif directive.action == "disable-next-line":
                spans.append(Silence(line, line + 1, rule))
    return spans + [Silence(line, math.inf, rule) for rule, line in opened.items()]


def unknown(page: LintPage) -> Iterator[tuple[int, str]]:
    """(line of the text, message) of each comment that names no rule or no action."""
    for directive in page.references.directives:
        if directive.action not in ("disable", "enable", "disable-next-line"):
            actions = "anvil-lint-disable, anvil-lint-enable or anvil-lint-disable-next-line"
            yield directive.line, f"'anvil-lint-{directive.action}' does nothing. Use {actions}."
            continue
        for name in directive.rules:
            if name not in RULE_NAMES:
                yield directive.line, f"There is no rule {name!r}. {closest(name)}"


def closest(name: str) -> str:
    """A sentence for a rule that does not exist: the closest name, or all names."""
    near = closest_names(name, RULE_NAMES, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"The rules: {', '.join(RULE_NAMES)}."
