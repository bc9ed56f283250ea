"""The record of the Markdown files that Anvil wrote into a site. They are made of the pages, so none is read as one.

``anvil/markdown.json`` has the SHA-256 (hex) of each file, and the HTML files that got a link to one. While files are
written, ``unfinished`` has those that may be there already, so that a build that was interrupted is continued.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path

from anvil.sites import page_addresses
from anvil.system import safe_read

RECORD = "anvil/markdown.json"
"""Its path in the site."""
FORMAT = 1
MAX_BYTES = 200_000_000
"""Of a record: about a million files."""


@dataclass(frozen=True)
class Record:
    """Path -> SHA-256 of the files; those that were about to be written; the HTML files that link to one."""

    files: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    linked: tuple[str, ...] = ()

    def is_own(self, path: str, digest: str) -> bool:
        """Whether a file with these bytes was written by Anvil."""
        return digest in (self.files.get(path), self.unfinished.get(path))

    def text(self) -> str:
        """The content of the file. The same record gives the same text."""
        values = {"format": FORMAT, "files": dict(sorted(self.files.items())), "linked": sorted(self.linked)}
        if self.unfinished:
            values["unfinished"] = dict(sorted(self.unfinished.items()))
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def read(site: Path) -> Record:
    """The record of a site; an empty one where there is none, or one in another form."""
    try:
        values = json.loads(safe_read.text(site / RECORD, MAX_BYTES))
        if values["format"] != FORMAT:
            return Record()
        files, unfinished = _digests(values["files"]), _digests(values.get("unfinished", {}))
        return Record(files, unfinished, tuple(path for path in values["linked"] if _is_file(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record()


def paths(site: Path) -> frozenset[str]:
    """All files in the record of a site. It is read again when it changed."""
    try:
        state = os.stat(site / RECORD)
    except OSError:
        return frozenset()
    return _paths(site, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(1)
def _paths(site: Path, *signature: int) -> frozenset[str]:
    record = read(site)
    return frozenset(record.files) | frozenset(record.unfinished)


def _digests(values: Mapping[str, object]) -> dict[str, str]:
    return {path: str(digest) for path, digest in values.items() if _is_file(path) and _is_name(path)}


def _is_file(path: str) -> bool:
    """Whether a path of a record, which a site may bring, is one of a file in the site."""
    return page_addresses.is_plain(path) and not {"", "."} & set(path.split("/"))


def _is_name(path: str) -> bool:
    """Whether Anvil writes files of this name: no others are replaced or removed."""
    return path.endswith(".md") or path in ("llms.txt", "llms-full.txt")
