"""The words in a text that match a query: marked, or listed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import groupby

from anvil.search.excerpts import is_unspaced, stem, word_pattern


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
