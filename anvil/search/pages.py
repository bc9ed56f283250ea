"""Whole pages, single sections and the list of pages, by path, breadcrumb, heading or anchor."""

from __future__ import annotations

import bisect
import itertools
import posixpath
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path, PureWindowsPath

from anvil.errors import NotFound
from anvil.formats.characters import is_unicode, line_ends
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import StoredDocument, is_parallel, section_url, version_and_language
from anvil.results import Page, PageList, PageSection, PageSummary, SectionText
from anvil.text.headings import under_heading
from anvil.values import MAX_PATH_CHARS, ROOT, SEPARATOR, ChunkMetadata, PageChunk, Section
from anvil.wording import closest_names, closest_note, closest_paths, first_of, full_heading, shown

MAX_SHARING = 5
"""Sections with the same anchor that a message names."""
MAX_LISTED_CHARS = 4_000
"""Characters of the breadcrumbs and anchors that are listed for a heading without text of its own."""
ENTRY_CHARS, TEXT_CHARS = 130, 3
"""Characters of an entry of the page list as JSON without its texts, and of the quotes and comma of each text."""


@dataclass(frozen=True, slots=True)
class Outline:
    """A page and its sections. Offsets count characters of the page's text."""

    page: Page
    sections: tuple[Section, ...]
    url: str | None


def normalize_path(file_path: str, docs_root: Path | None) -> str:
    """A page's path as in the index: relative to the docs root, POSIX, without a leading ``/`` or ``./``.

    An absolute path inside ``docs_root`` becomes relative. Raises :class:`NotFound` for a path outside of the folder.
    """
    outside = NotFound(f"{shown(file_path)} is outside the docs folder. Give a path relative to it, as in list_pages.")
    if "\0" in file_path:
        raise NotFound("A page's path cannot hold a NUL character. Use list_pages to discover available pages.")
    if docs_root is not None and Path(file_path).is_absolute():
        for root in (docs_root.absolute(), docs_root.resolve()):
            if Path(file_path).is_relative_to(root):
                return _inside(Path(file_path).relative_to(root).as_posix(), outside)
    path = file_path.lstrip("/")  # a leading slash may mean the docs root
    if PureWindowsPath(path).drive:
        raise outside
    return _inside(path, outside)


def _inside(path: str, outside: NotFound) -> str:
    normalized = posixpath.normpath(path) if path else ""
    if normalized == ".." or normalized.startswith("../"):
        raise outside
    return "" if normalized == "." else normalized


def find_document(reader: IndexReader, file_path: str, docs_root: Path | None) -> StoredDocument:
    """The page at a path. Raises :class:`NotFound`, with the closest paths."""
    if len(file_path) > MAX_PATH_CHARS:
        raise NotFound(
            f"No page found at path: {shown(file_path)}. It has {len(file_path):,} characters, and no path has more "
            f"than {MAX_PATH_CHARS:,}. Use list_pages to discover available pages."
        )
    if document := _document(reader, file_path, docs_root):
        return document
    closest = closest_note(closest_paths(normalize_path(file_path, docs_root), reader.identities()))
    raise NotFound(f"No page found at path: {shown(file_path)}. Use list_pages to discover available pages.{closest}")


def _document(reader: IndexReader, file_path: str, docs_root: Path | None) -> StoredDocument | None:
    """The page at a path, or None. A listed path goes first, also if it looks like an absolute one. Raises
    :class:`NotFound` for a path outside of the folder."""
    if is_unicode(file_path) and (document := reader.document(file_path)):
        return document
    path = normalize_path(file_path, docs_root)
    if not is_unicode(path):
        return None
    if (document := reader.document(path)) or path.isascii():
        return document
    # Of a letter with marks, a keyboard and a file system may give other code points.
    typed = unicodedata.normalize("NFC", path)
    return reader.document(
        next((listed for listed in reader.identities() if unicodedata.normalize("NFC", listed) == typed), path)
    )


def get_page(reader: IndexReader, file_path: str, docs_root: Path | None = None) -> Page:
    """A page with its chunks in document order. Raises :class:`NotFound`, with the closest paths."""
    return outline(reader, file_path, docs_root).page


def has_page(reader: IndexReader, file_path: str, docs_root: Path | None = None) -> bool:
    """Whether :func:`get_page` finds a page."""
    with suppress(NotFound):
        return len(file_path) <= MAX_PATH_CHARS and _document(reader, file_path, docs_root) is not None
    return False


def outline(reader: IndexReader, file_path: str, docs_root: Path | None = None) -> Outline:
    """A page with its sections. Raises :class:`NotFound`, with the closest paths."""
    document = find_document(reader, file_path, docs_root)
    sections, chunks = reader.sections(document.id), reader.page_chunks(document.id)
    total = sum(chunk.char_count for chunk in chunks)
    page = Page(document.file_path, document.title, document.last_modified, total, chunks, _page_sections(sections))
    return Outline(page, sections, document.url)


