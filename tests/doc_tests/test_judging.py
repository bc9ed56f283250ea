"""A question passes by its rank or by confidence, and the outcomes of a suite are summed up."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from anvil.doc_tests import judging
from anvil.doc_tests.values import Answer, Expectation, Outcome, Question

PAGE = Question("q", (Expectation("a.md"),), within=2)
NOTHING = Question("q", nothing=True)


def answer(confidence: float | None = 0.9) -> Answer:
    return Answer("a.md", "A", "A", "a", 1, 0.5, confidence)


def outcome(question: Question, fits: Sequence[bool], confidence: float | None = 0.9) -> Outcome:
    return judging.judge(question, [answer(confidence) for _ in fits], fits, fits)


@pytest.mark.parametrize(
    ("question", "fits", "confidence", "status", "rank"),
    [
        (PAGE, [False, True, True], 0.1, "pass", 2),
        (PAGE, [False, False, True], 0.9, "fail", 3),
        (PAGE, [], 0.9, "fail", None),
        (NOTHING, [False], 0.09, "pass", None),
        (NOTHING, [False], 0.1, "fail", None),
        (NOTHING, [], 0.9, "pass", None),
        (NOTHING, [False], None, "unjudged", None),
        (Question("q"), [False], 0.9, "new", None),
    ],
)
def test_how_a_question_turns_out(
    question: Question, fits: list[bool], confidence: float | None, status: str, rank: int | None
) -> None:
    found = outcome(question, fits, confidence)
    assert (found.status, found.rank) == (status, rank)


@pytest.mark.parametrize(
    ("confidences", "in_section", "status", "rank", "better"),
    [
        ([0.09, 0.05], [False, False], "fail", 1, ""),
        ([0.1], [False], "pass", 1, "a.md#a"),
        ([0.05, 0.3], [False, False], "pass", 2, "a.md#a"),
        ([0.05, 0.05, 0.3], [False, False, False], "fail", 3, "a.md#a"),
        ([0.05], [True], "pass", 1, ""),
        ([None], [False], "pass", 1, "a.md#a"),
    ],
)
def test_a_page_alone_counts_where_it_is_not_unlikely_to_answer(
    confidences: list[float | None], in_section: list[bool], status: str, rank: int, better: str
) -> None:
    found = judging.judge(PAGE, [answer(each) for each in confidences], [True] * len(confidences), in_section)
    assert (found.status, found.rank, found.better_expect) == (status, rank, better)
    assert found.doubtful == (status == "fail" and rank <= 2)


def test_sums() -> None:
    some = [
        outcome(PAGE, [True]),
        outcome(PAGE, [False, True]),
        outcome(PAGE, [False]),
        outcome(NOTHING, [False], 0.05),
    ]
    assert judging.hit_rate(some) == 0.75
    assert judging.mean_reciprocal_rank(some) == pytest.approx((1 + 0.5 + 0) / 3)
    assert judging.mean_reciprocal_rank(some[3:]) is None
    assert judging.hit_rate([outcome(Question("new"), [True])]) == 1
