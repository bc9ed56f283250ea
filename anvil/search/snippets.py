"""Snippets: the lines of a text that match a query best, for a terminal; and the words in a text that match."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from itertools import chain, groupby
from typing import NamedTuple

from anvil.formats.characters import LINE
from anvil.search.excerpts import is_unspaced, keys_of, stem, word_pattern


def highlight(text: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    """``text``, with ``style`` applied to each word whose stem is in ``stems``."""

    def marked(match: re.Match[str]) -> str:
        if is_unspaced(match[0]):
            return _marked_run(match[0], stems, style)
        return style(match[0]) if stem(match[0]) in stems else match[0]

    return word_pattern(text).sub(marked, text)


def _marked_run(run: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    starts = [run[i : i + 2] in stems for i in range(len(run))]
    hit = [run[i] in stems or starts[i] or (i > 0 and starts[i - 1]) for i in range(len(run))]
    pieces = groupby(zip(run, hit, strict=True), key=lambda item: item[1])
    joined = ((is_hit, "".join(character for character, _ in group)) for is_hit, group in pieces)
    return "".join(style(text) if is_hit else text for is_hit, text in joined)


def matched_words(text: str, stems: Collection[str]) -> frozenset[str]:
    """The words of ``text`` whose stem is in ``stems``, as written."""
    matched: set[str] = set()

    def keep(word: str) -> str:
        matched.add(word)
        return word

    highlight(text, stems, keep)
    return frozenset(matched)


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
    words = list(map(word_pattern(text).findall, lines))
    wanted = frozenset(stems)
    found = {word for word in set(chain.from_iterable(words)) if not wanted.isdisjoint(keys_of(word))}
    matched, start = [], 0
    for line, line_words in zip(lines, words, strict=True):
        end = start + len(line)
        if found.isdisjoint(line_words):  # nearly all lines
            matched.append(_MatchedLine(start, end, _NO_STEMS, 0))
        else:
            keys = [key for word in line_words if word in found for key in keys_of(word) if key in wanted]
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
