"""Markdown files, ``llms.txt`` and ``llms-full.txt`` in the folder of a built site, and links to them in its HTML.

:func:`publish` writes the pages of an index, as ``anvil build --site FOLDER --markdown`` does. :func:`write` writes any
pages. Only files that Anvil wrote are replaced or removed (:class:`anvil.sites.site_listing.Record`). Others stay, and
the report names them. A file is written only if its content changes, and put in place by a rename.
"""

from __future__ import annotations

import hashlib
import os
import posixpath
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anvil.errors import BuildError
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredDocument
from anvil.search import page_variants
from anvil.search.pages import page_text
from anvil.site_markdown import llms, paths_and_links
from anvil.site_markdown.llms import PublishedSite
from anvil.site_markdown.page_file import MarkdownPage, page_of, render
from anvil.site_markdown.paths_and_links import MarkdownLinks, SiteLinks, SitePlace, relative
from anvil.sites import page_addresses
from anvil.sites.site_listing import RECORD, Record, read_record
from anvil.sites.site_pages import SitePage
from anvil.system import safe_files
from anvil.text import references
from anvil.values import Document, Progress, silent
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.sites.site_folder import SiteFolder

MAX_WAITING_BYTES = 64_000_000
"""Bytes of files in memory that are written together, after the record of them."""
MAX_HTML_BYTES = 50_000_000
"""The largest HTML file that gets a link."""
MAX_PATHS_SHOWN = 3
_NO_LINK = "no link to the Markdown, because the page has no end of its head, a <base>, or another such link"


class PlacedPage(NamedTuple):
    """A page and its place in the site. ``is_listed``: it is in ``llms.txt`` and ``llms-full.txt``."""

    place: SitePlace
    page: MarkdownPage
    is_listed: bool = True


@dataclass(frozen=True, slots=True)
class MarkdownReport:
    """The result of writing the Markdown of a site. ``files``: the number of Markdown files that the site has now.
    ``notes``: sentences on files that could not be written."""

    pages: int
    files: int
    written: int
    removed: int
    notes: tuple[str, ...]

    def __str__(self) -> str:
        changes = [(self.written, "written"), (self.removed, "removed")]
        counts = ", ".join(f"{count:,} {word}" for count, word in changes if count) or "unchanged"
        return f"Markdown of {counted(self.pages, 'page')} in {counted(self.files, 'file')}: {counts}."


def write(
    folder: Path,
    site: PublishedSite,
    pages: Iterable[PlacedPage],
    links: MarkdownLinks,
    *,
    link_html: bool = False,
    is_whole: bool = True,
    progress: Progress = silent,
) -> MarkdownReport:
    """Write the Markdown of ``pages``, which are in the order of ``llms.txt``.

    ``link_html``: give each HTML file a link to its Markdown; if False, remove the links of an earlier build.
    ``is_whole``: these are all pages of the site; if False, nothing is removed and no ``llms.txt`` is written. Raises
    :class:`BuildError` if nothing can be written.
    """
    layout = links.layout
    files = _Files(folder)
    listed: list[MarkdownPage] = []
    full_texts = [llms.head(site)]
    full_bytes = 0
    linked: list[tuple[SitePlace, str]] = []
    for done, (place, page, is_listed) in enumerate(pages):
        progress("writing Markdown", done, len(layout.files))
        spans = references.target_spans(page.text)
        by_folder: dict[str, str] = {}  # folder -> text, whose links are relative to the folder
        for path in layout.files[place.html]:
            above = path.rpartition("/")[0]
            if above not in by_folder:
                by_folder[above] = render(page, links.of(place.base, path), spans)
            files.want(path, by_folder[above])
        if is_listed:
            listed.append(replace(page, text=""))
        if is_listed and full_bytes <= llms.MAX_FULL_BYTES:
            text = references.with_targets(page.text, spans, links.of(place.base, llms.FULL))
            full_texts.append(f"\n<!-- {page.url or page.path} -->\n\n{text}")
            full_bytes += len(full_texts[-1].encode(errors="replace"))
        linked.append((place, page.path))
    notes = []
    if layout.refused:
        paths = [f"{path} of {html}" for path, html in sorted(layout.refused.items())]
        named = first_of(paths, MAX_PATHS_SHOWN)
        notes.append(f"Another page has this Markdown file too, so it is not written: {named}.")
    if unix_only := sorted(html for html in layout.files if not page_addresses.is_plain(html)):
        named = first_of(unix_only, MAX_PATHS_SHOWN)
        notes.append(f"{named}: no Markdown, because such a file name is not valid on Windows.")
    if is_whole:
        has_full = full_bytes <= llms.MAX_FULL_BYTES
        if has_full:
            files.want(llms.FULL, "".join(full_texts))
        else:
            size = f"{llms.MAX_FULL_BYTES // 1_000_000} MB"
            notes.append(f"{llms.FULL} is not written: the text of all pages is larger than {size}.")
        files.want(llms.LIST, llms.list_file(site, listed, has_full))
    files.finish(is_whole)
    files.save(files.link_html([each for each in linked if each[1] in files.own] if link_html else [], is_whole))
    notes += files.notes()
    return MarkdownReport(len(linked), len(files.own), files.written, files.removed, tuple(notes))