def get_section(
    reader: IndexReader,
    file_path: str,
    heading_path: str,
    include_children: bool = False,
    docs_root: Path | None = None,
) -> SectionText:
    """The whole text under one heading, however it was cut into chunks; for a part (``[part 2/3]``), the text of that
    part.

    ``heading_path`` is a breadcrumb, with or without the page's title in front. Otherwise it is an anchor, the text of
    a heading, or the end of a breadcrumb that only one section has. ``include_children``: up to the next heading of the
    same or a higher level. Raises :class:`NotFound`, with the closest breadcrumbs.
    """
    document = find_document(reader, file_path, docs_root)
    sections = reader.sections(document.id)
    chunks = reader.page_chunks(document.id)
    # No address but a breadcrumb of the page is longer than a path, and comparing takes time.
    is_comparable = len(heading_path) <= MAX_PATH_CHARS or any(heading_path == s.heading_path for s in sections)
    found = _find_address(heading_path, document.title, sections, chunks) if is_comparable else None
    if found is None:
        raise _no_section(document, heading_path, sections)
    section, part = found
    text = page_text(chunks)
    last = last_of(section, sections) if include_children else section
    start, end, first_line, last_line = section.start, last.end, section.start_line, last.end_line
    if part is not None:
        start = sum(chunk.char_count for chunk in chunks[: part.ordinal])
        if first_line and is_parallel(text[section.start : section.end], section.start_line, section.end_line):
            first_line += line_ends(text[section.start : start], start - section.start)
            if not include_children:
                last_line = first_line + line_ends(part.content, part.char_count - 1)
        if not include_children:
            end = start + part.char_count
    content = text[start:end]
    metadata = ChunkMetadata(
        document.file_path,
        part.heading_path if part else section.heading_path,
        section.heading_level,
        document.last_modified,
        len(content),
        first_line,
        last_line,
        section_url(document.url, section.anchor),
        **version_and_language(document.metadata)._asdict(),
    )
    below: Sequence[Section] = ()
    if not (include_children or part or under_heading(content).strip()):
        below = sections[section.ordinal + 1 : last_of(section, sections).ordinal + 1]
    return SectionText(content, metadata, document.title, _page_sections(below))


def _page_sections(sections: Iterable[Section]) -> tuple[PageSection, ...]:
    return tuple(
        PageSection(s.heading_path, s.heading_level, s.anchor, s.start_line, s.end - s.start) for s in sections
    )


def _no_section(document: StoredDocument, heading_path: str, sections: tuple[Section, ...]) -> NotFound:
    """The error for a heading that no section has, or an anchor that several sections have."""
    sharing = [section.heading_path for section in sections if _is_anchor(section, heading_path)]
    near = sharing or closest_headings(heading_path[:MAX_PATH_CHARS], sections)
    names = [full_heading(document.title, path) for path in near]
    if sharing:
        return NotFound(
            f"{len(sharing)} sections of {document.file_path} have the anchor {shown(heading_path)}: "
            f"{first_of(names, MAX_SHARING)}. Give one of these as heading_path."
        )
    return NotFound(
        f"No section found at heading: {shown(heading_path)} in {document.file_path}. "
        "Use get_page to see available sections." + closest_note(names, "; ")
    )


def _find_address(
    address: str, title: str, sections: Sequence[Section], chunks: Sequence[PageChunk] = ()
) -> tuple[Section, PageChunk | None] | None:
    """The section that ``address`` means, and its part if it names one of the ``chunks``; None if nothing fits.

    The exact breadcrumb goes before all else.
    """
    title = " ".join(title.split())
    untitled = address.removeprefix(title + SEPARATOR) if title else address
    if title and (address == title or address.startswith(f"{title} [part ")):
        untitled = ROOT + address.removeprefix(title)
    spellings = list(dict.fromkeys((address, untitled)))
    by_path = {section.heading_path: section for section in sections}
    for path in spellings:
        if path in by_path:
            return by_path[path], None
        part = _PART.fullmatch(path)
        if part and part[1] in by_path:
            chunk = next((chunk for chunk in chunks if chunk.heading_path == path), None)
            if chunk is not None:
                return by_path[part[1]], chunk
    for path in spellings:
        for fits in _ADDRESSES:
            fitting = [section for section in sections if fits(section, path)]
            if len(fitting) == 1:
                return fitting[0], None
            if fitting:  # ambiguous: the next kind of address would pick one of them
                break
    return None


def _is_anchor(section: Section, anchor: str) -> bool:
    name = anchor.removeprefix("#")
    return bool(name) and section.anchor == name


_ADDRESSES: tuple[Callable[[Section, str], bool], ...] = (
    # as in the list of pages, where smaller headings do not count
    lambda section, text: section.heading_level in (1, 2) and section.title == text,
    _is_anchor,
    lambda section, text: section.heading_level > 0 and section.title == text,
    lambda section, text: section.heading_path.endswith(SEPARATOR + text),
)
"""What an address may be besides a breadcrumb, the most exact first."""
_PART = re.compile(r"(.*) \[part \d+/\d+\]", re.DOTALL)


def page_text(chunks: tuple[PageChunk, ...]) -> str:
    """The text of a page: its chunks, joined."""
    return "".join(chunk.content for chunk in chunks)


