"""Scripts, such as Latin, Cyrillic or Hangul: which of them the vocabulary of an embedding model has words of, and
whether a question is in one that it has none of.

The name of a letter in Unicode begins with that of its script (``LATIN SMALL LETTER A``, ``CJK UNIFIED ...``).
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable

MIN_PIECES = 100
"""Pieces of two letters and more of one script, from which on a vocabulary has words of it. The bundled model's has
27,586 Latin ones, 8 Cyrillic ones, and of Chinese, Japanese and Korean single characters only."""
MIN_UNREAD = 0.25
"""Share of a question's letters in scripts that the model does not read, from which on words alone decide. A sentence
in Chinese has a few long Latin names, and each of its own characters says as much as several letters."""


def script(letter: str) -> str:
    """The script of a letter, as in ``LATIN``."""
    return "LATIN" if letter.isascii() else unicodedata.name(letter, "").partition(" ")[0]


def known_scripts(pieces: Iterable[str]) -> frozenset[str]:
    """The scripts that a vocabulary has words of, from its pieces of text."""
    counts: Counter[str] = Counter()
    for piece in pieces:
        letters = [character for character in piece if character.isalpha()]
        if len(letters) > 1:
            counts[script(letters[0])] += 1
    return frozenset(name for name, count in counts.items() if count >= MIN_PIECES)


def is_unread(text: str, known: Collection[str] | None) -> bool:
    """Whether a question is in scripts other than the ``known`` ones of a model (None: nobody can say)."""
    if known is None or text.isascii():
        return False
    letters = [character for character in text if character.isalpha()]
    unread = sum(script(letter) not in known for letter in letters)
    return unread > 0 and unread >= MIN_UNREAD * len(letters)


def names(scripts: Collection[str]) -> str:
    """Scripts for people: ``Cyrillic, Latin``; ``CJK``, the Chinese characters, stays as it is."""
    return ", ".join(sorted(name if name == "CJK" else name.capitalize() for name in scripts))
