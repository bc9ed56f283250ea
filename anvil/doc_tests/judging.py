"""The outcome of a question, the difference of two outcomes, and the smallest set that makes a difference."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, TypeVar

from anvil.doc_tests.values import Answer, Outcome, Question, Status
from anvil.search.confidence import UNLIKELY
from anvil.values import ROOT

Item = TypeVar("Item")
MIN_RESULTS = 10
"""Results of a search, also where fewer count: a report gives the rank of the right page."""
SHOWN_ANSWERS = 3
"""First results in an outcome."""


def judge(
    question: Question, answers: Sequence[Answer], fits: Sequence[bool], sections: Sequence[bool] | None = None
) -> Outcome:
    """The outcome of a question. ``fits``: whether each answer is an expected one; ``sections``: whether it is in an
    expected section. One that is only of an expected page counts if it is not unlikely to answer."""
    sections = fits if sections is None else sections
    places = [place for place, fit in enumerate(fits, 1) if fit]
    counting = [place for place in places if sections[place - 1] or not _is_unlikely(answers[place - 1])]
    rank = next(iter(counting), None) or next(iter(places), None)
    better = ""
    if question.weak and counting and not sections[counting[0] - 1]:
        better = address(answers[counting[0] - 1])
    within = answers[: question.within]
    confidence = max((answer.confidence for answer in within if answer.confidence is not None), default=None)
    status: Status
    note = ""
    if question.new:
        status = "new"
    elif question.nothing:
        if answers and confidence is None:
            status, note = "unjudged", "There is no confidence for this model, so nobody can tell that nothing answers."
        else:
            status = "pass" if confidence is None or confidence < UNLIKELY else "fail"
    else:
        status = "pass" if counting and counting[0] <= question.within else "fail"
        if rank is not None:
            confidence = answers[rank - 1].confidence
    return Outcome(
        question.ask,
        question.expected,
        status,
        rank,
        question.within,
        confidence,
        tuple(answers[:SHOWN_ANSWERS]),
        question.line,
        note,
        better,
    )


def _is_unlikely(answer: Answer) -> bool:
    return answer.confidence is not None and answer.confidence < UNLIKELY


def likely_address(answers: Sequence[Answer]) -> str | None:
    """What a question whose first answer this is may expect; None where it is unlikely to answer."""
    return None if not answers or _is_unlikely(answers[0]) else address(answers[0])


def address(answer: Answer) -> str:
    """An answer as a suite expects it: ``page#section``; the page for text above all headings."""
    section = answer.anchor or ("" if answer.heading_path == ROOT else answer.heading_path)
    return f"{answer.file_path}#{section}" if section else answer.file_path


def hit_rate(outcomes: Iterable[Outcome]) -> float:
    """The share that passed of the questions that were judged; 1 when there are none."""
    judged = [outcome.status == "pass" for outcome in outcomes if outcome.status in ("pass", "fail")]
    return sum(judged) / len(judged) if judged else 1.0


def mean_reciprocal_rank(outcomes: Iterable[Outcome]) -> float | None:
    """The mean of 1/rank over questions that expect a page, 0 for one that was not found; None without any."""
    ranks = [
        1 / outcome.rank if outcome.rank else 0.0
        for outcome in outcomes
        if outcome.status in ("pass", "fail") and outcome.expected != "nothing"
    ]
    return sum(ranks) / len(ranks) if ranks else None


def change(before: Outcome, after: Outcome) -> Literal["better", "worse"] | None:
    """How a question changed: by whether it passes, then by the rank of the expected page."""
    if before.status not in ("pass", "fail") or after.status not in ("pass", "fail"):
        return None
    old, new = _quality(before), _quality(after)
    return None if old == new else "better" if new > old else "worse"


def restored(expected: Outcome, outcome: Outcome) -> bool:
    """Whether an outcome is at least as good as ``expected``."""
    return _quality(outcome) >= _quality(expected)


def _quality(outcome: Outcome) -> tuple[bool, float]:
    """How good an outcome is: higher is better."""
    return outcome.status == "pass", 1 / outcome.rank if outcome.rank else 0.0


def smallest_set(items: Sequence[Item], suffices: Callable[[Sequence[Item]], bool]) -> tuple[Item, ...]:
    """A smallest set of ``items`` that suffices: without any one of its members it does not.

    The whole is halved again and again, as in delta debugging (Zeller and Hildebrandt 2002, ddmin). Empty when even all
    do not suffice. What ``suffices`` raises is passed on.
    """
    return tuple(_reduced(list(items), suffices)) if items and suffices(items) else ()


def _reduced(items: list[Item], suffices: Callable[[Sequence[Item]], bool]) -> list[Item]:
    size = len(items) // 2
    while size:
        for start in range(0, len(items), size):
            rest = items[:start] + items[start + size :]
            if rest and suffices(rest):
                items = rest
                size = min(size, max(len(items) // 2, 1))
                break
        else:
            size = size // 2
    return items
