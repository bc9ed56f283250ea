"""A folder of HTML as a source of documents, whatever generator wrote it.

A page with a source file in the documentation folder has the path and blob id of that file, so that an edit of the file
makes the page stale. Other pages have the path of their HTML and the hash of their content. Only facts about pages are
in memory; their Markdown is in a temporary file.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource, hash_path
from anvil.documents.repository_files import modified_ns
from anvil.errors import SourceError
from anvil.formats.data_formats import canonical, strict_json
from anvil.git.objects import blob_id
from anvil.settings.schema import SiteOptions, SourceOptions
from anvil.sites import page_addresses, site_listing, site_pages, source_files
from anvil.sites.generators import GENERATORS
from anvil.sites.site_listing import INVENTORY, KnownFile, SiteCache, SiteListing, cache_folder, list_site
from anvil.sites.site_pages import PageFacts, SitePage
from anvil.system import safe_files
from anvil.values import UNKNOWN_TIME, Document, KnownTimes, Progress, Scan, Skipped, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.sites import reader_processes
    from anvil.sites.page_content import PageRules
    from anvil.text.section_places import Heading

MAX_ROUNDS = 3
"""Attempts to read a site that changes while it is read."""
QUIET_S = 0.5
"""Time for which the files of a changed site must stay the same before they are read again."""
MAX_WAIT_S = 120.0
"""The longest time that a build waits for the generator to finish."""
MAX_DECLARED_BYTES = 1_000_000
"""The largest ``versions.json`` that is read."""
MAX_SINGLE_READS = 32
"""Pages without stored Markdown that are read one by one. After these, all others are read together."""
_ASCIIDOC_TITLE = re.compile(r"^= (\S.*)$", re.M)
_NO_BLOBS: Mapping[str, str] = {}
MIN_SHARE_MAPPED = 0.5
"""The share of pages that must have a source in a documentation folder that was only guessed. Else it is not used."""
MIN_SHARE_LISTED = 0.5
"""The share of pages with text that sitemaps must name. With less, the sitemaps are not used."""


class SiteFolder:
    """The pages of a built site as a source of documents. Thread-safe.

    ``tree``: the documents in the documentation folder ``docs``; None without one. ``is_certain``: the user named that
    folder, so it is used even if few pages have a source in it.
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
        if options.content or options.ignore:
            from anvil.sites.page_content import validate

            validate((*options.content, *options.ignore))
        self.folder, self._options, self._limit, self._progress = folder, options, limit, progress
        self._tree, self._docs, self._is_certain = tree, docs, is_certain
        self._lock = threading.RLock()
        self._cache = SiteCache(cache_folder(folder) / "pages.json", options)
        self._listing: SiteListing | None = None
        self._blobs: Mapping[str, str] | None = None
        """The files in the documentation folder at the last scan, as the tree gives them."""
        self._files: Mapping[str, KnownFile] = self._cache.files
        self._missed = 0
        """The number of reads of pages whose Markdown was not stored."""
        self._texts: dict[str, tuple[int, int]] = {}
        """Path of a HTML file -> start and size of its Markdown and headings in the temporary file."""
        self._spool: IO[bytes] | None = None
        self._pages: dict[str, SitePage] = {}
        self._entries: dict[str, tuple[str, str]] = {}
        """Path of a page -> (blob id of its source, or ``""``; fingerprint)."""
        self._scan = Scan({})
        self._used_tree: DocumentSource | None = None
        self._excluded: frozenset[str] = frozenset()
        self._aliases: dict[str, dict[str, str]] = {}
        self.notes: tuple[str, ...] = ()
        """Remarks on the last scan, for people."""

    # --- the protocol ----------------------------------------------------------------------------------------

    @property
    def root_path(self) -> str:
        """See :class:`DocumentSource`, also for the members below."""
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
            for number in range(MAX_ROUNDS):
                listing = (
                    list_site(self.folder, self._limit)
                    if self._listing is None and not number
                    else self._wait_until_settled()
                )
                blobs = self._tree.scan().entries if self._tree else _NO_BLOBS  # the same object while nothing changed
                if not listing.young and listing.is_same(self._listing) and blobs is self._blobs:
                    return self._scan
                facts, is_opened = self._read_all(listing)
                # The files are listed again after they were read, or pages of two builds could be in one index.
                if not is_opened or list_site(self.folder, self._limit).is_same(listing):
                    self._cache.save(listing.lasting(self._files))
                    self._choose(listing, facts, blobs)
                    self._listing, self._blobs = listing, blobs
                    return self._scan
            raise SourceError(f"The site in {self.folder} changes while it is read. Try again when it is built.")

    def _wait_until_settled(self) -> SiteListing:
        """The files of a site that was read before. If they changed, a generator may still be writing them, and may
        have emptied the folder first. So this waits until they stay the same for :data:`QUIET_S`."""
        last, deadline = self._listing, time.monotonic() + MAX_WAIT_S
        same_since = 0.0
        while True:
            try:
                listing = list_site(self.folder, self._limit)
            except SourceError:
                if time.monotonic() > deadline:
                    raise
                last = None
            else:
                now = time.monotonic()
                if not listing.is_same(last):
                    last, same_since = listing, now
                elif now - same_since >= QUIET_S:
                    return listing
                elif now > deadline:
                    raise SourceError(f"The site in {self.folder} is being written. Try again when it is built.")
            time.sleep(QUIET_S / 5)

    def read(self, path: str) -> Document | Skipped:
        with self._lock:
            page = self._pages.get(path)
            if page is None:
                return Skipped(path, "not a page of the site")
            stored = self._text_of(page.file)
            if stored is None:
                return Skipped(path, "the site was built again while it was read")
            markdown, headings = stored
            blob, fingerprint = self._entries[path]
            document = Document(
                path=path,
                blob_id=blob,
                text=markdown,
                size=len(markdown.encode("utf-8", "surrogatepass")),
                title=page.facts.title or None,
                url=page.url,
                metadata=self._metadata(page),
                headings=headings,
                fingerprint=fingerprint,
                source="",
            )
        file = self._used_tree.read(path) if self._used_tree and blob else None
        return replace(document, source=file.text, inserted=file.inserted) if isinstance(file, Document) else document

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        """The times of the source files. A page without a source has the time of the newest page with one."""
        times: dict[str, str] = {}
        if self._used_tree is not None:
            with_source = [path for path in paths if self._entries.get(path, ("", ""))[0]]
            times = self._used_tree.last_modified(with_source, known, since)
        newest = max(times.values(), default=UNKNOWN_TIME)
        return {path: times.get(path, newest) for path in paths}

    # --- files -----------------------------------------------------------------------------------------------

    def _read_all(self, listing: SiteListing) -> tuple[dict[str, PageFacts], bool]:
        """(path -> facts of all HTML files, whether a file was opened).

        A file is not opened if its signature is the cached one, and not parsed if its bytes are.
        """
        is_opened = False
        facts: dict[str, PageFacts] = {}
        to_parse: list[tuple[str, str | None]] = []
        before, self._files = self._files, {}
        facts_by_digest = {file.digest: file.facts for file in before.values()}
        for path in sorted(listing.html):
            file = before.get(path)
            if file is None or not listing.is_current(file, path):
                is_opened = True
                file = self._file_by_digest(path, listing, facts_by_digest) if facts_by_digest else None
            if file is None:
                to_parse.append((path, listing.twins.get(path)))
                continue
            facts[path], self._files[path] = file.facts, file
            if path in before and before[path].digest != file.digest:
                self._texts.pop(path, None)
        if to_parse:
            from anvil.sites import reader_processes  # it imports the HTML parser

            for done, answer in enumerate(reader_processes.read_all(self.folder, to_parse, self.rules())):
                self._progress("reading the site", done, len(to_parse))
                facts[answer.path] = answer.facts
                if answer.digest:
                    self._files[answer.path] = _known_file(answer, answer.path, listing, answer.facts)
                    self._store(answer.path, answer.text)
            self._progress("reading the site", len(to_parse), len(to_parse))
        return facts, is_opened

    def _file_by_digest(
        self, path: str, listing: SiteListing, facts_by_digest: Mapping[str, PageFacts]
    ) -> KnownFile | None:
        """The file with the facts that its bytes had before; None if these bytes are new or it cannot be read."""
        from anvil.sites import reader_processes

        try:
            loaded = reader_processes.load(self.folder, path, listing.twins.get(path))
        except OSError:
            return None  # the reason is found when it is parsed
        facts = facts_by_digest.get(loaded.digest)
        return None if facts is None else _known_file(loaded, path, listing, facts)

    def rules(self) -> PageRules:
        """The user's CSS selectors of the content."""
        from anvil.sites.page_content import PageRules

        return PageRules(self._options.content, self._options.ignore)

    def html_files(self) -> list[str]:
        """The paths of all HTML files of the last scan, also of those that are not pages."""
        return sorted(self._listing.html) if self._listing else []

    def pages(self) -> Mapping[str, SitePage]:
        """Path of a page of the last scan -> the page."""
        return self._pages

    def url(self) -> str:
        """The address of the site, which ends in a slash; empty if it is not known."""
        for page in self._pages.values():
            if page.url is not None and (url := page.url.removesuffix(page.address)).endswith("/"):
                return url
        return ""

    # --- texts -----------------------------------------------------------------------------------------------

    def _store(self, path: str, text: bytes) -> None:
        if self._spool is None:
            self._spool = tempfile.TemporaryFile(prefix="anvil-site-")  # noqa: SIM115 - closed by close()
        if text:
            self._texts[path] = self._spool.seek(0, os.SEEK_END), len(text)
            self._spool.write(text)

    def _text_of(self, path: str) -> tuple[str, tuple[Heading, ...]] | None:
        """The Markdown and headings of a page as it was scanned; None if its file has changed since."""
        from anvil.sites import reader_processes

        if path not in self._texts:
            assert self._listing is not None
            self._missed += 1
            is_bulk = self._missed > MAX_SINGLE_READS  # as after a change of the chunking, when all pages are read
            paths = sorted({page.file for page in self._pages.values()} - self._texts.keys()) if is_bulk else [path]
            files = [(each, self._listing.twins.get(each)) for each in paths]
            for answer in reader_processes.read_all(self.folder, files, self.rules()):
                if answer.digest and answer.digest == self._files[answer.path].digest:
                    self._store(answer.path, answer.text)
            if path not in self._texts:
                return None
        start, size = self._texts[path]
        assert self._spool is not None
        self._spool.seek(start)
        return reader_processes.unpacked(self._spool.read(size))

    def close(self) -> None:
        """Delete the temporary file."""
        with self._lock:
            if self._spool is not None:
                self._spool.close()
            self._spool, self._listing, self._texts = None, None, {}

    # --- pages -----------------------------------------------------------------------------------------------

    def _choose(self, listing: SiteListing, facts: Mapping[str, PageFacts], blobs: Mapping[str, str]) -> None:
        """Set the result of a scan: the pages with their sources, and the files that are left out."""
        listed, notes = self._sitemap_addresses(listing, facts)
        chosen = site_pages.choose(facts, listed, self._options, self._declared_versions(listing))
        if not chosen.pages and any(page.shell for page in facts.values()):
            raise SourceError(
                f"The pages in {self.folder} have no text: scripts make it in the browser. Turn on the pre-rendering "
                "of the generator (static generation, SSR), and build the site again."
            )
        if not chosen.pages:
            reasons = "; ".join(site_pages.left_out((*chosen.left_out, *listing.left_out)))
            raise SourceError(
                f"{self.folder} has no page to index: {reasons}. Name the folder that the generator writes, or change "
                "the pages or [site] in anvil.toml."
            )
        self._used_tree, sources = self._match_sources(chosen.pages, listing, blobs)
        copies = site_pages.find_copies(chosen.pages, sources)
        copy_files = {copy.path for copy in copies}
        sources = {file: source for file, source in sources.items() if file not in copy_files}
        self._aliases = self._second_names(listing)
        by_path: dict[str, SitePage] = {}
        entries: dict[str, tuple[str, str]] = {}
        for page in chosen.pages:
            if page.file in copy_files:
                continue
            path = sources.get(page.file, page.file)
            by_path[path] = page
            values = [page.facts.digest, page.url, self._metadata(page)]
            fingerprint = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()
            if self._used_tree is not None:
                blob, included = document_source.parts(blobs.get(path, ""))
                entries[path] = (blob, fingerprint + included)
            else:  # no page has a source, so the blob id is made of the fingerprint
                entries[path] = (blob_id(fingerprint.encode("ascii")), "")
        self._pages = dict(sorted(by_path.items()))
        self._entries = entries
        self._excluded = frozenset(
            hash_path(path) for path in (blobs if self._used_tree else ()) if path not in self._pages
        )
        self.notes = (*notes, *_address_remark(chosen.pages), *self._age_remark(sources, listing))
        if self._options.content and not any(page.facts.selected for page in chosen.pages):
            selectors = " or ".join(self._options.content)
            self.notes += (f"site.content has no effect: no page has {selectors}. Correct or remove it.",)
        identities = {path: document_source.identity(*entries[path]) for path in self._pages}
        left_out = sorted((*chosen.left_out, *copies, *listing.left_out), key=lambda each: each.path)
        self._scan = Scan(identities, tuple(left_out))

    def _match_sources(
        self, chosen: tuple[SitePage, ...], listing: SiteListing, blobs: Mapping[str, str]
    ) -> tuple[DocumentSource | None, dict[str, str]]:
        """(the tree if it is used, HTML file -> source file)."""
        if self._tree is None:
            return None, {}
        copies = {}
        for path in listing.others:
            if path.startswith("_sources/"):  # Sphinx's copies of its sources
                source = path.removeprefix("_sources/").removesuffix(".txt")
                copies[page_addresses.key(source.rpartition(".")[0] + ".html")] = source
        tree = self._tree
        sources = source_files.match_sources(chosen, blobs.keys(), copies, lambda path: _title(tree, path))
        if not self._is_certain and len(sources) < MIN_SHARE_MAPPED * max(len(chosen), 1):
            return None, {}
        return tree, sources

    def _age_remark(self, sources: Mapping[str, str], listing: SiteListing) -> Iterator[str]:
        """A remark if pages are older than their source."""
        if self._docs is None or self._used_tree is None:
            return
        older = []
        for file, source in sources.items():
            try:
                if (self._docs / source).stat().st_mtime_ns > modified_ns(listing.html[file]):
                    older.append(source)
            except OSError:
                continue
        if older:
            yield (
                f"{counted(len(older), 'page')} of the site may be older than the source, such as {min(older)}. "
                "Build the site again before its index."
            )

    def _sitemap_addresses(
        self, listing: SiteListing, facts: Mapping[str, PageFacts]
    ) -> tuple[dict[str, str] | None, tuple[str, ...]]:
        """(path -> address of the files in sitemaps, remarks). The sitemap of a folder has precedence over one above
        it. None if there are no sitemaps, or too few pages are in them."""
        files = {page_addresses.key(path): path for path in sorted(facts, reverse=True)}  # the first path wins
        maps = sorted(path for path in listing.others if path.rpartition("/")[2].startswith("sitemap"))
        if not maps:
            return None, ()
        addresses: dict[str, str] = {}
        has_names = False
        # the deepest folder first, since its sitemap has precedence
        for folder in sorted({path.rpartition("/")[0] for path in maps}, key=lambda each: -each.count("/")):
            named = [
                address
                for path in maps
                if path.rpartition("/")[0] == folder
                for address in site_listing.locations((self.folder / path).read_bytes())
                if not address.endswith(".xml")
            ]
            has_names = has_names or bool(named)
            start = f"{folder}/" if folder else ""
            keys = {key: f"{key}/".removeprefix(start).rstrip("/") for key in files if f"{key}/".startswith(start)}
            inside = {own: files[key] for key, own in keys.items()}
            # The sitemap of a language may be in its folder while the pages that it names are at the top. So both
            # are tried, and the one with more pages is used.
            pages = max((site_listing.file_addresses(named, keyed) for keyed in (inside, files)), key=len)
            for path, address in pages.items():
                addresses.setdefault(path, address)
        if not addresses and not has_names:  # empty, as generators write it that do not know the site's address
            return None, ()
        # with the slash, because 1.1/ has no page of 1.10/
        starts = tuple(path.rpartition("/")[0] + "/" if "/" in path else "" for path in maps)
        covered = [path for path in facts if path.startswith(starts)]
        expected = sum(site_pages.is_listable(facts[path]) for path in covered)
        if len(addresses) < MIN_SHARE_LISTED * expected:
            return None, (f"{maps[0]} names other pages than the site has, so all HTML files are read.",)
        uncovered = {path: "" for path in facts if path not in covered}
        return {**uncovered, **addresses}, ()

    def _second_names(self, listing: SiteListing) -> dict[str, dict[str, str]]:
        """Key of a page's address -> second names of its sections, by Sphinx's inventories."""
        names: dict[str, dict[str, str]] = {}
        for path in sorted(listing.others):
            if path.rpartition("/")[2] == INVENTORY:
                with suppress(OSError):  # it was deleted after it was listed, which the next listing shows
                    folder = path.removesuffix(INVENTORY)
                    for page, anchors in site_listing.aliases((self.folder / path).read_bytes()).items():
                        names[page_addresses.key(f"{folder}{page}")] = anchors
        return names

    def _metadata(self, page: SitePage) -> dict[str, object]:
        return page.metadata(self._aliases.get(page_addresses.key(page.file)))

    def _declared_versions(self, listing: SiteListing) -> list[str]:
        """The names of versions in ``versions.json``."""
        declared = None
        if "versions.json" in listing.others:
            with suppress(OSError, ValueError):
                declared = strict_json(safe_files.text(self.folder / "versions.json", MAX_DECLARED_BYTES))
        listed = declared if isinstance(declared, list) else []
        names = [each.get("version") if isinstance(each, dict) else each for each in listed]
        return [name for name in names if isinstance(name, str)]


