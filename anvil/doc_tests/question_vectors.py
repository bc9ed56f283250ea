"""The vectors of a suite's questions, computed once for all indexes, in threads, before the search needs them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING

from anvil.doc_tests.values import Question
from anvil.search import searcher

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider

MAX_THREADS = 4
"""Questions that are embedded at a time. The model runs outside of Python's lock."""


class QuestionVectors:
    """A context manager; its end cancels the questions that are not embedded yet."""

    def __init__(self, provider: EmbeddingProvider) -> None:
        self.provider = provider
        self._pool = ThreadPoolExecutor(min(os.cpu_count() or 1, MAX_THREADS), thread_name_prefix="anvil-questions")
        self._vectors: dict[str, Future[searcher.Question]] = {}

    def __enter__(self) -> QuestionVectors:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.shutdown(cancel_futures=True)

    def prepare(self, questions: Iterable[Question]) -> None:
        """Start to embed all questions whose mode uses vectors."""
        for question in questions:
            if question.mode != "keyword" and question.ask not in self._vectors:
                self._vectors[question.ask] = self._pool.submit(searcher.embed_query, question.ask, self.provider)

    def get(self, question: Question) -> searcher.Question | None:
        """A question's vector; None for one that was not prepared."""
        vector = self._vectors.get(question.ask)
        return None if vector is None else vector.result()
