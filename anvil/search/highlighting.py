"""Words of a query in a text, found by rough stems: for excerpts and for highlighting."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from functools import lru_cache
from itertools import groupby

from anvil.formats.characters import UNSPACED
from anvil.formats.patterns import lazy_pattern
from anvil.text.query import STOP, beginning, bounded, pairs

MAX_WORD_CHARACTERS = 100
"""Characters of the longest word that is cached."""
Spot = tuple[int, str]
"""The position of a word in a text, and its stem."""
_WORD = lazy_pattern(rf"[^\W{UNSPACED}]+|[{UNSPACED}]+")
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
            end = at + 1
            if not (at and _is_in_word(text[at - 1])):
                word = pattern.match(text, at)
                assert word is not None
                end = word.end()
                if prefix in keys_of(word[0]):
                    spots.append((at, prefix))
            at = folded.find(prefix, end)
    return sorted(spots)


def _is_in_word(character: str) -> bool:
    return (character.isalnum() or character == "_") and not is_unspaced(character)


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
