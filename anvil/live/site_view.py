"""A documentation folder as its site shows it, and its comparison with an index that was built with the site.

The pages of a site differ from the files in its folder: plugins make pages without a file, exclude files, and change
text. :func:`view_of` is the folder as documents for a server whose index was built with the site.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import replace

from anvil import registry
from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource, SourceWrapper
from anvil.index_file.reader import IndexReader
from anvil.values import Changes, Document, Scan, Skipped

SITE_KEYS = ("aliases", "edit_url", "language", "version")
"""Metadata that a site adds and a page's file does not change."""


def view_of(tree: DocumentSource, index: IndexReader) -> DocumentSource:
    """``tree`` as seen by the site with which ``index`` was built; ``tree`` itself for an index without a site.

    Files that the site excludes are not in it. A changed page is read from its file, keeps its address on the site, and
    has ``rendered: false`` in its metadata.
    """
    excluded_hashes = index.excluded_hashes()
    return tree if excluded_hashes is None else SiteView(tree, excluded_hashes, index)


def compared(index: IndexReader, tree: DocumentSource) -> Changes:
    """How the documents of ``tree`` differ from an index, without files that its site excludes."""
    if tree.excluded_hashes is not None:  # it is a site itself: what the generator made counts too
        made = index.identities()
        return document_source.compare(made, tree.scan(made).entries)
    indexed = index.blob_ids()
    return document_source.compare(indexed, view_of(tree, index).scan(indexed).entries)


class SiteView(SourceWrapper):
    """See :func:`view_of`."""

    excluded_hashes: frozenset[str] = frozenset()

    def __init__(self, tree: DocumentSource, excluded_hashes: frozenset[str], index: IndexReader) -> None:
        super().__init__(tree)
        self.excluded_hashes = excluded_hashes
        self._index = index
        self._whole: Scan | None = None
        self._shown = Scan({})

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        """The tree's scan without excluded files. It is the same object as long as the tree's scan is."""
        whole = super().scan(indexed)
        if whole is not self._whole:
            entries = {
                path: blob
                for path, blob in whole.entries.items()
                if document_source.hash_path(path) not in self.excluded_hashes
            }
            entries |= self._of_other_formats(whole.entries)
            self._whole, self._shown = whole, Scan(entries, whole.skipped)
        return self._shown

    def _of_other_formats(self, entries: Mapping[str, str]) -> dict[str, str]:
        """Sources in formats of which the tree lists no file. They are not compared, so they stay as they are."""
        other_formats = {posixpath.splitext(pattern)[1] for pattern in registry.part("site sources")}
        listed = {posixpath.splitext(path)[1] for path in entries}
        indexed = self._index.blob_ids().items()
        return {
            path: blob
            for path, blob in indexed
            if posixpath.splitext(path)[1] in other_formats - listed and path not in entries
        }

    def read(self, path: str) -> Document | Skipped:
        document = super().read(path)
        if isinstance(document, Skipped):
            return document
        page = self._index.document(path)
        if page is None:
            return replace(document, metadata={"rendered": False})
        # The title that its file gave it: of the front matter, else its first h1. Another one is the site's, and stays.
        h1 = (section.title for section in self._index.sections(page.id) if section.heading_level == 1)
        title = None if page.title == (page.metadata.get("title") or next(h1, None)) else page.title
        metadata = {key: page.metadata[key] for key in SITE_KEYS if key in page.metadata}
        return replace(
            document, title=title, url=page.url, nav_path=page.nav_path, metadata={**metadata, "rendered": False}
        )
