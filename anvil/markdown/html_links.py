"""The link of an HTML page to its Markdown, in its head. Pure: bytes in, bytes out."""

from __future__ import annotations

import html
import posixpath
import re

from anvil.markdown.twins import Place, relative

_HEAD_END = re.compile(rb"</head\s*>", re.I)
_OTHER = re.compile(rb"<link\b[^>]{0,500}\btext/markdown\b", re.I)
_BASE = re.compile(rb"<base\s", re.I)
_OWN = re.compile(rb'<link rel="alternate" type="text/markdown" href="[^"<>]*" data-anvil>')


def target(place: Place, path: str) -> str:
    """Where a page's link to its Markdown leads, from the page's address."""
    return relative(path, posixpath.dirname(place.address))


def added(data: bytes, target: str) -> bytes | None:
    """A page with the link. None for one without an end of its head, with another link to Markdown, or with a
    ``<base>``, which gives links another start."""
    data = removed(data)
    end = _HEAD_END.search(data)
    if end is None or _OTHER.search(data) or _BASE.search(data, 0, end.start()):
        return None
    link = f'<link rel="alternate" type="text/markdown" href="{html.escape(target)}" data-anvil>'
    return data[: end.start()] + link.encode() + data[end.start() :]


def removed(data: bytes) -> bytes:
    """A page without the link."""
    return _OWN.sub(b"", data, count=1)
