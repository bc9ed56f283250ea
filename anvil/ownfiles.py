"""Files that Anvil writes into somebody's repository: through no link, and over nothing but a regular file.

A checkout may hold links at the names that Anvil is known to write to, planted by its author. What they lead to is not
the repository's, so they are refused, or taken away where the file is made anew anyway.
"""

from __future__ import annotations

import os
import stat
from pathlib import Path

from anvil.errors import BuildError

_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
# A pipe that takes a file's place after it was looked at must not block for ever. Windows has none of these flags.
_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def check(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The state of the regular file at ``path``, None when nothing is there.

    Raises :class:`BuildError` for a link, a folder, a pipe or a device.
    """
    try:
        found = os.lstat(path)
    except FileNotFoundError:
        return None
    _regular(path, found)
    return found


def opener(path: str, flags: int) -> int:
    """For :func:`open`, whatever the mode: the file itself or nothing. Raises as :func:`check` does."""
    check(path)
    descriptor = os.open(path, flags | _FLAGS, 0o666)
    try:
        _regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def clear(path: Path) -> None:
    """Take away what stands where a file is made anew; of a link the link, not what it leads to.

    Raises :class:`BuildError`.
    """
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"{path} is in the way ({error.strerror}). Remove it, and try again.") from error


def replace(path: Path, text: str) -> None:
    """Write a file whole or not at all; what stood there, also a link, is replaced. Raises also :class:`OSError`."""
    fresh = path.with_name(path.name + ".new")
    clear(fresh)
    with open(fresh, "x", encoding="utf-8", newline="\n", opener=opener) as file:
        file.write(text)
    os.replace(fresh, path)


def check_folder(folder: Path) -> None:
    """Refuse a folder that leads out of the one it lies in: :class:`BuildError`."""
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(folder.parent)):
        raise BuildError(
            f"{folder} is a link that leads out of {folder.parent}. Remove it, or name another place with --index."
        )


def _regular(path: str | os.PathLike[str], found: os.stat_result) -> None:
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "a device")
        raise BuildError(
            f"{os.fspath(path)} is {kind}, and Anvil writes to regular files only. Remove it, and try again."
        )
