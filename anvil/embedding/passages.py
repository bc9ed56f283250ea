"""Scores how well passages answer a question, word by word: late interaction (ColBERT, arXiv 2004.12832).

The vector of a whole text loses single words. Here the vector of each token of the question is compared with that of
each token of a passage. The score is the mean of the best cosines, weighted by the model for each token of the
question. The model has the layers of the bundled model, trained further by ``scripts/train_models.py``. Both share one
table of words, so only the layers are stored twice.

A score depends only on the question and the passage: it has the same bits in any order and with any number of threads.
"""

from __future__ import annotations

import bisect
import json
import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from anvil.errors import ModelError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

T = TypeVar("T")
Outcome = TypeVar("Outcome")

FILE, FACTS = "passages.onnx", "passages.json"
"""Files in the folder of the embedding model. ``FACTS`` has the position of the table of words in ``model.onnx``."""
NEXT_STEP = "Install Anvil again, or set embedding.passages = false."
# These were chosen with the model: docs/performance-method.md, "Passages that are read again".
MAX_QUESTION_TOKENS = 32
"""Each is compared with each token of ten passages. 32 is the limit of ColBERT."""
MAX_HEADER_TOKENS = 40
MAX_TOKENS = 126
"""Tokens of the header and the part of a passage that the model reads. More took longer and found no more."""
MAX_CHARS = 9000
"""If a text is longer, only so many characters around the nearest window are considered."""
NEAR_WINDOW = 1.5
"""A part that lies in the nearest window counts as if it had so many more tokens of the question."""
STEPS = 4
"""The part for the model is chosen by its words, which is fast. The parts to choose from begin at each quarter of a
part's length."""
MAX_SCORES = 20_000
"""Scores that are cached: those of 2,000 questions. A test with a baseline asks each question of several indexes, whose
passages are nearly all the same."""
SILENT = (
    "the a an of to in is and or for with on it how do does can i my what when why not be at by this that are as from"
    " - . , ? ! : ; / ( ) ' \" `"
)
"""Words whose tokens do not count when a part is chosen."""


class HeadedText(NamedTuple):
    """A text under its header, and the span (in characters) of the window that is nearest to the question, if known."""

    header: str
    text: str
    span: tuple[int, int] | None = None


class Tokens(NamedTuple):
    """The ids of a text's tokens, and the offset of each in the text. Tokens that a model adds are left out."""

    ids: list[int]
    starts: list[int]


class Model(Protocol):
    """The part of the embedding model that the scorer uses."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text."""

    def open_session(self, path: Path) -> Any:
        """The graph of a file, which onnxruntime runs."""

    def map(self, function: Callable[[T], Outcome], values: Sequence[T]) -> list[Outcome]:
        """The results in the order of the values. Several threads call the function if there are several processors."""


def has_scorer(folder: Path) -> bool:
    """Whether a model's folder has a scorer of passages."""
    return (folder / FILE).is_file() and (folder / FACTS).is_file()


