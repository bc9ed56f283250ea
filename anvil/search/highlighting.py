"""Words of a query marked in a text, for terminals and browsers."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from itertools import groupby

from anvil.search.excerpts import is_unspaced, stem, word_pattern


def highlight(text: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    """``text``, with ``style`` applied to each word whose stem is in ``stems``."""

    def styled(match: re.Match[str]) -> str:
        if is_unspaced(match[0]):
            return _highlight_run(match[0], stems, style)
        return style(match[0]) if stem(match[0]) in stems else match[0]

    return word_pattern(text).sub(styled, text)


def _highlight_run(run: str, stems: Collection[str], style: Callable[[str], str]) -> str:
    starts_pair = [run[i : i + 2] in stems for i in range(len(run))]
    is_match = [run[i] in stems or starts_pair[i] or (i > 0 and starts_pair[i - 1]) for i in range(len(run))]
    groups = groupby(zip(run, is_match, strict=True), key=lambda item: item[1])
    texts = ((matches, "".join(character for character, _ in group)) for matches, group in groups)
    return "".join(style(text) if matches else text for matches, text in texts)


def matched_words(text: str, stems: Collection[str]) -> frozenset[str]:
    """The words of ``text`` whose stem is in ``stems``, as written."""
    matched: set[str] = set()

    def keep(word: str) -> str:
        matched.add(word)
        return word

    highlight(text, stems, keep)
    return frozenset(matched)