def _address_remark(chosen: Sequence[SitePage]) -> Iterator[str]:
    """A remark if no page has an absolute address. It names the key of the most common generator."""
    if not chosen or any(page.url is not None for page in chosen):
        return
    (name, _), *_ = Counter(page.facts.generator for page in chosen).most_common(1)
    key = next((generator.address for generator in GENERATORS if generator.name == name), "")
    or_key = f", or set {key} and build the site again" if key else ""
    yield f"The pages do not say where the site is published, so no result has an address. Give --site-url{or_key}."


def _known_file(
    read: reader_processes.Loaded | reader_processes.AnsweredFile, path: str, listing: SiteListing, facts: PageFacts
) -> KnownFile:
    """The cache entry of a file, with its signatures in a listing."""
    signature = None if read.twin is None else listing.others.get(read.twin)
    return KnownFile(listing.html[path], read.digest, read.linked, read.twin, signature, facts)


def _title(tree: DocumentSource, path: str) -> str:
    from anvil.text import markdown_sections

    document = tree.read(path)
    if isinstance(document, Skipped):
        return ""
    if path.lower().endswith(".adoc"):
        title = _ASCIIDOC_TITLE.search(document.text)
        return title[1] if title else ""
    return document.title or markdown_sections.parse(document.text).title or ""
