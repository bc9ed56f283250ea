"""TOML: the reader that this Python has, and texts as TOML writes them."""

from __future__ import annotations

import json
import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

loads = tomllib.loads
TOMLDecodeError = tomllib.TOMLDecodeError


def quoted(text: str) -> str:
    """A string of one line. JSON's escapes are valid in TOML; JSON does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
