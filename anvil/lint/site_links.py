"""The links and ids of a built site's pages, for lookups."""

from __future__ import annotations

from anvil.lint.built import BuiltSite
from anvil.sites import html_tree, reader_processes
from anvil.sites.links import read_links
from anvil.sites.site_folder import SiteFolder
from anvil.system import safe_read

MAX_PAGE_BYTES = 50_000_000
"""Bytes of the largest page of a site whose links are read."""


def built_site(site: SiteFolder) -> BuiltSite:
    """The site in a folder, read as its index reads it. Raises :class:`SourceError` for a folder without pages."""
    site.scan()
    pages = {}
    for path in site.html_files():
        try:
            pages[path] = read_links(safe_read.data(site.folder / path, MAX_PAGE_BYTES), site.rules())
        except (OSError, html_tree.Unreadable):
            continue  # it counts as missing from the site that the index has
    sources = {page: file for page, file in site.html_of_pages().items() if file in pages}

    def has_file(address: str) -> bool:
        return reader_processes.is_inside(site.folder, address)

    return BuiltSite(pages, sources, has_file, site.base_path())
