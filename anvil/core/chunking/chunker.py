"""Sections to chunks, chunks to windows: what is retrieved, and what the model reads at once.

Pure. The chunks of a page, joined, are its text character for character; every character that is not blank is
in some window. A chunk is one section, a part of a long one, or short neighbours under one parent.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from anvil.core.chunking.splitter import parts, steps
from anvil.core.config.schema import ChunkingOptions, FixedChunks
from anvil.core.markdown import visible_text
from anvil.core.markdown.lines import LINE_END
from anvil.models.documents import ROOT, SEPARATOR, Chunk, ParsedPage, Section, Window

CHUNKER_VERSION = 2
"""Goes up whenever the same page and options give other chunks or windows: older artifacts are rebuilt."""

HEADER_TOKENS = 48

_PART = re.compile(r" \[part \d+/\d+\]$")
_WORD = re.compile(r"[^\W_]+|\S")


Chunking = ChunkingOptions | FixedChunks
"""The two ways to cut a page."""


def recorded(settings: Mapping[str, Any]) -> Chunking:
    """The options that an index was made with, from its manifest's ``chunking``."""
    values = {key: value for key, value in settings.items() if key != "version"}
    return FixedChunks(**values) if "overlap" in values else ChunkingOptions(**values)


def chunks(page: ParsedPage, options: Chunking) -> tuple[Chunk, ...]:
    """The page's chunks in document order; none for a blank page.

    With :class:`ChunkingOptions` they are sections or parts of them, joined they are ``page.text``, and none is longer
    than ``max_chunk_size`` characters. With :class:`FixedChunks` none is longer than ``size``, and each but the first
    begins with the end of the one before.
    """
    if not page.text.strip():
        return ()
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
    """The same, each under the section in which it begins."""
    begins = [section.start for section in page.sections]
    for start, stop in steps(page.text, options.size, options.overlap):
        if not page.text[start:stop].isspace():
            yield page.sections[bisect_right(begins, start) - 1], "", start, stop


# --- merging short sections -----------------------------------------------------------------------------


