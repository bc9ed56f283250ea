"""Addresses of a site's pages: from the path of a file to what a browser shows, and back.

An address within the site has no slash in front: ``guide/``, ``guide.html``, ``""`` for the start page. Its key is the
same for all ways to write it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from urllib.parse import SplitResult, quote, unquote, urljoin, urlsplit

from anvil.formats.version_names import VERSION_NAMES, VERSION_NUMBER

_OTHER_FOLDER = frozenset("\\:\0")
_SLASHES = re.compile(r"//+")
_SAFE = "/:@!$&'()*+,;=~-._"
UNRELEASED = "current"
"""What Docusaurus calls the version of the documentation folder."""
_IN_LANGUAGE = re.compile(r"[a-z]{2,3}(?:[-_][A-Za-z]{2,4})?/[^/]*")


def key(address: str) -> str:
    """What all spellings of an address have in common: ``guide/``, ``guide/index.html``, ``guide.html`` and ``guide``
    are ``guide``."""
    path = (unquote(address) if "%" in address else address).strip("/")
    for ending in (".html", ".htm"):
        path = path.removesuffix(ending)
    return "" if path == "index" else path.removesuffix("/index")


def is_plain(path: str) -> bool:
    """Whether a path of a file in a site names that file on all systems. On Windows a backslash or a colon leads to
    another folder, a drive, a network share or a second stream of a file."""
    return _OTHER_FOLDER.isdisjoint(path) and ".." not in path.split("/")


def is_file(path: str) -> bool:
    """Whether a path, which somebody else may have written down, is that of a file in a folder."""
    return is_plain(path) and not {"", "."} & set(path.split("/"))


def of_file(path: str) -> str:
    """The address of an HTML file: ``guide/index.html`` -> ``guide/``."""
    folder, _, name = path.rpartition("/")
    address = (f"{folder}/" if folder else "") if name in ("index.html", "index.htm") else path
    return quote(address, safe=_SAFE)


def split(address: str) -> SplitResult:
    """The parts of an address that a site names; all are empty for one that cannot be read, such as ``http://[``.
    Slashes in a row, as where both the address of the site and the path have one, are one."""
    try:
        parts = urlsplit(address)
        return parts._replace(path=_SLASHES.sub("/", parts.path))
    except ValueError:
        return urlsplit("")


def joined(base: str, address: str) -> str | None:
    """The absolute address, None for one that cannot be read."""
    try:
        return urljoin(base, address) if base else None
    except ValueError:
        return None


def base_of(addresses: Mapping[str, str]) -> str:
    """Where the site is, by the addresses that its pages name: path of a file -> address. ``""`` when they disagree.

    The result ends in a slash.
    """
    bases: Counter[str] = Counter()
    for path, address in addresses.items():
        parts = split(address)
        own, named = key(path), key(parts.path)
        if parts.scheme not in ("http", "https") or not parts.netloc:
            continue
        if named == own or named.endswith(f"/{own}") or not own:
            above = named[: len(named) - len(own)].strip("/") if own else named
            bases[f"{parts.scheme}://{parts.netloc}/{above}{'/' if above else ''}"] += 1
    if not bases:
        return ""
    base, count = min(bases.items(), key=lambda item: (-item[1], item[0]))
    return base if count * 2 > sum(bases.values()) else ""


def within(address: str, base: str) -> str | None:
    """An absolute address as one within the site at ``base``; None for one elsewhere."""
    parts, root = split(address), split(base)
    if parts.netloc and parts.netloc.removeprefix("www.") != root.netloc.removeprefix("www."):
        return None
    path = parts.path or "/"
    if not path.startswith(root.path):
        return "" if f"{path}/" == root.path else None
    return path[len(root.path) :]


def common_prefix(paths: Iterable[str], files: Mapping[str, str]) -> str:
    """The folder of the site in the paths of its sitemap: the one with which most of them are pages. ``files``: keys of
    all pages. Of ``/docs/guide/`` and the file ``guide/index.html`` it is ``docs/``."""
    prefixes: Counter[str] = Counter()
    for path in paths:
        parts = key(path).split("/")
        for depth in range(min(len(parts), 4) + 1):
            if "/".join(parts[depth:]) in files:
                prefixes["".join(f"{part}/" for part in parts[:depth])] += 1
    return most_common(prefixes) or ""


def most_common(prefixes: Counter[str]) -> str | None:
    """The most common prefix, of several the shortest; None without any."""
    return min(prefixes, key=lambda prefix: (-prefixes[prefix], len(prefix), prefix), default=None)


def version_folders(
    paths: Iterable[str], declared: Collection[str] = (), components: Collection[str] = ()
) -> frozenset[str]:
    """The folders in which a site has its versions, such as ``1.2/`` and ``latest/``, as its pages show them: ``1.2``,
    or ``de/1.2``.

    A folder is one if it has a page of its own and its name is a version's number. Names such as ``latest`` are one
    next to a number. ``declared``: those that a file of the site names. ``components``: folders of the site, each with
    versions of its own, as Antora writes them; there a number without a dot is one, too.
    """
    starts = {path.rpartition("/")[0] for path in paths if path.endswith(("/index.html", "/index.htm"))}
    candidates = {
        folder
        for folder in starts
        if "/" not in folder or _IN_LANGUAGE.fullmatch(folder) or folder.rpartition("/")[0] in components
    }
    numbered = {
        folder
        for folder in candidates
        if VERSION_NUMBER.fullmatch(_folder_name(folder))
        or folder in declared
        or (_folder_name(folder).isdecimal() and folder.rpartition("/")[0] in components)
    }
    above = {folder.rpartition("/")[0] for folder in numbered}
    named = {f for f in candidates if _folder_name(f).lower() in VERSION_NAMES and f.rpartition("/")[0] in above}
    return frozenset(numbered | named)


def stated_folders(versions: Mapping[str, str]) -> frozenset[str]:
    """The folders of the versions that pages themselves name, if these are several: path of a page -> its version.

    Docusaurus names them. Pages of the newest release are in no folder, and those of the next one, which it calls
    ``current``, are in ``next`` or the like.
    """
    folders: set[str] = set()
    for path, version in versions.items() if len(set(versions.values())) > 1 else ():
        names = VERSION_NAMES if version == UNRELEASED else {version}
        above = path.split("/")[:-1]
        depth = next((depth for depth, name in enumerate(above, 1) if name in names), 0)
        folders.add("/".join(above[:depth]))
    return frozenset(folders - {""})


def version_of(path: str, folders: Collection[str]) -> str | None:
    """The version that a page is of; None for one in no version's folder."""
    above = path.split("/")[:-1] if folders else []
    found = ("/".join(above[:depth]) for depth in range(1, len(above) + 1))
    return next((_folder_name(folder) for folder in found if folder in folders), None)


def _folder_name(folder: str) -> str:
    return folder.rpartition("/")[2]
