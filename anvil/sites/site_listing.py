"""The files of a built site, before they are read: which are pages, which say something about pages, which are Markdown
that Anvil wrote, and what is known of those that did not change."""

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
"""Other files of a site that say something about its pages."""


class KnownFile(NamedTuple):
    """An HTML file that was read: its signature, None for one that does not tell its content; the digest of it and of
    its Markdown; and the path and signature of this Markdown if the site has it.
    ``linked``: the paths at which the Markdown may be that the page links to, also if the site has none of them yet.
    ``facts``: what it says about its page."""

    signature: Signature | None
    digest: str
    linked: tuple[str, ...]
    twin: str | None
    twin_signature: Signature | None
    facts: PageFacts


@dataclass(frozen=True)
class SiteListing:
    """The files of a site: path -> signature; and what is left out before it is read. ``young``: files that were
    changed so shortly before that their signature does not tell their content. ``fresh``: those of them, and others,
    whose content may change through mapped memory without a change of their signature."""

    html: dict[str, Signature]
    others: dict[str, Signature]
    left_out: tuple[Skipped, ...]
    young: frozenset[str]
    fresh: frozenset[str]

    def is_same(self, other: SiteListing | None) -> bool:
        """Whether both have the same files."""
        mine = self.html, self.others, self.left_out
        return other is not None and mine == (other.html, other.others, other.left_out)

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """HTML file -> the Markdown with the same address: ``guide.md`` or ``guide.html.md`` of ``guide.html``, and
        ``guide.md`` or ``guide/index.md`` of ``guide/index.html``. Sites with a ``llms.txt`` have it there."""
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
        """Whether a file and its Markdown are those that were read, by their signatures."""
        used = next((each for each in file.linked if each in self.others), self.twins.get(path))
        signature = None if used is None else self.others[used]
        return (file.signature, file.twin, file.twin_signature) == (self.html[path], used, signature) and (
            path not in self.young and used not in self.young
        )

    def lasting(self, files: Mapping[str, KnownFile]) -> dict[str, KnownFile]:
        """The files without the signatures that do not tell their content for good."""
        return {
            path: file._replace(signature=None) if path in self.fresh or file.twin in self.fresh else file
            for path, file in files.items()
        }


def list_site(folder: Path, max_page_bytes: int) -> SiteListing:
    """The files of the site in a folder. Raises :class:`SourceError` for one without pages."""
    pages: dict[str, Signature] = {}
    others: dict[str, Signature] = {}
    left_out: list[Skipped] = []
    young: set[str] = set()
    fresh: set[str] = set()
    began_ns = time.time_ns()  # before the first file is looked at: a change after it may have the same time stamp
    own = recorded_paths(folder)
    for path, entry in _files(folder):
        state = _state(path, entry, own, max_page_bytes)
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
    path: str, entry: os.DirEntry[str], own: Collection[str], max_page_bytes: int
) -> os.stat_result | Skipped | None:
    """The state of a file that is read, or why a page is left out; None for other files. ``own``: those of Anvil."""
    if not is_plain_name(path):
        return Skipped(plain_name(path), BAD_NAME)
    if entry.is_symlink():
        return Skipped(path, "it is a link to another file or folder") if _is_html(path) or entry.is_dir() else None
    if path == SITE_SEARCH or not (_is_html(path) or (path not in own and _ABOUT_PAGES.fullmatch(path))):
        return None
    try:
        state = entry.stat(follow_symlinks=False)
    except OSError:
        return None  # deleted since it was listed; the next listing tells
    if not stat.S_ISREG(state.st_mode):
        return Skipped(path, "it is not a regular file") if _is_html(path) else None
    if _is_html(path) and state.st_size > max_page_bytes:
        return Skipped(path, f"it is larger than {max_page_bytes:,} bytes (source.max_file_bytes)")
    return state


def _files(folder: Path) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files under a folder, and links, by path. Folders with a dot in front are left out."""
    waiting = [(str(folder), "")]
    while waiting:
        real, above = waiting.pop()
        try:
            with os.scandir(real) as items:
                entries = list(items)
        except OSError:
            continue  # deleted since it was listed
        for entry in entries:
            path = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    waiting.append((entry.path, f"{path}/"))
            else:
                yield path, entry


# --- files that were read before -------------------------------------------------------------------------------------


def cache_folder(site: Path) -> Path:
    """The folder for what is kept about a site between builds, since generators empty the site's own."""
    name = hashlib.sha256(str(site.absolute()).encode("utf-8", "surrogatepass")).hexdigest()[:20]
    return safe_files.user_cache() / "sites" / name