def _groups(sections: Sequence[Section], options: ChunkingOptions) -> Iterator[tuple[Section, Section]]:
    """First and last section of each chunk-to-be.

    Short siblings in a row gather until they are long enough together; what stays short joins the siblings
    before it. A long section is never taken in under a short one's name: its breadcrumb says more. Parents
    and text before the first heading stand alone: what follows them is not their sibling.
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
        hungry = before[-1].end - before[0].start < options.min_chunk_size
        leads = index + 1 < len(sections) and parents[index + 1] == index
        last_short = short and not _short_follows(sections, parents, index, options)
        if siblings and fits and short and not leads and (hungry or last_short):
            before.append(section)
        else:
            groups.append([section])
    for group in groups:
        yield group[0], group[-1]


def _short_follows(
    sections: Sequence[Section], parents: Sequence[int | None], index: int, options: ChunkingOptions
) -> bool:
    """Whether the next section is a short leaf under the same parent, so that the two can make a chunk."""
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


# --- windows ----------------------------------------------------------------------------------------------


def header(title: str, heading_path: str) -> str:
    """What stands above each window of a chunk: page title and breadcrumb, without repeating the title.

    Without ``[part 2/3]``, which says nothing about the text. At most about 48 tokens (estimated, there is no
    tokenizer here): of a longer one, the names next to the title give way first, then the end is cut.
    """
    title = " ".join(title.split())
    path = _PART.sub("", heading_path)
    names = [] if path == ROOT else path.split(SEPARATOR)
    if path == title or path.startswith(title + SEPARATOR):
        names = path.removeprefix(title).removeprefix(SEPARATOR).split(SEPARATOR)
    names = [name for name in names if name]
    while len(names) > 1 and _estimate(SEPARATOR.join([title, *names])) > HEADER_TOKENS:
        names.pop(0)
    text = SEPARATOR.join([name for name in [title, *names] if name])
    if _estimate(text) > HEADER_TOKENS and names:
        text = names[-1]
    return _fit(text)


def _cost(word: str) -> int:
    """Tokens of a word, from above for WordPiece on anything but random letters."""
    return -(-len(word) // 3) if word.isascii() else len(word)


def _estimate(text: str) -> int:
    return sum(_cost(found[0]) for found in _WORD.finditer(text))


def _fit(text: str) -> str:
    left = HEADER_TOKENS
    for found in _WORD.finditer(text):
        left -= _cost(found[0])
        if left < 0:
            return text[: found.start()].rstrip() or text[:HEADER_TOKENS]
    return text


def windows(
    chunk_content: str,
    header: str,
    spans: Sequence[tuple[int, int]],
    header_tokens: int,
    max_tokens: int,
    overlap: int,
) -> tuple[Window, ...]:
    """Cut a chunk into what the model reads at once.

    ``spans`` are the chunk's tokens as character offsets, in order; ``max_tokens`` counts header and slice
    (take off the model's special tokens before). As few windows as that allows, of about one size: a sliver at
    the end would cost a whole vector and say little. They overlap by about ``overlap`` tokens and end, where one
    is near, at the end of a line, a sentence or a word. Always at least one window. Linear in the chunk.
    """
    tokens = _token_starts(spans, len(chunk_content))
    room = max(8, max_tokens - header_tokens)
    overlap = max(0, min(overlap, room // 2))
    made: list[Window] = []
    first = 0
    while True:
        left = len(tokens) - first
        done = left <= room
        last = len(tokens)
        if not done:
            more = -(-(left - overlap) // (room - overlap))
            even = -(-(left + (more - 1) * overlap) // more)
            wanted = first + even
            last = _border(chunk_content, tokens, wanted - even // 4, min(wanted + even // 4, first + room), wanted)
        start = tokens[first] if first else 0
        stop = len(chunk_content) if done else tokens[last]
        made.extend(_window(chunk_content, header, start, stop))
        if done:
            break
        wanted = last - overlap
        near = overlap // 2
        first = max(
            first + 1,
            _border(chunk_content, tokens, wanted - near, wanted + near, wanted) if near else wanted,
        )
    if not made:
        return (Window(0, len(chunk_content), window_text(header, chunk_content)),)
    return tuple(made)


def _token_starts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
    """Where a window may be cut: token starts, in order. Tokens of one character are not parted."""
    starts: list[int] = []
    for start, end in spans:
        if start < end <= size:
            starts.append(max(start, starts[-1]) if starts else start)
    return starts


def window_text(header: str, piece: str) -> str:
    """What the model reads for ``piece``, a window's slice of its chunk; not what readers do not see of it."""
    piece = visible_text.shown(piece)
    return f"{header}\n{piece}" if header else piece


def _window(content: str, header: str, start: int, stop: int) -> Iterator[Window]:
    piece = content[start:stop]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if visible_text.shown(piece).strip():
        yield Window(start, start + len(piece), window_text(header, piece))


def _border(content: str, tokens: Sequence[int], low: int, high: int, wanted: int) -> int:
    """The best token to cut before within ``low..high``: by kind of border, then nearness to ``wanted``."""
    best, best_kind = wanted, -1
    low, high = max(1, low), min(high, len(tokens) - 1)
    for distance in range(max(high - wanted, wanted - low) + 1):
        for index in (wanted - distance, wanted + distance):
            if low <= index <= high and tokens[index - 1] < tokens[index]:
                kind = _kind(content[tokens[index - 1] : tokens[index]], content[tokens[index]])
                if kind > best_kind:
                    best, best_kind = index, kind
        if best_kind == 3:
            break
    return best


def _kind(before: str, after: str) -> int:
    """3 a line's end, 2 a sentence's, 1 a word's, 0 within a word. ``before`` runs from the token before."""
    bare = before.rstrip()
    if "\n" in before[len(bare) :] or "\r" in before[len(bare) :]:
        return 3
    if bare[-1:] in "\u3002\uff01\uff1f" or (len(bare) < len(before) and bare[-1:] in ".!?:;"):
        return 2
    return 0 if bare == before and before[-1:].isalnum() and after.isalnum() and after.isascii() else 1
