"""Sections cut into chunks, which a search finds, and chunks cut into windows, which a model embeds.

A chunk is a section, a part of a long section, or several short neighbours with the same parent. The chunks of a page,
joined, are its text. A window is a slice of its chunk under a header of page title and breadcrumb. It has one vector.
Each visible character except blanks is in some window.
"""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from anvil.formats.characters import LINE_END
from anvil.formats.patterns import lazy_pattern
from anvil.settings.schema import Chunking, ChunkingOptions, FixedChunks
from anvil.text import headings, visible_text
from anvil.values import Block, Chunk, ParsedPage, Section, Window

CHUNKER_VERSION = 17
"""Increase it if the same page and options give other chunks or windows. Then indexes are built again."""


def chunks(page: ParsedPage, options: Chunking) -> tuple[Chunk, ...]:
    """The chunks of a page, in order; none for a blank page.

    With :class:`ChunkingOptions`, chunks have at most ``max_chunk_size`` characters, and joined they are ``page.text``.
    With :class:`FixedChunks`, they have at most ``size`` characters, and each begins with the end of the previous one.
    """
    text, first_line = page.text, page.first_line
    if not text.strip():
        return ()
    line_ends = [line_end.end() for line_end in LINE_END.finditer(text)]
    cuts = _fixed(page, options) if isinstance(options, FixedChunks) else _by_sections(page, options)
    masked = visible_text.masked(text)  # the whole page, because a comment may begin in one chunk and end in another
    return tuple(
        Chunk(
            ordinal=ordinal,
            heading_path=section.heading_path + suffix,
            heading_level=section.heading_level,
            content=text[start:stop],
            start=start,
            end=stop,
            start_line=first_line + bisect_right(line_ends, start),
            end_line=first_line + bisect_right(line_ends, stop - 1),  # a line end belongs to its line
            anchor=section.anchor,
            masked=None if masked[start:stop] == text[start:stop] else masked[start:stop],
        )
        for ordinal, (section, suffix, start, stop) in enumerate(cuts)
    )


def _by_sections(page: ParsedPage, options: ChunkingOptions) -> Iterator[tuple[Section, str, int, int]]:
    """The chunks as (section, addition to its breadcrumb, start, end)."""
    for first, last in _groups(page.sections, options):
        begin, end = first.start, last.end
        spans = [(begin, end)]
        if end - begin > options.max_chunk_size:
            spans = parts(page, begin, end, options.max_chunk_size)
        for number, (start, stop) in enumerate(spans, 1):
            yield first, f" [part {number}/{len(spans)}]" if len(spans) > 1 else "", start, stop


def _fixed(page: ParsedPage, options: FixedChunks) -> Iterator[tuple[Section, str, int, int]]:
    """The chunks as in :func:`_by_sections`, with the section in which each begins."""
    begins = [section.start for section in page.sections]
    # Blank chunks are left out. Unlike chunks of sections, these need not be the page's text when they are joined.
    for start, stop in steps(page.text, options.size, options.overlap):
        if not page.text[start:stop].isspace():
            yield page.sections[bisect_right(begins, start) - 1], "", start, stop


# --- merging short sections -----------------------------------------------------------------------------


def _groups(sections: Sequence[Section], options: ChunkingOptions) -> Iterator[tuple[Section, Section]]:
    """The first and last section of each chunk.

    - Short neighbours with the same parent are merged until they are long enough.
    - A last short section is merged with the siblings before it.
    - A long section is not merged into a short one before it, because the chunk would get the short one's breadcrumb.
    - Sections with children, and text before the first heading, are not merged with the next section.
    """
    groups: list[list[Section]] = []
    parents = headings.parents(section.heading_level for section in sections)
    # Short sections without children. The first child of a section is the next section.
    small = [
        section.end - section.start < options.min_chunk_size and following != index
        for index, (section, following) in enumerate(zip(sections, [*parents[1:], -1], strict=True))
    ]
    for index, section in enumerate(sections):
        if not options.merge_short_sections or not groups:
            groups.append([section])
            continue
        before = groups[-1]
        fits = section.end - before[0].start <= options.max_chunk_size
        siblings = parents[index] == parents[before[-1].ordinal]
        too_short = before[-1].end - before[0].start < options.min_chunk_size
        # A last short sibling would be a chunk of its own, so it is merged even if the chunk before is long enough.
        is_last = index + 1 == len(sections) or parents[index + 1] != parents[index] or not small[index + 1]
        if siblings and fits and small[index] and (too_short or is_last):
            before.append(section)
        else:
            groups.append([section])
    for group in groups:
        yield group[0], group[-1]


_FENCE = lazy_pattern(r"[ \t>*+\-\d.)]*(`{3,}|~{3,})")
_ITEM = lazy_pattern(r" {0,3}(?:[-*+]|\d{1,9}[.)])[ \t]")
_OPTION = lazy_pattern(r"[ \t>]*-{1,2}[A-Za-z?]")
"""The first line of an option in the help text of a program. For what cutting before it changes, see
docs/performance-method.md, "Single flags and options"."""