def last_of(section: Section, sections: tuple[Section, ...]) -> Section:
    """The last descendant of a section; itself without any."""
    last = section
    for follower in sections[section.ordinal + 1 :]:
        if section.heading_level == 0 or follower.heading_level <= section.heading_level:
            break
        last = follower
    return last


def closest_headings(heading_path: str, sections: tuple[Section, ...]) -> list[str]:
    """Up to three breadcrumbs that are like ``heading_path``, first the only one that ends in exactly its last
    heading."""
    paths = [section.heading_path for section in sections]
    leaf = heading_path.rsplit(SEPARATOR, 1)[-1]
    exact = [p for p in paths if p == heading_path or p.endswith(SEPARATOR + heading_path)]
    exact = exact or [s.heading_path for s in sections if s.title == leaf]
    folded = [p for p in paths if leaf.casefold() in p.rsplit(SEPARATOR, 1)[-1].casefold() and leaf != ROOT]
    near = closest_names(heading_path, paths, 3, 0.4)
    ranked = [*(exact if len(exact) == 1 else []), *near, *exact, *folded]
    return list(dict.fromkeys(ranked))[:3]


def bounded_page(page: Page, offset: int, max_chars: int | None) -> Page:
    """A page with its chunks from the character ``offset`` on: at most ``max_chars`` characters, but at least one
    chunk."""
    ends = list(itertools.accumulate(chunk.char_count for chunk in page.chunks))
    first = bisect.bisect_right(ends, max(0, offset))
    begin = ends[first - 1] if first else 0
    last = len(ends) if max_chars is None else max(first + 1, bisect.bisect_right(ends, begin + max_chars))
    return replace(page, chunks=page.chunks[first:last], next_offset=ends[last - 1] if last < len(ends) else None)


def bounded_section(section: SectionText, offset: int, max_chars: int | None) -> SectionText:
    """A section with its text from the character ``offset`` on, cut as :func:`text_part` does. The sections below it
    are listed as far as there is room."""
    content, next_offset = text_part(section.content, offset, max_chars)
    room = MAX_LISTED_CHARS if max_chars is None else min(MAX_LISTED_CHARS, max_chars - len(content))
    sizes = itertools.accumulate(len(below.heading_path) + len(below.anchor) for below in section.sections)
    sections = section.sections[: sum(size <= room for size in sizes)]
    return replace(section, content=content, sections=sections, next_offset=next_offset)


def text_part(text: str, offset: int, max_chars: int | None) -> tuple[str, int | None]:
    """A text from the character ``offset`` on, and the offset of the next part, None at the end.

    It has at most ``max_chars`` characters, and ends with a whole line unless its first line is longer.
    """
    part = text[max(0, offset) :]
    if max_chars is None or len(part) <= max_chars:
        return part, None
    size = max(1, max_chars)  # with less, the offset would never move
    part = part[: part.rfind("\n", 0, size) + 1 or size]
    return part, max(0, offset) + len(part)


def list_pages(reader: IndexReader, prefix: str | None = None, end: int | None = None) -> PageList:
    """All pages, or those in the folder ``prefix`` (``epics`` and ``epics/`` mean the same), sorted by path. Those from
    the number ``end`` on have no headings."""
    if prefix is not None and len(prefix) > MAX_PATH_CHARS:
        return PageList((), 0)
    folder = posixpath.normpath((prefix or "").strip("/") or ".")
    folder = "" if folder == "." else folder
    if not is_unicode(folder):
        return PageList((), 0)
    documents = list(reader.documents(folder))
    sizes, headings = reader.page_sizes(), reader.top_headings([document.id for document in documents[:end]])
    pages = tuple(
        PageSummary(d.file_path, d.title, headings.get(d.id, ()), *sizes.get(d.id, (0, 0)), d.last_modified, d.url)
        for d in documents
    )
    return PageList(pages, len(pages))


def bounded_list(listed: PageList, limit: int | None, offset: int, max_chars: int | None) -> PageList:
    """The pages of a list after the first ``offset``: at most ``limit``, of ``max_chars`` characters, but at least
    one."""
    start = max(0, offset)
    shown = listed.pages[start : None if limit is None else start + max(1, limit)]
    if max_chars is not None:
        sizes = itertools.accumulate(map(_listed_chars, shown))
        shown = shown[: max(1, sum(size <= max_chars for size in sizes))]
    end = start + len(shown)
    return replace(listed, pages=shown, next_offset=end if shown and end < len(listed.pages) else None)


def _listed_chars(page: PageSummary) -> int:
    texts = (page.file_path, page.title, *page.headings, page.url or "", page.collection or "", page.version or "")
    return ENTRY_CHARS + sum(len(text) + TEXT_CHARS for text in texts)


def find_section(address: str, title: str, sections: tuple[Section, ...]) -> Section | None:
    """The section of a page that ``address`` means: breadcrumb, anchor or heading, as in :func:`get_section`."""
    match = _find_address(address, title, sections) if len(address) <= MAX_PATH_CHARS else None
    return match[0] if match else None
