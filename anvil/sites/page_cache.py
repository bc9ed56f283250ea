"""What is known of the HTML files of a site: by the hash of their bytes, so that an unchanged one is not parsed again,
and that hash by the signature of the file, so that it is not even read.

The cache is one file in the user's cache folder. It can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anvil._version import __version__
from anvil.documents.file_changes import Signature
from anvil.settings.schema import SiteOptions
from anvil.sites.page_choice import READER_VERSION, PageFacts
from anvil.system import safe_files, user_folders


def cache_folder(site: Path) -> Path:
    """The folder for what is kept about a site between builds, since generators empty the site's own."""
    name = hashlib.sha256(str(site.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return user_folders.cache() / "sites" / name


class KnownFile(NamedTuple):
    """An HTML file that was read: its signature, the digest of it and of its Markdown, and the path and signature of
    this Markdown if the site has it.
    ``linked``: the paths at which the Markdown may be that the page links to, also if the site has none of them yet."""

    signature: Signature
    digest: str
    linked: tuple[str, ...]
    twin: str | None
    twin_signature: Signature | None


class SiteCache:
    """Hash of a file's bytes -> what it says about its page; path of a file -> its hash. ``options`` that read other
    content start an empty cache."""

    def __init__(self, file: Path, options: SiteOptions) -> None:
        self._file = file
        kept = [list(PageFacts._fields), list(KnownFile._fields)]
        self._head = [__version__, READER_VERSION, *kept, list(options.content), list(options.ignore)]
        self._known: dict[str, PageFacts] = {}
        self._used: dict[str, PageFacts] = {}
        self.files: dict[str, KnownFile] = {}
        """The files whose signature tells their content."""
        try:
            stored = json.loads(self._file.read_bytes())
            if stored["head"] == self._head:
                self._known = {digest: PageFacts.of_json(values) for digest, values in stored["pages"].items()}
                self.files = {path: _file(values) for path, values in stored["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            self._known, self.files = {}, {}  # missing, of another version, or damaged: the pages are read

    @property
    def is_empty(self) -> bool:
        return not self._known and not self._used

    def get(self, digest: str) -> PageFacts | None:
        """What is known of a file with these bytes."""
        facts = self._known.get(digest) or self._used.get(digest)
        if facts is not None:
            self._used[digest] = facts
        return facts

    def put(self, digest: str, facts: PageFacts) -> None:
        self._used[digest] = facts

    def save(self, files: Mapping[str, KnownFile]) -> None:
        """Write what was used since the last call and the signatures, if they differ. A folder that cannot be written
        has no cache."""
        is_same = self._used.keys() == self._known.keys() and files == self.files
        self._known, self._used, self.files = self._used, {}, dict(files)
        if is_same:
            return
        stored = {"head": self._head, "pages": dict(sorted(self._known.items())), "files": dict(sorted(files.items()))}
        text = json.dumps(stored, ensure_ascii=True, separators=(",", ":"))
        try:
            user_folders.make(self._file.parent)
            safe_files.write_file(self._file, text, replace=True, flush=False)  # what a crash takes is read again
        except OSError:
            return


def _file(values: list[Any]) -> KnownFile:
    signature, digest, linked, twin, twin_signature = values
    return KnownFile(tuple(signature), str(digest), tuple(linked), twin, twin_signature and tuple(twin_signature))
