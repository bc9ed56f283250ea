"""The questions' section of a summary: what its headline says, and that no page's name becomes markup."""

from __future__ import annotations

from dataclasses import replace

import pytest

from anvil.ci import summary
from anvil.doc_tests.values import (
    Answer,
    ChangedPage,
    Comparison,
    Difference,
    Expectation,
    Outcome,
    Question,
    TestReport,
)

ANSWER = Answer("b.md", "B", "B", "b", 3, 0.9, 0.8)
GOOD = Outcome(Question("how *so*?", (Expectation("a.md"),)), "pass", 1, 0.9, (ANSWER,))
BAD = replace(GOOD, status="fail", rank=None)
REPORT = TestReport("t.toml", True, 1.0, 1.0, 0.9, None, (GOOD,), 2, 3, 0.1)
PAGE = ChangedPage("changed", "a_[x](y).md")
WORSE = Difference("worse", True, GOOD, BAD, PAGE, "Because.", "a.md", 7)


def compared(*differences: Difference) -> TestReport:
    return replace(REPORT, passed=False, outcomes=(BAD,), comparison=Comparison("main", 1.0, 1.0, (PAGE,), differences))


@pytest.mark.parametrize(
    ("report", "said"),
    [
        (REPORT, "all questions are answered as expected"),
        (replace(REPORT, outcomes=(BAD,), passed=False), "1 question is not answered as expected"),
        (
            replace(REPORT, passed=False, mrr=0.4, min_mrr=0.5),
            "the mean reciprocal rank is 0.40, at least 0.50 is wanted",
        ),
        (compared(WORSE), "1 question got worse because of a_[x](y).md"),
        (compared(WORSE, replace(WORSE, blame=None)), "2 questions got worse because of a_[x](y).md"),
        (compared(replace(WORSE, blame=None)), "1 question got worse"),
        (
            replace(REPORT, comparison=Comparison("main", 1.0, 1.0, (PAGE,), ())),
            "all questions are answered as expected",
        ),
    ],
)
def test_headlines(report: TestReport, said: str) -> None:
    assert summary.questions_headline(report) == said


def test_names_of_pages_are_no_markup() -> None:
    text = summary.render_questions(compared(WORSE), "main", "https://x.test/docs/")
    assert text.startswith("## Questions: 1 question got worse because of a\\_\\[x\\](y).md\n")
    row = "| **lost** `how *so*?` | result 1 → not found | [`a_[x](y).md`](https://x.test/docs/a_%5Bx%5D%28y%29.md)"
    assert row in text


def test_the_page_to_blame_is_a_link_where_it_is_still_there() -> None:
    removed = replace(WORSE, blame=ChangedPage("removed", "old.md"))
    text = summary.render_questions(compared(WORSE, removed, replace(WORSE, blame=None)), "main", "https://x.test/")
    assert " (changed) |" in text and "| `old.md` (removed) |" in text and "| no page alone |" in text
