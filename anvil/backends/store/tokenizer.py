"""Words to the keyword index's own tokens, by its own tokenizer: a question and a text agree because it is one."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import apsw

from anvil.core.search.query import words

_BEYOND_ASCII = re.compile(r"[^\W\x00-\x7f]|[\u0300-\u0331]")
"""A letter or number beyond ASCII, or a mark on one: there folding decides, so the tokenizer is asked."""


class Stemmer:
    """Words to tokens by the very tokenizer of the keyword index; what was learnt is kept."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._tokenizer = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
        self._known: dict[str, str] = {}
        self.counts_again = lru_cache(maxsize=8192)(self.counts)
        """``counts`` for texts that come back with each question, such as titles and breadcrumbs; kept."""

    def __call__(self, word: str) -> list[str]:
        """The tokens of a word: mostly one."""
        return self._tokens(word)

    def _tokens(self, text: str) -> list[str]:
        found: Any = self._tokenizer(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return list(found)

    def counts(self, text: str) -> dict[str, int]:
        """Token -> how often it stands in ``text``."""
        return self._counted(words(text.lower()))

    def counter(self, tokens: Collection[str]) -> Callable[[str], dict[str, int]]:
        """``counts`` of these tokens only, for many texts: words that cannot give one are passed over.

        Porter's rules cut endings and change at most the last letter of what they leave (``filing`` -> ``file``,
        ``policy`` -> ``polici``): a word begins with all but the last letter of its token.
        """
        if not all(token.isascii() and token.isalnum() for token in tokens):
            return self.counts
        found = {token[:-1] or token for token in tokens}
        least = sorted(each for each in found if not any(each != b and each.startswith(b) for b in found))
        # the word's start is looked for behind it: a pattern that begins with plain letters is found much faster
        likely = [(each, re.compile(f"{each}(?<![a-z0-9]{each})[a-z0-9]*")) for each in least]

        def counts(text: str) -> dict[str, int]:
            if not text.isascii() and _BEYOND_ASCII.search(text):
                return self.counts(text)
            lowered = text.lower()
            return self._counted([w for each, word in likely if each in lowered for w in word.findall(lowered)])

        return counts

    def _counted(self, found: Sequence[str]) -> dict[str, int]:
        known = self._known
        new = list({word: None for word in found if word not in known})
        if new:
            tokens = self._tokens("\n".join(new))  # one call for all: each costs as much as many words
            if len(tokens) != len(new):
                tokens = [next(iter(self._tokens(word)), "") for word in new]
            known.update(zip(new, tokens, strict=True))
        counted: dict[str, int] = {}
        for word in found:  # mostly a handful: collections.Counter would take longer to begin
            token = known[word]
            counted[token] = counted.get(token, 0) + 1
        return counted
