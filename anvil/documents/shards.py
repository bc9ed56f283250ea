"""Shards of a documentation: the share of the pages that one of several parallel builds reads."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass

from anvil.documents.document_source import DocumentSource, SourceWrapper
from anvil.errors import ConfigError
from anvil.values import Scan

MAX_SHARDS = 999
"""Shards that one index can be built in."""
NOT_WHOLE = "{} is shard {} of an index, not a whole one. Join all with 'anvil merge'."
"""A message, with the path of the index and its shard."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Shard ``number`` of ``count``, from 1; written ``3/8``: which of several parallel builds a page belongs to.

    A page's shard is a hash of its path, so new or removed pages do not move others, and each shard reuses the vectors
    of its last build. The shards have about the same number of pages.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``3/8``; :class:`ConfigError` for anything else."""
        match = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
        if match is None or int(match[1]) > int(match[2]):
            raise ConfigError(
                f"{text!r} is not a shard. Name one as NUMBER/COUNT, such as 3/8. COUNT is {MAX_SHARDS} at most."
            )
        return cls(int(match[1]), int(match[2]))

    def holds(self, path: str) -> bool:
        """Whether a page (POSIX, relative to the documents' folder) belongs to this shard."""
        # Not Python's hash(), which is another in each process: all builds must divide the pages alike.
        digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


class ShardSource(SourceWrapper):
    """The documents of a source that belong to a shard."""

    def __init__(self, source: DocumentSource, shard: Shard) -> None:
        super().__init__(source)
        self._shard = shard
        self.name = f"{source.name}, shard {shard}"

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        whole = self._source.scan(indexed)
        holds = self._shard.holds
        return Scan(
            {path: blob for path, blob in whole.entries.items() if holds(path)},
            tuple(item for item in whole.skipped if holds(item.path)),
        )
