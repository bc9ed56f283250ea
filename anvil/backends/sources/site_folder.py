"""A folder of HTML as a source of documents: the pages that readers see, whatever generator wrote them.

A page with a source file in the documentation folder has its path and blob id, so that an edit of the file makes it
stale. Other pages have the path of their HTML, and the hash of their content. Only facts about pages are kept in
memory; their Markdown waits in a temporary file until it is read.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import threading
import zlib
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import IO, NamedTuple

from anvil.backends.sources import site_readers
from anvil.backends.sources.document_source import DocumentSource
from anvil.backends.sources.site import EPOCH, hash_path
from anvil.backends.sources.site_cache import SiteCache, cache_folder
from anvil.core import staleness
from anvil.core.canonical_json import canonical
from anvil.core.config.schema import SiteOptions, SourceOptions
from anvil.core.git.objects import blob_id
from anvil.core.html.content import PageRules
from anvil.core.pluralize import counted
from anvil.core.site import addresses, pages, reading, sitemap, sources
from anvil.core.site.pages import PageFacts, SitePage
from anvil.errors import SourceError
from anvil.models.documents import Document, Progress, Scan, Skipped, silent

ENDINGS = (".html", ".htm", ".xhtml")
MAX_ROUNDS = 3
"""Attempts to read a site that changes while it is read."""
MAX_DECLARED_BYTES = 1_000_000
"""Bytes of ``versions.json``."""
MIN_SHARE_MAPPED = 0.5
"""The share of pages that must have a source in a documentation folder that nobody named."""
_Signature = tuple[int, int, int]


class _Text(NamedTuple):
    """Where the Markdown and headings of a page are in the temporary file."""

    start: int
    size: int


class _Listing(NamedTuple):
    """The files of a site: path -> signature; and what is left out before it is read."""

    html: dict[str, _Signature]
    others: dict[str, _Signature]
    left_out: tuple[Skipped, ...]


class SiteFolder:
    """The pages of a built site.

    ``tree``: the documents in the documentation folder ``docs``; None without one. ``is_certain``: that folder was
    named, and is used even if few pages have a source in it. Thread-safe.
    """

    name = "site"

    def __init__(
        self,
        folder: Path,
        options: SiteOptions,
        tree: DocumentSource | None = None,
        *,
        docs: Path | None = None,
        is_certain: bool = True,
        limit: int = SourceOptions().max_file_bytes,
        progress: Progress = silent,
    ) -> None:
        if not folder.is_dir():
            raise SourceError(
                f"There is no folder {folder}. Build the site first, and name the folder that the generator writes, "
                "such as site, build, public or _build/html."
            )
        from anvil.core.html import content

        self._rules = PageRules(options.content, options.ignore)
        content.validate(self._rules)
        self.folder = folder
        self._options = options
        self._tree = tree
        self._docs = docs
        self._is_certain = is_certain
        self._limit = limit
        self._progress = progress
        self._lock = threading.RLock()
        self._cache = SiteCache(cache_folder(folder) / "pages.json", options)
        self._listing: _Listing | None = None
        self._hashes: dict[str, str] = {}
        self._texts: dict[str, _Text] = {}
        self._spool: IO[bytes] | None = None
        self._pages: dict[str, SitePage] = {}
        self._entries: dict[str, tuple[str, str]] = {}
        self._scan = Scan({})
        self._times: dict[str, str] = {}
        self._used_tree: DocumentSource | None = None
        self._excluded: frozenset[str] = frozenset()
        self.notes: tuple[str, ...] = ()
        """Sentences for people on the last scan."""

    # --- the protocol ----------------------------------------------------------------------------------------

    @property
    def root_path(self) -> str:
        """See :class:`DocumentSource`, as for all below."""
        return self._used_tree.root_path if self._used_tree else "."

    @property
    def problem(self) -> str | None:
        return self._used_tree.problem if self._used_tree else None

    @property
    def excluded_hashes(self) -> frozenset[str] | None:
        return self._excluded

    def commit(self) -> str | None:
        return self._used_tree.commit() if self._used_tree else None

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        with self._lock:
            for _ in range(MAX_ROUNDS):
                listing = self._list()
                blobs = self._tree.scan().entries if self._tree else {}
                if self._listing is not None and listing == self._listing and blobs is self._blobs:
                    return self._scan
                facts = self._read_all(listing)
                if self._list() == listing:
                    self._cache.save()
                    self._choose(listing, facts, blobs)
                    self._listing, self._blobs = listing, blobs
                    return self._scan
            raise SourceError(f"The site in {self.folder} changes while it is read. Try again when it is built.")

    _blobs: Mapping[str, str] | None = None

    def read(self, path: str) -> Document | Skipped:
        document = self.text(path)
        if isinstance(document, Skipped):
            return document
        if path not in self._times:
            self.last_modified(tuple(self._pages), {}, None)
        return replace(document, last_modified=self._times[path])

    def text(self, path: str) -> Document | Skipped:
        with self._lock:
            page = self._pages.get(path)
            if page is None:
                return Skipped(path, "not a page of the site")
            stored = self._text_of(page.file)
            if stored is None:
                return Skipped(path, "the site was built again while it was read")
            markdown, headings = stored
            blob, fingerprint = self._entries[path]
            return Document(
                path=path,
                blob_id=blob,
                text=markdown,
                size=len(markdown.encode("utf-8", "surrogatepass")),
                last_modified="",
                title=page.facts.title or path,
                url=page.url,
                metadata=_metadata(page),
                headings=tuple((level, anchor, title) for level, anchor, title in headings),
                fingerprint=fingerprint,
            )

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        """As in the tree. A page without a source has the time of the newest page that has one."""
        times: dict[str, str] = {}
        if self._used_tree is not None:
            with_file = [path for path in paths if self._entries.get(path, ("", ""))[0]]
            times = self._used_tree.last_modified(with_file, known, since)
        newest = max(times.values(), default=EPOCH)
        self._times |= {path: times.get(path, newest) for path in paths}
        return {path: self._times[path] for path in paths}

    # --- files -----------------------------------------------------------------------------------------------

    def _list(self) -> _Listing:
        html: dict[str, _Signature] = {}
        others: dict[str, _Signature] = {}
        left_out: list[Skipped] = []
        for path, entry in _files(self.folder, ""):
            if entry.is_symlink():
                if path.lower().endswith(ENDINGS) or entry.is_dir():
                    left_out.append(Skipped(path, "it is a link to another file or folder"))
                continue
            if not path.isprintable() or not _is_utf8(path):
                left_out.append(Skipped(ascii(path)[1:-1], "its name has characters that cannot be shown"))
                continue
            is_html = path.lower().endswith(ENDINGS)
            if not is_html and not _is_about_pages(path):
                continue
            try:
                state = entry.stat(follow_symlinks=False)
            except OSError:
                continue  # deleted since it was listed; the next listing tells
            if is_html and state.st_size > self._limit:
                left_out.append(Skipped(path, f"it is larger than {self._limit:,} bytes (source.max_file_bytes)"))
                continue
            (html if is_html else others)[path] = (state.st_size, state.st_mtime_ns, state.st_ino)
        if not html:
            raise SourceError(
                f"{self.folder} has no HTML page. Build the site first, and name the folder that the generator writes, "
                "such as site, build, public or _build/html."
            )
        return _Listing(html, others, tuple(left_out))

    def _bytes(self, path: str) -> bytes:
        return (self.folder / path).read_bytes()

    def _read_all(self, listing: _Listing) -> dict[str, PageFacts]:
        """The facts about all files. Those that are not in the cache are read."""
        facts: dict[str, PageFacts] = {}
        unknown: list[tuple[str, str | None]] = []
        for path in sorted(listing.html):
            twin = self._twin(path, listing)
            try:
                digest = reading.digest_of(self._bytes(path), None if twin is None else self._bytes(twin))
            except OSError as error:
                facts[path] = PageFacts(problem=f"it cannot be read ({error.strerror})")
                continue
            known = self._cache.get(digest)
            if known is None:
                unknown.append((path, twin))
            else:
                facts[path], self._hashes[path] = known, digest
                self._texts.pop(path, None)
        for done, answer in enumerate(site_readers.read_all(self.folder, unknown, self._rules)):
            self._progress("reading the site", done, len(unknown))
            facts[answer.path] = self._keep(answer)
        if unknown:
            self._progress("reading the site", len(unknown), len(unknown))
        return facts

    def _keep(self, answer: site_readers.Answer) -> PageFacts:
        if answer.read is None:
            return PageFacts(problem="it was deleted while the site was read")
        self._cache.put(answer.digest, answer.read.facts)
        self._hashes[answer.path] = answer.digest
        if answer.read.markdown:
            self._store(answer.path, answer.read.markdown, answer.read.headings)
        return answer.read.facts

    def _twin(self, path: str, listing: _Listing) -> str | None:
        """The path of the Markdown that the site has of a page."""
        twin = path.rpartition(".")[0] + ".md"
        return twin if twin in listing.others else None

    # --- texts -----------------------------------------------------------------------------------------------

    def _store(self, path: str, markdown: str, headings: object) -> None:
        if self._spool is None:
            self._spool = tempfile.TemporaryFile(prefix="anvil-site-")  # noqa: SIM115 - closed by close()
        data = zlib.compress(json.dumps([markdown, headings], ensure_ascii=True).encode("ascii"), 1)
        self._texts[path] = _Text(self._spool.seek(0, os.SEEK_END), len(data))
        self._spool.write(data)

    def _text_of(self, path: str) -> tuple[str, list[tuple[int, str, str]]] | None:
        """The Markdown and headings of a page as it was scanned; None when its file is another now."""
        if path not in self._texts:
            assert self._listing is not None
            answer = site_readers.read_one(self.folder, path, self._twin(path, self._listing), self._rules)
            if answer.read is None or answer.digest != self._hashes[path]:
                return None
            self._store(path, answer.read.markdown, answer.read.headings)
        at = self._texts[path]
        assert self._spool is not None
        self._spool.seek(at.start)
        markdown, headings = json.loads(zlib.decompress(self._spool.read(at.size)))
        return markdown, headings

    def close(self) -> None:
        """Delete the temporary file."""
        with self._lock:
            if self._spool is not None:
                self._spool.close()
            self._spool, self._listing, self._texts = None, None, {}

    # --- pages -----------------------------------------------------------------------------------------------

    def _choose(self, listing: _Listing, facts: Mapping[str, PageFacts], blobs: Mapping[str, str]) -> None:
        listed, notes = self._listed(listing, facts)
        chosen = pages.choose(facts, listed, self._options, self._declared_versions(listing))
        if not chosen.pages and any(page.shell for page in facts.values()):
            raise SourceError(
                f"The pages in {self.folder} have no text: scripts make it in the browser. Turn on the pre-rendering "
                "of the generator (static generation, SSR), and build the site again."
            )
        self._used_tree, mapped = self._mapped(chosen.pages, listing, blobs)
        by_path: dict[str, SitePage] = {}
        entries: dict[str, tuple[str, str]] = {}
        for page in chosen.pages:
            path = mapped.get(page.file, page.file)
            by_path[path] = page
            values = [page.facts.digest, page.url, _metadata(page)]
            fingerprint = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()
            blob, included = staleness.parts(blobs.get(path, "")) if self._used_tree else ("", "")
            if blob or self._used_tree is not None:
                entries[path] = (blob, fingerprint + included)
            else:
                entries[path] = (blob_id(fingerprint.encode("ascii")), "")
        self._pages = dict(sorted(by_path.items()))
        self._entries = entries
        self._excluded = frozenset(
            hash_path(path) for path in (blobs if self._used_tree else ()) if path not in self._pages
        )
        self.notes = (*notes, *chosen.notes, *self._older(mapped, listing))
        identities = {path: staleness.identity(*entries[path]) for path in self._pages}
        left_out = sorted((*chosen.left_out, *listing.left_out), key=lambda each: each.path)
        self._scan = Scan(identities, tuple(left_out))

    def _mapped(
        self, chosen: tuple[SitePage, ...], listing: _Listing, blobs: Mapping[str, str]
    ) -> tuple[DocumentSource | None, dict[str, str]]:
        if self._tree is None:
            return None, {}
        copies = {}
        for path in listing.others:
            if path.startswith("_sources/"):
                source = path.removeprefix("_sources/").removesuffix(".txt")
                copies[addresses.key(source.rpartition(".")[0] + ".html")] = source
        tree = self._tree
        mapped = sources.mapped(chosen, blobs.keys(), copies, lambda path: _title(tree, path))
        if not self._is_certain and len(mapped) < MIN_SHARE_MAPPED * max(len(chosen), 1):
            return None, {}
        return tree, mapped

    def _older(self, mapped: Mapping[str, str], listing: _Listing) -> Iterator[str]:
        """A remark on pages that are older than their source."""
        if self._docs is None or self._used_tree is None:
            return
        older = []
        for file, source in mapped.items():
            try:
                if (self._docs / source).stat().st_mtime_ns > listing.html[file][1]:
                    older.append(source)
            except OSError:
                continue
        if older:
            yield (
                f"{counted(len(older), 'page')} of the site may be older than the source, such as {min(older)}. "
                "Build the site again before its index."
            )

    def _listed(
        self, listing: _Listing, facts: Mapping[str, PageFacts]
    ) -> tuple[dict[str, str] | None, tuple[str, ...]]:
        """Path -> address of the pages in sitemaps; a folder with a sitemap of its own goes by that one."""
        files = {addresses.key(path): path for path in sorted(facts, reverse=True)}
        maps = sorted(path for path in listing.others if path.rpartition("/")[2].startswith("sitemap"))
        if not maps:
            return None, ()
        found: dict[str, str] = {}
        for folder in sorted({path.rpartition("/")[0] for path in maps}, key=lambda each: -each.count("/")):
            named = [
                address
                for path in maps
                if path.rpartition("/")[0] == folder
                for address in sitemap.locations(self._bytes(path))
                if not address.endswith(".xml")
            ]
            start = f"{folder}/" if folder else ""
            inside = {key.removeprefix(start): path for key, path in files.items() if f"{key}/".startswith(start)}
            for path, address in sitemap.listed(named, inside).items():
                found.setdefault(path, address)
        covered = [path for path in facts if _is_covered(path, maps)]
        if len(found) * 2 < len([path for path in covered if facts[path].word_count and not facts[path].noindex]):
            return None, (f"{maps[0]} names other pages than the site has, so all HTML files are read.",)
        uncovered = {path: "" for path in facts if path not in covered}
        return {**uncovered, **found}, ()

    def _declared_versions(self, listing: _Listing) -> list[str]:
        if "versions.json" not in listing.others or listing.others["versions.json"][0] > MAX_DECLARED_BYTES:
            return []
        try:
            declared = json.loads(self._bytes("versions.json"))
        except (OSError, ValueError):
            return []
        if not isinstance(declared, list):
            return []
        names = [each.get("version") if isinstance(each, dict) else each for each in declared]
        return [name for name in names if isinstance(name, str)]


def _files(folder: Path, start: str) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """The files under a folder, and links, by path. Folders with a dot in front are left out."""
    waiting = [(str(folder), start)]
    while waiting:
        real, above = waiting.pop()
        try:
            with os.scandir(real) as items:
                found = list(items)
        except OSError:
            continue  # deleted since it was listed
        for entry in found:
            path = f"{above}{entry.name}"
            if entry.is_dir(follow_symlinks=False):
                if not entry.name.startswith("."):
                    waiting.append((entry.path, f"{path}/"))
            else:
                yield path, entry


def _is_about_pages(path: str) -> bool:
    name = path.rpartition("/")[2]
    is_sitemap = name.startswith("sitemap") and name.endswith(".xml")
    return is_sitemap or path == "versions.json" or path.startswith("_sources/") or name.endswith(".md")


def _is_covered(path: str, maps: Collection[str]) -> bool:
    return any(path.startswith(each.rpartition("/")[0]) for each in maps)


def _is_utf8(path: str) -> bool:
    try:
        path.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _metadata(page: SitePage) -> dict[str, object]:
    optional = {
        "version": page.version,
        "language": page.language,
        "description": page.facts.description or None,
        "edit_url": page.facts.edit_url,
    }
    return {"rendered": True, **{key: value for key, value in optional.items() if value is not None}}


def _title(tree: DocumentSource, path: str) -> str:
    """The title that a file gives its page."""
    from anvil.core.markdown import parser

    document = tree.text(path)
    if isinstance(document, Skipped):
        return ""
    return document.title or parser.parse(document.text).title or ""
