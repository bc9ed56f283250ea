"""Documents and the site that is made of them: what a generator hands over, and how it looks from beside the files.

A site shows other pages than its folder holds: some are made without a file, some files are left out, and the text is
what plugins made of it. :func:`handed_over` is the source that builds the index of such a site; :func:`beside` is the
folder as a server sees it whose index was built so.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from anvil import freshness
from anvil.models import Changes, Document, Scan, Skipped
from anvil.selecting import refusal
from anvil.sources import DocumentSource, Over
from anvil.store import checking
from anvil.store.asked import Asked
from anvil.store.digest import canonical
from anvil.store.stored import StoredDocument

NEVER = "1970-01-01T00:00:00Z"
SITE_KEYS = ("edit_url",)
"""Metadata that a site adds and a page's file does not change."""


def handed_over(
    pages: Iterable[Document], tree: DocumentSource, *, unread: Collection[str] = (), limit: int = 5_000_000
) -> DocumentSource:
    """The pages of a site, as its generator hands them over.

    Of ``pages`` the path, text, title, url, nav path, metadata and headings are read; the rest comes from ``tree``, the
    folder they were made from. A page that the tree does not hold (generated, ignored by git, a symlink) is one
    without a source file: it is never stale. ``unread`` are paths of pages that were not made anew this time: an index
    keeps them as they stand. Texts over ``limit`` bytes are skipped.
    """
    return _Handed(pages, tree, frozenset(unread), limit)


def beside(tree: DocumentSource, index: Asked) -> DocumentSource:
    """``tree`` as the site sees it that ``index`` was made with; ``tree`` itself when there is no such site.

    Files that the site leaves out are none of its documents. A page that changed is read from its file, keeps its
    address on the site, and says ``rendered: false`` in its metadata.
    """
    left_out = index.left_out()
    return tree if left_out is None else _Beside(tree, left_out, index)


def differences(index: Path, tree: DocumentSource) -> Changes:
    """How the documents of ``tree`` differ from the index file, as the site sees them that it was made with.

    Raises :class:`ArtifactError` when it cannot be used, or holds a shard of the documents only.
    """
    with checking.open_checked(index) as reader:
        checking.refuse_part(reader, index)
        return compared(reader, tree)


def compared(index: Asked, tree: DocumentSource) -> Changes:
    """How the documents of ``tree`` differ from an index that is open."""
    indexed = index.blob_ids()
    return freshness.compare(indexed, beside(tree, index).scan(indexed).entries)


def fingerprint(page: Document) -> str:
    """SHA-256 (hex) over all that a generator says of a page."""
    said = [page.text, page.title, page.url, page.nav_path, page.metadata, page.headings]
    return hashlib.sha256(canonical(said).encode("utf-8", "surrogatepass")).hexdigest()


def concealed(path: str) -> str:
    """A path as an index names a file that its site leaves out: a draft's name is not published, but recognised."""
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:20]


class _Handed(Over):
    """See :func:`handed_over`."""

    name = "site"
    left_out: frozenset[str] = frozenset()

    def __init__(self, pages: Iterable[Document], tree: DocumentSource, unread: frozenset[str], limit: int) -> None:
        super().__init__(tree)
        self._unread = unread
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
            blob = blobs.get(page.path, "")
            self._pages[page.path] = replace(page, blob_id=blob, size=len(data), fingerprint=fingerprint(page))
        self.left_out = self._without(frozenset())

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        entries = {path: freshness.identity(page.blob_id, page.fingerprint) for path, page in self._pages.items()}
        kept = {path: blob for path, blob in (indexed or {}).items() if path in self._unread}
        self.left_out = self._without(kept.keys())
        entries |= kept
        return Scan(dict(sorted(entries.items())), tuple(self._skipped))

    def _without(self, kept: Collection[str]) -> frozenset[str]:
        return frozenset(concealed(path) for path in self._files if path not in self._pages and path not in kept)

    def read(self, path: str) -> Document | Skipped:
        if path not in self._pages:
            return Skipped(path, "not a page of the site")
        if path not in self._times:
            self.last_modified(tuple(self._pages), {}, None)
        return replace(self._pages[path], last_modified=self._times[path])

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """Of a page without a source file: the time of the newest that has one, for it has none of its own."""
        with_file = [path for path in paths if path in self._files]
        times = super().last_modified(with_file, known, since)
        newest = max(times.values(), default=NEVER)
        self._times |= {path: times.get(path, newest) for path in paths}
        return {path: self._times[path] for path in paths}


class _Beside(Over):
    """See :func:`beside`."""

    left_out: frozenset[str] = frozenset()

    def __init__(self, tree: DocumentSource, left_out: frozenset[str], index: Asked) -> None:
        super().__init__(tree)
        self.left_out = left_out
        self._index = index
        self._seen: Scan | None = None
        self._shown = Scan({})

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """What the tree holds but for what is left out; the same object as long as the tree gives the same."""
        seen = super().scan(indexed)
        if seen is not self._seen:
            entries = {path: blob for path, blob in seen.entries.items() if concealed(path) not in self.left_out}
            self._seen, self._shown = seen, Scan(entries, seen.skipped)
        return self._shown

    def read(self, path: str) -> Document | Skipped:
        document = super().read(path)
        if isinstance(document, Skipped):
            return document
        page = self._index.document(path)
        if page is None:
            return replace(document, metadata={"rendered": False})
        title = None if page.title == _own_title(page, self._index) else page.title  # the site's own stays
        kept = {key: page.metadata[key] for key in SITE_KEYS if key in page.metadata}
        return replace(
            document, title=title, url=page.url, nav_path=page.nav_path, metadata={**kept, "rendered": False}
        )


def _own_title(page: StoredDocument, index: Asked) -> str | None:
    """The title that a page's file gives it: that of the front matter, else its first h1."""
    h1 = (section.title for section in index.sections(page.id) if section.heading_level == 1)
    return page.metadata.get("title") or next(h1, None)
