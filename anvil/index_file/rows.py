"""Rows of an index as values: documents, chunks, sections; and titles and URLs of sections."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from anvil.formats.characters import LINE_END
from anvil.values import SEPARATOR, ChunkMetadata


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A row of ``documents``."""

    id: int
    library: str
    file_path: str
    title: str
    blob_id: str
    size: int
    last_modified: str
    url: str | None
    nav_path: str | None
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk, with the fields of its document that a search result has. ``row``: its row id."""

    row: int
    document_id: int
    ordinal: int
    title: str
    content: str
    start: int
    metadata: ChunkMetadata


class SearchedText(NamedTuple):
    """The texts of a chunk that are searched, and their length in words. ``terms``: derived words and the path's."""

    title: str
    heading_path: str
    content: str
    terms: str
    length: int


class ChunkText(NamedTuple):
    """What of a chunk is embedded, and its row id."""

    row: int
    title: str
    heading_path: str
    content: str


class BareWindow(NamedTuple):
    """A window without a vector. ``start`` and ``end``: its span in the content of the chunk, in characters."""

    id: int
    chunk_row: int
    start: int
    end: int


class SectionPlace(NamedTuple):
    """A section without its number and heading text: see :class:`anvil.values.Section`."""

    heading_path: str
    heading_level: int
    anchor: str
    start: int
    end: int
    start_line: int | None
    end_line: int | None


def section_url(page_url: str | None, anchor: str) -> str | None:
    """The URL of a section: that of the page, with ``#anchor`` if it has one."""
    return f"{page_url}#{anchor}" if page_url and anchor else page_url


def is_parallel(text: str, start_line: int | None, end_line: int | None) -> bool:
    """Whether a text has as many lines as its place in the source file, so that each is one of the file."""
    if start_line is None or end_line is None:
        return False
    return len(LINE_END.findall(text)) - text.endswith(("\r", "\n")) == end_line - start_line


def edition(metadata: Mapping[str, Any]) -> tuple[str | None, str | None]:
    """The version and the language that a document's metadata name; None for one that they do not."""
    version, language = metadata.get("version"), metadata.get("language")
    return version if isinstance(version, str) else None, language if isinstance(language, str) else None


def speaks(own: str, language: str) -> bool:
    """Whether a page's language is the given one: ``en-GB`` is ``en`` too."""
    own, language = own.lower().replace("_", "-"), language.lower().replace("_", "-")
    return own == language or own.startswith(f"{language}-")


def section_titles(paths: Sequence[tuple[str, int]]) -> list[str]:
    """The texts of headings, from (breadcrumb, level) of a page's sections in order.

    A breadcrumb is that of the parent, a separator and the text. The parser adds a number in brackets to a breadcrumb
    that the page has already, so such a number is not part of the text.
    """
    seen: set[str] = set()
    above: list[tuple[str, int]] = []
    titles = []
    for path, level in paths:
        while above and above[-1][1] >= level:
            above.pop()
        parent = next((outer for outer, _ in reversed(above) if path.startswith(outer + SEPARATOR)), None)
        numbered = _NUMBERED.fullmatch(path)
        plain = numbered[1] if numbered and numbered[1] in seen else path
        titles.append(plain[len(parent) + len(SEPARATOR) :] if parent is not None else plain)
        seen.add(path)
        above.append((path, level))
    return titles


def listed_headings(paths: Sequence[tuple[str, int]]) -> tuple[str, ...]:
    """The headings of a page list, from (breadcrumb, level) of its h1 and h2 in order: the text, or the breadcrumb
    where several have that text."""
    titles = section_titles(paths)
    uses = Counter(titles)
    return tuple(title if uses[title] == 1 else path for title, (path, _) in zip(titles, paths, strict=True))


_NUMBERED = re.compile(r"(.*) \[\d+\]", re.DOTALL)