class PassageScorer:
    """Scores passages. The first question loads the model. All methods can be called from several threads."""

    def __init__(self, folder: Path, model: Model) -> None:
        """``folder``: the folder of the embedding ``model``."""
        self._folder = folder
        self._model = model
        self._lock = threading.RLock()
        self._scores: dict[bytes, float] = {}

    def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
        """The scores (n,), each at most 1: the weighted mean, over the question's tokens, of the cosine with the
        nearest token of the passage. Raises :class:`ModelError` if the model cannot be loaded or run."""
        import numpy as np

        question_ids, passage_ids = self.tokens(question, passages)
        if not question_ids or not passages:
            return np.zeros(len(passages))
        if len(self._scores) >= MAX_SCORES:
            self._scores = {}
        scores = self._scores  # another thread may begin new ones
        keys = [blake2b(json.dumps((question_ids, ids)).encode(), digest_size=16).digest() for ids in passage_ids]
        new = {key: ids for key, ids in zip(keys, passage_ids, strict=True) if key not in scores}
        if new:
            states, weights = self.token_vectors(question_ids)
            shares = np.exp(weights - weights.max())  # softmax; without the subtraction, an exponential could overflow
            shares /= shares.sum()

            def score_of(ids: list[int]) -> float:
                # einsum and not @, because BLAS would start threads of its own beside those of the model.
                cosines = np.einsum("qd,pd->qp", states, self.token_vectors(ids)[0]).max(axis=1)
                return float(cosines @ shares)

            order = sorted(new, key=lambda key: -len(new[key]))  # long ones first, so that the threads end together
            scores.update(zip(order, self._model.map(score_of, [new[key] for key in order]), strict=True))
        return np.array([scores[key] for key in keys])

    def tokens(self, question: str, passages: Sequence[HeadedText]) -> tuple[list[int], list[list[int]]]:
        """The tokens of the question that the model reads, and those of each passage: of its header, and of the part of
        its text with the most words of the question."""
        question_ids = self._model.tokens([question])[0].ids[:MAX_QUESTION_TOKENS]
        shortened = [_shortened(passage) for passage in passages]
        headers = self._model.tokens([passage.header for passage in shortened])
        texts = self._model.tokens([passage.text for passage in shortened])
        wanted = set(question_ids) - self._silent
        passage_ids = []
        for passage, header, text in zip(shortened, headers, texts, strict=True):
            head = header.ids[-MAX_HEADER_TOKENS:]  # the end, because the last heading tells more than the page's title
            size = MAX_TOKENS - len(head)
            passage_ids.append([*head, *text.ids[_best_part(wanted, text, passage.span, size) :][:size]])
        return question_ids, passage_ids

    def warm(self) -> None:
        """Load the model, and run it once, so that its memory is allocated."""
        self.score("warm", [HeadedText("", "warm")])

    def token_vectors(self, ids: Sequence[int]) -> tuple[Floats, Floats]:
        """The unit vectors of a text's tokens (n, dimensions), and their weights in a question (n,)."""
        import numpy as np

        session, rows, scales, (first, last) = self._loaded
        framed = [first, *ids, last]
        words = rows[framed].astype(np.float32) * scales[framed, None]
        try:
            states, weights = session.run(["states", "weights"], {"words": words[None]})
        except Exception as error:  # the runtime's errors have no common base but Exception
            raise ModelError(f"{self._folder / FILE} could not be run ({error}). {NEXT_STEP}") from error
        return (states, weights) if not ids else (states[1:-1], weights[1:-1])

    @cached_property
    def _loaded(self) -> tuple[Any, NDArray[np.int8], Floats, list[int]]:
        """The session, the table of words with its scales, and the tokens that begin and end a text."""
        import numpy as np

        with self._lock:
            if "_loaded" in self.__dict__:
                return self.__dict__["_loaded"]  # type: ignore[no-any-return]
            try:
                facts = json.loads((self._folder / FACTS).read_text(encoding="utf-8"))
                # The vectors of words in model.onnx: rows (words, dimensions) int8, and scales (words,) float32.
                table, model = facts["words"], self._folder / "model.onnx"
                # Mapped and not read: a question and ten passages need a few hundred of 30,000 rows.
                rows = np.memmap(model, np.int8, "r", table["rows_at"], (table["words"], table["dimensions"]))
                scales = np.fromfile(model, np.float32, table["words"], offset=table["scales_at"])
                frame = facts["frame"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ModelError(f"{self._folder / FACTS} cannot be read ({error}). {NEXT_STEP}") from error
            return self._model.open_session(self._folder / FILE), rows, scales, frame

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset(self._model.tokens([SILENT])[0].ids)


def _shortened(passage: HeadedText) -> HeadedText:
    """A passage of at most :data:`MAX_CHARS` characters around its nearest window."""
    if len(passage.text) <= MAX_CHARS:
        return passage
    start, end = passage.span or (0, 0)
    begin = min(max((start + end - MAX_CHARS) // 2, 0), len(passage.text) - MAX_CHARS)
    return HeadedText(passage.header, passage.text[begin : begin + MAX_CHARS], (start - begin, end - begin))


def _best_part(wanted: set[int], text: Tokens, span: tuple[int, int] | None, size: int) -> int:
    """The first token of the part of ``size`` tokens that has the most ``wanted`` tokens. A part in the nearest window
    ``span`` counts more, see :data:`NEAR_WINDOW`."""
    ids = text.ids
    if len(ids) <= size:
        return 0
    window = (0, 0) if span is None else tuple(bisect.bisect_left(text.starts, at) for at in span)
    step = max(size // STEPS, 1)
    begins: list[int] = [*range(0, len(ids) - size, step), len(ids) - size]

    def fit(begin: int) -> float:
        shared = max(0, min(begin + size, window[1]) - max(begin, window[0])) / size
        return len(wanted & set(ids[begin : begin + size])) + NEAR_WINDOW * shared

    return max(begins, key=fit)  # the first of equal ones
