"""A documentation folder as its site shows it, for comparing it with an index that was built with the site.

The pages of a site differ from the files in its folder: plugins make pages without a file, exclude files, and change
text. :func:`view_of` makes the files of the folder comparable with such an index.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource, SourceWrapper
from anvil.index_file.reader import IndexReader
from anvil.values import SITE_ENDINGS, Changes, Document, Scan, Skipped

SITE_KEYS = ("aliases", "edit_url", "language", "version")
"""Metadata that come from the site, and stay when a page is read from its file."""


def view_of(tree: DocumentSource, index: IndexReader) -> DocumentSource:
    """The documents of ``tree`` as the site of ``index`` shows them; ``tree`` itself for an index without a site.

    Files that the site excludes are left out. A changed page is read from its file. It keeps its address on the site,
    and has ``rendered: false`` in its metadata.
    """
    excluded_hashes = index.excluded_hashes()
    return tree if excluded_hashes is None else SiteView(tree, excluded_hashes, index)


def compared(index: IndexReader, tree: DocumentSource) -> Changes:
    """The differences between an index and the documents of ``tree``, without files that the site excludes."""
    if tree.excluded_hashes is not None:  # a built site: the generator's values are compared, too
        identities = index.identities()
        return document_source.compare(identities, tree.scan(identities).entries)
    indexed = index.blob_ids()
    return document_source.compare(indexed, view_of(tree, index).scan(indexed).entries)


class SiteView(SourceWrapper):
    """The documents of a folder as its site shows them, see :func:`view_of`."""

    excluded_hashes: frozenset[str] = frozenset()

    def __init__(self, tree: DocumentSource, excluded_hashes: frozenset[str], index: IndexReader) -> None:
        super().__init__(tree)
        self.excluded_hashes = excluded_hashes
        self._index = index
        self._tree_scan: Scan | None = None
        self._site_scan = Scan({})

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """The tree's scan without excluded files; the same object as long as the tree gives the same scan."""
        tree_scan = super().scan(indexed)
        if tree_scan is not self._tree_scan:
            entries = {
                path: blob
                for path, blob in tree_scan.entries.items()
                if document_source.hash_path(path) not in self.excluded_hashes
            }
            entries |= self._pages_of_other_formats(tree_scan.entries)
            self._tree_scan, self._site_scan = tree_scan, Scan(entries, tree_scan.skipped)
        return self._site_scan

    def _pages_of_other_formats(self, entries: Mapping[str, str]) -> dict[str, str]:
        """Indexed pages whose format is not listed by the tree, such as reStructuredText. They count as unchanged."""
        other_formats = {*SITE_ENDINGS} - {posixpath.splitext(path)[1] for path in entries}
        indexed = self._index.blob_ids().items()
        return {path: blob for path, blob in indexed if posixpath.splitext(path)[1] in other_formats}

    def read(self, path: str) -> Document | Skipped:
        document = super().read(path)
        if isinstance(document, Skipped):
            return document
        page = self._index.document(path)
        if page is None:
            return replace(document, metadata={"rendered": False})
        # A title from the file is read again: that of the front matter, else the first h1. Any other title is from the
        # site, and stays.
        h1 = (section.title for section in self._index.sections(page.id) if section.heading_level == 1)
        title = None if page.title == (page.metadata.get("title") or next(h1, None)) else page.title
        metadata = {key: page.metadata[key] for key in SITE_KEYS if key in page.metadata}
        return replace(
            document, title=title, url=page.url, nav_path=page.nav_path, metadata={**metadata, "rendered": False}
        )