class _Files:
    """The Markdown files in a site's folder, and their changes. ``own``: path -> digest of existing files by Anvil."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._root = os.path.realpath(folder)
        self._record = read_record(folder)
        """The record of the build before this one."""
        self._written_record = self._record
        self._waiting: dict[str, bytes] = {}
        """Path -> content of the files to write."""
        self._waiting_bytes = 0
        self._inside: dict[str, bool] = {}
        """Folder -> whether it is really in the site, and no link leads out of it."""
        self._problems: dict[str, list[str]] = {}
        """Reason -> paths of files that are not as wanted."""
        self._kept: set[str] = set()
        """Files that could not be written, so that an earlier version is not removed."""
        self.own: dict[str, str] = {}
        self.written = self.removed = 0

    def want(self, path: str, text: str) -> None:
        """Write a file, at once or later, if its content changes and the existing one is Anvil's."""
        data = text.encode(errors="replace")
        digest = hashlib.sha256(data).hexdigest()
        try:
            before = self._digest(path)
        except (OSError, BuildError) as error:
            self._refuse(path, error)
            return
        if before == digest:
            self.own[path] = digest
        elif before is not None and not self._record.is_own(path, before):
            self._problem(path, "not a file of Anvil, so it stays as it is")
        else:
            self._waiting[path] = data
            self._waiting_bytes += len(data)
            if self._waiting_bytes > MAX_WAITING_BYTES:
                self._write_waiting()

    def _digest(self, path: str) -> str | None:
        """The SHA-256 (hex) of an existing file; None without one. Raises :class:`BuildError` if it is a link or a
        folder, or if a link above it leads out of the site, and :class:`OSError`."""
        above = path.rpartition("/")[0]
        if above not in self._inside:
            real = os.path.realpath(self._folder / above)
            self._inside[above] = Path(real).is_relative_to(self._root)
        if not self._inside[above]:
            raise BuildError(f"{self._folder / above} is a link that leads out of {self._folder}.")
        return safe_files.digest(self._folder / path)

    def _write_waiting(self) -> None:
        if not self._waiting:
            return
        # The record is first, so that an interrupted build leaves no file that the next one takes for somebody else's.
        coming = {path: hashlib.sha256(data).hexdigest() for path, data in self._waiting.items()}
        self._write_record(replace(self._written_record, unfinished={**self._record.unfinished, **self.own, **coming}))
        for path, data in sorted(self._waiting.items()):
            try:
                safe_files.write_file(self._folder / path, data, flush=False)
            except (OSError, BuildError) as error:
                self._refuse(path, error)
            else:
                self.own[path] = coming[path]
                self.written += 1
        self._waiting, self._waiting_bytes = {}, 0

    def finish(self, is_whole: bool) -> None:
        """Write the waiting files. ``is_whole``: remove the files of pages that no longer exist."""
        self._write_waiting()
        for path in sorted({*self._record.files, *self._record.unfinished} - self.own.keys()):
            try:
                digest = self._digest(path)
            except (OSError, BuildError):
                continue  # it is not a file of Anvil anymore
            if digest is None or not self._record.is_own(path, digest):
                continue
            if not is_whole or path in self._kept:
                self.own[path] = digest
                continue
            try:
                (self._folder / path).unlink()
            except OSError as error:
                self.own[path] = digest
                self._refuse(path, error)
                continue
            self.removed += 1
            with suppress(OSError):  # the folder has other files
                (self._folder / path).parent.rmdir()

    def link_html(self, wanted: Sequence[tuple[SitePlace, str]], is_whole: bool) -> list[str]:
        """Put a link to its Markdown into the HTML of each wanted page. ``is_whole``: remove it from other HTML files.
        Returns the HTML files that have a link now."""
        linked = {
            place.html
            for place, path in wanted
            if self._edit(place.html, partial(_with_link, target=relative(path, posixpath.dirname(place.address))))
        }
        others = set(self._record.linked) - linked
        for html in sorted(others) if is_whole else ():
            self._edit(html, _without_link)
        return sorted(linked if is_whole else linked | others)

    def _edit(self, html: str, change: Callable[[bytes], bytes | None]) -> bool:
        """Change an HTML file, and keep its time, which is compared with its source. Returns whether it is as asked."""
        file = self._folder / html
        try:
            if self._digest(html) is None:
                return False
            state = file.stat()
            data = safe_files.data(file, MAX_HTML_BYTES)
            new = change(data)
            if new is None:
                self._problem(html, _NO_LINK)
                return False
            if new != data:
                safe_files.write_file(file, new, flush=False)
                os.utime(file, ns=(state.st_atime_ns, state.st_mtime_ns))
        except (OSError, BuildError) as error:
            self._refuse(html, error)
            return False
        return True

    def save(self, linked: Sequence[str]) -> None:
        """Write the record of all files if it changed. ``linked``: HTML files with a link to their Markdown."""
        record = Record(self.own, {}, tuple(linked))
        if record != self._written_record:
            self._write_record(record)

    def _write_record(self, record: Record) -> None:
        file = self._folder / RECORD
        safe_files.ensure_inside_parent(file.parent)
        safe_files.put_file(file, record.text(), flush=False)
        self._written_record = record

    def _refuse(self, path: str, error: Exception) -> None:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        self._problem(path, f"it cannot be written ({reason.rstrip('.')})")
        self._kept.add(path)

    def _problem(self, path: str, reason: str) -> None:
        self._problems.setdefault(reason, []).append(path)

    def notes(self) -> list[str]:
        """A sentence for each reason why files are not as wanted."""
        return [f"{first_of(paths, MAX_PATHS_SHOWN)}: {reason}." for reason, paths in sorted(self._problems.items())]


