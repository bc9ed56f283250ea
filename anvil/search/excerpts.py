"""Excerpts: the part of a section that matches a query best, cut where a reader would cut it; and the words that match.

An excerpt begins and ends with a paragraph, an item of a list, a row of a table or a fenced block; with a line where
one of these is too long, and with a sentence where the line is. Rows of a table have its head in front of them, and
lines of a fenced block its opening line. Of a list of definitions (rows of a table, a definition list, options in a
fenced block, items that begin with a name) it begins with the definition that matches, whole.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, groupby, islice
from typing import NamedTuple

from anvil.formats.characters import LINE
from anvil.formats.patterns import lazy_pattern
from anvil.text.query import CJK, STOP, bounded, pairs

MAX_WORD_CHARACTERS = 100
"""Characters of the longest word that is cached."""
_END = re.compile(r"\r\n?|\n")
_WORD = lazy_pattern(rf"[^\W{CJK}]+|[{CJK}]+")
_ASCII_WORD = re.compile("[A-Za-z0-9_]+")  # the same for ASCII, twice as fast
_UNSPACED = lazy_pattern(f"[{CJK}]")
_ENDING = re.compile(r"(?:ations?|ing|ies|ied|ed|es|s|e|y)$")


def stem(word: str) -> str:
    """A folded word without its English ending, roughly: ``caching`` and ``caches`` give the same."""
    folded = word.casefold()
    cut = _ENDING.sub("", folded)
    return cut if len(cut) >= 3 else folded


def query_stems(text: str) -> frozenset[str]:
    """The stems of a query's words, without stop words and words of one or two letters; for Chinese, Japanese and
    Korean, which have no spaces, pairs of characters."""
    words = (
        word
        for word in _word_in(text).findall(bounded(text))
        if (len(word) > 2 and word.casefold() not in STOP) or _is_unspaced(word)
    )
    return frozenset(key for word in words for key in _keys(word))


def _keys(word: str) -> tuple[str, ...]:
    return _known_keys(word) if len(word) <= MAX_WORD_CHARACTERS else _known_keys.__wrapped__(word)


@lru_cache(4096)  # texts of one index have few different words
def _known_keys(word: str) -> tuple[str, ...]:
    return tuple(pairs(word)) if _is_unspaced(word) else (stem(word),)


def _word_in(text: str) -> re.Pattern[str]:
    return _ASCII_WORD if text.isascii() else _WORD


def _is_unspaced(word: str) -> bool:
    """Whether a word is a run of characters of a script without spaces."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def highlight(text: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    """``text``, with ``style`` applied to each word whose stem is in ``stems``."""

    def marked(match: re.Match[str]) -> str:
        if _is_unspaced(match[0]):
            return _marked_run(match[0], stems, style)
        return style(match[0]) if stem(match[0]) in stems else match[0]

    return _word_in(text).sub(marked, text)


def matched_words(text: str, stems: Collection[str]) -> frozenset[str]:
    """The words of ``text`` whose stem is in ``stems``, as written."""
    matched: set[str] = set()

    def keep(word: str) -> str:
        matched.add(word)
        return word

    highlight(text, stems, keep)
    return frozenset(matched)


def _marked_run(run: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    starts = [run[i : i + 2] in stems for i in range(len(run))]
    hit = [run[i] in stems or starts[i] or (i > 0 and starts[i - 1]) for i in range(len(run))]
    pieces = groupby(zip(run, hit, strict=True), key=lambda item: item[1])
    joined = ((is_hit, "".join(character for character, _ in group)) for is_hit, group in pieces)
    return "".join(style(text) if is_hit else text for is_hit, text in joined)


def lines_before(text: str, at: int) -> int:
    """Number of line ends before a position in a text."""
    return sum(1 for line_end in _END.finditer(text) if line_end.end() <= at)


def line_ends(text: str) -> int:
    """Number of line ends in a text."""
    return sum(1 for _ in _END.finditer(text))


def best_snippet(text: str, stems: Collection[str], size: int) -> tuple[int, int]:
    """The span of whole lines, at most ``size`` characters, with the most different ``stems``.

    Of equal spans it is the one with most matches, then the first. A line longer than ``size`` is cut.
    """
    return (0, len(text)) if len(text) <= size else _best_span(_matched_lines(text, stems), size)


class _MatchedLine(NamedTuple):
    """Where a line is in its text, the different stems in it, and the number of all of them."""

    start: int
    end: int
    stems: frozenset[str]
    matches: int


_NO_STEMS: frozenset[str] = frozenset()


def _matched_lines(text: str, stems: Collection[str]) -> list[_MatchedLine]:
    """The lines of a text. The stems of each word are looked up once."""
    lines = LINE.findall(text)
    words = list(map(_word_in(text).findall, lines))
    wanted = frozenset(stems)
    found = {word for word in set(chain.from_iterable(words)) if not wanted.isdisjoint(_keys(word))}
    matched, start = [], 0
    for line, line_words in zip(lines, words, strict=True):
        end = start + len(line)
        if found.isdisjoint(line_words):  # nearly all lines
            matched.append(_MatchedLine(start, end, _NO_STEMS, 0))
        else:
            keys = [key for word in line_words if word in found for key in _keys(word) if key in wanted]
            matched.append(_MatchedLine(start, end, frozenset(keys), len(keys)))
        start = end
    return matched


def _best_span(lines: Sequence[_MatchedLine], size: int) -> tuple[int, int]:
    """See :func:`best_snippet`; of lines that are longer than ``size`` together."""
    best, best_rank, last = (0, size), (-1, -1), 0
    counts: dict[str, int] = {}
    matches = 0
    for first, (begin, _, _, _) in enumerate(lines):
        while last < len(lines) and lines[last][1] - begin <= size:
            for word in lines[last][2]:
                counts[word] = counts.get(word, 0) + 1
            matches += lines[last][3]
            last += 1
        if last > first:
            rank = (len(counts), matches)
            if rank > best_rank:
                best, best_rank = (begin, lines[last - 1][1]), rank
            for word in lines[first][2]:
                counts[word] -= 1
                if not counts[word]:
                    del counts[word]
            matches -= lines[first][3]
        else:  # this line alone is longer than size
            rank = (len(lines[first][2]), lines[first][3])
            if rank > best_rank:
                best, best_rank = (begin, begin + size), rank
            last = first + 1
    return best


def matches(text: str, stems: Collection[str]) -> list[str]:
    """The ``stems`` in a text, each as often as it is there."""
    return [stem for _, stem in matches_at(text, stems)]


def matches_at(text: str, stems: Collection[str]) -> list[tuple[int, str]]:
    """The ``stems`` in a text, in its order, each with the place where its word begins."""
    folded, word_in = text.casefold(), _word_in(text)
    if len(folded) != len(text) or any(map(_is_unspaced, stems)):  # places in one are not those in the other
        return [(word.start(), key) for word in word_in.finditer(text) for key in _keys(word[0]) if key in stems]
    found = []
    for prefix in stems:  # a stem is the beginning of a folded word, and few words begin like one
        at = folded.find(prefix)
        while at >= 0:
            word = word_in.match(text, at)
            assert word is not None
            if not (at and _is_in_word(text[at - 1])) and prefix in _keys(word[0]):
                found.append((at, prefix))
            at = folded.find(prefix, word.end())
    return sorted(found)


def _is_in_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not _is_unspaced(character)


LEAD_SHARE = 4
"""A heading begins an excerpt, and the head of a table or the opening line of a fence is put in front of one, where it
takes at most one part of so many."""
MIN_DEFINITIONS = 4
"""Definitions of a kind that make a list of them."""
MARGINS = {"option": 4, "row": 99, "item": 1, "term": 1}
"""Characters by which definitions of one list may be indented differently."""
MARKS = "`~#|-*+0123456789"
"""With one of these begins what is more than a line of a paragraph."""
_FENCE = re.compile(r"([ \t>]*)(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`]*\Z)|~{3,})")
_HEADING = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)")
_BEGINS = re.compile(r" {0,3}#{1,6}(?:[ \t]|\Z)|[ \t>]*(?:[-*+]|\d{1,9}[.)])[ \t]|[ \t]+-{1,2}[A-Za-z?]")
"""The first line of a heading, of an item, or of an option in a fence that was opened in an earlier chunk."""
_ROW = re.compile(r"[ \t>]*\|")
_DELIMITER = re.compile(r"[ \t>]*\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?[ \t]*\Z")
_OPTION = re.compile(r"[ \t>]*(?:-{1,2}[A-Za-z?]|[A-Z][A-Z0-9]*_[A-Z0-9_]+\b)")
_NAMED_ITEM = re.compile(r"[ \t>]*[-*+][ \t]+(?:[`\[]|\*\*|__|<code>)")
_MEANING = re.compile(r"[^\r\n]*(?:\r\n?|\n)[ \t>]*::?[ \t]")
_LISTED = re.compile(
    r"^(?:[ \t>]*(?:[-*+][ \t]+[`\[*_<]|::?[ \t]|-{1,2}[A-Za-z?]|[A-Z][A-Z0-9]*_)|[^|\r\n]*\|)", re.MULTILINE
)
"""What each definition of a list has at the beginning of a line."""
_TERM = re.compile(r"[ \t>|*+-]*[^\r\n]*?(?=[ \t]{2}|\||: | - |[\r\n]|\Z)")
_EMPTY_CELL = re.compile(r"[ \t>]*\|[ \t]*\|")
_PADDING = re.compile(r"[ \t]{2,}|(?<=-{3})-+")
_NAME = re.compile(r"(?<!\w)--?[A-Za-z][\w.-]*|\b\w*[a-z0-9](?:[A-Z]|[_.]\w)[\w.]*")
_SENTENCE = re.compile(r"(?<=[.!?:;])[ \t]+(?![a-z])|(?<=[\u3002\uff01\uff1f])")


class Sought(NamedTuple):
    """What an excerpt is to hold: the stems of a query, and those of the names in it, such as ``--flag`` or
    ``maxAge``."""

    stems: frozenset[str]
    names: frozenset[str] = frozenset()


def sought(query: str) -> Sought:
    """What an excerpt for a query is to hold."""
    return Sought(query_stems(query), query_stems(" ".join(_NAME.findall(bounded(query)))))


@dataclass(frozen=True, slots=True)
class Excerpt:
    """A span of a text, and what is put in front of it and behind it."""

    before: str
    start: int
    end: int
    after: str = ""


class _Block(NamedTuple):
    """A heading, a paragraph, an item, a row of a table or a fenced block: its span, without the blank lines that
    follow it. ``opening``: the first line of a fence, ``closing``: what closes it; ``head``: the head of a table, of a
    row below it."""

    start: int
    end: int
    opening: str = ""
    closing: str = ""
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


def excerpt(text: str, wanted: Sought, size: int) -> Excerpt:
    """The part of a section, at most ``size`` characters, that has the most different stems. Of equal parts it is
    the one with most matches, then the first; the section's beginning, if it has two thirds of what the best has. In a
    list of definitions it begins with the best one and ends with the last that matches."""
    return _excerpt(text, wanted, size)[0]


def definition(text: str, wanted: Sought, size: int) -> tuple[int, int] | None:
    """The characters of the definition with which an excerpt of this size begins, and of the excerpt; None where it
    does not begin with one."""
    if len(text) <= size or not _may_have_definitions(text):
        return None
    part, end = _excerpt(text, wanted, size)
    if end is None:
        return None
    around = len(part.before) + len(part.after)
    return around + end - part.start, around + part.end - part.start


def _excerpt(text: str, wanted: Sought, size: int) -> tuple[Excerpt, int | None]:
    """An excerpt, and where the definition ends with which it begins."""
    if len(text) <= size:
        return Excerpt("", 0, len(text)), None
    stems = wanted.stems
    blocks = list(_blocks(text))
    heading: frozenset[str] = frozenset()
    if len(blocks) > 1 and blocks[0].is_heading:
        heading = frozenset(matches(text[: blocks[0].end], stems))
        if (blocks[0].end - blocks[0].start) * LEAD_SHARE > size:
            del blocks[0]
    pieces = [piece for block in blocks for piece in _pieces(text, block, size)]
    if len(pieces) > 1 and pieces[0].block.is_heading and not _last(pieces, 0, size):
        del pieces[0]  # a heading alone says nothing
    if not pieces:
        return Excerpt("", 0, size), None
    found = _matched(text, pieces, stems)

    def part(first: int, last: int) -> Excerpt:
        return Excerpt(_before(pieces[first], size), pieces[first].start, pieces[last].end, _after(pieces[last]))

    def rank(first: int) -> tuple[int, int]:
        """Different stems that the heading does not have, and all, in the excerpt that begins with a piece."""
        held = [stem for each in found[first : _last(pieces, first, size) + 1] for stem in each]
        return len(frozenset(held) - heading), len(held)

    ranks = {first: rank(first) for first in range(len(pieces)) if found[first] or not first}
    best = max(ranks, key=lambda first: (ranks[first], -first))
    own = _best_definition(_definitions(text, pieces), found, wanted, heading, ranks[best][0])
    if own is not None:
        last = _last(pieces, own.start, size)
        while last >= own.stop and heading.issuperset(found[last]):
            last -= 1  # what follows the definition has to match, too
        return part(own.start, last), pieces[min(own.stop - 1, last)].end
    if 3 * ranks[0][0] >= 2 * ranks[best][0]:
        best = 0
    best = _earliest(pieces, best, size)
    opening = _sentence_start(text, pieces, best)
    if rank(opening) >= rank(best):
        best = opening
    return part(best, _last(pieces, best, size)), None


def _matched(text: str, pieces: Sequence[_Piece], stems: frozenset[str]) -> list[list[str]]:
    """The stems in each piece, each as often as a word of it begins there."""
    found: list[list[str]] = [[] for _ in pieces]
    place = 0
    for at, stem in matches_at(text, stems):
        while place < len(pieces) and pieces[place].end <= at:
            place += 1
        if place == len(pieces):
            break
        if pieces[place].start <= at:
            found[place].append(stem)
    return found


class _Definition(NamedTuple):
    """A definition in a list of them: what it defines, and its pieces."""

    term: str
    pieces: range


def _definitions(text: str, pieces: Sequence[_Piece]) -> list[_Definition]:
    """The definitions in lists of definitions."""
    if not _may_have_definitions(text):
        return []
    lists: list[list[range]] = []
    sort, margin = "", 0  # of the definitions in the last list
    for place, piece in enumerate(pieces):
        line = text[piece.start : piece.end]
        indent = len(line) - len(line.lstrip(" \t>"))
        is_part = place > 0 and pieces[place - 1].block is piece.block
        own = _sort(line, piece, is_part)
        belongs = indent > margin or (not own and (bool(piece.block.head) or (is_part and not piece.inside)))
        if own and own == sort and abs(indent - margin) <= MARGINS[own]:
            lists[-1].append(range(place, place + 1))
        elif sort and belongs:
            lists[-1][-1] = range(lists[-1][-1].start, place + 1)
        else:
            sort, margin = own, indent
            if own:
                lists.append([range(place, place + 1)])
    ranges = (each for of_list in lists if len(of_list) >= MIN_DEFINITIONS for each in of_list)
    return [_Definition(_term(text, pieces[each.start]), each) for each in ranges]


def _may_have_definitions(text: str) -> bool:
    """A quick answer: most texts have none."""
    return len(list(islice(_LISTED.finditer(text), MIN_DEFINITIONS))) == MIN_DEFINITIONS


def _term(text: str, piece: _Piece) -> str:
    term = _TERM.match(text, piece.start, piece.end)
    return term[0] if term else ""


def _sort(line: str, piece: _Piece, is_part: bool) -> str:
    """The kind of definition that begins with a piece; empty where none does."""
    if _OPTION.match(line) and (piece.inside or (line[0].isspace() and not is_part)):
        return "option"
    if piece.inside:
        return ""
    if is_part:
        return ""
    if piece.block.head:
        return "" if _EMPTY_CELL.match(line) else "row"
    if _NAMED_ITEM.match(line):
        return "item"
    return "term" if _MEANING.match(line) else ""


def _best_definition(
    definitions: Sequence[_Definition],
    found: Sequence[list[str]],
    wanted: Sought,
    heading: frozenset[str],
    most: int,
) -> range | None:
    """The pieces of the definition that matches best: by the names that it holds, and that are its term; then by how
    few others have each stem. None where it has less than two thirds of ``most`` different stems, or one third if it
    has all the names."""
    held = [frozenset(stem for place in each.pieces for stem in found[place]) for each in definitions]
    having = Counter(stem for stems in held for stem in stems)

    def weight(stems: Collection[str]) -> float:
        return round(sum(math.log(1 + len(definitions) / having[stem]) for stem in sorted(stems)), 6)

    def rank(place: int) -> tuple[float, float, float, float, int]:
        own, names = held[place] - heading, held[place] & wanted.names
        of_term = frozenset(matches(definitions[place].term, wanted.stems))
        return len(names), len(names & of_term), weight(own), weight(own & of_term), -place

    best = max((place for place, stems in enumerate(held) if stems - heading), key=rank, default=None)
    if best is None:
        return None
    share = 1 if wanted.names and wanted.names <= held[best] else 2
    return definitions[best].pieces if 3 * len(held[best] - heading) >= share * most else None


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


def _after(piece: _Piece) -> str:
    """What is put behind a piece: the end of a fence that is still open."""
    return piece.block.closing if piece.inside else ""


def _last(pieces: list[_Piece], first: int, room: int) -> int:
    """The last piece that fits behind the first one."""
    room -= len(_before(pieces[first], room))
    last = first
    for following in range(first + 1, len(pieces)):
        piece = pieces[following]
        if piece.end + len(_after(piece)) - pieces[first].start > room:
            break
        if piece.is_cut and piece.block is not pieces[last].block:
            break
        last = following
    return last


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text, in order, without blank lines between them."""
    block: _Block | None = None
    last, fence, is_apart, head = 0, "", True, ""  # ``last``: the end of the block's last line so far
    for match in LINE.finditer(text):
        start, end = match.span()
        line = match[0].rstrip("\r\n")
        bare = line.strip(" \t>")
        if fence:
            last = end
            if bare.startswith(fence) and not bare.strip(" \t>`~"):
                fence, is_apart = "", True
            continue
        if not bare:
            is_apart, head = True, ""
            continue
        is_plain = bare[0] not in MARKS and line[0] not in " \t" and "|" not in line  # nearly all lines
        mark = None if is_plain else _FENCE.match(line)
        is_row = not is_plain and (_ROW.match(line) is not None or (bool(head) and "|" in line))
        if not is_row:
            head = ""
        if is_apart or mark or is_row or (not is_plain and _BEGINS.match(line)):
            if block is not None:
                yield block._replace(end=last)
            opening, closing = (match[0], f"\n{mark[1]}{mark[2]}") if mark else ("", "")
            is_apart = not is_plain and _HEADING.match(line) is not None
            block = _Block(start, end, opening, closing, head, is_apart)
            fence = mark[2] if mark else ""
        last = end
        if not is_plain and "|" in line and _DELIMITER.match(line):  # of the header line before it
            head = _PADDING.sub(_squeezed, text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : end])
    if block is not None:
        yield block._replace(end=last)


def _has_options(text: str, block: _Block) -> bool:
    lines = LINE.finditer(text, block.start, block.end)
    return sum(_OPTION.match(line[0]) is not None for line in lines) >= MIN_DEFINITIONS


def _squeezed(padding: re.Match[str]) -> str:
    return " " if padding[0].isspace() else ""


def _pieces(text: str, block: _Block, room: int) -> Iterator[_Piece]:
    """A block, or its lines if it is too long, or the sentences of a line."""
    if len(text[block.start : block.end].rstrip()) <= room and not (block.opening and _has_options(text, block)):
        yield _Piece(block.start, block.end, block)
        return
    first, mark = block.start + len(block.opening), _FENCE.match(block.opening)
    if mark and len(block.opening) * LEAD_SHARE > room:
        bare = f"{mark[1]}{mark[2]}\n"
        block = block._replace(opening=bare if len(bare) * LEAD_SHARE <= room else "")
    room -= 2 * len(block.opening)  # it may be opened and closed
    inside = bool(block.opening)
    for match in LINE.finditer(text, first, block.end):
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
