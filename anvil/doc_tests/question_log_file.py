"""The log of the questions that a server was asked: JSON lines in a file on this machine.

Several servers may write one log: each entry is one write to the end of the file. A log that is full is renamed, and
the one before it is removed, so two files of the largest size remain at most.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anvil.errors import AnvilError
from anvil.git.objects import blob_id
from anvil.index_file import lock
from anvil.index_file.publish import keep_out_of_git
from anvil.settings.schema import INDEX_FOLDER
from anvil.system import safe_write, user_folders

FILE_NAME = "questions.jsonl"
MAX_ENTRY_BYTES = 20_000
"""A longer line is not read: it is none of ours."""


class QuestionLog:
    """The log at ``path``. ``max_bytes``: from this size on it is renamed to ``.old``."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path = path
        self._max_bytes = max_bytes

    @classmethod
    def of(cls, docs_root: Path | None, name: str, max_bytes: int) -> QuestionLog:
        """The log of a documentation folder, in its ``.anvil``; without a folder, in the user's data folder, by the
        ``name`` of the index."""
        if docs_root is not None:
            return cls(docs_root / INDEX_FOLDER / FILE_NAME, max_bytes)
        return cls(user_folders.data() / f"questions-{blob_id(name.encode())[:12]}.jsonl", max_bytes)

    def append(self, entry: Mapping[str, Any]) -> None:
        """Add an entry. Raises :class:`OSError` when it cannot be written, as on a full disk, and :class:`AnvilError`
        when the file is a link."""
        if self.path.parent.name == INDEX_FOLDER:
            safe_write.ensure_inside_parent(self.path.parent)
            keep_out_of_git(self.path.parent)
        else:
            self.path.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(entry, ensure_ascii=False, separators=(",", ":")) + "\n"
        with open(self.path, "ab", buffering=0, opener=_private) as file:
            file.write(line.encode("utf-8", "replace"))
            full = os.fstat(file.fileno()).st_size > self._max_bytes
        if full:
            self._rename()

    def _rename(self) -> None:
        try:
            with lock.exclusive(self.path, 0):  # another server may be at it
                if self.path.stat().st_size > self._max_bytes:
                    safe_write.rename(self.path, self._old)
        except (AnvilError, OSError):
            return  # the next entry tries again

    @property
    def _old(self) -> Path:
        return self.path.with_suffix(".old.jsonl")

    def read(self) -> Iterator[dict[str, Any]]:
        """The entries, oldest first. Lines that are none, such as one that a full disk cut, are left out."""
        for path in (self._old, self.path):
            try:
                safe_write.regular_file(path)
                with open(path, "rb") as file:
                    while line := file.readline(MAX_ENTRY_BYTES + 1):
                        entry = _parsed(line)
                        if entry is not None:
                            yield entry
            except FileNotFoundError:
                continue


def _parsed(line: bytes) -> dict[str, Any] | None:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return entry if isinstance(entry, dict) else None


def _private(path: str, flags: int) -> int:
    """An ``opener`` for a file that only this user can read: questions may hold what masking does not know."""
    descriptor = safe_write.opener(path, flags)
    if os.name != "nt" and os.fstat(descriptor).st_mode & 0o077:
        os.fchmod(descriptor, 0o600)
    return descriptor
