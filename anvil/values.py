"""Pages, sections, chunks, documents and their comparison, as immutable values; and constants that many modules share.

Sections and blocks are named tuples, because a page can have half a million of them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

RETRY_S = 30.0
"""Pause after a failure, before the vectors are made again."""
LOCK_TIMEOUT_S = 600.0
"""How long a process waits for another one that writes the same file."""

MAX_PATH_CHARS = 4096
"""Characters of a path or breadcrumb. Operating systems have no longer paths."""
MIN_DUPLICATE_CHARS = 100
"""Characters from which on an equal text is a duplicate: "See above." may be repeated."""

PAGE_ENDINGS = (".md", ".mdx", ".markdown", ".qmd", ".rmd")
"""The endings of Markdown files, in lower case."""
SITE_ENDINGS = (".rst", ".adoc", ".ipynb", ".mdoc", ".org")
"""The endings of other files that generators of sites make pages from. They are indexed with their site only."""
PAGE_ENDING = rf"\.(?:{'|'.join(ending[1:] for ending in PAGE_ENDINGS)})"
"""A regular expression for one of these endings."""


def has_page_ending(path: str) -> bool:
    """Whether the name of a file is that of a Markdown file."""
    return path.lower().endswith(PAGE_ENDINGS)


ROOT = "(root)"
"""The breadcrumb of text before the first heading."""

SEPARATOR = " > "
"""Joins the headings of a breadcrumb."""


# Metadata of fields. One dataclass serves the Python API, --json and the tools, whose answers agents pay for by length.
OPTIONAL = {"optional": True}
"""Metadata of a field that is omitted from a result when it is None."""

SEVERAL = {"optional": True, "several": True}
"""Metadata of a field that only results of several collections, versions or languages have. It is not in the tools'
schemas."""

USUAL = {"usual": None}
"""Metadata of a field that an answer of a tool leaves out if it is None. Elsewhere it is always there."""

UNSENT = {"unsent": True}
"""Metadata of a field that no answer of a tool has, because another field says the same. Elsewhere it is there."""

OPAQUE = {"opaque": True}
"""Metadata of a field whose own fields are in the tools' reference only, not in their schemas, for which agents pay."""


def labelled(collection: str, version: str | None) -> str:
    """The label of a collection: its name, with its version as ``fastapi@0.139``."""
    return f"{collection}@{version}" if version else collection


def address(path: str, collection: str | None, version: str | None) -> str:
    """The name of a page for people: its path, or ``COLLECTION:PATH`` if there are several collections."""
    return path if collection is None else f"{labelled(collection, version)}:{path}"


def at_line(path: str, line: int | None) -> str:
    """A position for people: ``PATH:LINE``, or the path alone if no line is known."""
    return path if line is None else f"{path}:{line}"


# --- a parsed page -------------------------------------------------------------------------------


