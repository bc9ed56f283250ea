"""What ``anvil questions`` prints."""

from __future__ import annotations

from anvil.doc_tests.cli import question_lines
from anvil.doc_tests.question_log import PageReport, QuestionGroup


def test_each_question_has_its_count_its_confidence_and_its_day() -> None:
    groups = [
        QuestionGroup("How?", 12, "2026-11-28T10:20:30Z", 0.25, "a.md", ("How so?",)),
        QuestionGroup("Why?", 1, "2026-11-27T10:20:30Z", None, None, ()),
    ]
    report = PageReport("2026-11-26T10:20:30Z", "outdated", "a.md", "The flag\nis gone.")
    assert [*question_lines(groups, 13, 2, [report])] == [
        "asked  conf.  question",
        "   12   0.25  How?",
        "              a.md, last asked 2026-11-28; also: How so?",
        "    1      -  Why?",
        "              no result, last asked 2026-11-27",
        "13 questions in 2 groups, 1 without an answer.",
        "2026-11-26  outdated  a.md: The flag is gone.",
    ]
