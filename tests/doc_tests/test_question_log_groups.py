"""Groups of logged questions: which come first, and which wording stands for a group."""

from __future__ import annotations

from pathlib import Path

import anvil
from anvil.doc_tests.question_log import LoggedQuestion


def test_what_no_page_answers_comes_first_and_of_those_what_is_asked_most(docs: Path) -> None:
    asked = [
        "quagga price",
        "zebra colour",
        "Zebra  colour",
        "silence at night",
        "silence at night",
        "silence at night",
    ]
    log = [LoggedQuestion(f"2026-01-0{day}T00:00:00Z", text) for day, text in enumerate(asked, 1)]
    with anvil.open(docs, provider="none") as opened:
        groups = opened.question_groups(log)
    assert [(group.question, group.count, group.answered) for group in groups] == [
        ("Zebra  colour", 2, False),
        ("quagga price", 1, False),
        ("silence at night", 3, True),
    ]
    assert groups[0].last_asked == "2026-01-03T00:00:00Z"
