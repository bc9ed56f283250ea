"""Sections to chunks, chunks to windows: what is retrieved, and what the model reads at once.

Pure. The chunks of a page, joined, are its text character for character; every character that is not blank is
in some window. A chunk is one section, a part of a long one, or short neighbours under one parent.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from anvil.errors import ConfigError
from anvil.models import ROOT, SEPARATOR, Block, Chunk, ParsedPage, Section, Window

CHUNKER_VERSION = 1
"""Raised whenever the same page and options give other chunks or windows: artifacts built before are rebuilt."""

SMALLEST_MAX = 16
"""``max_chunk_size`` below this would part characters from their combining marks."""
HEADER_TOKENS = 48

_PART = re.compile(r" \[part \d+/\d+\]$")
_WORD = re.compile(r"[^\W_]+|\S")
_LINE_END = re.compile(r"\r\n|\r|\n")
_FENCE = re.compile(r"[ \t>*+\-\d.)]*(`{3,}|~{3,})")


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """Sizes in characters. A section over ``max_chunk_size`` is split; one under ``min_chunk_size`` merged.

    Raises ConfigError for sizes that make no sense.
    """

    max_chunk_size: int = 6000
    min_chunk_size: int = 200
    merge_short_sections: bool = True

    def __post_init__(self) -> None:
        for name in ("max_chunk_size", "min_chunk_size"):
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise ConfigError(f"{name} must be a whole number of characters, not {value!r}.")
        if not isinstance(self.merge_short_sections, bool):
            raise ConfigError(
                f"merge_short_sections must be true or false, not {self.merge_short_sections!r}."
            )
        if self.max_chunk_size < SMALLEST_MAX:
            raise ConfigError(f"max_chunk_size is {self.max_chunk_size}; it must be at least {SMALLEST_MAX}.")
        if not 0 <= self.min_chunk_size <= self.max_chunk_size:
            raise ConfigError(
                f"min_chunk_size is {self.min_chunk_size}; it must lie between 0 and max_chunk_size "
                f"({self.max_chunk_size})."
            )


def chunks(page: ParsedPage, options: ChunkingOptions) -> tuple[Chunk, ...]:
    """The page's chunks in document order; none for a blank page, else joined they are ``page.text``.

    No chunk is longer than ``options.max_chunk_size`` characters.
    """
    if not page.text.strip():
        return ()
    line_ends = [found.end() for found in _LINE_END.finditer(page.text)]
    block_starts = [block.start for block in page.blocks]
    made: list[Chunk] = []
    for first, last in _groups(page.sections, options):
        begin, end = first.start, last.end
        spans = [(begin, end)]
        if end - begin > options.max_chunk_size:
            spans = _parts(page, block_starts, begin, end, options.max_chunk_size)
        for number, (start, stop) in enumerate(spans, 1):
            suffix = f" [part {number}/{len(spans)}]" if len(spans) > 1 else ""
            made.append(
                Chunk(
                    ordinal=len(made),
                    heading_path=first.heading_path + suffix,
                    heading_level=first.heading_level,
                    content=page.text[start:stop],
                    start=start,
                    end=stop,
                    start_line=page.first_line + bisect_right(line_ends, start),
                    end_line=page.first_line + bisect_right(line_ends, stop - 1),
                    anchor=first.anchor,
                )
            )
    return tuple(made)


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


# --- splitting long ones ----------------------------------------------------------------------------------


def _parts(
    page: ParsedPage, block_starts: Sequence[int], begin: int, end: int, limit: int
) -> list[tuple[int, int]]:
    """Cut ``begin:end`` at block borders into as few parts as fit, the longest as short as can be.

    Balanced rather than filled greedily, so that no sliver is left at the end.
    """
    units: list[tuple[int, int]] = []
    index = max(0, bisect_right(block_starts, begin) - 1)
    while index < len(page.blocks) and page.blocks[index].start < end:
        block = page.blocks[index]
        start, stop = max(block.start, begin), min(block.end, end)
        units.extend(_pieces(page.text, Block(start, stop, block.atomic), limit))
        index += 1
    if len(units) > 1 and units[1][1] - units[0][0] <= limit:
        units[:2] = [(units[0][0], units[1][1])]  # the heading stays with what follows it
    fewest = len(_pack(units, limit))
    low, high = -(-(end - begin) // fewest), limit
    while low < high:
        middle = (low + high) // 2
        if len(_pack(units, middle)) <= fewest and all(stop - start <= middle for start, stop in units):
            high = middle
        else:
            low = middle + 1
    return _pack(units, low)


def _pack(units: Sequence[tuple[int, int]], limit: int) -> list[tuple[int, int]]:
    packed = [units[0]]
    for start, stop in units[1:]:
        if stop - packed[-1][0] <= limit:
            packed[-1] = (packed[-1][0], stop)
        else:
            packed.append((start, stop))
    return packed


def _pieces(text: str, block: Block, limit: int) -> list[tuple[int, int]]:
    """``block`` itself, or cut where it hurts least when it alone is over ``limit``."""
    if block.end - block.start <= limit:
        return [(block.start, block.end)]
    lines, paragraphs = _line_borders(text, block)
    cuts = [block.start]
    while block.end - cuts[-1] > limit:
        at, furthest = cuts[-1], cuts[-1] + limit
        cut = _last(paragraphs, at + limit // 4, furthest) or _last(lines, at, furthest)
        if cut is None:
            space = max(text.rfind(" ", at + 1, furthest), text.rfind("\t", at + 1, furthest))
            cut = space + 1 if space > at else _safe(text, at, furthest)
        cuts.append(cut)
    return list(zip(cuts, [*cuts[1:], block.end], strict=True))


def _line_borders(text: str, block: Block) -> tuple[list[int], list[int]]:
    """Offsets behind each line of ``block``; and those behind blank lines outside nested fences, unless atomic."""
    lines: list[int] = []
    paragraphs: list[int] = []
    fence = ""
    start = block.start
    for found in _LINE_END.finditer(text, block.start, block.end):
        line = text[start : found.start()]
        start = found.end()
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
    """``cut`` or a little before it: not within CR LF, a base with its marks, a surrogate pair or a joined emoji."""
    for candidate in range(cut, max(at, cut - 12), -1):
        before, char = text[candidate - 1], text[candidate]
        if before == "\r" and char == "\n":
            continue
        if unicodedata.category(char) in ("Mn", "Me", "Mc", "Cf") or before == "\u200d":
            continue
        if "\udc00" <= char <= "\udfff" or "\U0001f3fb" <= char <= "\U0001f3ff":
            continue
        return candidate
    return cut - 1 if text[cut - 1 : cut + 1] == "\r\n" else cut


# --- windows ----------------------------------------------------------------------------------------------


def header(title: str, heading_path: str) -> str:
    """What stands above each window of a chunk: page title and breadcrumb, without repeating the title.

    Without ``[part 2/3]``, which says nothing about the text. At most about 48 tokens (estimated from above: no
    tokenizer here): of a longer one, the breadcrumbs next to the title give way first, then the end is cut.
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

    ``spans`` are the chunk's tokens as character offsets, in order; ``max_tokens`` counts header and slice (take
    off the model's special tokens before). Windows overlap by about ``overlap`` tokens and end, where one is
    near, at the end of a line, a sentence or a word. Always at least one window. Linear in the chunk.
    """
    tokens = _token_starts(spans, len(chunk_content))
    room = max(8, max_tokens - header_tokens)
    overlap = max(0, min(overlap, room // 2))
    made: list[Window] = []
    first = 0
    while True:
        last = first + room
        done = last >= len(tokens)
        if not done:
            last = _border(chunk_content, tokens, last - room // 4, last, last)
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
        return (Window(0, len(chunk_content), f"{header}\n{chunk_content}" if header else chunk_content),)
    return tuple(made)


def _token_starts(spans: Sequence[tuple[int, int]], size: int) -> list[int]:
    """Where a window may be cut: token starts, in order. Tokens that share a character count, but cannot be parted."""
    starts: list[int] = []
    for start, end in spans:
        if start < end <= size:
            starts.append(max(start, starts[-1]) if starts else start)
    return starts


def _window(content: str, header: str, start: int, stop: int) -> Iterator[Window]:
    piece = content[start:stop]
    start += len(piece) - len(piece.lstrip())
    piece = piece.strip()
    if piece:
        yield Window(start, start + len(piece), f"{header}\n{piece}" if header else piece)


def _border(content: str, tokens: Sequence[int], low: int, high: int, wanted: int) -> int:
    """The best token to cut before within ``low..high``: by kind of border first, then nearness to ``wanted``."""
    best, best_rank = wanted, (-1, 0)
    for index in range(max(1, low), min(high, len(tokens) - 1) + 1):
        at, before = tokens[index], tokens[index - 1]
        if at == before:
            continue
        rank = (_kind(content[before:at], content[at]), -abs(index - wanted))
        if rank > best_rank:
            best, best_rank = index, rank
    return best


def _kind(before: str, after: str) -> int:
    """3 a line's end, 2 a sentence's, 1 a word's, 0 within a word. ``before`` runs from the token before."""
    bare = before.rstrip()
    if "\n" in before[len(bare) :] or "\r" in before[len(bare) :]:
        return 3
    if bare[-1:] in "。！？" or (len(bare) < len(before) and bare[-1:] in ".!?:;"):
        return 2
    return 0 if bare == before and before[-1:].isalnum() and after.isalnum() and after.isascii() else 1
