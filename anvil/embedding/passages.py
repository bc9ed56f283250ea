"""How well passages answer a question, word by word: late interaction (ColBERT, arXiv 2004.12832).

A vector of a whole text loses single words. Here each token of the question is compared with each token of a passage,
as a model sees both in their texts: the score is the mean of the best cosines, and the model says how much each token
of the question counts. The model has the layers of the bundled one, trained further by ``scripts/train_models.py``,
and shares its table of words, so that only the layers are stored twice.

A score depends on the question and one passage alone: the same bits in any order, with any number of threads.
"""

from __future__ import annotations

import bisect
import json
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
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
"""In the folder of the embedding model. The second says where in ``model.onnx`` the table of words is."""
NEXT_STEP = "Install Anvil again, or set embedding.passages = false."
# These were chosen with the model: docs/performance-method.md, "Passages that are read again".
MAX_QUESTION_TOKENS = 32
"""Each is compared with each token of ten passages; 32 is ColBERT's own limit."""
MAX_HEADER_TOKENS = 40
MAX_TOKENS = 126
"""Of a header and the part of a passage that is read. With more tokens a question took longer and found no more."""
MAX_CHARS = 9000
"""Of a longer text, only these characters around the nearest window are looked at."""
NEAR_WINDOW = 1.5
"""A part of a passage that is in the nearest window counts as so many further tokens of the question."""
STEPS = 4
"""Parts of a text that are compared begin at each quarter of their length. By words, which is fast: the model reads one
part of each passage."""
SILENT = (
    "the a an of to in is and or for with on it how do does can i my what when why not be at by this that are as from"
    " - . , ? ! : ; / ( ) ' \" `"
)
"""Tokens that choose no part of a text."""


class HeadedText(NamedTuple):
    """A text under its header, and the span of its window that is nearest to the question, in characters, if known."""

    header: str
    text: str
    span: tuple[int, int] | None = None


class Tokens(NamedTuple):
    """The ids of a text's tokens and the character at which each begins, without the tokens that a model adds."""

    ids: list[int]
    starts: list[int]


@dataclass(frozen=True, slots=True)
class WordTable:
    """Where the vectors of words are in ``model.onnx``: the bytes before the rows (words, dimensions) int8, and before
    their scales (words,) float32."""

    words: int
    dimensions: int
    rows_at: int
    scales_at: int


class Model(Protocol):
    """What the scorer shares with the embedding model."""

    def tokens(self, texts: Sequence[str]) -> list[Tokens]:
        """The tokens of each text."""

    def open_session(self, path: Path) -> Any:
        """A graph that is run by onnxruntime."""

    def map(self, function: Callable[[T], Outcome], values: Sequence[T]) -> list[Outcome]:
        """The results in the order of the values, by several threads where there are several processors."""


def has_scorer(folder: Path) -> bool:
    """Whether a model's folder has a scorer of passages."""
    return (folder / FILE).is_file() and (folder / FACTS).is_file()


class PassageScorer:
    """Scores of passages. The first question loads the model. Every method can be called from several threads."""

    def __init__(self, folder: Path, model: Model) -> None:
        """``folder``: of the embedding ``model``."""
        self._folder = folder
        self._model = model
        self._lock = threading.RLock()

    def score(self, question: str, passages: Sequence[HeadedText]) -> NDArray[np.float64]:
        """(n,), each at most 1: the mean of the cosines of the question's tokens with the nearest one of the passage,
        weighted by how much each of them counts. Raises :class:`ModelError` if the model cannot be loaded or run."""
        import numpy as np

        asked, ids_of_passages = self.tokens(question, passages)
        if not asked or not passages:
            return np.zeros(len(passages))
        states, weights = self._run(asked)
        shares = np.exp(weights - weights.max())  # softmax, less the largest one, so that no exponential overflows
        shares /= shares.sum()
        # Long ones first: so the threads end together.
        order = sorted(range(len(passages)), key=lambda row: -len(ids_of_passages[row]))

        def nearest_to(ids: list[int]) -> Floats:
            # einsum and not @: BLAS would start threads of its own beside those of the model
            return np.einsum("qd,pd->qp", states, self._run(ids)[0]).max(axis=1)  # type: ignore[no-any-return]

        nearest = self._model.map(nearest_to, [ids_of_passages[row] for row in order])
        scores = np.zeros(len(passages))
        for row, cosines in zip(order, nearest, strict=True):
            scores[row] = cosines @ shares
        return scores

    def tokens(self, question: str, passages: Sequence[HeadedText]) -> tuple[list[int], list[list[int]]]:
        """The tokens that are read of a question, and of each passage: its header, and the part of its text that fits
        best."""
        asked = self._model.tokens([question])[0].ids[:MAX_QUESTION_TOKENS]
        near = [_near(passage) for passage in passages]
        headers = self._model.tokens([passage.header for passage in near])
        texts = self._model.tokens([passage.text for passage in near])
        wanted = set(asked) - self._silent
        ids_of_passages = []
        for passage, header, text in zip(near, headers, texts, strict=True):
            head = header.ids[-MAX_HEADER_TOKENS:]  # the end: the nearest heading says more than the page's title
            size = MAX_TOKENS - len(head)
            ids_of_passages.append([*head, *text.ids[_best_part(wanted, text, passage.span, size) :][:size]])
        return asked, ids_of_passages

    def warm(self) -> None:
        """Load the model, and run it once, which allocates its memory."""
        self.score("warm", [HeadedText("", "warm")])

    def _run(self, ids: Sequence[int]) -> tuple[Floats, Floats]:
        """The unit vectors of a text's tokens (n, dimensions), and how much each counts in a question (n,)."""
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
                table = WordTable(**facts["words"])
                model, shape = self._folder / "model.onnx", (table.words, table.dimensions)
                # Mapped: a question and ten passages need a few hundred of 30,000 rows.
                rows = np.memmap(model, np.int8, "r", table.rows_at, shape)
                scales = np.fromfile(model, np.float32, table.words, offset=table.scales_at)
                frame = facts["frame"]
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ModelError(f"{self._folder / FACTS} cannot be read ({error}). {NEXT_STEP}") from error
            return self._model.open_session(self._folder / FILE), rows, scales, frame

    @cached_property
    def _silent(self) -> frozenset[int]:
        return frozenset(self._model.tokens([SILENT])[0].ids)


def _near(passage: HeadedText) -> HeadedText:
    """A passage whose text has at most :data:`MAX_CHARS`: those around its nearest window."""
    if len(passage.text) <= MAX_CHARS:
        return passage
    start, end = passage.span or (0, 0)
    begin = min(max((start + end - MAX_CHARS) // 2, 0), len(passage.text) - MAX_CHARS)
    return HeadedText(passage.header, passage.text[begin : begin + MAX_CHARS], (start - begin, end - begin))


def _best_part(wanted: set[int], text: Tokens, span: tuple[int, int] | None, size: int) -> int:
    """The first token of the ``size`` tokens that have the most of the ``wanted`` ones. Tokens in the nearest window
    count for them."""
    ids = text.ids
    if len(ids) <= size:
        return 0
    near = (0, 0) if span is None else tuple(bisect.bisect_left(text.starts, at) for at in span)
    step = max(size // STEPS, 1)
    begins: list[int] = [*range(0, len(ids) - size, step), len(ids) - size]

    def fit(begin: int) -> float:
        shared = max(0, min(begin + size, near[1]) - max(begin, near[0])) / size
        return len(wanted & set(ids[begin : begin + size])) + NEAR_WINDOW * shared

    return max(begins, key=fit)  # of equals the first
