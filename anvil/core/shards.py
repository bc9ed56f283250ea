"""A stable share of the pages: which of several builds, side by side, each page belongs to.

A page's shard follows from its path alone, by a hash, so that pages that come and go move no others: what a shard's
last build embedded is there for its next one. The shares are even in number of pages, as evenly as chance deals.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from anvil.errors import ConfigError

MAX_SHARDS = 999
"""Shards that one index can be built in."""


@dataclass(frozen=True, slots=True)
class Shard:
    """Number ``number`` of ``count``, from 1; written ``3/8``."""

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """``3/8``; :class:`ConfigError` for anything else."""
        found = re.fullmatch(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})", text)
        if found is None or int(found[1]) > int(found[2]):
            raise ConfigError(
                f"{text!r} is not a shard. Name one as NUMBER/COUNT, such as 3/8. COUNT is {MAX_SHARDS} at most."
            )
        return cls(int(found[1]), int(found[2]))

    def holds(self, path: str) -> bool:
        """Whether a page (POSIX, relative to the documents' folder) belongs to this shard."""
        digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"
