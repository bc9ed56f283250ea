"""Words to the keyword index's own tokens, by its own tokenizer: a question and a text agree because it is one."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import Any

import apsw

from anvil.lexicon import words


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
            text.encode("utf-8", "replace"), apsw.FTS5_TOKENIZE_DOCUMENT, None,
            include_offsets=False, include_colocated=False,
        )  # fmt: skip
        return list(found)

    def counts(self, text: str) -> dict[str, int]:
        """Token -> how often it stands in ``text``."""
        found = Counter(words(text.lower()))
        new = [word for word in found if word not in self._known]
        if new:
            tokens = self._tokens("\n".join(new))  # one call for all: each costs as much as many words
            if len(tokens) != len(new):
                tokens = [next(iter(self._tokens(word)), "") for word in new]
            self._known.update(zip(new, tokens, strict=True))
        counted: dict[str, int] = {}
        for word, count in found.items():
            token = self._known[word]
            counted[token] = counted.get(token, 0) + count
        return counted
