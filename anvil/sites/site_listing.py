"""The files of a built site: HTML, sitemaps, inventories, Markdown that Anvil wrote, and the cache of page facts."""

from __future__ import annotations

import hashlib
import html
import json
import os
import re
import stat
import time
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from anvil._version import __version__
from anvil.documents.document_source import BAD_NAME
from anvil.documents.repository_files import Signature, is_stable, signature, written_back
from anvil.errors import SourceError
from anvil.formats.characters import is_plain_name, plain_name
from anvil.settings.schema import SITE_SEARCH, SiteOptions
from anvil.sites import page_addresses
from anvil.sites.site_pages import READER_VERSION, PageFacts
from anvil.system import safe_files
from anvil.values import Skipped

HTML_ENDINGS = (".html", ".htm", ".xhtml")
INVENTORY = "objects.inv"
_ABOUT_PAGES = re.compile(r"(?:.*/)?(?:sitemap[^/]*\.xml|objects\.inv|[^/]*\.md)|_sources/.*|versions\.json", re.S)
"""Files besides HTML that have information on pages."""


class KnownFile(NamedTuple):
    """An HTML file that was read before.

    ``signature``: None if an equal signature does not mean equal content. ``digest``: the SHA-256 (hex) of the file
    and its Markdown file, its twin. ``linked``: the paths that the twin may have by a link in the HTML, whether or not
    the site has such a file. ``twin``, ``twin_signature``: the twin that was read; None without one.
    """

    signature: Signature | None
    digest: str
    linked: tuple[str, ...]
    twin: str | None
    twin_signature: Signature | None
    facts: PageFacts


@dataclass(frozen=True)
class SiteListing:
    """The files of a site at one time.

    ``html``, ``others``: path -> signature. ``left_out``: files that are not read. ``young``: files that were changed
    so recently that they may change again without another signature. ``fresh``: these, and files that may still change
    through mapped memory without another signature.
    """

    html: dict[str, Signature]
    others: dict[str, Signature]
    left_out: tuple[Skipped, ...]
    young: frozenset[str]
    fresh: frozenset[str]

    def is_same(self, other: SiteListing | None) -> bool:
        """Whether both listings have the same files."""
        mine = self.html, self.others, self.left_out
        return other is not None and mine == (other.html, other.others, other.left_out)

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """HTML file -> the Markdown file with the same address, as sites with ``llms.txt`` have it: ``guide.md`` or
        ``guide.html.md`` for ``guide.html``, and ``guide.md`` or ``guide/index.md`` for ``guide/index.html``."""
        by_address: dict[str, list[str]] = {}
        for path in self.others:
            if path.endswith(".md"):
                by_address.setdefault(page_addresses.key(path.removesuffix(".md")), []).append(path)
        if not by_address:
            return {}
        twins = {}
        for path in self.html:
            candidates = by_address.get(page_addresses.key(path), ())
            beside = path.rpartition(".")[0] + ".md"
            if candidates:
                twins[path] = beside if beside in candidates else min(candidates)
        return twins

    def is_current(self, file: KnownFile, path: str) -> bool:
        """Whether the signatures of a file and its twin show that neither changed since it was read."""
        used = next((each for each in file.linked if each in self.others), self.twins.get(path))
        signature = None if used is None else self.others[used]
        return (file.signature, file.twin, file.twin_signature) == (self.html[path], used, signature) and (
            path not in self.young and used not in self.young
        )

    def lasting(self, files: Mapping[str, KnownFile]) -> dict[str, KnownFile]:
        """The files to keep in the cache. A fresh file is kept without its signature."""
        return {
            path: file._replace(signature=None) if path in self.fresh or file.twin in self.fresh else file
            for path, file in files.items()
        }


def list_site(folder: Path, max_page_bytes: int) -> SiteListing:
    """List the files of a site. Raises :class:`SourceError` if the folder has no HTML file."""
    pages: dict[str, Signature] = {}
    others: dict[str, Signature] = {}
    left_out: list[Skipped] = []
    young: set[str] = set()
    fresh: set[str] = set()
    began_ns = time.time_ns()  # before the first file is examined: a later change may have the same time stamp
    written_by_anvil = recorded_paths(folder)
    for path, entry in _files(folder):
        state = _state(path, entry, written_by_anvil, max_page_bytes)
        if isinstance(state, Skipped):
            left_out.append(state)
        elif state is not None:
            (pages if _is_html(path) else others)[path] = signature(state)
            if written_back(state) >= began_ns:
                fresh.add(path)
                if not is_stable(state, began_ns):
                    young.add(path)
    if not pages:
        raise SourceError(
            f"{folder} has no HTML page. Build the site first, and name the folder that the generator writes, "
            "such as site, build, public or _build/html."
        )
    return SiteListing(pages, others, tuple(left_out), frozenset(young), frozenset(fresh))


