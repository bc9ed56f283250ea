"""Whole pages, single sections, and the list of pages, by the address a reader uses."""

from __future__ import annotations

import difflib
import posixpath
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath

from anvil.errors import NotFound
from anvil.models import (
    ROOT,
    SEPARATOR,
    ChunkMetadata,
    Page,
    PageChunk,
    PageList,
    PageSummary,
    Section,
    SectionText,
)
from anvil.selecting import is_unicode
from anvil.store.asked import Asked
from anvil.store.stored import StoredDocument, section_url


@dataclass(frozen=True, slots=True)
class Outline:
    """A page and its sections, whose offsets count characters of its text."""

    page: Page
    sections: tuple[Section, ...]
    url: str | None


def normalised(file_path: str, docs_root: Path | None) -> str:
    """A page's path as the index spells it: relative to the docs root, POSIX, no leading ``/`` or ``./``.

    An absolute path inside ``docs_root`` is made relative. Raises :class:`NotFound` for one that leads out.
    """
    outside = NotFound(f"{file_path} is outside the docs folder. Give a path relative to it, as in list_pages.")
    if "\0" in file_path:
        raise NotFound("A page's path cannot hold a NUL character. Use list_pages to discover available pages.")
    if docs_root is not None and Path(file_path).is_absolute():
        for root in (docs_root.absolute(), docs_root.resolve()):
            if Path(file_path).is_relative_to(root):
                return _inside(Path(file_path).relative_to(root).as_posix(), outside)
    if PureWindowsPath(file_path).drive:
        raise outside
    return _inside(file_path.lstrip("/"), outside)  # a leading slash may mean the docs root


def _inside(path: str, outside: NotFound) -> str:
    plain = posixpath.normpath(path) if path else ""
    if plain == ".." or plain.startswith("../"):
        raise outside
    return "" if plain == "." else plain


def _document(reader: Asked, file_path: str, docs_root: Path | None) -> StoredDocument:
    document = _stored(reader, file_path)  # as listed, whatever the name looks like
    path = file_path if document else normalised(file_path, docs_root)
    document = document or _stored(reader, path)
    if document is None:
        paths = list(reader.identities())
        same_name = [p for p in paths if PurePosixPath(p).name == PurePosixPath(path).name]
        near = (same_name + difflib.get_close_matches(path, paths, n=3, cutoff=0.5))[:3]
        raise NotFound(
            f"No page found at path: {file_path}. Use list_pages to discover available pages."
            + (f" Closest: {', '.join(dict.fromkeys(near))}." if near else "")
        )
    return document


def _stored(reader: Asked, path: str) -> StoredDocument | None:
    return reader.document(path) if is_unicode(path) else None


def get_page(reader: Asked, file_path: str, docs_root: Path | None = None) -> Page:
    """A page with its chunks in document order. Raises :class:`NotFound`, naming the closest paths."""
    return _page(reader, _document(reader, file_path, docs_root))


def outline(reader: Asked, file_path: str, docs_root: Path | None = None) -> Outline:
    """A page with its sections. Raises :class:`NotFound`, naming the closest paths."""
    document = _document(reader, file_path, docs_root)
    return Outline(_page(reader, document), reader.sections(document.id), document.url)


def _page(reader: Asked, document: StoredDocument) -> Page:
    chunks = reader.page_chunks(document.id)
    total = sum(chunk.char_count for chunk in chunks)
    return Page(document.file_path, document.title, document.last_modified, total, chunks)


def get_section(
    reader: Asked,
    file_path: str,
    heading_path: str,
    include_children: bool = False,
    docs_root: Path | None = None,
) -> SectionText:
    """The text under one heading, whole, however it was cut into chunks.

    ``heading_path`` is the exact breadcrumb. ``include_children`` runs on to the next heading of the same or a
    higher level. Raises :class:`NotFound`, naming the closest breadcrumbs.
    """
    document = _document(reader, file_path, docs_root)
    sections = reader.sections(document.id)
    found = next((s for s in sections if s.heading_path == heading_path), None)
    if found is None:
        near = closest_headings(heading_path, sections)
        raise NotFound(
            f"No section found at heading: {heading_path} in {document.file_path}. "
            "Use get_page to see available sections." + (f" Closest: {'; '.join(near)}." if near else "")
        )
    last = last_of(found, sections) if include_children else found
    content = page_text(reader.page_chunks(document.id))[found.start : last.end]
    place = ChunkMetadata(
        document.file_path, found.heading_path, found.heading_level, document.last_modified, len(content),
        found.start_line, last.end_line, section_url(document.url, found.anchor),
    )  # fmt: skip
    return SectionText(content, place)


def headings(reader: Asked, file_path: str, docs_root: Path | None = None) -> tuple[str, ...]:
    """The breadcrumbs of a page's sections, in order. Raises :class:`NotFound`, naming the closest paths."""
    return tuple(section.heading_path for section in reader.sections(_document(reader, file_path, docs_root).id))


def page_text(chunks: tuple[PageChunk, ...]) -> str:
    """The page's text: its chunks, joined."""
    return "".join(chunk.content for chunk in chunks)


def last_of(section: Section, sections: tuple[Section, ...]) -> Section:
    """The last of a section's descendants, or itself."""
    last = section
    for each in sections[section.ordinal + 1 :]:
        if section.heading_level == 0 or each.heading_level <= section.heading_level:
            break
        last = each
    return last


def closest_headings(wanted: str, sections: tuple[Section, ...]) -> list[str]:
    """Up to three breadcrumbs near to ``wanted``; first the only one that ends in exactly its last heading."""
    paths = [section.heading_path for section in sections]
    leaf = wanted.rsplit(SEPARATOR, 1)[-1]
    exact = [p for p in paths if p == wanted or p.endswith(SEPARATOR + wanted)]
    exact = exact or [s.heading_path for s in sections if s.title == leaf]
    folded = [p for p in paths if leaf.casefold() in p.rsplit(SEPARATOR, 1)[-1].casefold() and leaf != ROOT]
    near = difflib.get_close_matches(wanted, paths, n=3, cutoff=0.4)
    ranked = [*(exact if len(exact) == 1 else []), *near, *exact, *folded]
    return list(dict.fromkeys(ranked))[:3]


def list_pages(reader: Asked, prefix: str | None = None) -> PageList:
    """All pages, or those in the folder ``prefix`` (``epics`` and ``epics/`` mean the same), sorted by path."""
    folder = posixpath.normpath((prefix or "").strip("/") or ".")
    folder = "" if folder == "." else folder
    if not is_unicode(folder):
        return PageList((), 0)
    documents = list(reader.documents(folder))
    sizes, headings = reader.page_sizes(), reader.top_headings([document.id for document in documents])
    pages = []
    for document in documents:
        count, chars = sizes.get(document.id, (0, 0))
        pages.append(
            PageSummary(document.file_path, document.title, headings.get(document.id, ()), count, chars,
                        document.last_modified, document.url)
        )  # fmt: skip
    return PageList(tuple(pages), len(pages))


def breadcrumb(reader: Asked, file_path: str, heading: str, docs_root: Path | None = None) -> str:
    """The exact breadcrumb that ``heading`` means: itself, else the section with that anchor, else the only one
    that ends in it. Given back as it is when nothing fits."""
    document = _document(reader, file_path, docs_root)
    sections = reader.sections(document.id)
    if any(s.heading_path == heading for s in sections):
        return heading
    for section in sections:
        if section.anchor == heading:
            return section.heading_path
    tails = [s.heading_path for s in sections if s.title == heading or s.heading_path.endswith(SEPARATOR + heading)]
    return tails[0] if len(tails) == 1 else heading
