"""Words of a page's content, and of Markdown, for comparing the two."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Container

from anvil.sites import html_tree
from anvil.sites.html_tree import Element
from anvil.sites.page_content import Content, is_note_reference
from anvil.text.visible_text import APART

_WORD = re.compile(r"[^\W_]+")
# Marks of Markdown whose letters and numbers are no words of the page: languages of code, numbers of lists and notes,
# kinds of admonitions, targets of links.
_FENCE = re.compile(r"(?:(?:[-*+]|\d+\.)\s+)*(`{3,})")
_MARKER = re.compile(r"^[ >]*(?:(?:-|\d{1,9}\.) +)*(?:\[![A-Z]+\]|\[\^[^\]]+\]:|\d{1,9}\. |-+$|(?:- )*\[[x ]\] )?")
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(.+?)(?<!`)\1(?!`)")
_EMPHASIS = re.compile(r"(?<!\\)(\*\*|~~|\*)(?=\S)(.*?\S)\1")
_PLACEHOLDER = "\ufdd0"
"""For a code span, whose marks are text. No character of Unicode."""
_LINK = re.compile(r"(?<!\\)(!?)\[((?:\\.|[^\[\]\\])*)\]\([^()\s]*\)")
_TARGET = re.compile(r"\]\([^()\s]*\)")
EDGES = APART | {"caption", "summary", "hgroup", "body", "legend", "button", "label"}
"""Elements that separate words."""


def words(text: str) -> list[str]:
    """The words of a text, folded."""
    return _WORD.findall(text.casefold())


def spaced_text(root: Element, skipped: Container[int] = frozenset()) -> str:
    """The text under an element, with the texts of images, and a space where an element separates words."""
    pieces: list[str] = []
    for node, begins in html_tree.walk(root, skipped):
        if node.is_text_node:
            pieces.append(node.text_content or "")
        elif node.is_element_node:
            tag = node.tag
            if tag in EDGES or (tag == "a" and is_note_reference(node)):
                pieces.append(" ")
            elif begins and tag == "math":
                pieces.append(
                    node.attributes.get("alttext") or "" if html_tree.first(node, "annotation") is None else ""
                )
            if begins and tag == "img":
                pieces.append(f" {node.attributes.get('alt') or ''} ")
    return "".join(pieces)


def of_content(content: Content) -> list[str]:
    """All words of a page's content."""
    return [word for root in content.roots for word in words(spaced_text(root, content.skipped))]


def of_markdown(text: str) -> list[str]:
    """The words that readers of Markdown see: without the targets of links, the languages of code, and the marks of
    footnotes and admonitions. Escaped characters are text."""
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        bare = line.lstrip(" >")
        marks = _FENCE.match(bare)
        if fence:
            if bare.rstrip() == fence:
                fence = ""
            else:
                lines.append(line)
        elif marks:
            fence = marks[1]
        else:
            lines.append(_without_marks(_MARKER.sub("", line)))
    return words("\n".join(lines))


MAX_DIFFERENT_SHARE = 0.02
"""The share of words in which two texts that say the same may differ."""


def say_the_same(left: str, right: str) -> bool:
    """Whether two pieces of Markdown have the same words, nearly."""
    first, second = Counter(of_markdown(left)), Counter(of_markdown(right))
    different = (first - second) + (second - first)
    return different.total() <= MAX_DIFFERENT_SHARE * (first.total() + second.total()) / 2


def _without_marks(line: str) -> str:
    """A line without the marks of code, emphasis and links. They do not separate words: "`int`s" and "[int](a.md)s" are
    one. Images do."""
    if not any(mark in line for mark in ("`", "*", "~", "](")):
        return line
    spans = [span[2] for span in _CODE_SPAN.finditer(line)]
    bare = _CODE_SPAN.sub(_PLACEHOLDER, line)
    for _ in range(2):  # the text of a link may be an image
        bare = _LINK.sub(lambda match: f" {match[2]} " if match[1] else match[2], bare)
    bare = _TARGET.sub("]", bare)
    while (unmarked := _EMPHASIS.sub(r"\2", bare)) != bare:
        bare = unmarked
    first, *others = bare.split(_PLACEHOLDER)
    # not strict: a link's target that had a code span in it is gone with it
    return first + "".join(code + text for code, text in zip(spans, others, strict=False))
