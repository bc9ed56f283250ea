"""Bytes to text."""

from __future__ import annotations

import re

from anvil.errors import DocumentRejected
from anvil.formats import encodings

_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_DECLARATION = re.compile(rb"""(?:charset|encoding)\s*=\s*["']?([A-Za-z0-9._-]{2,30})""")
DECLARATION_BYTES = 2048
"""The start of a page, which can declare its encoding."""


def decoded(data: bytes, use_declared: bool = True) -> str:
    """Text in UTF-8, in UTF-16 with a byte order mark, in the encoding that it declares as HTML and XML do (with
    ``use_declared``), or in Windows-1252, in which every byte is a character.

    Raises :class:`DocumentRejected` for data that is not text.
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
        declared = _DECLARATION.search(data, 0, DECLARATION_BYTES) if use_declared else None
        return data.decode(_text_encoding(declared[1].decode()) if declared else "cp1252", "replace")


def _text_encoding(name: str) -> str:
    """A declared encoding's Python name; Windows-1252 for an unknown one, and for Latin-1 as in browsers."""
    codec = encodings.known(name)
    return codec if codec and codec not in ("iso8859-1", "ascii", "utf-8") else "cp1252"