_HEAD_END = re.compile(rb"</head\s*>", re.I)
_OTHER = re.compile(rb"<link\b[^>]{0,500}\btext/markdown\b", re.I)
_BASE = re.compile(rb"<base\s", re.I)
_OWN = re.compile(rb'<link rel="alternate" type="text/markdown" href="[^"<>]*" data-anvil>')


def _with_link(data: bytes, target: str) -> bytes | None:
    """The HTML of a page with a link to its Markdown. None if it has no end of its head, another link to Markdown, or a
    ``<base>``, to which the link would be relative."""
    data = _without_link(data)
    end = _HEAD_END.search(data)
    if end is None or _OTHER.search(data) or _BASE.search(data, 0, end.start()):
        return None
    link = f'<link rel="alternate" type="text/markdown" href="{escape(target)}" data-anvil>'
    return data[: end.start()] + link.encode() + data[end.start() :]


def _without_link(data: bytes) -> bytes:
    return _OWN.sub(b"", data, count=1)


# --- the pages of an index ------------------------------------------------------------------------------------------


def publish(
    index: Path,
    site: SiteFolder,
    name: str,
    *,
    version: str | None = None,
    link_html: bool = False,
    mcp_url: str | None = None,
    progress: Progress = silent,
) -> MarkdownReport:
    """Write the pages of a site's index as Markdown into its folder.

    ``site``: the site as it was read for this index. ``name``: the name of the project. ``version``: the version of
    pages without one of their own. Raises :class:`ArtifactError` if the index is not valid, and :class:`BuildError`.
    """
    if not site.pages():
        site.scan()
    with verify.open_checked(index) as reader:
        pages = site.pages()
        stored = sorted(
            (document for document in reader.documents() if document.file_path in pages),
            key=lambda document: _order(pages[document.file_path]),
        )
        # With fourteen versions of each page, a list of all is too long for the deeper pages of the newest.
        older = page_variants.left_out(page_variants.of_index(reader), page_variants.Wanted(frozenset(), ""))
        newest = {document.file_path for document in stored if document.id not in older}
        places = {document.file_path: paths_and_links.place_of(pages[document.file_path]) for document in stored}
        layout = paths_and_links.lay_out(places.values())
        url = site.url()
        first = next((document for document in stored if places[document.file_path].address == ""), None)
        summary = first.metadata.get("description") if first is not None else None
        version = version or reader.meta().get("version")
        # A description that several pages have is that of the site: generators put it into pages without their own.
        counts = Counter(str(document.metadata.get("description")) for document in stored if document is not first)
        site_descriptions = frozenset(description for description, count in counts.items() if count > 1)
        base_path = "/"
        if not url:
            base_path = paths_and_links.base_path(
                (document.text for document in _documents(reader, stored)), places.values()
            )

        def placed_pages() -> Iterator[PlacedPage]:
            for document in _documents(reader, stored):
                place, images = places[document.path], pages[document.path].facts.images
                metadata = {"version": version, **document.metadata}
                if metadata.get("description") in site_descriptions:
                    del metadata["description"]
                for path in layout.files[place.html][:1]:  # empty if other pages have both files
                    page = page_of(replace(document, metadata=metadata), path, images=images)
                    yield PlacedPage(place, page, document.path in newest)

        return write(
            site.folder,
            PublishedSite(name, summary if isinstance(summary, str) else "", url, mcp_url),
            placed_pages(),
            MarkdownLinks(layout, SiteLinks(places.values(), url, base_path)),
            link_html=link_html,
            progress=progress,
        )


def _order(page: SitePage) -> list[tuple[bool, str]]:
    """The sort key of a page: by path, the index page of a folder first, files before folders."""
    *folders, name = page.file.split("/")
    return [*((True, folder) for folder in folders), (False, "" if name.startswith("index.") else name)]


def _documents(reader: Reader, stored: Sequence[StoredDocument]) -> Iterator[Document]:
    for page, chunks in zip(stored, reader.chunks_of_pages(page.id for page in stored), strict=True):
        text = page_text(chunks)
        document = Document(page.file_path, page.blob_id, text, page.size, page.last_modified)
        yield replace(document, title=page.title, url=page.url, metadata=page.metadata)
