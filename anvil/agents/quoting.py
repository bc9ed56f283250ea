"""Text of documents made safe to quote: one line, without what is invisible, cut between words."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from typing import Any

from anvil.formats.lazy_pattern import lazy_pattern
from anvil.text.headings import plain
from anvil.text.references import References

MAX_QUOTED_CHARS = 2000
"""Characters of a text that is quoted. A quote shows a tenth of them at most."""
_UNSEEN = lazy_pattern(
    "[\0-\x08\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff"
    "\ud800-\uf8ff\U000e0000-\U0010ffff]"
)
"""Invisible characters, and characters that change the order of others."""
_COMMENT_MARK = lazy_pattern(r"<!-+|-+-!?>")
_FENCE_MARK = lazy_pattern(r"`{3,}|~{3,}")


def is_index(path: str) -> bool:
    """Whether a page is that of its folder, by its name."""
    return posixpath.splitext(posixpath.basename(path))[0].lower() in ("index", "readme", "_index")


def quoted(text: str) -> tuple[str, bool]:
    """``text`` as one line that can be quoted in a fence, and whether anything but white space was removed.

    Invisible characters, marks of HTML comments and of fences are removed. Only the first ``MAX_QUOTED_CHARS`` count.
    """
    text = text[:MAX_QUOTED_CHARS]
    line = " ".join(_UNSEEN.sub("", text).split())
    bare = _FENCE_MARK.sub("'''", _COMMENT_MARK.sub(" ", line))
    return " ".join(bare.split()), bare != line or _UNSEEN.search(text) is not None


def cut(text: str, chars: int) -> str:
    """``text``, cut between words to at most ``chars`` characters."""
    if len(text) <= chars:
        return text
    head = text[: chars - 1]
    space = head.rfind(" ")
    return head[: space if space > chars // 2 else len(head)].rstrip(" ,;:.") + "…"


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
