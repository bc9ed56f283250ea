"""Excerpts: the part of a section that matches a query best, cut where a reader would cut it.

An excerpt begins and ends with a paragraph, an item of a list, a row of a table or a fenced block; with a line where
one of these is too long, and with a sentence where the line is. Rows of a table have its head in front of them, and
lines of a fenced block its opening line.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from anvil.search import snippets

LEAD_SHARE = 4
"""A heading begins an excerpt, and the head of a table or the opening line of a fence is put in front of one, where it
takes at most one part of so many."""
_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n)|[^\r\n]+")
_FENCE = re.compile(r"([ \t>]*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_ITEM = re.compile(r"[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]")
_ROW = re.compile(r"[ \t>]*\|")
_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_SENTENCE = re.compile(r"(?<=[.!?:;])[ \t]+(?![a-z])|(?<=[\u3002\uff01\uff1f])")


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A span of a text, and what is put in front of it and behind it."""

    before: str
    start: int
    end: int
    after: str = ""


class _Block(NamedTuple):
    """A heading, a paragraph, an item, a row of a table or a fenced block: its span, without the blank lines that
    follow it. ``opening``: the first line of a fence; ``head``: the head of a table, of a row below it."""

    start: int
    end: int
    opening: str = ""
    head: str = ""
    is_heading: bool = False


class _Piece(NamedTuple):
    """What an excerpt is made of: a block, or a part of one that is too long. ``inside``: its fence is open before
    it. ``is_cut``: it is not even a sentence."""

    start: int
    end: int
    block: _Block
    inside: bool = False
    is_cut: bool = False


def excerpt(text: str, stems: Collection[str], size: int) -> Excerpt:
    """The part of a section, at most ``size`` characters, that has the most different ``stems``. Of equal parts it is
    the one with most matches, then the first; the section's beginning, if it has two thirds of what the best has."""
    if len(text) <= size:
        return Excerpt("", 0, len(text))
    blocks = list(_blocks(text))
    heading: frozenset[str] = frozenset()
    if len(blocks) > 1 and blocks[0].is_heading:
        heading = frozenset(snippets.matches(text[: blocks[0].end], stems))
        if (blocks[0].end - blocks[0].start) * LEAD_SHARE > size:
            del blocks[0]
    pieces = [piece for block in blocks for piece in _pieces(text, block, size)]
    if len(pieces) > 1 and pieces[0].block.is_heading and not _last(pieces, 0, size):
        del pieces[0]  # a heading alone says nothing
    if not pieces:
        return Excerpt("", 0, size)
    found = [snippets.matches(text[piece.start : piece.end], stems) for piece in pieces]

    def rank(first: int) -> tuple[int, int]:
        """Different stems that the heading does not have, and all, in the excerpt that begins with a piece."""
        held = [stem for each in found[first : _last(pieces, first, size) + 1] for stem in each]
        return len(frozenset(held) - heading), len(held)

    ranks = {first: rank(first) for first in range(len(pieces)) if found[first] or not first}
    best = max(ranks, key=lambda first: (ranks[first], -first))
    if 3 * ranks[0][0] >= 2 * ranks[best][0]:
        best = 0
    best = _earliest(pieces, best, size)
    opening = _sentence_start(text, pieces, best)
    if rank(opening) >= rank(best):
        best = opening
    last = _last(pieces, best, size)
    return Excerpt(_before(pieces[best], size), pieces[best].start, pieces[last].end, _closing(pieces, last))


def _earliest(pieces: list[_Piece], at: int, size: int) -> int:
    """The first piece of a block with which an excerpt that begins with a piece can begin as well: there is room for
    what stands before."""
    last, earliest = _last(pieces, at, size), at
    while at and _last(pieces, at - 1, size) == last:
        at -= 1
        if not at or pieces[at - 1].block is not pieces[at].block:
            earliest = at
    return earliest