def _is_html(path: str) -> bool:
    return path.lower().endswith(HTML_ENDINGS)


def _state(
    path: str, entry: os.DirEntry[str], written_by_anvil: Collection[str], max_page_bytes: int
) -> os.stat_result | Skipped | None:
    """The state of a file to read, or the reason to leave it out; None for a file that is no concern of a reader."""
    if not is_plain_name(path):
        return Skipped(plain_name(path), BAD_NAME)
    if entry.is_symlink():
        return Skipped(path, "it is a link to another file or folder") if _is_html(path) or entry.is_dir() else None
    if path == SITE_SEARCH or not (_is_html(path) or (path not in written_by_anvil and _ABOUT_PAGES.fullmatch(path))):
        return None
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # it was deleted after its folder was read, which the next listing shows
    if not stat.S_ISREG(state.st_mode):
        return Skipped(path, "it is not a regular file") if _is_html(path) else None
    if _is_html(path) and state.st_size > max_page_bytes:
        return Skipped(path, f"it is larger than {max_page_bytes:,} bytes (source.max_file_bytes)")
    return state


def _files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """(path, entry) of the files and links under a folder, without those in folders whose name begins with a dot."""
    waiting = [(str(folder), "")]
    while waiting:
        real, above = waiting.pop()
        try:
            with os.scandir(real) as items:
                entries = list(items)
        except OSError:
            continue  # the folder was deleted
        for entry in entries:
            path = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    waiting.append((entry.path, f"{path}/"))
            else:
                yield path, entry


# --- files that were read before -------------------------------------------------------------------------------------