class SiteCache:
    """The files of a site as they were read last, by their paths: those with the same bytes are not parsed again, and
    those with the same signature are not even read. It is one file in the user's cache folder, which can be deleted at
    any time. ``options`` that read other content start an empty cache."""

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
            return  # missing, of another version, or damaged: the pages are read

    def save(self, files: Mapping[str, KnownFile]) -> None:
        """Write the files if they differ. A folder that cannot be written has no cache."""
        if files == self.files:
            return
        self.files = dict(files)
        stored = {"head": self._head, "files": dict(sorted(files.items()))}
        text = json.dumps(stored, ensure_ascii=True, separators=(",", ":"))
        try:
            safe_files.make_folder(self._file.parent)
            safe_files.write_file(self._file, text, replace=True, flush=False)  # what a crash takes is read again
        except OSError:
            return


def _known_file(values: list[Any]) -> KnownFile:
    signature, digest, linked, twin, twin_signature, facts = values
    signatures = [each and tuple(each) for each in (signature, twin_signature)]
    return KnownFile(signatures[0], digest, tuple(linked), twin, signatures[1], PageFacts.of_json(facts))


# --- sitemaps and inventories ----------------------------------------------------------------------------------------

MAX_BYTES = 50_000_000
"""Bytes of a sitemap, as https://www.sitemaps.org has it. The rest is not read."""
MAX_ADDRESSES = 1_000_000
"""Addresses that all sitemaps of a folder may name together."""
MAX_ADDRESS_CHARS = 4_000
MAX_PREFIX_ADDRESSES = 2_000
"""Addresses of a sitemap by which the folder of the site is found; the others have it too."""
_LOCATION = re.compile(
    rb"<loc>(?:\s{0,200}<!\[CDATA\[([^<>]{0,4200}?)\]\]>\s{0,200}|([^<>]{0,4200}))</loc>", re.I
)  # every repetition has a limit: a file of blanks takes no longer than another


def locations(data: bytes) -> list[str]:
    """The addresses in a sitemap, or in an index of sitemaps."""
    addresses: list[str] = []
    for match in _LOCATION.finditer(data[:MAX_BYTES]):
        address = html.unescape((match[1] or match[2] or b"").decode("utf-8", "replace")).strip()
        if address and len(address) <= MAX_ADDRESS_CHARS:
            addresses.append(address)
        if len(addresses) == MAX_ADDRESSES:
            break
    return addresses


def listed(named: list[str], files: Mapping[str, str]) -> dict[str, str]:
    """Path of a file -> its address in a sitemap. ``files``: key of an address -> path of the file."""
    named = [address for address in named if page_addresses.split(address).geturl()]  # can be read
    paths = [page_addresses.split(address).path for address in named]
    prefix = page_addresses.common_prefix(paths[:MAX_PREFIX_ADDRESSES], files)
    pages: dict[str, str] = {}
    for address, path in zip(named, paths, strict=True):
        own = page_addresses.key(path)
        inside = own if not prefix else own[len(prefix) :] if f"{own}/".startswith(prefix) else None
        if inside is not None and inside in files:
            pages.setdefault(files[inside], address)
    return pages


MAX_INVENTORY_BYTES = 50_000_000
"""Bytes of an inventory that are read, once unpacked."""
_HEAD = re.compile(rb"# Sphinx inventory version 2\n(?:#[^\n]*\n){3}")
# NAME DOMAIN:ROLE PRIORITY ADDRESS TITLE
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
"""About a million files."""


@dataclass(frozen=True)
class Record:
    """The Markdown files that Anvil wrote into a site: path -> SHA-256 (hex). They are made of the pages, so none is
    read as one. ``unfinished``: those that may be there already, while a build writes them. ``linked``: the HTML files
    that got a link to one."""

    files: Mapping[str, str] = field(default_factory=dict)
    unfinished: Mapping[str, str] = field(default_factory=dict)
    linked: tuple[str, ...] = ()

    def is_own(self, path: str, digest: str) -> bool:
        """Whether a file with these bytes was written by Anvil."""
        return digest in (self.files.get(path), self.unfinished.get(path))

    def text(self) -> str:
        """The content of the file. The same record gives the same text."""
        values = {"format": RECORD_FORMAT, "files": dict(sorted(self.files.items())), "linked": sorted(self.linked)}
        if self.unfinished:
            values["unfinished"] = dict(sorted(self.unfinished.items()))
        return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


def read_record(site: Path) -> Record:
    """The record of a site; an empty one where there is none, or one in another form."""
    try:
        values = json.loads(safe_files.text(site / RECORD, MAX_RECORD_BYTES))
        if values["format"] != RECORD_FORMAT:
            return Record()
        files, unfinished = _digests(values["files"]), _digests(values.get("unfinished", {}))
        return Record(files, unfinished, tuple(path for path in values["linked"] if page_addresses.is_file(path)))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return Record()


def recorded_paths(site: Path) -> frozenset[str]:
    """All files in the record of a site. It is read again when it changed."""
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
    """Of the files that have a name which Anvil writes: no others are replaced or removed."""
    named = [path for path in values if path.endswith(".md") or path in ("llms.txt", "llms-full.txt")]
    return {path: str(values[path]) for path in named if page_addresses.is_file(path)}
