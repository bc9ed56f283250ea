"""The words of a question: where a text has them, by their stems, and slips of spelling in them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from itertools import groupby
from typing import TYPE_CHECKING

from anvil.formats.characters import UNSPACED
from anvil.formats.patterns import lazy_pattern
from anvil.text import query as lexicon
from anvil.text.query import STOP, beginning, bounded, pairs

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.search.ranking import CandidateIndex

MAX_WORD_CHARACTERS = 100
"""Characters of the longest word that is cached."""
Spot = tuple[int, str]
"""Where a word begins in a text, and its stem."""
_WORD = lazy_pattern(rf"[^\W{UNSPACED}]+|[{UNSPACED}]+")
_ASCII_WORD = re.compile("[A-Za-z0-9_]+")  # the same for ASCII, twice as fast
_UNSPACED = lazy_pattern(f"[{UNSPACED}]")
_ENDING = re.compile(r"(?:ations?|ing|ies|ied|ed|es|s|e|y)$")


def stem(word: str) -> str:
    """A folded word without its English ending, roughly: ``caching`` and ``caches`` give the same; of a Greek or
    Cyrillic word, its beginning."""
    folded = word.casefold()
    if start := beginning(folded):
        return start
    cut = _ENDING.sub("", folded)
    return cut if len(cut) >= 3 else folded


def query_stems(text: str) -> frozenset[str]:
    """The stems of a query's words, without stop words and words of one or two letters; for Chinese, Japanese and
    Korean, which have no spaces, pairs of characters."""
    words = (
        word
        for word in word_pattern(text).findall(bounded(text))
        if (len(word) > 2 and word.casefold() not in STOP) or is_unspaced(word)
    )
    return frozenset(key for word in words for key in keys_of(word))


def keys_of(word: str) -> tuple[str, ...]:
    """The stem of a word, or the pairs of characters of one that is :func:`is_unspaced`."""
    return _known_keys(word) if len(word) <= MAX_WORD_CHARACTERS else _known_keys.__wrapped__(word)


@lru_cache(4096)  # texts of one index have few different words
def _known_keys(word: str) -> tuple[str, ...]:
    return tuple(pairs(word)) if is_unspaced(word) else (stem(word),)


def word_pattern(text: str) -> re.Pattern[str]:
    """The pattern of the words of a text."""
    return _ASCII_WORD if text.isascii() else _WORD


def is_unspaced(word: str) -> bool:
    """Whether a word is a run of characters of a script without spaces."""
    return not word.isascii() and _UNSPACED.match(word) is not None


def matches_at(text: str, stems: Collection[str]) -> list[Spot]:
    """The ``stems`` in a text, in its order, each with the place where its word begins."""
    folded, pattern = text.casefold(), word_pattern(text)
    has_pairs = not all(map(str.isascii, stems)) and any(map(is_unspaced, stems))
    if has_pairs or len(folded) != len(text):  # places in one are not those in the other
        return [(word.start(), key) for word in pattern.finditer(text) for key in keys_of(word[0]) if key in stems]
    spots = []
    for prefix in stems:  # a stem is the beginning of a folded word, and few words begin like one
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


# --- slips of spelling ------------------------------------------------------------------------------------

# A slip is one letter that is missing, that is too many, that is swapped with its neighbour, or that is another vowel.
# Other letters make another name more often than a slip: ``mysql`` and ``mssql``. For the same reason the first and the
# last letter have to be the same (``prisma`` and ``prism``), but for a swap of the last two, and a word that the
# embedding model knows is none.

MIN_LETTERS = 5
"""Letters of the shortest word that can have a slip: nearly all shorter ones are a letter away from another word."""
MAX_SLIPS = 3
"""Words of a question that are looked up. One that has more is in another language, or on another subject."""
_VOWELS = frozenset("aeiy")
"""Those that are typed for each other: with ``o`` and ``u``, ``modal`` would be a slip of ``modul``, a module."""


def corrected(query: str, indexes: Sequence[CandidateIndex], provider: EmbeddingProvider) -> tuple[str, str | None]:
    """The query without slips, and a note on them; the query itself and None where it has none. A slip is a word that
    no page has, where the index has one that is a letter away."""
    if lexicon.qualified_name(query) is not None:
        return query, None
    terms = {token: word for token, (_, word) in lexicon.parse_query(query, indexes[0].stem).terms.items()}
    known = {token for index in indexes for token, count in index.frequencies(terms).items() if count}
    unknown = [(token, word) for token, word in terms.items() if token not in known and _may_be_slip(word, provider)]
    notes = []
    for token, word in unknown if len(unknown) <= MAX_SLIPS else ():
        alone = re.compile(rf"(?<![\w.-]){word}(?![\w-]|\.\w)")  # not in a name such as --x-shutdwon or a.shutdwon
        meant = _meant(word, token, indexes) if alone.search(query) else None
        if meant is not None:
            query = alone.sub(meant, query)
            notes.append(f"No page has the word '{word}'; '{meant}' was searched instead.")
    return query, " ".join(notes) or None


def _may_be_slip(word: str, provider: EmbeddingProvider) -> bool:
    if len(word) < MIN_LETTERS or not (word.isascii() and word.isalpha() and word[1:].islower()):
        return False  # such as a name of code
    return len(provider.token_spans([word.lower()])[0]) != 1


def _meant(typed: str, token: str, indexes: Sequence[CandidateIndex]) -> str | None:
    """The word of the indexes, in full, whose token most chunks have of those that are a slip away from ``token``."""
    counts: Counter[str] = Counter()
    for index in indexes:
        for term, count in index.words_from(token[0]):
            if is_slip(token, term):
                counts[term] += count
    best = min(counts, key=lambda term: (-counts[term], term), default=None)
    if best is None:
        return None
    texts = (text for index in indexes for text in index.texts(index.matching([best], 1, None)).values())
    tokens = indexes[0].stem
    in_full = [word for text in texts for word in lexicon.words(text.content.lower()) if best in tokens(word)]
    return min(in_full, key=lambda word: (not is_slip(typed.lower(), word), abs(len(word) - len(typed))), default=None)


def is_slip(typed: str, word: str) -> bool:
    """Whether one slip makes ``word`` to what was ``typed``."""
    if abs(len(typed) - len(word)) > 1 or typed[0] != word[0] or typed == word:
        return False
    at = next(place for place, pair in enumerate(zip(typed + " ", word + " ", strict=False)) if pair[0] != pair[1])
    if typed[at : at + 2] == word[at : at + 2][::-1] and typed[at + 2 :] == word[at + 2 :]:
        return len(typed) == len(word)  # only two letters that are swapped may be the last ones
    if typed[-1] != word[-1]:
        return False
    if len(typed) == len(word):
        return typed[at + 1 :] == word[at + 1 :] and typed[at] in _VOWELS and word[at] in _VOWELS
    longer, shorter = (typed, word) if len(typed) > len(word) else (word, typed)
    return longer[at + 1 :] == shorter[at:]
