"""Excerpts: the part of a section that matches a query best, cut where a reader would cut it.

An excerpt begins and ends with a paragraph, an item of a list, a row of a table or a fenced block. If one of these is
too long, it begins or ends with a sentence or a line of code. Rows of a table have its head in front of them, lines of
a fenced block have its opening line.

In a list of definitions it begins with the definition that matches, whole. Such a list has rows of a table, terms of a
definition list, options in a fenced block, or items that begin with a name.
"""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import NamedTuple

from anvil.formats.characters import LINE, UNSPACED, WORD_MARKS
from anvil.formats.patterns import lazy_pattern
from anvil.text.query import STOP, beginning, bounded, pairs

MAX_OUTLINES = 512
"""Texts whose blocks are cached. In 329 questions to 14 indexes, three in five texts were texts of earlier
questions."""
LEAD_SHARE = 4
"""The share of an excerpt, one part in so many, that a heading at its beginning may take, or a text that is put in
front: the head of a table, or the opening line of a fence."""
MIN_DEFINITIONS = 4
"""Definitions of the same kind that make a list of definitions."""
MARGINS = {"option": 4, "row": 99, "item": 1, "term": 1}
"""Kind of definition -> characters by which definitions of one list may be indented differently."""
MARKS = "`~#|-*+0123456789"
"""A line that begins with one of these may be more than a line of a paragraph."""
_FENCE = re.compile(r"([ \t>]*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_BEGINS = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)|[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]|[ \t]+-{1,2}[A-Za-z?]")
"""The first line of a heading, of an item, or of an option in a fence that was opened in an earlier chunk."""
_ROW = re.compile(r"[ \t>]*\|")
_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_OPTION = re.compile(r"[ \t>]*(?:-{1,2}[A-Za-z?]|[A-Z][A-Z0-9]*_[A-Z0-9_]+\b)")
_NAMED_ITEM = re.compile(r"[ \t>]*[-*+][ \t]+(?:[`\[]|\*\*|__|<code>)")
_MEANING = re.compile(r"[^\r\n]*(?:\r\n?|\n)[ \t>]*::?[ \t]")
_LISTED = re.compile(r"\n(?:[ \t>]*(?:[-*+][ \t]+[`\[*_<]|::?[ \t]|-{1,2}[A-Za-z?]|[A-Z][A-Z0-9]*_)|[^|\r\n]*\|)")
"""A line end, and the beginning of a line that a definition in a list may have."""
_LISTED_NEXT = re.compile(r"(?:[-*+]|\d{1,9}[.)])[ \t]|\|")
_TERM = re.compile(r"[ \t>|*+-]*[^\r\n]*?(?=[ \t]{2}|\||: | - |[\r\n]|\Z)")
_EMPTY_CELL = re.compile(r"[ \t>]*\|[ \t]*\|")
_PADDING = re.compile(r"[ \t]{2,}|(?<=-{3})-+")
_NAME = re.compile(r"(?<!\w)--?[A-Za-z][\w.-]*|\b\w*[a-z0-9](?:[A-Z]|[_.]\w)[\w.]*")
_SENTENCE = re.compile(r"[\u3002\uff01\uff1f]|[.!?;]\s[\s>]*(?![a-z\s>])|:[ \t]*[\r\n][\s>]*")
"""The end of a sentence, with the space behind it."""
MIN_FULL_LINE = 50
"""Characters of a line of a paragraph from which on the next line continues its sentence. A shorter line may be a cell,
a verse, or code whose fence was opened in an earlier chunk."""


class Sought(NamedTuple):
    """The stems that an excerpt should have: those of a query, and those of the names in it, such as ``--flag`` or
    ``maxAge``."""

    stems: frozenset[str]
    names: frozenset[str] = frozenset()