class Section(NamedTuple):
    """One heading and the text under it, up to the next heading of any level.

    ``start`` and ``end``: offsets in characters of the page's text. ``start_line`` and ``end_line``: 1-based,
    inclusive, in the source file with its front matter; None if the text is in no source file. ``heading_path`` is
    unique in its page.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    title: str
    anchor: str
    start: int
    end: int
    start_line: int | None
    end_line: int | None


class Block(NamedTuple):
    """A top-level block (paragraph, fence, table ...) or an item of a list: a chunk can end after it.

    ``start`` and ``end``: offsets in the page's text. ``atomic``: a fence, table or HTML. Such a block is split only if
    it alone is over the limit.
    """

    start: int
    end: int
    atomic: bool


class Box(NamedTuple):
    """An item of a list that has check boxes. Its first paragraph has ``rows`` lines from the 1-based ``line`` on.

    ``mark``: the text in its box, a blank or one or two characters; empty for an item without a box, which has no text
    here. ``group``: the same for the items of one list. In a parsed page, ``line`` counts in the source file.
    """

    line: int
    rows: int
    mark: str
    group: int
    text: str = ""
    heading_path: str = ""


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A parsed Markdown page. ``text`` is the source without byte order mark and front matter.

    The spans of ``sections`` cover ``text`` from 0 to its end, in order and without overlap; those of ``blocks``
    likewise. ``first_line``: the 1-based source line at which ``text`` begins.
    """

    text: str
    first_line: int
    title: str | None
    metadata: Mapping[str, Any]
    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]
    boxes: tuple[Box, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """The unit of search: a section, a part of a long one, or several short ones together.

    ``heading_path``: the breadcrumb of its first section, with `` [part 2/3]`` if it is one of several parts. ``start``
    and ``end``: offsets in the page's text. Lines are counted as in :class:`Section`. ``masked``: the part of
    :func:`anvil.text.visible_text.masked` of the page; None if that is equal to ``content``.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    content: str
    start: int
    end: int
    start_line: int | None
    end_line: int | None
    anchor: str
    masked: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """A text that is embedded: ``content[start:end]`` of a chunk, under a header of title and breadcrumb."""

    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """The origin of a text. The tool reference describes each field. ``version`` and ``language``: of a site's page;
    None for other documents."""

    file_path: str
    heading_path: str
    heading_level: int
    last_modified: str
    char_count: int
    start_line: int | None = field(metadata=USUAL)
    end_line: int | None = field(metadata=USUAL)
    url: str | None = field(default=None, metadata=USUAL)
    version: str | None = field(default=None, metadata=SEVERAL)
    language: str | None = field(default=None, metadata=SEVERAL)


@dataclass(frozen=True, slots=True)
class PageChunk:
    """A chunk within its page."""

    content: str
    heading_path: str
    heading_level: int
    char_count: int
    ordinal: int


# --- documents and their comparison -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is skipped, with a reason that tells what to do."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """The files of a source: POSIX path -> git blob id (40 hex digits), sorted by path."""

    entries: Mapping[str, str]
    skipped: tuple[Skipped, ...] = ()


UNKNOWN_TIME = "1970-01-01T00:00:00Z"
"""The time of documents without a known one, such as all pages of a site without source files."""


@dataclass(frozen=True, slots=True)
class Document:
    """A source document: its text and its metadata.

    - ``last_modified``: ISO 8601 in UTC (``2026-01-31T09:30:00Z``); most sources give it apart from the text.
    - ``metadata``: merged over the front matter.
    - ``headings``: (level, id, text) of the published page, which decide the anchors; None without a published page.
    - ``blob_id``: empty for a page without a source file. ``fingerprint``: empty for a plain file.
    - ``inserted``: (source line, number of lines from another file after it).
    - ``missing``: (source line, path, candidates) of included files that do not exist; see :mod:`anvil.text.includes`.
    - ``page``: the parsed ``text`` with GitHub's anchors, if the source parsed it.
    - ``cleaned``: text that readers do not see is not stored, as in the index of a site.
    - ``source``: the text of the file from which ``text`` was made; empty for a page without a file; None if ``text``
      is
      the text of the file.
    """

    path: str
    blob_id: str
    text: str
    size: int
    last_modified: str = UNKNOWN_TIME
    title: str | None = None
    url: str | None = None
    nav_path: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    headings: tuple[tuple[int, str, str], ...] | None = None
    fingerprint: str = ""
    inserted: tuple[tuple[int, int], ...] = ()
    page: ParsedPage | None = field(default=None, repr=False)
    cleaned: bool = False
    missing: tuple[tuple[int, str, tuple[str, ...]], ...] = ()
    source: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Changes:
    """The differences between a source and an index, by content: sorted paths."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __len__(self) -> int:
        return len(self.changed) + len(self.added) + len(self.removed)

    @property
    def paths(self) -> tuple[str, ...]:
        """All these paths, sorted."""
        return tuple(sorted((*self.changed, *self.added, *self.removed)))


KnownTimes = Mapping[str, tuple[str, str]]
"""Path of a page in an index -> its blob id, and the time of the last commit that changed it (ISO 8601, UTC)."""
Progress = Callable[[str, int, int], None]
"""A callback for long operations: (stage, done, total)."""


def silent(stage: str, done: int, total: int) -> None:
    """A progress callback that does nothing."""
