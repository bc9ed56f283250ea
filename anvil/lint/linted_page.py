"""A page as the linter's rules see it: headings, anchors, links, lines of its file, and comments that silence rules."""

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
    """A heading that begins a section. ``line``: its line in the page's text. ``title``: its plain text."""

    line: int
    level: int
    title: str


@dataclass
class LintPage:
    """A page of the documentation.

    ``references``: the links, fences, ids and so on of its text. Their lines are lines of the text, which begins at
    line ``first_line`` of the file. ``headings``: the headings that begin a section. ``inserted``: (line of the file,
    number of lines of included files that follow it), in order. ``included``: the included files, from the repository's
    root. ``missing_includes``: (line of the file, path, candidates from the root). ``stored_anchors``: anchors that the
    index has from the published page.
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

    @property
    def is_part(self) -> bool:
        """Whether Quarto, Docusaurus and docsify show it inside of other pages, such as ``_sidebar.md``."""
        return re.search(r"(?:^|/)_(?!index\.)[^/]*$", self.path) is not None

    def source_line(self, line: int) -> int | None:
        """The line of the file for a line of the text; None for a line of an included file."""
        line += self.first_line - 1
        source = source_line(line, self.inserted)
        # included lines have the number of the line that includes them
        return None if source == source_line(line - 1, self.inserted) else source

    def anchors(self, style: Slugs) -> dict[str, int]:
        """Anchor -> line of its heading; 0 for an anchor that is not of a heading."""
        lines_by_anchor = self._anchors.get(style)
        if lines_by_anchor is None:
            lines_by_anchor = self._anchors[style] = dict.fromkeys(self.references.ids | self.stored_anchors, 0)
            headings = self.all_headings()
            slugs = Anchors(style, {own_id for _, _, own_id in headings if own_id})
            for line, title, own_id in headings:
                lines_by_anchor[own_id or slugs.claim(title)] = line
        return lines_by_anchor

    def all_headings(self) -> list[tuple[int, str, str]]:
        """(line, plain text, own id or ``""``) of every heading in order, also of those in lists and quotes."""
        rows = [(line, "" if title == UNTITLED else title, self.own_id(line)) for line, _, title in self.headings]
        lines = {line for line, _, _ in rows}
        nested = [(line, title, own_id) for line, _, title, own_id in self.references.headings if line not in lines]
        return sorted(rows + nested) if nested else rows

    def own_id(self, line: int) -> str:
        """The id that the heading at a line sets, such as ``{#id}``; else ``""``."""
        source = self.references.line_text(line).rstrip()
        return attributes(_OPENING_MARKS.sub("", source, count=1))[1] if "}" in source[-12:] or ":id=" in source else ""

    def end(self, index: int) -> int:
        """The last line of the text under the heading ``index``, up to the next heading."""
        if index + 1 < len(self.headings):
            return self.headings[index + 1].line - 1
        return len(self.references.starts)


class Silence(NamedTuple):
    """A range of lines of a file, both inclusive, in which a rule reports nothing. ``last``: infinite for the rest."""

    first: int
    last: float
    rule: str


def silences(page: LintPage) -> list[Silence]:
    """The ranges in which comments of a page silence rules."""
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


def invalid_directives(page: LintPage) -> Iterator[tuple[int, str]]:
    """(line of the text, message) for each comment to the linter whose rule or action does not exist."""
    for directive in page.references.directives:
        if directive.action not in ("disable", "enable", "disable-next-line"):
            actions = "anvil-lint-disable, anvil-lint-enable or anvil-lint-disable-next-line"
            yield directive.line, f"'anvil-lint-{directive.action}' does nothing. Use {actions}."
            continue
        for name in directive.rules:
            if name not in RULE_NAMES:
                yield directive.line, f"There is no rule {name!r}. {closest(name)}"


def closest(name: str) -> str:
    """A sentence with the rule whose name is closest, or with all names."""
    near = closest_names(name, RULE_NAMES, cutoff=0.5)
    return f"Did you mean {near[0]!r}?" if near else f"The rules: {', '.join(RULE_NAMES)}."
