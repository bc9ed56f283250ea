"""Sections to chunks: the texts that a search finds.

A chunk is a section, a part of a long one, or several short neighbours with the same parent. The chunks of a page,
joined, are its text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anvil.settings.schema import ChunkingOptions, FixedChunks
from anvil.text import garbage_collector, visible_text
from anvil.text.lines import LINE_END
from anvil.text.splitter import parts, steps
from anvil.values import Chunk, ParsedPage, Section

CHUNKER_VERSION = 3
"""Increase it when the same page and options give other chunks or windows. Then existing indexes are built again."""


Chunking = ChunkingOptions | FixedChunks
"""Options of the two ways to cut a page."""


def recorded(settings: Mapping[str, Any]) -> Chunking:
    """The options of an index, from ``chunking`` in its manifest."""
    values = {key: value for key, value in settings.items() if key != "version"}
    return FixedChunks(**values) if "overlap" in values else ChunkingOptions(**values)


def chunks(page: ParsedPage, options: Chunking) -> tuple[Chunk, ...]:
    """The page's chunks in order; none for a blank page.

    With :class:`ChunkingOptions`, chunks have ``max_chunk_size`` characters at most, and joined they are ``page.text``.
    With :class:`FixedChunks`, they have ``size`` characters at most, and each begins with the end of the one before.
    """
    if not page.text.strip():
        return ()
    with garbage_collector.paused(len(page.text)):
        return _chunks(page, options)


def _chunks(page: ParsedPage, options: Chunking) -> tuple[Chunk, ...]:
    line_ends = [found.end() for found in LINE_END.finditer(page.text)]
    cuts = _fixed(page, options) if isinstance(options, FixedChunks) else _by_sections(page, options)
    masked = visible_text.masked(page.text)
    return tuple(
        Chunk(
            ordinal=ordinal,
            heading_path=section.heading_path + suffix,
            heading_level=section.heading_level,
            content=page.text[start:stop],
            start=start,
            end=stop,
            start_line=page.first_line + bisect_right(line_ends, start),
            end_line=page.first_line + bisect_right(line_ends, stop - 1),
            anchor=section.anchor,
            masked=None if masked[start:stop] == page.text[start:stop] else masked[start:stop],
        )
        for ordinal, (section, suffix, start, stop) in enumerate(cuts)
    )


def _by_sections(page: ParsedPage, options: ChunkingOptions) -> Iterator[tuple[Section, str, int, int]]:
    """(section, addition to its breadcrumb, start, end) of each chunk."""
    for first, last in _groups(page.sections, options):
        begin, end = first.start, last.end
        spans = [(begin, end)]
        if end - begin > options.max_chunk_size:
            spans = parts(page, begin, end, options.max_chunk_size)
        for number, (start, stop) in enumerate(spans, 1):
            yield first, f" [part {number}/{len(spans)}]" if len(spans) > 1 else "", start, stop


def _fixed(page: ParsedPage, options: FixedChunks) -> Iterator[tuple[Section, str, int, int]]:
    """As :func:`_by_sections`, with the section in which each chunk begins."""
    begins = [section.start for section in page.sections]
    for start, stop in steps(page.text, options.size, options.overlap):
        if not page.text[start:stop].isspace():
            yield page.sections[bisect_right(begins, start) - 1], "", start, stop


# --- merging short sections -----------------------------------------------------------------------------


def _groups(sections: Sequence[Section], options: ChunkingOptions) -> Iterator[tuple[Section, Section]]:
    """First and last section of each chunk.

    Short neighbours with the same parent are merged until they are long enough. A short rest is merged with the
    siblings before it. A long section is not merged into a short one before it, because the chunk would get the short
    one's breadcrumb. Sections with children, and text before the first heading, are not merged with what follows.
    """
    groups: list[list[Section]] = []
    parents = _parents(sections)
    for index, section in enumerate(sections):
        if not options.merge_short_sections or not groups or parents[index] is None:
            groups.append([section])
            continue
        before = groups[-1]
        fits = section.end - before[0].start <= options.max_chunk_size
        siblings = parents[index] == parents[before[-1].ordinal]
        short = section.end - section.start < options.min_chunk_size
        too_short = before[-1].end - before[0].start < options.min_chunk_size
        leads = index + 1 < len(sections) and parents[index + 1] == index
        last_short = short and not _short_follows(sections, parents, index, options)
        if siblings and fits and short and not leads and (too_short or last_short):
            before.append(section)
        else:
            groups.append([section])
    for group in groups:
        yield group[0], group[-1]


def _short_follows(
    sections: Sequence[Section], parents: Sequence[int | None], index: int, options: ChunkingOptions
) -> bool:
    """Whether the next section is short, has the same parent and no children, so that both can be one chunk."""
    following = index + 1
    if following >= len(sections) or parents[following] != parents[index]:
        return False
    if following + 1 < len(sections) and parents[following + 1] == following:
        return False
    return sections[following].end - sections[following].start < options.min_chunk_size


def _parents(sections: Sequence[Section]) -> list[int | None]:
    """Index of each section's parent, -1 at the top; None for the text before the first heading."""
    parents: list[int | None] = []
    open_: list[int] = []
    for index, section in enumerate(sections):
        if section.heading_level == 0:
            parents.append(None)
            continue
        while open_ and sections[open_[-1]].heading_level >= section.heading_level:
            open_.pop()
        parents.append(open_[-1] if open_ else -1)
        open_.append(index)
    return parents
