"""Words to the tokens of the keyword index, by its own tokenizer, so that a query and a text give equal tokens."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from functools import lru_cache
from typing import Any

import apsw

from anvil.text.query import compound_parts, words

_BEYOND_ASCII = re.compile(r"[^\W\x00-\x7f]|[\u0300-\u0331]")
"""A letter, number or mark outside ASCII. The tokenizer folds these, so a search by ASCII prefix would miss them."""


class Stemmer:
    """Words to tokens, with a cache."""

    def __init__(self, connection: apsw.Connection) -> None:
        self._tokenizer = connection.fts5_tokenizer("porter", ["unicode61", "remove_diacritics", "2"])
        self._token_of: dict[str, str] = {}
        self.heading_counts = lru_cache(maxsize=8192)(self._heading_counts)
        """Token -> number of times in a title or breadcrumb, with a cache, because each query scores them. The parts of
        a compound word count too, so ``TableOfContents`` is a heading with "table" and "contents"."""

    def __call__(self, word: str) -> list[str]:
        """The tokens of a word, mostly one."""
        return self._tokens(word)

    def _tokens(self, text: str) -> list[str]:
        tokens: Any = self._tokenizer(
            text.encode("utf-8", "replace"),
            apsw.FTS5_TOKENIZE_DOCUMENT,
            None,
            include_offsets=False,
            include_colocated=False,
        )
        return list(tokens)

    def counts(self, text: str) -> dict[str, int]:
        """Token -> number of times in ``text``."""
        return self._counted(words(text.lower()))

    def _heading_counts(self, text: str) -> dict[str, int]:
        heading_words = words(text)
        parts = [part for word in heading_words if word.isascii() for part in compound_parts(word)]
        return self._counted([word.lower() for word in (*heading_words, *parts)])

    def counter(self, tokens: Collection[str]) -> Callable[[str], dict[str, int]]:
        """A faster ``counts`` for these tokens only: words that cannot give one of them are skipped.

        Porter's rules cut endings and change at most the last letter of the rest (``filing`` -> ``file``, ``policy`` ->
        ``polici``). So a word begins with its token without the last letter.
        """
        if not all(token.isascii() and token.isalnum() for token in tokens):
            return self.counts
        starts = {token[:-1] or token for token in tokens}
        shortest = sorted(
            start for start in starts if not any(start != other and start.startswith(other) for other in starts)
        )
        # The check for the word's first letter is behind it: a pattern that begins with plain letters is much faster.
        patterns = [(start, re.compile(f"{start}(?<![a-z0-9]{start})[a-z0-9]*")) for start in shortest]

        def counts(text: str) -> dict[str, int]:
            if not text:  # every second section has no derived terms
                return {}
            if not text.isascii() and _BEYOND_ASCII.search(text):
                return self.counts(text)
            lowered = text.lower()
            return self._counted(
                [word for start, pattern in patterns if start in lowered for word in pattern.findall(lowered)]
            )

        return counts

    def _counted(self, occurrences: Sequence[str]) -> dict[str, int]:
        token_of = self._token_of
        new = list(set(occurrences).difference(token_of))
        if new:
            tokens = self._tokens("\n".join(new))  # one call, because a call costs as much as many words
            if len(tokens) != len(new):
                tokens = [next(iter(self._tokens(word)), "") for word in new]
            token_of.update(zip(new, tokens, strict=True))
        counts: dict[str, int] = {}
        for word in occurrences:  # mostly a few words, for which collections.Counter is slower
            token = token_of[word]
            counts[token] = counts.get(token, 0) + 1
        return counts
