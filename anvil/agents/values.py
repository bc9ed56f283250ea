"""The pointer to the documentation in the files that agents read: what was made, written and found."""

from __future__ import annotations

import hashlib
from typing import Literal, NamedTuple

Outcome = Literal["written", "unchanged", "removed"]


class DocumentationPointer(NamedTuple):
    """``text``: the block without its markers. ``pages``: how many there are. ``skipped``: files that are no pages, and
    why."""

    text: str
    pages: int
    skipped: tuple[str, ...] = ()


class Skill(NamedTuple):
    """An Agent Skill of one file. ``text``: its ``SKILL.md``, whose front matter has ``name`` and ``description``."""

    name: str
    description: str
    text: str

    @property
    def data(self) -> bytes:
        """The bytes of ``SKILL.md``."""
        return self.text.encode()

    @property
    def digest(self) -> str:
        """The digest of the bytes, as the formats for skills over MCP and on sites have it."""
        return f"sha256:{hashlib.sha256(self.data).hexdigest()}"


class FileReport(NamedTuple):
    """What became of a file. ``path``: from the root."""

    path: str
    outcome: Outcome


class AgentsReport(NamedTuple):
    """What became of the files below ``root``, and why some were left as they are. ``documentation``: the pointer, None
    where none was made."""

    root: str
    files: tuple[FileReport, ...]
    problems: tuple[str, ...]
    documentation: DocumentationPointer | None

    def changed(self) -> tuple[str, ...]:
        """The files that were written or removed."""
        return tuple(file.path for file in self.files if file.outcome != "unchanged")


class StaleFiles(NamedTuple):
    """``stale``: files whose pointer is not that of the documents. ``problems``: why a file cannot be compared.
    ``compared``: how many have a pointer."""

    stale: tuple[str, ...]
    problems: tuple[str, ...]
    compared: int

    def __bool__(self) -> bool:
        return bool(self.stale or self.problems)

    def messages(self, command: str) -> tuple[str, ...]:
        """A sentence for the files that are out of date, with the command that writes them, and one for each that
        cannot be compared."""
        names = ", ".join(self.stale)
        stale = f"The pointer for agents is out of date in {names}. Run: {command}"
        return (*([stale] if names else []), *self.problems)