def _sentence_start(text: str, pieces: list[_Piece], at: int) -> int:
    """The piece of the same block with which a sentence begins, or the block."""
    while at and pieces[at - 1].block is pieces[at].block:
        before = pieces[at - 1]
        if not before.block.opening and text[before.start : before.end].rstrip().endswith((".", "!", "?", ":")):
            break
        at -= 1
    return at


def _before(piece: _Piece, room: int) -> str:
    """What is put in front of a piece."""
    if piece.inside:
        return piece.block.opening
    head = piece.block.head
    return head if len(head) * LEAD_SHARE <= room and len(head) + piece.end - piece.start <= room else ""


def _closing(pieces: list[_Piece], last: int) -> str:
    """The end of a fence that is still open after a piece."""
    mark = _FENCE.match(pieces[last].block.opening) if pieces[last].inside else None
    return f"\n{mark[1]}{mark[2]}" if mark else ""


def _last(pieces: list[_Piece], first: int, room: int) -> int:
    """The last piece that fits behind the first one."""
    room -= len(_before(pieces[first], room))
    last = first
    for following in range(first + 1, len(pieces)):
        piece = pieces[following]
        if piece.end + len(_closing(pieces, following)) - pieces[first].start > room:
            break
        if piece.is_cut and piece.block is not pieces[last].block:
            break
        last = following
    return last


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text, in order, without blank lines between them."""
    block: _Block | None = None
    fence, is_apart, head = "", True, ""
    for match in _LINE.finditer(text):
        start, end = match.span()
        line = match[0].rstrip("\r\n")
        mark = None if fence else _FENCE.match(line)
        is_row = not fence and _ROW.match(line) is not None
        if fence:
            assert block is not None
            block = block._replace(end=end)
            if line.strip(" \t>").startswith(fence) and not line.strip(" \t>`~"):
                fence, is_apart = "", True
            continue
        if not line.strip(" \t>"):
            is_apart, head = True, ""
            continue
        if not is_row:
            head = ""
        if mark or is_apart or is_row or _HEADING.match(line) or _ITEM.match(line):
            if block is not None:
                yield block
            block = _Block(start, end, match[0] if mark else "", head, _HEADING.match(line) is not None)
            is_apart = block.is_heading
            fence = mark[2] if mark else ""
        else:
            assert block is not None
            block = block._replace(end=end)
        if is_row and _DELIMITER.match(line):  # of the header line before it
            head = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : end]
    if block is not None:
        yield block


def _pieces(text: str, block: _Block, room: int) -> Iterator[_Piece]:
    """A block, or its lines if it is too long, or the sentences of a line."""
    if len(text[block.start : block.end].rstrip()) <= room:
        yield _Piece(block.start, block.end, block)
        return
    first, mark = block.start + len(block.opening), _FENCE.match(block.opening)
    if mark and len(block.opening) * LEAD_SHARE > room:
        bare = f"{mark[1]}{mark[2]}\n"
        block = block._replace(opening=bare if len(bare) * LEAD_SHARE <= room else "")
    room -= 2 * len(block.opening)  # it may be opened and closed
    inside = bool(block.opening)
    for match in _LINE.finditer(text, first, block.end):
        start, end = match.span()
        if not match[0].strip() or (inside and end == block.end and _FENCE.match(match[0])):
            continue  # the end of a fence is put behind its last line
        if len(match[0].rstrip()) <= room:
            yield _Piece(start, end, block, inside)
            continue
        for sentence_start, sentence_end in _sentences(text, start, end):
            at = sentence_start
            while sentence_end - at > room:  # cut at a space
                space = text.rfind(" ", at + 1, at + room)
                cut = space if space > at else at + room
                yield _Piece(at, cut, block, inside, is_cut=True)
                at = cut
            yield _Piece(at, sentence_end, block, inside)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    at = start
    for match in _SENTENCE.finditer(text, start, end):
        if match.end() > at:
            yield at, match.end()
            at = match.end()
    if at < end:
        yield at, end
