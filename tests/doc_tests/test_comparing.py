"""Two outcomes of a question are compared, and a smallest set of causes is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.doc_tests import comparing
from anvil.doc_tests.values import Outcome, Question
from tests.doc_tests.test_judging import NOTHING, PAGE, outcome


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (outcome(PAGE, [True]), outcome(PAGE, [True], 0.2), None),
        (outcome(PAGE, [True]), outcome(PAGE, [False, True]), "worse"),
        (outcome(PAGE, [False, False, True]), outcome(PAGE, [False, True]), "better"),
        (outcome(PAGE, [False]), outcome(PAGE, [False, False, True]), "better"),
        (outcome(NOTHING, [False], 0.05), outcome(NOTHING, [False], 0.9), "worse"),
        (outcome(NOTHING, [False], 0.9), outcome(NOTHING, [False], 0.8), None),
        (outcome(Question("q"), [True]), outcome(PAGE, [True]), None),
    ],
)
def test_how_two_runs_differ(before: Outcome, after: Outcome, kind: str | None) -> None:
    assert comparing.change(before, after) == kind


@given(st.sets(st.integers(0, 11), min_size=1, max_size=4), st.integers(1, 12))
def test_the_smallest_set_is_found_and_has_no_member_too_many(cause: set[int], size: int) -> None:
    items = list(range(size))

    def suffices(some: Sequence[int]) -> bool:
        return cause <= set(some)

    found = comparing.smallest_set(items, suffices)
    assert set(found) == (cause if cause <= set(items) else set())
