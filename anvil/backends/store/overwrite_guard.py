"""Whose file lies where an index is to be written: one that is evidently not Anvil's is never replaced.

A damaged index, and what Git LFS leaves in the place of one, may be replaced: both are made again from the documents.
"""

from __future__ import annotations

from pathlib import Path

from anvil.backends.store import connection
from anvil.errors import BuildError

_ID = slice(68, 72)
"""Where SQLite's header holds the application id, big-endian."""


def ensure_overwritable(path: Path) -> None:
    """Raise :class:`BuildError` when what stands at ``path`` would be lost if an index took its place."""
    try:
        foreign = is_foreign(path)
    except OSError as error:
        raise BuildError(
            f"{path} cannot be read ({error.strerror}), and is not replaced unseen. Name another file, or move it away."
        ) from error
    if foreign:
        raise BuildError(f"{path} is not an Anvil index, and would be lost. Name another file, or move it away.")


def is_foreign(path: Path) -> bool:
    """Whether something stands at ``path`` that neither is, nor was, nor stands for an index; an empty file is nothing.

    Raises :class:`OSError` when it cannot be told.
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
        from anvil.backends.git import tracked_file

        return not tracked_file.is_pointer(path)
    return len(header) >= _ID.stop and int.from_bytes(header[_ID], "big") != connection.APPLICATION_ID
