"""Splitting a section that is too long for one chunk: between blocks if possible.

The parts are contiguous and never over the limit. A fence, table or HTML block is split only when it alone is over the
limit.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator, Sequence

from anvil.text.lines import LINE_END
from anvil.values import Block, ParsedPage

_FENCE = re.compile(r"[ \t>*+\-\d.)]*(`{3,}|~{3,})")


def parts(page: ParsedPage, begin: int, end: int, limit: int) -> list[tuple[int, int]]:
    """Split ``begin:end`` between blocks into as few parts as possible, with the longest as short as possible.

    So the parts have about the same size, and the last one is not tiny.
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
    low, high = -(-(end - begin) // fewest), limit
    while low < high:
        middle = (low + high) // 2
        if len(_pack(units, middle)) <= fewest and all(stop - start <= middle for start, stop in units):
            high = middle
        else:
            low = middle + 1
    return _pack(units, low)


def steps(text: str, size: int, overlap: int) -> Iterator[tuple[int, int]]:
    """Split ``text`` into spans of at most ``size``. Each begins up to ``overlap`` before the end of the one before.

    A span ends, and an overlap begins, at the end of a line or a word where one is near.
    """
    start = 0
    while True:
        stop = len(text)
        if stop - start > size:
            stop = _border(text, start + size - size // 4, start + size)
        yield start, stop
        if stop == len(text):
            return
        start = max(_border(text, stop - overlap, stop - overlap // 2), start + 1) if overlap else stop


def _border(text: str, low: int, high: int) -> int:
    """A position in ``low..high`` to cut: after the last line end, else after a space, else where it is safe."""
    for mark in ("\n", "\r", " ", "\t"):
        at = text.rfind(mark, low, high) + 1
        if at > low and text[at - 1 : at + 1] != "\r\n":
            return at
    return _safe(text, low, high)


def _pack(units: Sequence[tuple[int, int]], limit: int) -> list[tuple[int, int]]:
    packed = [units[0]]
    for start, stop in units[1:]:
        if stop - packed[-1][0] <= limit:
            packed[-1] = (packed[-1][0], stop)
        else:
            packed.append((start, stop))
    return packed


def _pieces(text: str, block: Block, limit: int) -> list[tuple[int, int]]:
    """``block``; split between paragraphs, lines or words when it alone is over ``limit``."""
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
    """Offsets after each line of ``block``, and after its blank lines outside fences (none if it is atomic)."""
    lines: list[int] = []
    paragraphs: list[int] = []
    fence = ""
    start = block.start
    for line_end in LINE_END.finditer(text, block.start, block.end):
        line = text[start : line_end.start()]
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
    """``cut`` or a position shortly before it that is not within CR LF, a letter with its marks, a surrogate pair or an
    emoji."""
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