def cache_folder(site: Path) -> Path:
    """The user's cache folder for a site. It is not in the site, because generators empty that."""
    name = hashlib.sha256(str(site.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return safe_files.user_cache() / "sites" / name


class SiteCache:
    """A cache file with the facts about the HTML files of a site.

    A file with the same signature is not read again, and one with the same bytes is not parsed again. The cache can be
    deleted at any time. It is empty if it was written with other selectors in ``options``.
    """

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
            return  # missing or damaged: all pages are read

    def save(self, files: Mapping[str, KnownFile]) -> None:
        """Write the files if they changed. Without permission to write, there is no cache."""
        if files == self.files:
            return
        self.files = dict(files)
        stored = {"head": self._head, "files": dict(sorted(files.items()))}
        text = json.dumps(stored, ensure_ascii=True, separators=(",", ":"))
        try:
            safe_files.make_folder(self._file.parent)
            safe_files.write_file(self._file, text, replace=True, flush=False)  # after a crash, pages are read again
        except OSError:
            return


def _known_file(values: list[Any]) -> KnownFile:
    signature, digest, linked, twin, twin_signature, facts = values
    signatures = [each and tuple(each) for each in (signature, twin_signature)]
    return KnownFile(signatures[0], digest, tuple(linked), twin, signatures[1], PageFacts.of_json(facts))


# --- sitemaps and inventories ----------------------------------------------------------------------------------------

MAX_BYTES = 50_000_000
"""The largest sitemap by https://www.sitemaps.org. The rest of a larger one is not read."""
MAX_ADDRESSES = 1_000_000
"""Addresses that are read from a sitemap."""
MAX_ADDRESS_CHARS = 4_000
MAX_PREFIX_ADDRESSES = 2_000
"""Addresses of a sitemap from which the folder of the site is found."""
_LOCATION = re.compile(
    rb"<loc>(?:\s{0,200}<!\[CDATA\[([^<>]{0,4200}?)\]\]>\s{0,200}|([^<>]{0,4200}))</loc>", re.I
)  # each repetition is limited, or a file of blanks would take very long


def locations(data: bytes) -> list[str]:
    """The addresses in a sitemap or in an index of sitemaps."""
    addresses: list[str] = []
    for match in _LOCATION.finditer(data[:MAX_BYTES]):
        address = html.unescape((match[1] or match[2] or b"").decode("utf-8", "replace")).strip()
        if address and len(address) <= MAX_ADDRESS_CHARS:
            addresses.append(address)
        if len(addresses) == MAX_ADDRESSES:
            break
    return addresses


def file_addresses(addresses: list[str], files: Mapping[str, str]) -> dict[str, str]:
    """Path of a file -> its address in a sitemap. ``files``: key of an address -> path of the file."""
    valid = [address for address in addresses if page_addresses.split(address).geturl()]
    paths = [page_addresses.split(address).path for address in valid]
    prefix = page_addresses.common_prefix(paths[:MAX_PREFIX_ADDRESSES], files)
    pages: dict[str, str] = {}
    for address, path in zip(valid, paths, strict=True):
        key = page_addresses.key(path)
        inside = key if not prefix else key[len(prefix) :] if f"{key}/".startswith(prefix) else None
        if inside is not None and inside in files:
            pages.setdefault(files[inside], address)
    return pages


MAX_INVENTORY_BYTES = 50_000_000
"""Unpacked bytes of an inventory that are read."""
_HEAD = re.compile(rb"# Sphinx inventory version 2\n(?:#[^\n]*\n){3}")
# NAME DOMAIN:ROLE PRIORITY ADDRESS TITLE
_ENTRY = re.compile(r"(?P<name>.+?) (?P<domain>[^\s:]+):\S+ -?\d+ (?P<page>[^\s#]*)#(?P<anchor>\S+) ")


def aliases(data: bytes) -> dict[str, dict[str, str]]:
    """The second names in an inventory of Sphinx: key of a page's address -> name -> anchor.

    For example, ``requests.models.Request`` has the anchor ``requests.Request``. Labels and terms are left out, as are
    names that are their own anchor. A file in another format has none.
    """
    head = _HEAD.match(data)
    if head is None:
        return {}
    try:
        text = zlib.decompressobj().decompress(data[head.end() :], MAX_INVENTORY_BYTES).decode("utf-8", "replace")
    except zlib.error:
        return {}
    names: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        entry = _ENTRY.match(line)
        if entry is None or entry["domain"] == "std" or "." not in entry["anchor"]:
            continue  # an anchor without a dot, such as "id3", may be that of several pages
        if not entry["anchor"].endswith(("$", entry["name"])):  # "$" stands for the name
            names.setdefault(page_addresses.key(entry["page"]), {})[entry["name"]] = entry["anchor"]
    return names


# --- the Markdown that Anvil wrote ----------------------------------------------------------------------------------

RECORD = "anvil/markdown.json"
"""Its path in the site."""
RECORD_FORMAT = 1
MAX_RECORD_BYTES = 200_000_000
"""The largest record that is read: that of about a million files."""


@dataclass(frozen=True)
class Record:
    """The record of the Markdown files that Anvil wrote into a site. They are never read as pages.

    ``files``: path -> SHA-256 (hex). ``unfinished``: the same for files that a build is writing, which may exist or
    not. ``linked``: the HTML files with a link to their Markdown.
    """

    files: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    linked: tuple[str, ...] = ()

    def is_own(self, path: str, digest: str) -> bool:
        """Whether Anvil wrote the file with this digest at this path."""
        return digest in (self.files.get(path), self.unfinished.get(path))

    def text(self) -> str:
        """The content of the record's file. Equal records give equal text."""
        values = {"format": RECORD_FORMAT, "files": dict(sorted(self.files.items())), "linked": sorted(self.linked)}
        if self.unfinished:
            values["unfinished"] = dict(sorted(self.unfinished.items()))
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def read_record(site: Path) -> Record:
    """The record of a site. It is empty if the file is missing, damaged or in another format."""
    try:
        values = json.loads(safe_files.text(site / RECORD, MAX_RECORD_BYTES))
        if values["format"] != RECORD_FORMAT:
            return Record()
        files, unfinished = _digests(values["files"]), _digests(values.get("unfinished", {}))
        return Record(files, unfinished, tuple(path for path in values["linked"] if page_addresses.is_file(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record()


def recorded_paths(site: Path) -> frozenset[str]:
    """All paths in the record of a site. The record is read again if it changed."""
    try:
        state = os.stat(site / RECORD)
    except OSError:
        return frozenset()
    return _paths(site, state.st_mtime_ns, state.st_size, state.st_ino)


@lru_cache(1)
def _paths(site: Path, *signature: int) -> frozenset[str]:
    record = read_record(site)
    return frozenset(record.files) | frozenset(record.unfinished)


def _digests(values: Mapping[str, object]) -> dict[str, str]:
    """Path -> digest for the names that Anvil writes. No other file is replaced or removed, whatever a record says."""
    names = [path for path in values if path.endswith(".md") or path in ("llms.txt", "llms-full.txt")]
    return {path: str(values[path]) for path in names if page_addresses.is_file(path)}
