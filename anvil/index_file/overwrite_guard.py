"""The check before an index is written over a file: a file that is not Anvil's is never replaced.

A damaged index, one of the older Anvil, and the pointer file of Git LFS can be replaced. The documents give the same
index again.
"""

from __future__ import annotations

from pathlib import Path

from anvil.errors import BuildError
from anvil.index_file import connection

_ID = slice(68, 72)
"""Bytes of the application id in SQLite's header, big-endian."""


def ensure_overwritable(path: Path) -> None:
    """Raise :class:`BuildError` when the file at ``path`` is not Anvil's and would be lost."""
    try:
        foreign = is_foreign(path)
    except OSError as error:
        raise BuildError(
            f"{path} cannot be read ({error.strerror}), so it is not replaced. Name another file, or move it away."
        ) from error
    if foreign:
        raise BuildError(f"{path} is not an Anvil index, and would be lost. Name another file, or move it away.")


def is_foreign(path: Path) -> bool:
    """Whether ``path`` is something else than an index, damaged or of the older Anvil too, a Git LFS pointer or an
    empty file.

    Raises :class:`OSError` when the file cannot be read.
    """
    try:
        if path.exists() and not path.is_file():
            return True
        with path.open("rb") as file:
            header = file.read(100)
    except (FileNotFoundError, NotADirectoryError):
        return False
    if not header:
        return False
    if not header.startswith(connection.MAGIC):
        from anvil.git import tracked_file

        return not tracked_file.is_pointer(path)
    if len(header) < _ID.stop or _is_ours(header):
        return False
    from anvil.index_file import older_anvil

    return not older_anvil.has_written(path)


def is_index(path: Path) -> bool:
    """Whether a regular file begins as an index does."""
    try:
        if path.is_symlink() or not path.is_file():
            return False
        with path.open("rb") as file:
            header = file.read(100)
    except OSError:
        return False
    return header.startswith(connection.MAGIC) and _is_ours(header)


def _is_ours(header: bytes) -> bool:
    return int.from_bytes(header[_ID], "big") == connection.APPLICATION_ID
