"""A page for the rules: its headings, anchors, references, and the lines of its file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from anvil.settings.schema import Slugs
from anvil.text.headings import UNTITLED, attributes
from anvil.text.includes import source_line
from anvil.text.references import References
from anvil.text.slugs import Anchors

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