def parts(page: ParsedPage, begin: int, end: int, limit: int) -> list[tuple[int, int]]:
    """Split ``begin:end`` between blocks. Returns the spans of as few parts as possible, of about the same size.

    The longest part is as short as possible, so the last part is not tiny.
    """
    units: list[tuple[int, int]] = []
    index = max(0, bisect_right(page.blocks, begin, key=lambda block: block.start) - 1)
    while index < len(page.blocks) and page.blocks[index].start < end:
        block = page.blocks[index]
        start, stop = max(block.start, begin), min(block.end, end)
        units.extend(_pieces(page.text, Block(start, stop, block.atomic), limit))
        index += 1
    if len(units) > 1 and units[1][1] - units[0][0] <= limit:
        units[:2] = [(units[0][0], units[1][1])]  # keep the heading with the block after it
    fewest = len(_pack(units, limit))
    low, high = -(-(end - begin) // fewest), limit  # the longest part is not shorter than the mean
    while low < high:
        middle = (low + high) // 2
        # _pack() splits no unit, so a unit longer than ``middle`` would be a part over this limit.
        if len(_pack(units, middle)) <= fewest and all(stop - start <= middle for start, stop in units):
            high = middle
        else:
            low = middle + 1
    return _pack(units, low)


def steps(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Split ``text`` into spans of at most ``size`` characters. Each begins up to ``overlap`` characters before the end
    of the previous one.

    Spans end, and overlaps begin, at the end of a line or a word if one is near.
    """
    start = 0
    while True:
        stop = len(text)
        if stop - start > size:  # a border is searched in the last quarter, so that no span is much too short
            stop = _border(text, start + size - size // 4, start + size)
        yield start, stop
        if stop == len(text):
            return
        # At least one character further, because else an overlap as long as a span would give an endless loop.
        start = max(_border(text, stop - overlap, stop - overlap // 2), start + 1) if overlap else stop


def _border(text: str, low: int, high: int) -> int:
    """The best cut in ``low..high``: after the last line end, else after a space, else see :func:`_safe`."""
    for mark in ("\n", "\r", " ", "\t"):
        at = text.rfind(mark, low, high) + 1
        if at > low and text[at - 1 : at + 1] != "\r\n":
            return at
    return _safe(text, low, high)


def _pack(units: Sequence[tuple[int, int]], limit: int) -> list[tuple[int, int]]:
    """Join neighbouring spans, in order, as long as they fit into ``limit``."""
    packed = [units[0]]
    for start, stop in units[1:]:
        if stop - packed[-1][0] <= limit:
            packed[-1] = (packed[-1][0], stop)
        else:
            packed.append((start, stop))
    return packed


def _pieces(text: str, block: Block, limit: int) -> list[tuple[int, int]]:
    """The span of ``block``; over ``limit``, split between paragraphs or items, else lines, else words."""
    if block.end - block.start <= limit:
        return [(block.start, block.end)]
    lines, paragraphs = _line_borders(text, block)
    cuts = [block.start]
    while block.end - cuts[-1] > limit:
        at, furthest = cuts[-1], cuts[-1] + limit
        # A border of paragraphs in the first quarter is not used: the piece would be short, and one more cut be needed.
        cut = _last(paragraphs, at + limit // 4, furthest) or _last(lines, at, furthest)
        if cut is None:
            space = max(text.rfind(" ", at + 1, furthest), text.rfind("\t", at + 1, furthest))
            cut = space + 1 if space > at else _safe(text, at, furthest)
        cuts.append(cut)
    return list(zip(cuts, [*cuts[1:], block.end], strict=True))


def _line_borders(text: str, block: Block) -> tuple[list[int], list[int]]:
    """Two lists of offsets to cut ``block`` at: all ends of lines; and the better ones, which are after blank lines
    outside fences, before list items, and before options in fences."""
    lines: list[int] = []
    paragraphs: list[int] = []
    fence = ""
    start = block.start
    for line_end in LINE_END.finditer(text, block.start, block.end):
        line = text[start : line_end.start()]
        if start > block.start and (_OPTION if block.atomic or fence else _ITEM).match(line):
            paragraphs.append(start)
        start = line_end.end()
        lines.append(start)
        if block.atomic:
            continue
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif fence and line.strip(" \t>").startswith(fence):
            fence = ""
        elif not fence and not line.strip(" \t>"):
            paragraphs.append(start)
    return lines, paragraphs


def _last(borders: Sequence[int], after: int, upto: int) -> int | None:
    """The last border in ``(after, upto]``."""
    index = bisect_right(borders, upto) - 1
    return borders[index] if index >= 0 and borders[index] > after else None


def _safe(text: str, at: int, cut: int) -> int:
    """``cut`` or a position shortly before it, not inside CR LF, a marked letter, a surrogate pair or an emoji."""
    # The emoji of a family with skin tones has eleven code points. Longer runs of marks may be cut.
    for candidate in range(cut, max(at, cut - 12), -1):
        before, char = text[candidate - 1], text[candidate]
        if before == "\r" and char == "\n":
            continue
        if unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf") or before == "\u200d":  # marks, and joiners of emoji
            continue
        if "\udc00" <= char <= "\udfff" or "\U0001f3fb" <= char <= "\U0001f3ff":  # half of a pair, skin tones
            continue
        return candidate
    return cut - 1 if text[cut - 1 : cut + 1] == "\r\n" else cut


# --- windows ---------------------------------------------------------------------------------------------

OVERLAP_TOKENS = 32
"""The tokens that neighbouring windows share, so that a sentence or two at a border is whole in one of them."""


def cut_windows(
    chunk_content: str, header: str, spans: Sequence[tuple[int, int]], header_tokens: int, max_tokens: int, overlap: int
) -> tuple[Window, ...]:
    """Cut a chunk into windows that fit the model; at least one. Takes linear time.

    There are as few windows as possible, of about the same size. They overlap by about ``overlap`` tokens, and end at
    the end of a line, a sentence or a word if one is near.

    - ``spans``: the tokens of the chunk as character offsets, in order.
    - ``max_tokens``: the limit for the tokens of header and slice, without the model's special tokens.
    """
    tokens = _token_starts(spans, len(chunk_content))
    room = max(8, max_tokens - header_tokens)  # at least 8, because a header may fill a small model
    overlap = max(0, min(overlap, room // 2))  # else a window might not begin after the previous one
    result: list[Window] = []
    first = 0
    while True:
        left = len(tokens) - first
        done = left <= room
        last = len(tokens)
        if not done:
            # n windows of r tokens with an overlap of o have n r - (n - 1) o tokens in all. This gives the smallest n,
            # and then their equal size: the vector of a window with few tokens would stand for the header only.
            more = -(-(left - overlap) // (room - overlap))
            even = -(-(left + (more - 1) * overlap) // more)
            target = first + even
            last = _best_cut(chunk_content, tokens, target - even // 4, min(target + even // 4, first + room), target)
        start = tokens[first] if first else 0
        stop = len(chunk_content) if done else tokens[last]
        made = list(_window(chunk_content, header, start, stop))
        if made and result and result[-1].start == made[0].start:
            result.pop()  # only blanks are between their beginnings, so the new window contains this one
        result += made
        if done:
            break
        target = last - overlap
        near = overlap // 2
        first = max(
            first + 1, _best_cut(chunk_content, tokens, target - near, target + near, target) if near else target
        )
    if not result:  # nothing is visible; a chunk without windows would count as not cut yet
        return (Window(0, len(chunk_content), window_text(header, chunk_content)),)
    return tuple(result)


def _token_starts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
    """The positions where a window can end, which are starts of tokens, in order. No character is split."""
    starts: list[int] = []
    for start, end in spans:
        if start < end <= size:  # with a byte-level tokenizer, several tokens have the span of one character or no span
            starts.append(max(start, starts[-1]) if starts else start)
    return starts


def window_text(header: str, piece: str) -> str:
    """The text that is embedded for ``piece``, a slice of a masked chunk: the header and the visible text."""
    piece = visible_text.shown(piece)
    return f"{header}\n{piece}" if header else piece


def _window(content: str, header: str, start: int, stop: int) -> Iterator[Window]:
    piece = content[start:stop]
    # Without blanks at the ends, so that windows with the same words have the same text, and share a vector.
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if visible_text.shown(piece).strip():
        yield Window(start, start + len(piece), window_text(header, piece))


def _best_cut(content: str, tokens: Sequence[int], low: int, high: int, target: int) -> int:
    """The token in ``low..high`` before which to cut: with the best kind of border, then nearest to ``target``."""
    best, best_kind = target, -1
    low, high = max(1, low), min(high, len(tokens) - 1)
    for distance in range(max(high - target, target - low) + 1):
        for index in (target - distance, target + distance):
            if low <= index <= high and tokens[index - 1] < tokens[index]:
                kind = _border_kind(content[tokens[index - 1] : tokens[index]], content[tokens[index]])
                if kind > best_kind:
                    best, best_kind = index, kind
        if best_kind == 3:  # the best kind, and all further ones are more distant
            break
    return best


def _border_kind(before: str, after: str) -> int:
    """The kind of a border: 3 for the end of a line, 2 of a sentence, 1 of a word, 0 inside a word.

    ``before``: the text from the start of the previous token. ``after``: the next character.
    """
    # Borders before items, options and rows were tried: vectors found as much, and hybrid search less. For the numbers
    # see docs/performance-method.md, "Single flags and options".
    bare = before.rstrip()
    if "\n" in before[len(bare) :] or "\r" in before[len(bare) :]:
        return 3
    # A sentence ends at an ideographic full stop without a space after it. After an ASCII one, there must be a space:
    # "3.5" and "e.g" do not end a sentence.
    if bare[-1:] in "\u3002\uff01\uff1f" or (len(bare) < len(before) and bare[-1:] in ".!?:;"):
        return 2
    return 0 if bare == before and before[-1:].isalnum() and after.isalnum() and after.isascii() else 1
