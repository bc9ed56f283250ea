"""The values that travel through Anvil: what a page is made of, and what a question is answered with.

All are immutable. Sections and blocks, of which a page may have half a million, are named tuples. The lower half
mirrors the tool contracts field by field: what the API returns, the CLI prints as JSON and the server sends is one and
the same dataclass.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

ROOT = "(root)"
"""Breadcrumb of text that stands before any heading."""

SEPARATOR = " > "
"""Joins the headings of a breadcrumb."""

# --- a page, taken apart -------------------------------------------------------------------------------


class Section(NamedTuple):
    """One heading and the text under it, up to the next heading of any level.

    ``start`` and ``end`` are character offsets into the page's text; ``start_line`` and ``end_line`` are
    1-based, inclusive, in the source file (front matter counted). ``heading_path`` is unique in its page.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    title: str
    anchor: str
    start: int
    end: int
    start_line: int
    end_line: int


class Block(NamedTuple):
    """A top-level block (paragraph, fence, table ...) or an item of a list: a chunk may end behind it.

    Offsets into the page's text. ``atomic`` blocks (fences, tables, HTML) are only cut when one alone is over the
    limit.
    """

    start: int
    end: int
    atomic: bool


@dataclass(frozen=True, slots=True)
class Task:
    """An item of a Markdown list in which check boxes are: its 1-based source line, its text, and the breadcrumb it
    stands under.

    ``mark``: what stands in its box, such as a blank or ``x``; empty for an item without one, whose text is not given.
    ``group`` is the same for the items of one list.
    """

    line: int
    text: str
    mark: str
    heading_path: str
    group: int = 0


@dataclass(frozen=True, slots=True)
class ParsedPage:
    """A Markdown page taken apart. ``text`` is the source without byte order mark and front matter.

    The spans of ``sections`` cover ``text`` from 0 to its end, in order and without overlap; those of
    ``blocks`` likewise. ``first_line`` is the 1-based source line on which ``text`` begins.
    """

    text: str
    first_line: int
    title: str | None
    metadata: Mapping[str, Any]
    sections: tuple[Section, ...]
    blocks: tuple[Block, ...]
    tasks: tuple[Task, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A retrievable piece of a page: a section, a part of a long one, or several short ones together.

    ``heading_path`` is the breadcrumb of its first section, with `` [part 2/3]`` when it is one of several
    parts. Offsets into the page's text; lines 1-based, inclusive, in the source file. ``masked`` is ``content`` as
    :func:`anvil.core.markdown.visible_text.masked` gives it, of the whole page; None where that is the same.
    """

    ordinal: int
    heading_path: str
    heading_level: int
    content: str
    start: int
    end: int
    start_line: int
    end_line: int
    anchor: str
    masked: str | None = None


@dataclass(frozen=True, slots=True)
class Window:
    """What the model reads at once: ``content[start:end]`` of a chunk under a header of title and breadcrumb."""

    start: int
    end: int
    text: str


# --- documents and their comparison -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is left out, and the reason a person can act on."""

    path: str
    reason: str


@dataclass(frozen=True, slots=True)
class Scan:
    """What a source holds right now: POSIX path -> git blob id (40 hex digits), sorted by path."""

    entries: Mapping[str, str]
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True)
class Document:
    """One source document: decoded text and what is known about it besides.

    ``last_modified`` is ISO 8601 in UTC (``2026-01-31T09:30:00Z``). ``metadata`` is merged over the front matter.
    ``headings`` (level, id, text) of the published page decide the anchors; None when there is none to look at.
    ``blob_id`` is empty for a page without a source file, ``fingerprint`` for a file as it lies there. ``inserted``
    are (source line, lines that ``text`` has after it from another file), ``missing`` (source line, path, candidates)
    of files to include that are not there: see :mod:`anvil.core.markdown.includes`.
    ``page`` is ``text`` taken apart, where the source did that already, with anchors as on GitHub. ``cleaned``: what
    readers do not see of ``text`` is not kept at all, as in the index of a site.
    """

    path: str
    blob_id: str
    text: str
    size: int
    last_modified: str
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


