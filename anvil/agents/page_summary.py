"""The summary of a page in one line of plain text."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from anvil.text.headings import plain
from anvil.text.references import References

MAX_PARAGRAPH_CHARS = 800
"""Characters of a paragraph in which its first sentence is searched."""
MAX_PARAGRAPHS = 40
"""Paragraphs of a page that are read."""
MIN_WORDS = 4
"""Words of a paragraph that can be a summary; "Overview" is none."""

_PARAGRAPH = re.compile(r"\S[^\r\n]*(?:(?:\r\n?|\n)(?![ \t]*(?:[\r\n]|\Z))[^\r\n]+)*")
_HEADING = re.compile(
    r"[ \t]{0,3}#{1,6}(?:[ \t][^\r\n]*)?(?:\r\n?|\n|\Z)|[^\r\n]*(?:\r\n?|\n)[ \t]{0,3}(?:=+|-+)[ \t]*(?:\r\n?|\n|\Z)"
)
_NO_PROSE = re.compile(
    r"[ \t]*(?:[<>|:{}=!\\%$@]|[*+-][ \t\r\n]|[*_-]{3}|`{3}|\[[^\[\]]*\]:|\d+[.)]\s|(?:import|export)\s|\.\.\s|/{2,}|#)"
)
"""How lists, tables, quotes, tags, admonitions, images, links alone and code of a page begin."""
_QUOTE_MARK = re.compile(r"^[ \t]{0,3}>[ \t]?", re.MULTILINE)
_TAGLINE = re.compile(r"[ \t]{0,3}>[ \t]*(?![A-Z]\w*:)[^\W_]")
"""How a block quote begins that describes its page; not one that begins with ``[!NOTE]``, ``**Note**`` or ``Note:``."""
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)|\{/\*.*?(?:\*/\}|\Z)|\{\{.*?\}\}|\{%.*?%\}|\{[:#.][^{}]*\}", re.DOTALL)
_LABEL = re.compile(r"\[([^\[\]]{1,200})\](?:\[[^\[\]]{0,200}\])?")
"""A link by a label, which is defined elsewhere on the page."""
_SENTENCE = re.compile(r".{20,}?[.!?\u3002\uff01\uff1f](?=\s|\Z|(?<=[\u3002\uff01\uff1f]))")


def first_sentence(references: References, metadata: Mapping[str, Any]) -> str:
    """The summary of a page: ``description`` of its front matter, else the first sentence of its first paragraph;
    ``""`` where it has none. A block quote right below the title counts as a paragraph."""
    description = metadata.get("description")
    if isinstance(description, str) and description.strip():
        return description
    begins = True
    for number, paragraph in enumerate(_PARAGRAPH.finditer(references.prose)):
        if number == MAX_PARAGRAPHS:
            break
        end = paragraph.end()
        start = references.starts[references.line(paragraph.start()) - 1]  # code at the start is blank in the prose
        while (heading := _HEADING.match(references.prose, start, end)) and heading.end() > start:
            start = heading.end()
        if start >= end:
            continue
        tagline = begins and _TAGLINE.match(references.prose, start)
        begins = False
        if not tagline and _NO_PROSE.match(references.prose, start):
            continue
        source = references.text[start : min(end, start + MAX_PARAGRAPH_CHARS)]
        if tagline:
            source = _QUOTE_MARK.sub("", source)
        text = _LABEL.sub(r"\1", plain(_HIDDEN.sub(" ", source)))
        if len(text.split()) >= MIN_WORDS or len(text) > 40:
            sentence = _SENTENCE.match(text)
            return sentence[0] if sentence else text
    return ""