def sought(query: str) -> Sought:
    """The stems that an excerpt for a query should have."""
    return Sought(query_stems(query), query_stems(" ".join(_NAME.findall(bounded(query)))))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A span of a text, with a text that is put in front of it and one that is put behind it."""

    before: str
    start: int
    end: int
    after: str = ""

    def of(self, text: str) -> str:
        """The text of the excerpt. ``text``: that of the section."""
        return f"{self.before}{text[self.start : self.end].rstrip()}{self.after}"


class _Block(NamedTuple):
    """A heading, a paragraph, an item, a row of a table or a fenced block. Its span is without the blank lines that
    follow.

    ``opening``: the first line of a fence. ``closing``: the text that closes it. ``head``: the head of the table, for a
    row below it.
    """

    start: int
    end: int
    opening: str = ""
    closing: str = ""
    head: str = ""
    is_heading: bool = False


class _Piece(NamedTuple):
    """A part of an excerpt: a block, or a part of a block that is too long.

    ``inside``: its fence is open before it. ``is_cut``: it ends within a sentence.
    """

    start: int
    end: int
    block: _Block
    inside: bool = False
    is_cut: bool = False


def excerpt(text: str, wanted: Sought, size: int) -> Excerpt:
    """The part of a section, at most ``size`` characters, that has the most different stems.

    Of equal parts it is the one with most matches, then the first. It is the beginning of the section if that has two
    thirds of the stems of the best part. In a list of definitions it begins with the best one and ends with the last
    that matches.
    """
    return _excerpt(text, wanted, size)[0]


def goes_on(text: str, part: Excerpt) -> bool:
    """Whether an excerpt ends within code, between two items or rows, or with a line that introduces what follows."""
    following = text[part.end :].lstrip()
    is_cut = bool(part.after) or text[part.start : part.end].rstrip().endswith(":")
    return bool(following) and (is_cut or _LISTED_NEXT.match(following) is not None)


def definition(text: str, wanted: Sought, size: int) -> tuple[int, int] | None:
    """If an excerpt of this size begins with a definition: the characters of that, and those of the excerpt. Else
    None."""
    if len(text) <= size or not _outline(text)[1]:
        return None
    part, end = _excerpt(text, wanted, size)
    if end is None:
        return None
    around = len(part.before) + len(part.after)
    return around + end - part.start, around + part.end - part.start


def _excerpt(text: str, wanted: Sought, size: int) -> tuple[Excerpt, int | None]:
    """An excerpt, and the end of the definition with which it begins, if it does."""
    if len(text) <= size:
        return Excerpt("", 0, len(text)), None
    blocks, has_definitions = _outline(text)
    spots = matches_at(text, wanted.stems)
    heading: frozenset[str] = frozenset()
    if len(blocks) > 1 and blocks[0].is_heading:
        heading = frozenset(stem for at, stem in spots if at < blocks[0].end)
        if (blocks[0].end - blocks[0].start) * LEAD_SHARE > size:
            blocks = blocks[1:]
    if not blocks:
        return Excerpt("", 0, size), None
    passages = _Passages(text, blocks, spots, heading, size)
    if has_definitions and (own := passages.best_definition(wanted)) is not None:
        return own
    return passages.best_excerpt() if passages else Excerpt("", 0, size), None


class _Passages:
    """The pieces of a text, and the excerpts of one size that begin with them.

    ``spots``: the positions of the stems of the query. ``heading``: the stems that the text's heading has.
    """

    def __init__(
        self, text: str, blocks: Sequence[_Block], spots: Sequence[Spot], heading: frozenset[str], size: int
    ) -> None:
        self._text, self._blocks, self._spots, self._heading, self._size = text, blocks, spots, heading, size
        self._pieces = _pieces(text, blocks, size, [at for at, _ in spots])
        if len(self._pieces) > 1 and self._pieces[0].block.is_heading and not _last_fitting(self._pieces, 0, size):
            del self._pieces[0]  # a heading alone says nothing
        self._stems = _stems_of(self._pieces, spots)
        self._ranks = {first: self._rank(first) for first, stems in enumerate(self._stems) if stems or not first}
        self._best = max(self._ranks, key=lambda first: (self._ranks[first], -first), default=0)

    def __bool__(self) -> bool:
        """Whether there is any piece: empty fences have none."""
        return bool(self._pieces)

    @property
    def best_rank(self) -> tuple[int, int]:
        """The rank of the best excerpt: how many different stems it has that the heading does not have, and how many
        matches."""
        return self._ranks.get(self._best, (0, 0))

    def _rank(self, first: int) -> tuple[int, int]:
        """The rank of the excerpt that begins with a piece; see :attr:`best_rank`."""
        last = _last_fitting(self._pieces, first, self._size)
        found = [stem for of_piece in self._stems[first : last + 1] for stem in of_piece]
        return len(frozenset(found) - self._heading), len(found)

    def _excerpt(self, first: int, last: int) -> Excerpt:
        begin, end = self._pieces[first], self._pieces[last]
        before = _prefix(begin, self._size)
        introduces = not end.inside and self._text[begin.start : end.end].rstrip().endswith(":")
        if introduces and last + 1 < len(self._pieces):
            following = self._pieces[last + 1]
            room = self._size - len(before) + begin.start - len(following.block.closing)
            if (code_end := self._last_line(following, room)) is not None:
                return Excerpt(before, begin.start, code_end, following.block.closing)
        return Excerpt(before, begin.start, end.end, _suffix(end))

    def _last_line(self, piece: _Piece, limit: int) -> int | None:
        """The end of the last line before ``limit`` of the code in a fenced block that is too long for an excerpt; None
        if not even one line ends before it."""
        if piece.inside or not piece.block.opening:
            return None
        end = self._text.rfind("\n", piece.start + len(piece.block.opening), limit + 1)
        return end if end > piece.start + len(piece.block.opening) else None

    def best_excerpt(self) -> Excerpt:
        """The excerpt with most stems, or the beginning of the text."""
        pieces, size, best = self._pieces, self._size, self._best
        if 3 * self._ranks[0][0] >= 2 * self.best_rank[0]:
            best = 0
        best = _earliest_start(pieces, best, size)
        opening = _sentence_start(self._text, pieces, best)
        if self._rank(opening) >= self._rank(best):
            best = opening
        introduction = _introduction(self._text, pieces, best, size)
        if self._rank(introduction)[0] >= self._rank(best)[0]:
            best = introduction
        return self._excerpt(best, _last_fitting(pieces, best, size))

    def best_definition(self, wanted: Sought) -> tuple[Excerpt, int] | None:
        """The excerpt that begins with the best definition, and the end of that; None if none is good enough."""
        best = self._best_of(_definitions(self._text, self._pieces), wanted)
        if best is None:
            return None
        start, end = self._pieces[best.start].start, self._pieces[best.stop - 1].end
        pieces = _pieces(self._text, self._blocks, self._size, [start])
        first = next(place for place, piece in enumerate(pieces) if piece.start == start)
        last, stems = _last_fitting(pieces, first, self._size), _stems_of(pieces, self._spots)
        while pieces[last].start >= end and self._heading.issuperset(stems[last]):
            last -= 1  # what follows the definition has to match, too
        part = Excerpt(_prefix(pieces[first], self._size), start, pieces[last].end, _suffix(pieces[last]))
        return part, min(end, pieces[last].end)

    def _best_of(self, definitions: Sequence[_Definition], wanted: Sought) -> range | None:
        """The pieces of the definition that matches best.

        It is the one that has most of the names, then the one with most of them in its term, then the one with stems
        that few others have. None if it has less than two thirds of the different stems of the best excerpt, or less
        than one third if it has all the names.
        """
        held = [
            frozenset(stem for place in definition.pieces for stem in self._stems[place]) for definition in definitions
        ]
        having = Counter(stem for stems in held for stem in stems)

        def weight(stems: Collection[str]) -> float:
            return round(sum(math.log(1 + len(definitions) / having[stem]) for stem in sorted(stems)), 6)

        def rank(place: int) -> tuple[float, float, float, float, int]:
            own, names = held[place] - self._heading, held[place] & wanted.names
            begin, end = (bisect_left(self._spots, (at, "")) for at in definitions[place].term)
            of_term = frozenset(stem for _, stem in islice(self._spots, begin, end))
            return len(names), len(names & of_term), weight(own), weight(own & of_term), -place

        best = max((place for place, stems in enumerate(held) if stems - self._heading), key=rank, default=None)
        if best is None:
            return None
        share = 1 if wanted.names and wanted.names <= held[best] else 2
        return definitions[best].pieces if 3 * len(held[best] - self._heading) >= share * self.best_rank[0] else None


def _stems_of(pieces: Sequence[_Piece], spots: Iterable[Spot]) -> list[list[str]]:
    """The stems in each piece, one for each word that begins in it."""
    stems: list[list[str]] = [[] for _ in pieces]
    place = 0
    for at, stem in spots:
        while place < len(pieces) and pieces[place].end <= at:
            place += 1
        if place == len(pieces):
            break
        if pieces[place].start <= at:
            stems[place].append(stem)
    return stems


class _Definition(NamedTuple):
    """A definition in a list of them: its pieces, and the span of the term that it defines."""

    pieces: range
    term: tuple[int, int]


def _definitions(text: str, pieces: Sequence[_Piece]) -> list[_Definition]:
    lists: list[list[range]] = []
    list_kind, margin = "", 0  # of the definitions in the last list
    for place, piece in enumerate(pieces):
        line = text[piece.start : piece.end]
        indent = len(line) - len(line.lstrip(" \t>"))
        is_part = place > 0 and pieces[place - 1].block is piece.block
        kind = _definition_kind(line, piece, is_part)
        continues = indent > margin or (not kind and (bool(piece.block.head) or (is_part and not piece.inside)))
        if kind and kind == list_kind and abs(indent - margin) <= MARGINS[kind]:
            lists[-1].append(range(place, place + 1))
        elif list_kind and continues:
            lists[-1][-1] = range(lists[-1][-1].start, place + 1)
        else:
            list_kind, margin = kind, indent
            if kind:
                lists.append([range(place, place + 1)])
    ranges = (pieces_of for of_list in lists if len(of_list) >= MIN_DEFINITIONS for pieces_of in of_list)
    return [_Definition(pieces_of, _term(text, pieces[pieces_of.start])) for pieces_of in ranges]


@lru_cache(MAX_OUTLINES)
def _outline(text: str) -> tuple[list[_Block], bool]:
    """The blocks of a text, and whether it may have definitions; most have none. Questions to one index often find the
    same texts, so it is cached."""
    return _blocks(text), len(list(islice(_LISTED.finditer(f"\n{text}"), MIN_DEFINITIONS))) == MIN_DEFINITIONS


def _term(text: str, piece: _Piece) -> tuple[int, int]:
    term = _TERM.match(text, piece.start, piece.end)
    return piece.start, term.end() if term else piece.start


def _definition_kind(line: str, piece: _Piece, is_part: bool) -> str:
    """The kind of the definition that begins with a piece; empty if none does."""
    if _OPTION.match(line) and (piece.inside or (line[0].isspace() and not is_part)):
        return "option"
    if piece.inside or is_part:
        return ""
    if piece.block.head:
        return "" if _EMPTY_CELL.match(line) else "row"
    if _NAMED_ITEM.match(line):
        return "item"
    return "term" if _MEANING.match(line) else ""


def _earliest_start(pieces: list[_Piece], at: int, size: int) -> int:
    """The first piece with which the excerpt can begin instead of the piece ``at``: it begins a block, and the excerpt
    has room for the pieces between them."""
    last, earliest = _last_fitting(pieces, at, size), at
    while at and _last_fitting(pieces, at - 1, size) == last:
        at -= 1
        if not at or pieces[at - 1].block is not pieces[at].block:
            earliest = at
    return earliest


def _sentence_start(text: str, pieces: list[_Piece], at: int) -> int:
    """The piece of the same block that begins the sentence; the first of the block if no sentence ends before."""
    while at and pieces[at - 1].block is pieces[at].block:
        before = pieces[at - 1]
        if not before.block.opening and text[before.start : before.end].rstrip().endswith((".", "!", "?", ":")):
            break
        at -= 1
    return at


def _introduction(text: str, pieces: list[_Piece], at: int, size: int) -> int:
    """The piece before, if it is a short line such as "These options exist:" in front of a list, a table or code."""
    before = pieces[at - 1]
    introduces = at > 0 and not before.inside and text[before.start : before.end].rstrip().endswith(":")
    is_short = (pieces[at].start - before.start) * LEAD_SHARE <= size
    return at - 1 if introduces and before.block is not pieces[at].block and is_short else at


def _prefix(piece: _Piece, room: int) -> str:
    """The text that is put in front of an excerpt that begins with this piece."""
    if piece.inside:
        return piece.block.opening
    head = piece.block.head
    return head if len(head) * LEAD_SHARE <= room and len(head) + piece.end - piece.start <= room else ""


def _suffix(piece: _Piece) -> str:
    """The text that is put behind an excerpt that ends with this piece: the end of a fence that is still open."""
    return piece.block.closing if piece.inside else ""


def _last_fitting(pieces: list[_Piece], first: int, room: int) -> int:
    """The last piece that fits into ``room`` behind the piece ``first``."""
    start, _, block, _, _ = pieces[first]
    limit = start + room - len(_prefix(pieces[first], room))
    last = first
    for following in range(first + 1, len(pieces)):
        _, end, its_block, inside, is_cut = pieces[following]
        if end + (len(its_block.closing) if inside else 0) > limit or (is_cut and its_block is not block):
            break
        block, last = its_block, following
    return last


def _blocks(text: str) -> list[_Block]:
    """The blocks of a text, in order, without blank lines between them."""
    blocks: list[_Block] = []
    first, opening, closing, first_head, is_heading = -1, "", "", "", False  # of the last block, which is not complete
    last, fence, is_apart, head = 0, "", True, ""  # ``last``: the end of its last line so far
    end = 0
    for whole_line in LINE.findall(text):
        start, end = end, end + len(whole_line)
        if fence:
            last = end
            bare = whole_line.strip(" \t>\r\n") if fence in whole_line else ""
            if bare.startswith(fence) and not bare.strip(" \t>`~"):
                fence, is_apart = "", True
            continue
        line = whole_line.rstrip("\r\n")
        bare = line.strip(" \t>")
        if not bare:
            is_apart, head = True, ""
            continue
        is_plain = bare[0] not in MARKS and line[0] not in " \t" and "|" not in line  # nearly all lines
        mark = None if is_plain else _FENCE.match(line)
        is_row = not is_plain and (_ROW.match(line) is not None or (bool(head) and "|" in line))
        if not is_row:
            head = ""
        if is_apart or mark or is_row or (not is_plain and _BEGINS.match(line)):
            if first >= 0:
                blocks.append(_Block(first, last, opening, closing, first_head, is_heading))
            opening, closing = (whole_line, f"\n{mark[1]}{mark[2]}") if mark else ("", "")
            is_apart = is_heading = not is_plain and _HEADING.match(line) is not None
            first, first_head = start, head
            fence = mark[2] if mark else ""
        last = end
        if not is_plain and "|" in line and _DELIMITER.match(line):  # of the header line before it
            header = text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : end]
            head = _PADDING.sub(lambda padding: " " if padding[0].isspace() else "", header)
    if first >= 0:
        blocks.append(_Block(first, last, opening, closing, first_head, is_heading))
    return blocks


def _has_options(text: str, block: _Block) -> bool:
    lines = LINE.finditer(text, block.start, block.end)
    return sum(_OPTION.match(line[0]) is not None for line in lines) >= MIN_DEFINITIONS


def _pieces(text: str, blocks: Sequence[_Block], size: int, near: Sequence[int]) -> list[_Piece]:
    """The pieces of blocks.

    A line that is too long is cut into sentences only near the beginning, near the positions ``near``, and in a fence:
    no excerpt of this size reaches from there to other parts of the line.
    """
    beginnings: list[int] = []
    for block in blocks:
        content = text[block.start + len(block.opening) : block.end].lstrip()
        beginnings += block.start, block.end - len(content)
        if not block.opening and len(beginnings) > 2:  # a fence may be empty, and a heading is left out in places
            break
    places = sorted([*beginnings, *near])

    def is_near(start: int, end: int) -> bool:
        following = bisect_left(places, start - size)
        return following < len(places) and places[following] < end + size

    pieces: list[_Piece] = []
    for block in blocks:
        start, end, opening = block.start, block.end, block.opening
        is_short = end - start <= size or len(text[start:end].rstrip()) <= size
        if is_short and not (opening and _has_options(text, block)):
            pieces.append(_Piece(start, end, block))
            continue
        room, inside = size, False
        if opening:
            block = _short_opening(block, size)
            room -= 2 * len(block.opening)  # it may be opened and closed
            inside = bool(block.opening)
        for begin, stop in _line_spans(text, start + len(opening), end, bool(opening)):
            length = len(text[begin:stop].rstrip())
            if not length or (inside and stop == end and _FENCE.match(text, begin, stop)):
                continue  # the end of a fence is put behind its last line
            line = _Piece(begin, stop, block, inside)
            if opening and length <= room:
                pieces.append(line)
            elif inside or is_near(begin, stop):
                pieces += _cut(text, line, room)
            else:
                first = next(_cut(text, line, room))
                pieces += first, _Piece(first.end, stop, block)
    return pieces


def _line_spans(text: str, start: int, end: int, is_code: bool) -> Iterator[tuple[int, int]]:
    """The lines of a block. Lines of a paragraph that continue a sentence are one."""
    at = start
    for line in LINE.findall(text, start, end):
        at += len(line)
        if is_code or at == end or len(line.rstrip()) < MIN_FULL_LINE or line.rstrip("\r\n").endswith(("  ", "\\")):
            yield start, at
            start = at


def _short_opening(block: _Block, size: int) -> _Block:
    """A fenced block whose opening line is not too long for an excerpt: it is without its words, or empty."""
    mark = _FENCE.match(block.opening)
    if mark is None or len(block.opening) * LEAD_SHARE <= size:
        return block
    bare = f"{mark[1]}{mark[2]}\n"
    return block._replace(opening=bare if len(bare) * LEAD_SHARE <= size else "")


def _cut(text: str, line: _Piece, room: int) -> Iterator[_Piece]:
    """The sentences of some lines. One that is too long is cut behind spaces and line ends."""
    at, line_end, block, inside, _ = line
    while at < line_end:
        sentence = _SENTENCE.search(text, at, line_end)
        end = sentence.end() if sentence else line_end
        shown_end = at + len(text[at:end].rstrip())
        while shown_end - at > room:
            cut = max(text.rfind(" ", at + 1, at + room), text.rfind("\n", at + 1, at + room)) + 1 or at + room
            yield _Piece(at, cut, block, inside, True)
            at = cut
        yield _Piece(at, end, block, inside)
        at = end


# --- words of a query in a text, found by rough stems --------------------------------------------------------------

MAX_WORD_CHARACTERS = 100
"""Characters of the longest word that is cached."""
Spot = tuple[int, str]
"""The position of a word in a text, and its stem."""
_WORD = lazy_pattern(rf"[^\W{UNSPACED}]+(?:[\u0300-\u036f{WORD_MARKS}]+[^\W{UNSPACED}]*)*|[{UNSPACED}]+")
_ASCII_WORD = re.compile("[A-Za-z0-9_]+")  # the same for ASCII, twice as fast
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_ENDING = re.compile(r"(?:ations?|ing|ies|ied|ed|es|s|e|y)$")


def stem(word: str) -> str:
    """A folded word without its English ending, roughly: ``caching`` and ``caches`` have the same stem. The stem of a
    Greek or Cyrillic word is its beginning."""
    folded = word.casefold()
    if start := beginning(folded):
        return start
    cut = _ENDING.sub("", folded)
    return cut if len(cut) >= 3 else folded


def query_stems(text: str) -> frozenset[str]:
    """The stems of a query's words, without stop words and words of one or two letters. Chinese, Japanese and Korean
    have no spaces; there the stems are pairs of characters."""
    words = (
        word
        for word in word_pattern(text).findall(bounded(text))
        if (len(word) > 2 and word.casefold() not in STOP) or is_unspaced(word)
    )
    return frozenset(key for word in words for key in keys_of(word))


def keys_of(word: str) -> tuple[str, ...]:
    """The stem of a word, or the pairs of characters of a word that is :func:`is_unspaced`."""
    return _cached_keys(word) if len(word) <= MAX_WORD_CHARACTERS else _cached_keys.__wrapped__(word)


@lru_cache(4096)  # texts of one index have few different words
def _cached_keys(word: str) -> tuple[str, ...]:
    return tuple(pairs(word)) if is_unspaced(word) else (stem(word),)


def word_pattern(text: str) -> re.Pattern[str]:
    """The pattern of the words of a text."""
    return _ASCII_WORD if text.isascii() else _WORD


def is_unspaced(word: str) -> bool:
    """Whether a word is a run of characters of a script without spaces."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def matches_at(text: str, stems: Collection[str]) -> list[Spot]:
    """The positions of words with one of the ``stems`` in a text, in its order."""
    folded, pattern = text.casefold(), word_pattern(text)
    has_pairs = not all(map(str.isascii, stems)) and any(map(is_unspaced, stems))
    if has_pairs or len(folded) != len(text):  # positions in the one are not those in the other
        return [(word.start(), key) for word in pattern.finditer(text) for key in keys_of(word[0]) if key in stems]
    spots = []
    for prefix in stems:  # a stem is the beginning of a folded word, and few words begin with one
        at = folded.find(prefix)
        while at >= 0:
            end, before = at + 1, text[at - 1 : at]
            if not (before.isalnum() or before == "_") or is_unspaced(before):
                word = pattern.match(text, at)
                assert word is not None
                end = word.end()
                if prefix in keys_of(word[0]):
                    spots.append((at, prefix))
            at = folded.find(prefix, end)
    return sorted(spots)
