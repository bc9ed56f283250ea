"""Findings of ``anvil doctor``: a sentence each, and the command that fixes the problem."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "wrong", "unseen"]
"""``note``: nothing is broken. ``unseen``: the examination could not be made."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one examination.

    ``subject``: a word or two. ``text``: a sentence or two for people, without secrets. ``fix``: a shell command for
    the folder of the examination, after which the finding is ``ok``, or which installs something optional; None when
    nothing has to be done or no command can do it.
    """

    subject: str
    verdict: Verdict
    text: str
    fix: str | None = None


def worst(findings: Iterable[Finding]) -> Verdict:
    """The worst verdict: ``wrong``, ``unseen``, ``note``, ``ok``."""
    verdicts = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("wrong", "unseen", "note")
    return next((verdict for verdict in order if verdict in verdicts), "ok")
