"""What is known of the HTML files of a site: those with the same bytes are not parsed again, and those with the same
signature are not even read.

The cache is one file in the user's cache folder. It can be deleted at any time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from anvil._version import __version__
from anvil.documents.stat_cache import Signature
from anvil.settings.schema import SiteOptions
from anvil.sites.indexed_pages import READER_VERSION, PageFacts
from anvil.system import safe_files, user_folders


def cache_folder(site: Path) -> Path:
    """The folder for what is kept about a site between builds, since generators empty the site's own."""
    name = hashlib.sha256(str(site.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return user_folders.cache() / "sites" / name


class KnownFile(NamedTuple):
    """An HTML file that was read: its signature, None for one that does not tell its content; the digest of it and of
    its Markdown; and the path and signature of this Markdown if the site has it.
    ``linked``: the paths at which the Markdown may be that the page links to, also if the site has none of them yet.
    ``facts``: what it says about its page."""

    signature: Signature | None
    digest: str
    linked: tuple[str, ...]
    twin: str | None
    twin_signature: Signature | None
    facts: PageFacts


class SiteCache:
    """The files of a site as they were read last, by their paths. ``options`` that read other content start an empty
    cache."""

    def __init__(self, file: Path, options: SiteOptions) -> None:
        self._file = file
        fields = [list(KnownFile._fields), list(PageFacts._fields)]
        self._head = [__version__, READER_VERSION, *fields, list(options.content), list(options.ignore)]
        self.files: dict[str, KnownFile] = {}
        try:
            stored = json.loads(self._file.read_bytes())
            if stored["head"] == self._head:
                self.files = {path: _known_file(values) for path, values in stored["files"].items()}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return  # missing, of another version, or damaged: the pages are read

    def save(self, files: Mapping[str, KnownFile]) -> None:
        """Write the files if they differ. A folder that cannot be written has no cache."""
        if files == self.files:
            return
        self.files = dict(files)
        stored = {"head": self._head, "files": dict(sorted(files.items()))}
        text = json.dumps(stored, ensure_ascii=True, separators=(",", ":"))
        try:
            user_folders.make(self._file.parent)
            safe_files.write_file(self._file, text, replace=True, flush=False)  # what a crash takes is read again
        except OSError:
            return


def _known_file(values: list[Any]) -> KnownFile:
    signature, digest, linked, twin, twin_signature, facts = values
    signatures = [each and tuple(each) for each in (signature, twin_signature)]
    return KnownFile(signatures[0], digest, tuple(linked), twin, signatures[1], PageFacts.of_json(facts))
