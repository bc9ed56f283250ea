"""The line for an index in ``.gitattributes``, and git's configuration for the diff and merge drivers that it names."""

from __future__ import annotations

import re
import shlex

FILE = ".gitattributes"
DRIVERS = "-text diff=anvil merge=anvil"
"""``-text``: git never converts line endings in an index."""


def line(path: str) -> str:
    """The line for the index at ``path`` (POSIX, relative to the repository's root)."""
    return f"{_pattern(path)} {DRIVERS}"


def agents_line(path: str) -> str:
    """The line for a file that has the pointer of ``anvil agents``."""
    return f"{_pattern(path)} merge=anvil-agents"


def _pattern(path: str) -> str:
    escaped = re.sub(r"([\\*?\[\]])", r"\\\1", path)
    return f"/{re.sub(r'[ ]', '[[:space:]]', escaped)}"


def with_line(text: str, added: str) -> str:
    """``text`` with the line at the end, where it overrides earlier lines. The file's line ending is used."""
    if added in text.splitlines():
        return text
    ending = "\r\n" if "\r\n" in text else "\n"
    return text + (ending if text and not text.endswith("\n") else "") + added + ending


def without_line(text: str, removed: str) -> str:
    """``text`` without the line."""
    return "".join(line for line in text.splitlines(keepends=True) if line.rstrip("\r\n") != removed)


def drivers(program: str, kept_by_lfs: str | None = None) -> dict[str, str]:
    """Git's configuration of the drivers. ``program``: a shell command.

    ``kept_by_lfs``: the path of an index in Git LFS. Its merge driver gets pointer files, so LFS's own driver calls
    ours with the files. It does not pass the path.
    """
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
        "merge.anvil-agents.name": "the text around the pointer to the documentation",
        "merge.anvil-agents.driver": f"{program.replace('%', '%%')} git merge-agents %O %A %B %P",
    }
