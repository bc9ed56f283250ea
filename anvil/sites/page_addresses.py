"""Addresses of a site's pages: from file paths to addresses and back, the base of a site, and folders of versions.

An address within the site has no slash in front: ``guide/``, ``guide.html``, ``""`` for the start page. All spellings
of an address have the same key.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from anvil.formats.version_names import VERSION_NAMES
from anvil.text.generator_urls import SAFE

_OTHER_FOLDER = frozenset("\\:\0")
_SLASHES = re.compile(r"//+")
UNRELEASED = "current"
"""Docusaurus' name for the version of the documentation folder, which is not released yet."""


def key(address: str) -> str:
    """The key of an address: ``guide`` for ``guide/``, ``guide/index.html``, ``guide.html`` and ``guide``."""
    path = (unquote(address) if "%" in address else address).strip("/")
    for ending in (".html", ".htm"):
        path = path.removesuffix(ending)
    return "" if path == "index" else path.removesuffix("/index")


def is_plain(path: str) -> bool:
    """Whether a path of a file in a site names the same file on all systems. On Windows a backslash or a colon leads to
    another folder, a drive, a network share or a second stream of a file."""
    return _OTHER_FOLDER.isdisjoint(path) and ".." not in path.split("/")


def is_file(path: str) -> bool:
    """Whether a path from an untrusted source is the path of a file inside a folder."""
    return is_plain(path) and not {"", "."} & set(path.split("/"))


def of_file(path: str) -> str:
    """The address of an HTML file: ``guide/index.html`` -> ``guide/``."""
    folder, _, name = path.rpartition("/")
    address = (f"{folder}/" if folder else "") if name in ("index.html", "index.htm") else path
    return quote(address, safe=SAFE)


def split(address: str) -> SplitResult:
    """The parts of an address; all are empty if it is not valid, such as ``http://[``. Several slashes in the path are
    one, because generators join ``https://site/`` and ``/path``."""
    try:
        parts = urlsplit(address)
        return parts._replace(path=_SLASHES.sub("/", parts.path))
    except ValueError:
        return urlsplit("")


def joined(base: str, address: str) -> str | None:
    """The absolute address; None without a base or if the address is not valid."""
    try:
        return urljoin(base, address) if base else None
    except ValueError:
        return None


def base_of(addresses: Mapping[str, str]) -> str:
    """The address of a site, which ends in a slash. It is the one that more than half of the pages imply, else ``""``.
    ``addresses``: path of a file -> the address that its page names."""
    bases: Counter[str] = Counter()
    for path, address in addresses.items():
        parts = split(address)
        own_key, address_key = key(path), key(parts.path)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            continue
        if address_key == own_key or address_key.endswith(f"/{own_key}") or not own_key:
            folder = address_key[: len(address_key) - len(own_key)].strip("/") if own_key else address_key
            bases[f"{parts.scheme}://{parts.netloc}/{folder}{'/' if folder else ''}"] += 1
    if not bases:
        return ""
    base, count = min(bases.items(), key=lambda item: (-item[1], item[0]))
    return base if count * 2 > sum(bases.values()) else ""


def within(address: str, base: str) -> str | None:
    """The address within the site at ``base`` of an absolute address; None if it is elsewhere."""
    parts, root = split(address), split(base)
    if parts.netloc and parts.netloc.removeprefix("www.") != root.netloc.removeprefix("www."):
        return None
    path = parts.path or "/"
    if not path.startswith(root.path):
        return "" if f"{path}/" == root.path else None
    return path[len(root.path) :]


def common_prefix(paths: Iterable[str], files: Mapping[str, str]) -> str:
    """The folder at the begin of paths of addresses that makes most of them pages of the site, such as ``docs/`` for
    ``/docs/guide/`` and the file ``guide/index.html``. ``files``: by key, all pages."""
    prefixes: Counter[str] = Counter()
    for path in paths:
        parts = key(path).split("/")
        for depth in range(min(len(parts), 4) + 1):
            if "/".join(parts[depth:]) in files:
                prefixes["".join(f"{part}/" for part in parts[:depth])] += 1
    return most_common(prefixes) or ""


def most_common(prefixes: Counter[str]) -> str | None:
    """The most common prefix, and of several the shortest; None if there is none."""
    return min(prefixes, key=lambda prefix: (-prefixes[prefix], len(prefix), prefix), default=None)


def stated_folders(versions: Mapping[str, str]) -> frozenset[str]:
    """The version folders by the versions that pages of Docusaurus name. ``versions``: path of a page -> its version.

    Empty if all pages name the same version. Pages of the newest release are in no folder, and those of
    :data:`UNRELEASED` are in ``next`` or the like.
    """
    folders: set[str] = set()
    for path, version in versions.items() if len(set(versions.values())) > 1 else ():
        names = VERSION_NAMES if version == UNRELEASED else {version}
        parents = path.split("/")[:-1]
        depth = next((depth for depth, name in enumerate(parents, 1) if name in names), 0)
        folders.add("/".join(parents[:depth]))
    return frozenset(folders - {""})
