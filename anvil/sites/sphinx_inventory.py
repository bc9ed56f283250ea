"""``objects.inv``, in which Sphinx lists the names of an API: second names of its sections."""

from __future__ import annotations

import re
import zlib

from anvil.sites import page_addresses

MAX_BYTES = 50_000_000
"""Bytes of an inventory that are read, once unpacked."""
_HEAD = re.compile(rb"# Sphinx inventory version 2\n(?:#[^\n]*\n){3}")
_ENTRY = re.compile(r"(?P<name>.+?) (?P<domain>[^\s:]+):\S+ -?\d+ (?P<page>[^\s#]*)#(?P<anchor>\S+) ")


def aliases(data: bytes) -> dict[str, dict[str, str]]:
    """Key of a page's address -> names of its API that are not their own anchor -> the anchor. For example
    ``requests.models.Request`` -> ``requests.Request``. Labels, terms and modules are left
    out. A file of another form has none.
    """
    head = _HEAD.match(data)
    if head is None:
        return {}
    try:
        text = zlib.decompressobj().decompress(data[head.end() :], MAX_BYTES).decode("utf-8", "replace")
    except zlib.error:
        return {}
    names: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None or entry["domain"] == "std" or "." not in entry["anchor"]:
            continue  # an anchor without a dot, such as "id3", may be that of several pages
        if not entry["anchor"].endswith(("$", entry["name"])):
            names.setdefault(page_addresses.key(entry["page"]), {})[entry["name"]] = entry["anchor"]
    return names
