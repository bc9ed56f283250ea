"""The bundled model in the process of the tests: it and its tokenizer are loaded once, and it runs once for each text.

Hundreds of tests index the same pages with the real model. Its vector of a text is always the same, which the tests of
``tests/embedding`` show with a model of their own; there nothing is remembered. Forked programs (``fork_server.py``)
take over the loaded models and run them for each text that they have not seen.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from anvil.embedding import local
from anvil.embedding.local import BUNDLED, ModelDirectory
from anvil.embedding.passages import HeadedText, PassageScorer
from anvil.embedding.provider import Vector, create_provider
from anvil.settings.schema import EmbeddingSettings

if TYPE_CHECKING:
    from numpy.typing import NDArray

_Session = local._Session
_Tokenizer = local._Tokenizer
_lock = threading.Lock()


class _Remembering(_Session):
    """The bundled model, which runs for a text that it has not seen. Failures are not kept."""

    def __init__(self, directory: ModelDirectory) -> None:
        super().__init__(directory)
        self._seen: dict[tuple[int, ...], Vector] = {}

    def run(self, ids: list[int]) -> Vector | str:
        key = tuple(ids)
        if key not in self._seen:
            vector = super().run(ids)
            if isinstance(vector, str):
                return vector
            self._seen[key] = vector
        remembered: Vector = self._seen[key].copy()
        return remembered


class RememberingScorer(PassageScorer):
    """The bundled scorer, which is loaded once, and reads a passage once for each question: a score depends on these
    two alone."""

    def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
        new = [passage for passage in passages if (self._folder, question, passage) not in _scores]
        for passage, score in zip(new, super().score(question, new).tolist(), strict=True):
            _scores[self._folder, question, passage] = score
        return np.array([_scores[self._folder, question, passage] for passage in passages], np.float64)

    def token_vectors(self, ids: Sequence[int]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The last texts are remembered: most questions are about the same pages."""
        key = (self._folder, tuple(ids))
        if (states := _states.pop(key, None)) is None:
            states = super().token_vectors(ids)
        _states[key] = states
        while len(_states) > MAX_STATES:
            _states.pop(next(iter(_states)), None)
        return states

    @property
    def _loaded(self) -> Any:
        with _lock:
            if self._folder not in _scorers:
                _scorers[self._folder] = PassageScorer.__dict__["_loaded"].func(self)
            return _scorers[self._folder]


MAX_STATES = 500
"""Texts that are remembered as the scorer sees them; 200 kB each at most."""
_states: dict[tuple[Path, tuple[int, ...]], tuple[NDArray[np.float32], NDArray[np.float32]]] = {}
_scores: dict[tuple[Path, str, HeadedText], float] = {}
_scorers: dict[Path, Any] = {}
_loaded: dict[str, _Remembering] = {}
_tokenizers: dict[str, local._Tokenizer] = {}


def session(directory: ModelDirectory) -> local._Session:
    """The model of a folder: of the bundled one, that which is loaded already."""
    if directory.path != BUNDLED:
        return _Session(directory)
    with _lock:
        key = str(directory)
        if key not in _loaded:
            _loaded[key] = _Remembering(directory)
        return _loaded[key]


def tokenizer(directory: ModelDirectory) -> local._Tokenizer:
    """The tokenizer of a folder: of the bundled model, that which is loaded already."""
    if directory.path != BUNDLED:
        return _Tokenizer(directory)
    with _lock:
        key = str(directory)
        if key not in _tokenizers:
            _tokenizers[key] = _Tokenizer(directory)
        return _tokenizers[key]


REPLACED = {"_Session": session, "_Tokenizer": tokenizer, "PassageScorer": RememberingScorer}
"""Names in :mod:`anvil.embedding.local` -> what takes their place."""
_OWN = {name: getattr(local, name) for name in REPLACED}


def preload() -> None:
    """Load the bundled models for the processes that this one forks. No thread starts, as forks would lack it."""
    for name, value in REPLACED.items():
        setattr(local, name, value)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    provider = create_provider("local", EmbeddingSettings())
    provider.warm()
    assert provider.scripts and provider.passages
    provider.passages.warm()
    del os.environ["TOKENIZERS_PARALLELISM"]


def restore() -> None:
    """Let :mod:`anvil.embedding.local` use its own names again; the loaded models are kept."""
    for name, value in _OWN.items():
        setattr(local, name, value)
