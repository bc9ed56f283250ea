"""The line of an index in ``.gitattributes``, and the drivers that it names as git's configuration defines them.

A line is added and taken out without touching any other.
"""

from __future__ import annotations

import re
import shlex

FILE = ".gitattributes"
DRIVERS = "-text diff=anvil merge=anvil"
"""``-text``: no line ending in an index is ever converted, whatever the other rules say."""


def line(path: str) -> str:
    """The line that gives the index at ``path`` (POSIX, relative to the repository's root) its drivers."""
    spelled = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"/{re.sub(r'[ ]', '[[:space:]]', spelled)} {DRIVERS}"


def with_line(text: str, wanted: str) -> str:
    """``text`` with the line, added at the end, where it outweighs those before; the line endings are the file's."""
    if wanted in text.splitlines():
        return text
    ending = "\r\n" if "\r\n" in text else "\n"
    return text + (ending if text and not text.endswith("\n") else "") + wanted + ending


def without_line(text: str, wanted: str) -> str:
    """``text`` without the line."""
    return "".join(each for each in text.splitlines(keepends=True) if each.rstrip("\r\n") != wanted)


def drivers(program: str, kept_by_lfs: str | None = None) -> dict[str, str]:
    """Git's configuration of the two drivers; ``program`` as the shell is to read it. Git hands the driver of a file
    that LFS keeps its pointers, so there LFS's own is put around ours; it knows nothing of the file's path."""
    merge = f"{program.replace('%', '%%')} git merge-driver %O %A %B"
    if kept_by_lfs is None:
        merge += " %P"
    else:
        inner = f"{merge} {shlex.quote(kept_by_lfs.replace('%', '%%'))} && cp %A %D"
        merge = (
            "git lfs merge-driver --ancestor %O --current %A --other %B --marker-size %L --output %A --program "
            + shlex.quote(inner).replace("%", "%%")
        )
    return {
        "diff.anvil.textconv": f"{program} git textconv",
        "diff.anvil.cachetextconv": "true",
        "diff.anvil.binary": "true",
        "diff.anvil.xfuncname": "^[^ ].*",
        "merge.anvil.name": "the index of the merged pages",
        "merge.anvil.driver": merge,
    }
