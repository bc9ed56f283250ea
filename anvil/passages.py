"""The part of a text that a question is about, in whole lines, and the words in it that matched.

Pure. Serves the budget of a reply and the snippets on a terminal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

_WORD = re.compile(r"\w+")
_ENDING = re.compile(r"(?:ations?|ing|ies|ied|ed|es|s|e|y)$")


def root(word: str) -> str:
    """A word without its English ending, roughly, folded: enough to mark ``caches`` for ``caching``."""
    folded = word.casefold()
    cut = _ENDING.sub("", folded)
    return cut if len(cut) >= 3 else folded


def roots(text: str) -> frozenset[str]:
    """The roots of a question's words, those of one or two letters left out."""
    return frozenset(root(word) for word in _WORD.findall(text) if len(word) > 2)


def mark(text: str, wanted: Collection[str], style: Callable[[str], str]) -> str:
    """``text`` with each word whose root is ``wanted`` passed through ``style``."""
    return _WORD.sub(lambda m: style(m[0]) if root(m[0]) in wanted else m[0], text)


def passage(text: str, wanted: Collection[str], size: int, near: tuple[int, int] | None = None) -> tuple[int, int]:
    """Span of the run of whole lines, at most ``size`` characters, that holds the most different ``wanted`` roots.

    Among equals the one with most matches, then the earliest. ``near`` is a span that counts as one match for
    a line inside it, such as the window that scored best. A first line longer than ``size`` is cut.
    """
    if len(text) <= size:
        return 0, len(text)
    lines: list[tuple[int, int, frozenset[str], int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        found = [each for each in (root(word) for word in _WORD.findall(line)) if each in wanted]
        bonus = near is not None and near[0] <= start < near[1]
        lines.append((start, start + len(line), frozenset(found), len(found) + bonus))
        start += len(line)
    best, best_rank, last = (0, min(size, len(text))), (-1, -1), 0
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
        else:  # this line alone is longer than the budget
            rank = (len(lines[first][2]), lines[first][3])
            if rank > best_rank:
                best, best_rank = (begin, begin + size), rank
            last = first + 1
    return best
