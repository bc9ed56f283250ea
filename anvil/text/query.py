"""Query parsing, words as tokens, and the derived terms of a text for the keyword index.

SQLite's tokenizer folds case and diacritics, and stems English. It does not split ``camelCase``, it reads a run of
Chinese, Japanese or Korean as one word, and it does not stem Greek or Cyrillic. So derived terms are added to the text
and to the query: parts of compounds, pairs of characters, and beginnings of words.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from anvil.formats.characters import UNSPACED, WORD_MARKS, is_unread
from anvil.formats.patterns import lazy_pattern
from anvil.text.visible_text import MASK

TERMS_VERSION = 5
"""Increase it if the same text gives other derived terms. Then indexes are built again."""
STOP = frozenset(
    """
    a an and are as at be but by can do does for from had has have how i if in into is it its me my no not of on or
    our should so such that the their then there these they this to use was we what when where which why will with
    would you your
    """.split()  # noqa: SIM905 - a list of 69 quoted words is not read
)
"""English stop words. A query in Latin script does not search for them, unless it has no other words."""

PART_WEIGHT = 0.5
"""The weight of a part of a compound word; a whole word has 1."""
PHRASE_WEIGHT = 1.0
"""The weight of a phrase in quotes; a word has 1."""
MAX_WORDS = 2000
"""So many different words of a query are searched, and so many different runs between spaces are read."""
MAX_QUERY_CHARACTERS = 32_000
"""So many characters of a query are read."""
MAX_LOWERED = 1024
"""So many texts are cached in lower case. In a small index all chunks are scored for each query, so this has room for
the contents and derived terms of all."""

BEGINNING_LETTERS = 5
"""Greek and Cyrillic words are compared by their first five letters. That finds about as much as a stemmer (McNamee,
Nicholas and Mayfield 2009, "Addressing morphological variation in alphabetic languages")."""

_WORD = lazy_pattern(r"[^\W_]+(?:[\u0300-\u0331]+[^\W_]*)*")  # combining marks belong to their letter
_ASCII_WORD = lazy_pattern(r"[A-Za-z0-9]+")  # as _WORD for ASCII texts, twice as fast
_BEYOND_ASCII = lazy_pattern(r"[^\x00-\x7f]+")
_FOLDED = lazy_pattern(r"[^\W\x00-\x7f]|[\u0300-\u0331]")
"""A letter, number or mark outside ASCII. The tokenizer folds it, so a search by ASCII prefixes would miss its word."""
_RUN = lazy_pattern(f"[{UNSPACED}]+")
_INSIDE = lazy_pattern(f"[{MASK}{WORD_MARKS}]")
_ACCENTED = lazy_pattern("[\u0370-\u03ff\u0622-\u0626\u1f00-\u1fff]")
_INFLECTED = lazy_pattern("[\u0370-\u03ff\u1f00-\u1fff\u0400-\u052f]+")
_CAMEL = lazy_pattern(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_QUOTED = lazy_pattern(r'["\u201c]([^"\u201c\u201d]+)["\u201d]')
_QUALIFIED = lazy_pattern(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)+)(?:\(\))?")
_CODE_NAME = lazy_pattern(r"(?:^|[^A-Za-z])([A-Za-z]+)\(\)|`([A-Za-z]+)`")
_ENDING = lazy_pattern(r"\.\w+$")
AROUND = "`'\",;:!?()[]{}<>*."
"""Punctuation around a word."""

Stem = Callable[[str], Sequence[str]]
"""A function from a word to its tokens in the keyword index."""


@dataclass(slots=True)
class Query:
    """A parsed query. ``terms``: token -> (weight, the word as written). ``phrases``: phrase -> weight."""

    terms: dict[str, tuple[float, str]] = field(default_factory=dict)
    phrases: dict[str, float] = field(default_factory=dict)


def words(text: str) -> list[str]:
    """The words of a text, split as in the keyword index, before stemming."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def compound_parts(word: str) -> list[str]:
    """The parts of a compound ASCII word: ``optimize`` and ``Deps`` of ``optimizeDeps``; none for one part."""
    if word.isalpha() and word[1:].islower():  # nearly all words
        return []
    parts = _CAMEL.findall(word)
    return parts if len(parts) > 1 else []


