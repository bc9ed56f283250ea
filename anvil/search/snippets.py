"""Snippets: the lines of a text that match a query best, and the words in it that match.

Used to shorten replies of tools, and for results on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import chain, groupby
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
