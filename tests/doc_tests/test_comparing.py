"""Two outcomes of a question are compared."""

from __future__ import annotations

import pytest

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