def pairs(run: str) -> list[str]:
    """The overlapping pairs of a run of CJK characters, which take the place of words; a single character itself."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def beginning(word: str) -> str | None:
    """The first letters of a Greek or Cyrillic word, which its forms share; None for short and other words."""
    is_long = len(word) > BEGINNING_LETTERS and not word.isascii() and _INFLECTED.fullmatch(word)
    return word[:BEGINNING_LETTERS].lower() if is_long else None


def joined_words(text: str) -> set[str]:
    """The words of a text without the characters inside them at which the tokenizer splits them: tags, as in
    H<sub>2</sub>O, soft hyphens, joiners, and the marks of Arabic, Hebrew and Indian scripts. Only words that the text
    itself lacks."""
    if text.isascii() and MASK not in text:
        return set()
    joined = _INSIDE.sub(lambda match: match[0] if match[0].isalnum() else "", text)
    return set(words(joined)).difference(words(text))


def is_cjk(token: str) -> bool:
    """Whether a token has only CJK characters, such as the tokens of :func:`pairs`."""
    return not token.isascii() and _RUN.fullmatch(token) is not None


def plain_form(word: str) -> str:
    """A word in its usual characters. Half-width and full-width characters and ligatures are replaced (NFKC). Greek
    letters lose their accents, because capitals are written without accents, and Arabic letters their hamza, which many
    leave out."""
    if word.isascii():
        return word
    compatible = unicodedata.normalize("NFKC", word)
    return _ACCENTED.sub(lambda letter: unicodedata.normalize("NFD", letter[0])[0], compatible)


def derived_terms(text: str) -> str:
    """Additional search terms of a text, sorted: parts of compounds, CJK runs, their pairs and the words between them,
    words in their :func:`plain_form` with their :func:`beginning`, and :func:`joined_words`. ``text`` may be masked,
    see :mod:`anvil.text.visible_text`."""
    whole = set(words(text))
    joined = joined_words(text)
    terms = set(map(str.lower, joined))
    for word in whole | joined:
        parts = [word]
        if not word.isascii():
            plain = plain_form(word)
            for run in _RUN.findall(word if plain == word else f"{word} {plain}"):
                terms.update(pairs(run), run)
            parts = words(_RUN.sub(" ", plain))  # the rest, such as a name between Chinese characters
            terms.update(map(str.lower, parts), filter(None, map(beginning, parts)))
        for part in parts:
            if part.isascii() and not (part.islower() and part.isalpha()):  # few words
                terms.update(piece.lower() for piece in compound_parts(part) if len(piece) > 1)
    if terms:  # words of the text itself would count twice
        terms.difference_update(map(str.lower, whole))
    return " ".join(sorted(terms))


def heading_terms(text: str) -> list[str]:
    """The derived terms that count as words of a title or breadcrumb. With pairs of characters and beginnings of words,
    fewer questions found their page first (``benchmarks/languages.py``)."""
    joined = set(map(str.lower, joined_words(text)))
    return [term for term in derived_terms(text).split() if term.isascii() or term in joined]


def path_words(path: str) -> str:
    """The words of a page's path, without its ending."""
    return " ".join(words(_ENDING.sub("", path)))


def _lowered(text: str) -> str | None:
    """A text in lower case, for a search by ASCII prefixes; None if that would miss words."""
    is_folded = not text.isascii() and any(map(_FOLDED.search, _BEYOND_ASCII.findall(text)))
    return None if is_folded else text.lower()


def bounded(query: str) -> str:
    """The part of a query that is read."""
    return query.strip()[:MAX_QUERY_CHARACTERS]


def parse_query(text: str, stem: Stem) -> Query:
    """Parse a query of words, ``"quoted phrases"`` and identifiers.

    Identifiers such as ``DEC-0054``, ``snake_case``, ``--flag-name`` and ``a.b.c`` give their words, and also a phrase
    of these words. The text after ``MAX_QUERY_CHARACTERS`` characters or ``MAX_WORDS`` words is not read."""
    # NFC, because decomposed Hangul is not in the ranges of CJK. An expression of FTS5 would end at a NUL.
    text = unicodedata.normalize("NFC", bounded(text)).replace("\0", " ")
    query = Query()
    # In a query in another script, "this" or "for" is a name in code, so it is no stop word.
    stop_words = query if is_unread(text, ("LATIN",)) else Query()
    for quoted in islice(_QUOTED.findall(text), MAX_WORDS):
        if len(inside := words(quoted)) > 1:
            query.phrases[" ".join(inside)] = PHRASE_WEIGHT
    runs = list(dict.fromkeys(text.split()))[:MAX_WORDS]
    for run in runs:
        joined = sorted(joined_words(run))
        for word in joined:
            _add_word(query, stop_words, word, stem, 1.0)
        for word in words(run):
            _add_word(query, stop_words, word, stem, PART_WEIGHT if joined else 1.0)
        for function, quoted in _CODE_NAME.findall(run):  # at() and `with` are no stop words
            _add(query, function or quoted, 1.0, stem)
        core = run.strip(AROUND)
        name = words(core)
        # Words without a space between them are one name, except in an address, and in CJK, which has no spaces.
        if 1 < len(name) <= 8 and "://" not in core and not _RUN.search(core):
            query.phrases.setdefault(" ".join(name), PHRASE_WEIGHT / math.sqrt(len(runs)))  # less in a long query
    if not query.terms:  # such as "to be or not to be"
        query.terms = stop_words.terms
    return query


def bare(text: str) -> str:
    """The letters and digits of a text in lower case, the same for ``MaxSize``, ``max_size`` and "max size"."""
    return "".join(words(text)).lower()


def qualified_name(text: str) -> str | None:
    """The name in a query that is only a name, such as ``asyncio.TaskGroup`` or ``Session.get()``; None for others."""
    match = _QUALIFIED.fullmatch(text.strip().strip("`"))
    return match[1] if match else None


