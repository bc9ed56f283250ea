"""The source of a site generator's plugin: the pages of the site."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource, SourceWrapper
from anvil.documents.file_selection import refusal
from anvil.formats.data_formats import canonical
from anvil.values import UNKNOWN_TIME, Document, Scan, Skipped


def fingerprint(page: Document) -> str:
    """SHA-256 (hex) of the values from the generator."""
    values = [page.text, page.title, page.url, page.nav_path, page.metadata, page.headings]
    return hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()


class GeneratedSiteSource(SourceWrapper):
    """The pages of a site generator.

    Path, text, title, url, nav path, metadata and headings are those of ``pages``. The rest comes from ``tree``, the
    source folder. A page that is not in the tree (generated, ignored by git, a symlink) has no source file and is never
    stale. ``unread``: paths of pages that the generator did not build this time; an index keeps them. Texts over
    ``limit`` bytes are skipped.
    """

    name = "site"
    excluded_hashes: frozenset[str] = frozenset()

    def __init__(
        self, pages: Iterable[Document], tree: DocumentSource, *, unread: Collection[str] = (), limit: int = 5_000_000
    ) -> None:
        super().__init__(tree)
        self._unread = frozenset(unread)
        self._times: dict[str, str] = {}
        self._pages: dict[str, Document] = {}
        self._skipped: list[Skipped] = []
        blobs = self._files = tree.scan().entries
        for page in sorted(pages, key=lambda page: page.path):
            data = page.text.encode("utf-8", "surrogatepass")
            reason = refusal(data, limit)
            if reason:
                self._skipped.append(Skipped(page.path, reason))
                continue
            blob, included = document_source.parts(blobs.get(page.path, ""))
            self._pages[page.path] = replace(
                page, blob_id=blob, size=len(data), fingerprint=fingerprint(page) + included
            )
        self.excluded_hashes = self._without(frozenset())

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        entries = {path: document_source.identity(page.blob_id, page.fingerprint) for path, page in self._pages.items()}
        unread = {path: blob for path, blob in (indexed or {}).items() if path in self._unread}
        self.excluded_hashes = self._without(unread.keys())
        entries |= unread
        return Scan(dict(sorted(entries.items())), tuple(self._skipped))

    def _without(self, unread: Collection[str]) -> frozenset[str]:
        return frozenset(
            document_source.hash_path(path) for path in self._files if path not in self._pages and path not in unread
        )

    def read(self, path: str) -> Document | Skipped:
        if path not in self._pages:
            return Skipped(path, "not a page of the site")
        if path not in self._times:
            self.last_modified(tuple(self._pages), {}, None)
        return replace(self._pages[path], last_modified=self._times[path])

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """As in the tree. A page without a source file has the time of the newest page that has one."""
        with_file = [path for path in paths if path in self._files]
        times = super().last_modified(with_file, known, since)
        newest = max(times.values(), default=UNKNOWN_TIME)
        self._times |= {path: times.get(path, newest) for path in paths}
        return {path: self._times[path] for path in paths}
