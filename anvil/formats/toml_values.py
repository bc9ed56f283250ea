"""TOML: the reader that this Python has, with a limit on its time, and texts as TOML writes them."""

from __future__ import annotations

import json
import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TOMLDecodeError = tomllib.TOMLDecodeError
MAX_STEPS, MAX_STEPS_PER_CHARACTER = 1_000_000, 20
"""Steps that the reader may take for keys, ``a.b.c``: it compares each part with all before it, and with those of the
header, ``[a.b.c]``. A hundred million steps take a second. A lockfile takes two for a character."""


def loads(text: str) -> dict[str, Any]:
    """The table of a text. Raises :class:`TOMLDecodeError`, a ValueError, for whatever is wrong with it."""
    limit = MAX_STEPS + MAX_STEPS_PER_CHARACTER * len(text)
    steps = header = 0
    for line in text.split("\n"):
        dots = line.count(".")
        if line.lstrip().startswith("["):
            header = max(header, dots)  # where it ends is not known here: a string may hold what looks like a header
        steps += (dots + 1) * (dots + header + 1)
    if steps > limit:
        raise TOMLDecodeError("it has keys of too many parts")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise TOMLDecodeError("it is nested too deeply") from None
    except TOMLDecodeError:
        raise
    except ValueError:
        raise TOMLDecodeError("it has a number of too many digits") from None


def quoted(text: str) -> str:
    """A string of one line. JSON's escapes are valid in TOML; JSON does not escape DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
