"""What is known of the HTML files of a site, by the hash of their bytes, so that an unchanged one is not parsed again.

The cache is one file in the user's cache folder. It can be deleted at any time.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from pathlib import Path
from types import NoneType
from typing import Any

from anvil._version import __version__
from anvil.backends import safe_write, user_dirs
from anvil.core.config.schema import SiteOptions
from anvil.core.site.pages import PageFacts

READER_VERSION = 1
"""Raised when a page of HTML gives other Markdown or other facts."""
_KINDS = tuple(
    (str, NoneType) if str(field.type).endswith("None") else {"str": str, "int": int, "bool": bool}[str(field.type)]
    for field in dataclasses.fields(PageFacts)
)


def cache_folder(site: Path) -> Path:
    """The folder for what is kept about a site between builds, since generators empty the site's own."""
    name = hashlib.sha256(str(site.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return user_dirs.cache() / "sites" / name


class SiteCache:
    """Hash of a file's bytes -> what it says about its page. ``rules`` that read other content start an empty cache."""

    def __init__(self, file: Path, options: SiteOptions) -> None:
        self._file = file
        self._head = [__version__, READER_VERSION, list(options.content), list(options.ignore)]
        self._known: dict[str, PageFacts] = {}
        self._used: dict[str, PageFacts] = {}
        self._load()

    def _load(self) -> None:
        try:
            stored = json.loads(self._file.read_bytes())
            if stored["head"] == self._head:
                self._known = {digest: _facts(values) for digest, values in stored["pages"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._known = {}  # missing, of another version, or damaged: the pages are read

    def get(self, digest: str) -> PageFacts | None:
        """What is known of a file with these bytes."""
        facts = self._known.get(digest)
        if facts is not None:
            self._used[digest] = facts
        return facts

    def put(self, digest: str, facts: PageFacts) -> None:
        """Remember a file."""
        self._used[digest] = facts

    def save(self) -> None:
        """Write what was used since the last call, if it differs. A folder that cannot be written has no cache."""
        if self._used.keys() == self._known.keys():
            self._used = {}
            return
        self._known, self._used = self._used, {}
        pages = {digest: dataclasses.astuple(facts) for digest, facts in sorted(self._known.items())}
        text = json.dumps({"head": self._head, "pages": pages}, ensure_ascii=True, separators=(",", ":"))
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            safe_write.write_file(self._file, text, replace=True, flush=False)
        except OSError:
            return


def _facts(values: list[Any]) -> PageFacts:
    if len(values) != len(_KINDS) or not all(map(isinstance, values, _KINDS)):
        raise ValueError("not what this version writes")
    return PageFacts(*values)
