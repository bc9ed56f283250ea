"""Sitemaps: the addresses that a site names as its pages. A sitemap is untrusted, so nothing of it is expanded."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

from anvil.sites import page_addresses

MAX_BYTES = 50_000_000
"""Bytes of a sitemap, as https://www.sitemaps.org has it. The rest is not read."""
MAX_ADDRESSES = 1_000_000
"""Addresses that all sitemaps of a folder may name together."""
MAX_ADDRESS_CHARS = 4_000
_LOCATION = re.compile(
    rb"<loc>(?:\s{0,200}<!\[CDATA\[([^<>]{0,4200}?)\]\]>\s{0,200}|([^<>]{0,4200}))</loc>", re.I
)  # every repetition has a limit: a file of blanks takes no longer than another


def locations(data: bytes) -> list[str]:
    """The addresses in a sitemap, or in an index of sitemaps."""
    found: list[str] = []
    for match in _LOCATION.finditer(data[:MAX_BYTES]):
        address = html.unescape((match[1] or match[2] or b"").decode("utf-8", "replace")).strip()
        if address and len(address) <= MAX_ADDRESS_CHARS:
            found.append(address)
        if len(found) == MAX_ADDRESSES:
            break
    return found


def listed(named: list[str], files: Mapping[str, str]) -> dict[str, str]:
    """Path of a file -> its address in a sitemap. ``files``: key of an address -> path of the file."""
    named = [address for address in named if page_addresses.split(address).geturl()]  # can be read
    paths = [page_addresses.split(address).path for address in named]
    prefix = page_addresses.common_prefix(paths[:2000], files)
    pages: dict[str, str] = {}
    for address, path in zip(named, paths, strict=True):
        own = page_addresses.key(path)
        inside = own if not prefix else own[len(prefix) :] if f"{own}/".startswith(prefix) else None
        if inside is not None and inside in files:
            pages.setdefault(files[inside], address)
    return pages
