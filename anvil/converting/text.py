"""Bytes to text."""

from __future__ import annotations

import re

from anvil import charsets
from anvil.errors import DocumentRejected

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DECLARED = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9._-]{2,30})""")
_WHERE = 2048
"""Bytes at the beginning of a page in which it may say its encoding."""


def decoded(data: bytes, own: bool = True) -> str:
    """Text as it was meant: UTF-8, UTF-16 with its mark, else what it says of itself as HTML and XML do (``own``), else
    Windows-1252, of which every byte is a character.

    Raises :class:`DocumentRejected` for what is no text.
    """
    if data.startswith(_UTF16):
        try:
            return data.decode("utf-16")
        except UnicodeDecodeError:
            raise DocumentRejected("It begins like UTF-16 but is not. Save it as UTF-8.") from None
    if (at := data.find(b"\0")) >= 0:
        raise DocumentRejected(f"It is no text: there is a NUL byte at offset {at:,}.")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        said = _DECLARED.search(data, 0, _WHERE) if own else None
        return data.decode(_known(said[1].decode()) if said else "cp1252", "replace")


def _known(name: str) -> str:
    """An encoding of text by its name; browsers take Latin-1 for Windows-1252."""
    found = charsets.known(name)
    return found if found and found not in ("iso8859-1", "ascii", "utf-8") else "cp1252"
