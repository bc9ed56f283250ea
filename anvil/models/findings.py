"""What an examination of an installation and its project says: one sentence each, and the command that mends it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "note", "wrong", "unseen"]
"""``note``: worth knowing, nothing is broken. ``unseen``: it could not be looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at.

    ``subject``: a word or two; ``text``: a sentence or two for people, without secrets; ``mend``: the command line,
    for the shell, in the folder where the examination ran, after which the same finding is ``ok``, or the one that
    brings what is optional; None where nothing has to be done, or no command can do it.
    """

    subject: str
    verdict: Verdict
    text: str
    mend: str | None = None


def worst(findings: Iterable[Finding]) -> Verdict:
    """The verdict on all of them: what is wrong counts more than what could not be seen."""
    verdicts = {finding.verdict for finding in findings}
    order: tuple[Verdict, ...] = ("wrong", "unseen", "note")
    return next((verdict for verdict in order if verdict in verdicts), "ok")
