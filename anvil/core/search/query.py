"""Words: what the keyword index is given beside the text, and what a question asks it for.

Pure. SQLite's own tokenizer folds case and diacritics and stems English; it does not part ``camelCase``, and it
takes a run of Chinese, Japanese or Korean for one word. Both are mended here, on both sides alike.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import islice

STOP = frozenset(
    """
    a an and are as at be but by can do does for from had has have how i if in into is it its me my no not of on or
    our should so such that the their then there these they this to use was we what when where which why will with
    would you your
    """.split()  # noqa: SIM905 - a list of 69 quoted words is not read
)
"""Words that say nothing about the subject of an English question; asked for only when there are no others."""

PART_WEIGHT = 0.5
"""A part of a compound word, against a word."""
PHRASE_WEIGHT = 1.0
"""A phrase in quotes, against a word."""
MAX_WORDS = 2000
"""Different runs of a question, and different words of it, that are looked at: far beyond a page, and a bound on what
a pasted book costs."""
MAX_QUERY_CHARACTERS = 32_000
"""Characters of a question that are looked at."""

CJK = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uac00-\ud7af"
"""Ranges of Chinese, Japanese and Korean characters, for a character class."""
_WORD = re.compile(r"[^\W_]+(?:[\u0300-\u0331]+[^\W_]*)*")  # marks written apart belong to their letter
_ASCII_WORD = re.compile(r"[A-Za-z0-9]+")  # the same in plain text, in half the time
_RUN = re.compile(f"[{CJK}]+")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_QUOTED = re.compile(r'["\u201c]([^"\u201c\u201d]+)["\u201d]')
_ENDING = re.compile(r"\.\w+$")
_AROUND = "`'\",;:!?()[]{}<>*."

Stem = Callable[[str], Sequence[str]]
"""A word -> the tokens the keyword index has for it."""


@dataclass(slots=True)
class Query:
    """What a question asks for: token -> (weight, the word as written), and phrases -> weight."""

    terms: dict[str, tuple[float, str]] = field(default_factory=dict)
    phrases: dict[str, float] = field(default_factory=dict)


def words(text: str) -> list[str]:
    """The words of a text as the keyword index parts them, before stemming."""
    return (_ASCII_WORD if text.isascii() else _WORD).findall(text)


def compound_parts(word: str) -> list[str]:
    """``optimizeDeps`` -> ``optimize``, ``Deps``; nothing for a word of one part. The word is ASCII."""
    if word.isalpha() and word[1:].islower():  # as nearly all words are
        return []
    parts = _CAMEL.findall(word)
    return parts if len(parts) > 1 else []


def pairs(run: str) -> list[str]:
    """A run of CJK characters as overlapping pairs, the usual stand-in for words; a single one as it is."""
    return [run[i : i + 2] for i in range(len(run) - 1)] or [run]


def derived_terms(text: str) -> str:
    """What a chunk is to be found by besides its text: parts of compounds, CJK characters and their pairs; sorted."""
    found: set[str] = set()
    whole = set(words(text))
    for word in whole:
        if not word.isascii():
            for run in _RUN.findall(word):
                found.update(pairs(run), run)
        elif parts := compound_parts(word):
            found.update(part.lower() for part in parts if len(part) > 1)
    if found:
        found.difference_update(map(str.lower, whole))
    return " ".join(sorted(found))


def path_words(path: str) -> str:
    """A page's path as text, without its ending."""
    return " ".join(words(_ENDING.sub("", path)))


def bounded(question: str) -> str:
    """The part of a question that is read, however long it is."""
    return question.strip()[:MAX_QUERY_CHARACTERS]


def parse_query(text: str, stem: Stem) -> Query:
    """A question in plain words, with or without ``"quoted phrases"`` and identifiers, taken apart.

    Identifiers such as ``DEC-0054``, ``snake_case``, ``--flag-name`` and ``a.b.c`` ask for their words, and as a
    phrase for their words side by side. Of a question of more than ``MAX_WORDS`` different runs or words, or more than
    ``MAX_QUERY_CHARACTERS`` characters, the rest is not read.
    """
    text = unicodedata.normalize("NFC", bounded(text)).replace("\0", " ")
    query, stopped = Query(), Query()
    for quoted in islice(_QUOTED.findall(text), MAX_WORDS):
        if len(inside := words(quoted)) > 1:
            query.phrases[" ".join(inside)] = PHRASE_WEIGHT
    runs = list(dict.fromkeys(text.split()))[:MAX_WORDS]
    for run in runs:
        for word in words(run):
            for cjk in _RUN.findall(word):
                for pair in pairs(cjk):
                    _add(query, pair, 1.0, stem)
            for plain in _RUN.sub(" ", word).split():
                _add(stopped if plain.lower() in STOP else query, plain, 1.0, stem)
                for part in compound_parts(plain) if plain.isascii() else ():
                    if len(part) > 1 and part.lower() not in STOP:
                        _add(query, part, PART_WEIGHT, stem)
        core = run.strip(_AROUND)
        joined = words(core)
        if 1 < len(joined) <= 8 and "://" not in core and not _RUN.search(core):
            query.phrases.setdefault(" ".join(joined), PHRASE_WEIGHT / len(runs))
    if not query.terms:
        query.terms = stopped.terms
    return query


def _add(query: Query, word: str, weight: float, stem: Stem) -> None:
    if len(query.terms) >= MAX_WORDS:
        return
    for token in stem(word):
        if query.terms.get(token, (0.0, ""))[0] < weight:
            query.terms[token] = (weight, word)


def literal(text: str) -> str:
    """A word or phrase as FTS5 wants it: in double quotes nothing is syntax."""
    return '"' + text.replace('"', '""') + '"'


def any_of(wanted: Iterable[str]) -> str:
    """Words and phrases as an FTS5 expression that one of them satisfies."""
    return " OR ".join(map(literal, wanted))