@dataclass(frozen=True, slots=True)
class Changes:
    """How a source differs from an index, by content: sorted paths."""

    changed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.changed or self.added or self.removed)

    def __len__(self) -> int:
        return len(self.changed) + len(self.added) + len(self.removed)


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Which model made the vectors of an index; ``dimensions`` 0 when there are none."""

    provider: str
    name: str
    digest: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """What is published beside an index, for clients to decide without a download.

    ``file`` is the index's name in the same folder, ``sha256`` of its bytes, ``size`` in bytes; ``digest`` is that of
    its text and configuration. ``last_modified`` is the time of its newest page.
    """

    format: int
    file: str
    sha256: str
    size: int
    digest: str
    commit: str | None
    last_modified: str
    anvil_version: str
    model: ModelIdentity
    pages: int
    chunks: int
    vectors: int


Progress = Callable[[str, int, int], None]
"""Told (stage, done, total) now and then while something takes long."""


def silent(stage: str, done: int, total: int) -> None:
    """Progress that nobody watches."""


# --- answers: fields exactly as in the tool contracts ------------------------------------------------

Mode = Literal["hybrid", "semantic", "keyword"]


@dataclass(frozen=True, slots=True)
class ChunkMetadata:
    """Where a piece of text comes from; see the tool reference for each field."""

    file_path: str
    heading_path: str
    heading_level: int
    last_modified: str
    char_count: int
    start_line: int
    end_line: int
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; ``score`` is a cosine in semantic mode, else within 0..1.

    ``content`` is a chunk, or the matching lines of one. ``metadata`` names the section in it that matched: breadcrumb,
    level, lines, URL. ``truncated``: ``content`` is cut, or does not hold that section whole. ``title``: the page's.
    ``confidence``: how likely it is that this answers, 0..1, also where nothing else in the index does; None where it
    is not known.
    """

    content: str
    score: float
    metadata: ChunkMetadata
    truncated: bool = False
    title: str = ""
    confidence: float | None = None


class SearchRequest(NamedTuple):
    """What is searched for."""

    query: str
    """Empty: several queries follow."""
    mode: Mode
    file_filter: str | None = None
    """A glob over paths."""


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Results in descending score, the number of chunks the filter let through, and notes on how it was answered."""

    results: tuple[Hit, ...]
    total_chunks: int
    query_ms: float
    freshness: Freshness

    @property
    def confidence(self) -> float | None:
        """The highest confidence of the results; None where none has one."""
        return max((hit.confidence for hit in self.results if hit.confidence is not None), default=None)


@dataclass(frozen=True, slots=True)
class PageChunk:
    """A chunk within its page."""

    content: str
    heading_path: str
    heading_level: int
    char_count: int
    ordinal: int


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading of a page; ``char_count`` is that of its own text, up to the next heading."""

    heading_path: str
    heading_level: int
    anchor: str
    start_line: int
    char_count: int


@dataclass(frozen=True, slots=True)
class Page:
    """A whole page; its chunks' contents joined are its text, character for character."""

    file_path: str
    title: str
    last_modified: str
    total_chars: int
    chunks: tuple[PageChunk, ...]
    sections: tuple[PageSection, ...] = ()


@dataclass(frozen=True, slots=True)
class SectionText:
    """The text of one heading, with or without its children; ``title`` is the page's."""

    content: str
    metadata: ChunkMetadata
    title: str = ""


@dataclass(frozen=True, slots=True)
class PageSummary:
    """One row of the page list; ``headings`` holds h1 and h2 texts only, of equal ones the breadcrumbs."""

    file_path: str
    title: str
    headings: tuple[str, ...]
    chunk_count: int
    total_chars: int
    last_modified: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class PageList:
    """Pages sorted by ``file_path``."""

    pages: tuple[PageSummary, ...]
    total_pages: int


@dataclass(frozen=True, slots=True)
class Freshness:
    """What was compared before answering, and what was brought up to date.

    ``checked`` is the tree compared with (``working tree``) or None when there is none; ``commit`` is the one the
    index was built from. ``notes`` are sentences for the reader, such as why semantic search is off.
    """

    checked: str | None
    commit: str | None
    refreshed: tuple[str, ...] = ()
    pending_vectors: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BuildReport:
    """What a build did. ``outcome``: ``built``, ``unchanged``; ``reasons`` say why more than the changes was redone.

    ``failed`` are chunks without a vector; ``kept`` counts the vectors that could not be made again and stay, and
    ``refusal`` is why.
    """

    outcome: Literal["built", "unchanged"]
    index_path: str
    digest: str
    pages: int
    chunks: int
    windows: int
    embedded: int
    reused: int
    changes: Changes
    skipped: tuple[Skipped, ...] = ()
    failed: tuple[Skipped, ...] = ()
    reasons: tuple[str, ...] = ()
    seconds: float = 0.0
    size_bytes: int = 0
    kept: int = 0
    refusal: str = ""

    @property
    def nothing_embedded(self) -> bool:
        """Whether the embedding provider was asked for vectors and made none at all."""
        return not self.embedded and bool(self.failed or self.kept)

    @property
    def nothing_embedded_because(self) -> str:
        """The sentence that says so, with the provider's own reason."""
        reason = self.failed[0].reason if self.failed else self.refusal
        left = "Those from before are kept." if self.kept else "Search goes by words until a build can make them."
        return f"No vector could be made: {reason.rstrip('.')}. {left}"
