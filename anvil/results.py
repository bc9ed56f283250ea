"""Results of the API, which the CLI prints as JSON and the server sends: their fields are those of the tool contracts.

All are immutable. A build and a check do not import them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from anvil.values import OPAQUE, OPTIONAL, SEVERAL, UNSENT, USUAL, ChunkMetadata, PageChunk
from anvil.wording import counted

Mode = Literal["hybrid", "semantic", "keyword"]
WORKING_TREE = "working tree"
"""The usual tree with which an index is compared."""


@dataclass(frozen=True, slots=True)
class Place:
    """A further section of the page of a result.

    Its lines are None if it is in no file. ``content`` is its text, or the passage of it that matches; empty if it
    matches less well than the result.
    """

    heading_path: str
    anchor: str = field(metadata=UNSENT)
    start_line: int | None = field(metadata=USUAL)
    end_line: int | None = field(metadata=USUAL)
    content: str = field(default="", metadata={"usual": ""})


@dataclass(frozen=True, slots=True)
class Hit:
    """One search result; ``score`` is a cosine in semantic mode, else within 0..1.

    - ``content``: a chunk, or the section in it that matched, or a passage of that below its heading.
    - ``metadata``: names the section: breadcrumb, level, URL, and lines and characters; of a long section, those of the
      part that is this chunk. ``anchor``: of the section. ``title``: of the page.
    - ``truncated``: ``content`` does not have that section whole. ``lines``: the first and last line of the passage;
      None
      if ``content`` is not cut, or is in no file.
    - ``confidence``: the probability that this answers the query, 0..1, independent of the other results; None if
      unknown.
    - ``also``: further sections of the page that match nearly as well; None without any.
    - ``versions``: other versions that have this page, the newest first; None without any.
    - ``collection`` and ``version``: its origin; None unless there are several collections.
    """

    content: str
    score: float
    metadata: ChunkMetadata
    truncated: bool = field(default=False, metadata={"usual": False})
    title: str = ""
    confidence: float | None = field(default=None, metadata=USUAL)
    lines: tuple[int, int] | None = field(default=None, metadata=SEVERAL)
    anchor: str = field(default="", metadata=UNSENT)
    also: tuple[Place, ...] | None = field(default=None, metadata=SEVERAL)
    versions: tuple[str, ...] | None = field(default=None, metadata=SEVERAL)
    collection: str | None = field(default=None, metadata=SEVERAL)
    version: str | None = field(default=None, metadata=SEVERAL)


@dataclass(frozen=True, slots=True)
class SearchResult:
    """Results in descending ``score``, equal ones by path and position.

    A page has one result, which names further sections in ``also``, and more only if few pages match. ``total_chunks``:
    the number of chunks that pass the filter. ``freshness`` is first, because its notes may say that nothing answers.
    """

    freshness: Freshness = field(metadata={**OPAQUE, "usual": {}})
    results: tuple[Hit, ...]
    total_chunks: int
    query_ms: float

    @property
    def confidence(self) -> float | None:
        """The highest confidence of the results; None if none has one."""
        return max((hit.confidence for hit in self.results if hit.confidence is not None), default=None)


@dataclass(frozen=True, slots=True)
class PageSection:
    """A heading of a page. ``char_count``: of its own text, up to the next heading."""

    heading_path: str
    heading_level: int
    anchor: str
    start_line: int | None = field(metadata=USUAL)
    char_count: int


@dataclass(frozen=True, slots=True)
class Page:
    """A page. The contents of its chunks, joined, are its text.

    ``total_chars`` and ``sections`` are those of the whole page, also for a part of it. ``collection`` and ``version``
    as in a hit. ``next_offset``: the ``offset`` of the next part; None if this is the last.
    """

    file_path: str
    title: str
    last_modified: str
    total_chars: int
    chunks: tuple[PageChunk, ...]
    sections: tuple[PageSection, ...] = field(default=(), metadata={**OPAQUE, "usual": []})
    collection: str | None = field(default=None, metadata=SEVERAL)
    version: str | None = field(default=None, metadata=SEVERAL)
    next_offset: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class SectionText:
    """The text under one heading, with or without subsections.

    ``title``: of the page. ``metadata``: of the whole text, also if ``content`` is a part of it. ``sections``: those
    below a heading that has no text of its own, as many as there is room for. ``collection`` and ``version`` as in a
    hit, ``next_offset`` as in a page.
    """

    content: str
    metadata: ChunkMetadata = field(metadata=OPAQUE)
    title: str = ""
    # Not in the schema of the tool, which is in the context of each agent: most sections have text of their own.
    sections: tuple[PageSection, ...] = field(default=(), metadata={**OPAQUE, "usual": [], "several": True})
    collection: str | None = field(default=None, metadata=SEVERAL)
    version: str | None = field(default=None, metadata=SEVERAL)
    next_offset: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class PageSummary:
    """An entry of the page list.

    ``headings``: texts of h1 and h2, or their breadcrumbs if several have the same text. ``collection`` and ``version``
    as in a hit.
    """

    file_path: str
    title: str
    headings: tuple[str, ...]
    chunk_count: int
    total_chars: int
    last_modified: str
    url: str | None = field(default=None, metadata=USUAL)
    collection: str | None = field(default=None, metadata=SEVERAL)
    version: str | None = field(default=None, metadata=SEVERAL)


@dataclass(frozen=True, slots=True)
class PageList:
    """Pages sorted by ``file_path``.

    ``total_pages`` counts pages that are not here, too. ``notes``: sentences on pages that are not listed yet; None if
    all are. ``next_offset``: the ``offset`` of the next pages; None if these are the last.
    """

    pages: tuple[PageSummary, ...]
    total_pages: int
    notes: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    next_offset: int | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class GrepMatch:
    """A line that matches. ``line``: its 1-based number in the source file; None if that is not known.

    ``text``: the line, cut around the match if it is very long. ``heading_path``: the breadcrumb of its section.
    ``before`` and ``after``: the lines around it; None unless asked for. ``collection`` and ``version`` as in a hit.
    """

    file_path: str
    line: int | None = field(metadata=USUAL)
    text: str
    heading_path: str
    before: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    after: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)
    collection: str | None = field(default=None, metadata=SEVERAL)
    version: str | None = field(default=None, metadata=SEVERAL)


@dataclass(frozen=True, slots=True)
class GrepResult:
    """Matching lines by path and line. ``total_matches`` and ``total_pages`` count those that are not here, too.

    ``next_offset``: the ``offset`` of the next matches; None if these are the last. ``notes``: sentences on pages that
    were not searched; None if all were.
    """

    matches: tuple[GrepMatch, ...]
    total_matches: int
    total_pages: int
    next_offset: int | None = field(default=None, metadata=USUAL)
    notes: tuple[str, ...] | None = field(default=None, metadata=OPTIONAL)


@dataclass(frozen=True, slots=True)
class Freshness:
    """How fresh a result is: the state that the index was compared with, and the pages that were updated.

    - ``checked``: the tree that the index was compared with (``working tree``), or None.
    - ``commit``: the commit that the index was built from.
    - ``refreshed``: pages that are new or changed since, and were read for this answer.
    - ``removed``: pages that do not exist any more.
    - ``notes``: sentences for the reader, such as why semantic search is off.
    """

    checked: str | None = field(metadata={"usual": WORKING_TREE})
    commit: str | None = field(metadata=USUAL)
    refreshed: tuple[str, ...] = field(default=(), metadata={"usual": []})
    removed: tuple[str, ...] = field(default=(), metadata={"usual": []})
    pending_vectors: int = field(default=0, metadata={"usual": 0})
    notes: tuple[str, ...] = field(default=(), metadata={"usual": []})

    @classmethod
    def joined(cls, parts: Mapping[str, Freshness], shown: Collection[str], notes: Iterable[str]) -> Freshness:
        """The freshness of an answer from several collections.

        ``parts``: label -> the freshness of each. ``shown``: the labels of those that have results; others have no
        notes here. ``notes``: on the whole answer.
        """
        first = next((part for part in parts.values() if part.checked), cls(None, None))
        return cls(
            checked=first.checked,
            commit=first.commit,
            refreshed=tuple(f"{label}:{path}" for label, part in parts.items() for path in part.refreshed),
            removed=tuple(f"{label}:{path}" for label, part in parts.items() for path in part.removed),
            pending_vectors=sum(part.pending_vectors for part in parts.values()),
            notes=(*(f"{label}: {note}" for label in parts if label in shown for note in parts[label].notes), *notes),
        )

    @property
    def difference(self) -> str | None:
        """A sentence on the pages that differed from the index; None without any."""
        pages = len(self.refreshed) + len(self.removed)
        return f"{counted(pages, 'page')} changed since the index was built." if pages else None
