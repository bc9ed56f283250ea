"""Text of documents made safe to quote: one line, without what is invisible, cut between words."""

from __future__ import annotations

import posixpath

from anvil.formats.lazy_pattern import lazy_pattern

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
