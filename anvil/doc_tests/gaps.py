"""Groups of similar logged questions, and which of them the documents do not answer today."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anvil.doc_tests.question_log import LoggedQuestion
from anvil.doc_tests.suite import entry
from anvil.errors import AnvilError
from anvil.requests import SearchRequest
from anvil.search.confidence import UNLIKELY
from anvil.search.searcher import Searcher
from anvil.values import Progress, silent
from anvil.wording import counted

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MIN_COSINE = 0.75
"""Questions with at least this cosine are similar."""
MAX_WORDINGS = 2000
"""Different wordings that are grouped: the latest in the log."""
MAX_SHOWN_WORDINGS = 5


@dataclass(frozen=True, slots=True)
class QuestionGroup:
    """Similar questions. ``question``: the most frequent wording. ``confidence``: of today's answer to it, None
    where there is no fit for the model. ``page``: the page of today's first result, None where there is none."""

    question: str
    count: int
    last_asked: str
    confidence: float | None
    page: str | None
    wordings: tuple[str, ...]

    @property
    def answered(self) -> bool:
        """Whether a page may answer it: today's best result is not an unlikely one."""
        return self.page is not None and (self.confidence is None or self.confidence >= UNLIKELY)


def groups(questions: Sequence[LoggedQuestion], searcher: Searcher, progress: Progress = silent) -> list[QuestionGroup]:
    """The questions in groups, each asked again; unanswered groups first, then by number of questions."""
    counts: Counter[str] = Counter()
    last: dict[str, LoggedQuestion] = {}
    for question in questions:
        key = _folded(question.question)
        counts[key] += 1
        last.pop(key, None)
        last[key] = question
    recent = list(last)[-MAX_WORDINGS:]
    order = sorted(recent, key=lambda key: (-counts[key], key))
    question_groups = []
    for done, keys in enumerate(_grouped(order, searcher, progress)):
        progress("asking again", done, len(order))
        leader = last[keys[0]].question
        answer = searcher.search(SearchRequest(leader, max_chars=1_000_000, read_passages=False))
        confidences = [hit.confidence for hit in answer.hits if hit.confidence is not None]
        question_groups.append(
            QuestionGroup(
                leader,
                sum(counts[key] for key in keys),
                max(last[key].time for key in keys),
                max(confidences, default=None),
                answer.hits[0].metadata.file_path if answer.hits else None,
                tuple(last[key].question for key in keys[1 : 1 + MAX_SHOWN_WORDINGS]),
            )
        )
    return sorted(question_groups, key=lambda group: (group.answered, -group.count, group.question))


def _grouped(keys: Sequence[str], searcher: Searcher, progress: Progress) -> list[list[str]]:
    """The questions in groups: a question joins the first group whose first question is near enough. Without vectors,
    every question is a group."""
    vectors = _vectors(keys, searcher, progress)
    if vectors is None:
        return [[key] for key in keys]
    leaders: list[int] = []
    members: list[list[str]] = []
    for number, key in enumerate(keys):
        near = vectors[leaders] @ vectors[number] >= MIN_COSINE if leaders else []
        group = next((place for place, fits in enumerate(near) if fits), None)
        if group is None:
            leaders.append(number)
            members.append([key])
        else:
            members[group].append(key)
    return members


def _vectors(keys: Sequence[str], searcher: Searcher, progress: Progress) -> NDArray[np.float32] | None:
    import numpy as np

    if not searcher.semantic or not keys:
        return None
    rows = []
    try:
        for done, key in enumerate(keys):
            progress("comparing", done, len(keys))
            rows.append(searcher.provider.embed_query(key))
    except AnvilError:
        return None
    return np.stack(rows)


def _folded(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip("?!. ")


def as_tests(groups: Sequence[QuestionGroup]) -> list[str]:
    """TOML of questions for a suite, without ``expect``."""
    return [
        entry(
            " ".join(group.question.split()),
            None,
            "\n".join(
                [
                    f"asked {counted(group.count, 'time')}",
                    *(f"also: {' '.join(wording.split())}" for wording in group.wordings),
                ]
            ),
        )
        for group in groups
    ]