def single_name(text: str) -> str:
    """The name in a query that is only one name, such as ``READ_HISTORY``, ``maxSize`` or ``a.b()``; "" for others."""
    name = text.strip(f"{AROUND} ")
    is_name = name.isascii() and len(name.split()) == 1 and (len(words(name)) > 1 or compound_parts(name))
    return name if is_name else ""


def _add_word(query: Query, stop_words: Query, word: str, stem: Stem, weight: float) -> None:
    """Add a word, its parts and its plain form. A stop word is added to ``stop_words``."""
    # Half-width forms and ligatures are only ways to type a word. Greek accents belong to its spelling, so the word is
    # searched with and without them.
    typed = unicodedata.normalize("NFKC", word)
    for form in dict.fromkeys((typed, plain_form(typed))):
        for part in words(form):
            _add_parts(query, stop_words, part, stem, weight if form == typed else PART_WEIGHT)


def _add_parts(query: Query, stop_words: Query, word: str, stem: Stem, weight: float) -> None:
    for cjk in _RUN.findall(word):
        for pair in pairs(cjk):
            _add(query, pair, weight, stem)
    for plain in _RUN.sub(" ", word).split():
        _add(stop_words if plain.lower() in STOP else query, plain, weight, stem)
        if start := beginning(plain_form(plain)):
            _add(query, start, weight, stem)
        for part in compound_parts(plain) if plain.isascii() else ():
            if len(part) > 1 and part.lower() not in STOP:
                _add(query, part, PART_WEIGHT, stem)


def _add(query: Query, word: str, weight: float, stem: Stem) -> None:
    if len(query.terms) >= MAX_WORDS:
        return
    for token in stem(word):
        if query.terms.get(token, (0.0, ""))[0] < weight:
            query.terms[token] = (weight, word)


def literal(text: str) -> str:
    """A word or phrase as an FTS5 string, in which no character is syntax."""
    return '"' + text.replace('"', '""') + '"'


def any_of(texts: Iterable[str]) -> str:
    """An FTS5 expression that matches any of these words and phrases."""
    return " OR ".join(map(literal, texts))


class Stemmer:
    """Turns words into tokens, with a cache. Equal words of a query and a text have equal tokens."""

    def __init__(self, tokenize: Callable[[bytes], list[str]]) -> None:
        """``tokenize``: the tokenizer of the keyword index, :func:`anvil.index_file.fts_table.tokenizer`."""
        self._tokenize = tokenize
        self._token_of: dict[str, str] = {}
        self.heading_counts = lru_cache(maxsize=8192)(self._heading_counts)
        """Token -> count in a title or breadcrumb. Cached, because each query scores them. :func:`heading_terms` count,
        too, so ``TableOfContents`` is a heading with "table" and "contents"."""
        self._lowered = lru_cache(MAX_LOWERED)(_lowered)

    def __call__(self, text: str) -> list[str]:
        """The tokens of a text. A word has mostly one token."""
        # A query may have half of a surrogate pair, which UTF-8 cannot encode.
        return self._tokenize(text.encode("utf-8", "replace"))

    def counts(self, text: str) -> dict[str, int]:
        """Token -> count in ``text``."""
        return self._counted(words(text.lower()))

    def _heading_counts(self, text: str) -> dict[str, int]:
        return self._counted([*map(str.lower, words(text)), *heading_terms(text)])

    def counter(self, tokens: Collection[str]) -> Callable[[str], dict[str, int]]:
        """A faster :meth:`counts` for these tokens only. Words that cannot have one of them are skipped.

        Porter's rules cut endings, and change at most the last remaining letter (``filing`` -> ``file``, ``policy`` ->
        ``polici``). So a word begins with its token without the last letter.
        """
        if not all(token.isascii() and token.isalnum() for token in tokens):
            return self.counts  # diacritics are folded, so a word need not begin with the letters of its token
        starts = {token[:-1] or token for token in tokens}
        # A start that begins with another start is left out, because its words would be counted twice.
        shortest = sorted(
            start for start in starts if not any(start != other and start.startswith(other) for other in starts)
        )
        # The check for the start of a word comes after its letters: a pattern that begins with letters is much faster.
        patterns = [(start, re.compile(f"{start}(?<![a-z0-9]{start})[a-z0-9]*")) for start in shortest]

        def counts(text: str) -> dict[str, int]:
            if not text:  # such as the derived terms of every second section
                return {}
            lowered = self._lowered(text)
            if lowered is None:
                return self.counts(text)
            return self._counted(
                [word for start, pattern in patterns if start in lowered for word in pattern.findall(lowered)]
            )

        return counts

    def _counted(self, occurrences: Sequence[str]) -> dict[str, int]:
        token_of = self._token_of
        new = list(set(occurrences).difference(token_of))
        if new:
            tokens = self("\n".join(new))  # one call, because a call takes as long as many words
            if len(tokens) != len(new):  # the tokenizer splits a word, so the lists do not match
                tokens = [next(iter(self(word)), "") for word in new]
            token_of.update(zip(new, tokens, strict=True))
        counts: dict[str, int] = {}
        for word in occurrences:  # collections.Counter is slower for a few words
            token = token_of[word]
            counts[token] = counts.get(token, 0) + 1
        return counts
