from __future__ import annotations

import pytest

from anvil.doctor.examined_project import Finding, Verdict, worst


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [([], "ok"), (["ok", "note", "ok"], "note"), (["note", "unseen"], "unseen"), (["unseen", "wrong", "ok"], "wrong")],
)
def test_the_worst_counts(verdicts: list[Verdict], expected: Verdict) -> None:
    assert worst(Finding(verdict, "x") for verdict in verdicts) == expected
