"""Tests of documentation: questions, the pages that should answer them, and how that turned out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anvil.results import Mode
from anvil.search.confidence import UNLIKELY
from anvil.values import ROOT

Status = Literal["pass", "fail", "new", "unjudged"]
"""``new``: the question expects nothing in particular yet. ``unjudged``: there is no confidence to judge it by."""
RECORDING_ADVICE = "'anvil test --update' shows today's answers and records them."
"""The end of the note on questions that have no expect."""
NO_CONFIDENCE = "There is no confidence for this model, so nobody can tell that nothing answers."


class StatusEntry(NamedTuple):
    """How questions of a status count, and how reports show them."""

    mark: str
    colour: str
    is_judged: bool = False
    """Whether they count in the shares and in a comparison."""
    has_details: bool = False
    """Whether a report lists the answers below its table."""
    verb: str = ""
    note: str = ""
    """What follows "3 questions" and the verb in a note on all of them. Empty for no note."""


STATUSES: Mapping[Status, StatusEntry] = {
    "pass": StatusEntry("ok", "green", is_judged=True),
    "fail": StatusEntry("FAIL", "red", is_judged=True, has_details=True),
    "new": StatusEntry("new", "cyan", has_details=True, verb="have", note=f"no expect. {RECORDING_ADVICE}"),
    "unjudged": StatusEntry("?", "yellow", verb="were", note=f"not judged. {NO_CONFIDENCE}"),
}


@dataclass(frozen=True, slots=True)
class Expectation:
    """A page, or a section of it: its anchor, heading or breadcrumb. ``section`` is empty for the whole page."""

    page: str
    section: str = ""

    def __str__(self) -> str:
        return f"{self.page}#{self.section}" if self.section else self.page


def expected_address(path: str, anchor: str, heading_path: str) -> str:
    """A section as a suite expects it: ``page#section``; the page for text above all headings."""
    return str(Expectation(path, anchor or ("" if heading_path == ROOT else heading_path)))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a suite. ``expect``: any of them answers it. ``nothing``: no page is to answer it. ``within``: how
    many results are looked at. ``line``: where it begins in the file, 1-based; 0 when that is not known."""

    ask: str
    expect: tuple[Expectation, ...] = ()
    nothing: bool = False
    within: int = 5
    mode: Mode = "hybrid"
    line: int = 0

    @property
    def new(self) -> bool:
        """Whether no answer is written down for it yet."""
        return not self.expect and not self.nothing

    @property
    def weak(self) -> bool:
        """Whether it expects a page alone: it may pass although the section that answers was deleted."""
        return any(not expectation.section for expectation in self.expect)

    @property
    def pages(self) -> tuple[str, ...]:
        return tuple(expectation.page for expectation in self.expect)

    @property
    def expected(self) -> str:
        """What it expects, as in the file."""
        return "nothing" if self.nothing else " or ".join(map(str, self.expect))


@dataclass(frozen=True, slots=True)
class Suite:
    """Questions, and what share of them is to be answered. ``origin``: the file's name, for messages."""

    questions: tuple[Question, ...]
    min_hit: float | None = 1.0
    min_mrr: float | None = None
    origin: str = "the suite"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result of the search: ``heading`` is the full breadcrumb for people, ``confidence`` 0..1 or None. ``line``: of
    the section in its source file, None where it stands in none."""

    file_path: str
    heading_path: str
    heading: str
    anchor: str
    line: int | None
    score: float
    confidence: float | None

    @property
    def is_unlikely(self) -> bool:
        """Whether the page is unlikely to answer the question."""
        return self.confidence is not None and self.confidence < UNLIKELY

    @property
    def address(self) -> str:
        """The answer as a suite expects it."""
        return expected_address(self.file_path, self.anchor, self.heading_path)


def shown_confidence(value: float | None) -> str:
    """A confidence as reports show it."""
    return "-" if value is None else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a question turned out. ``rank``: 1-based place of the first result that was expected, None when there is none
    among those looked at. ``confidence``: of that result, else the highest of those that count. ``answers``: the
    first results. ``better_expect``: of a question that expects a page alone, the section of it that answers."""

    question: Question
    status: Status
    rank: int | None
    confidence: float | None
    answers: tuple[Answer, ...]
    note: str = ""
    better_expect: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether it counts in the shares and in a comparison."""
        return STATUSES[self.status].is_judged

    @property
    def likely_address(self) -> str | None:
        """What the question may expect: its first answer; None where that is unlikely to answer."""
        return None if not self.answers or self.answers[0].is_unlikely else self.answers[0].address

    @property
    def doubtful(self) -> bool:
        """Whether the expected page is among the results that count, but unlikely to answer."""
        return self.status == "fail" and self.rank is not None and self.rank <= self.question.within

    @property
    def standing(self) -> str:
        """Where the expected page is among the results, in words."""
        if self.question.nothing:
            return "unanswered" if self.status == "pass" else "answered"
        doubt = " (unlikely to answer)" if self.doubtful else ""
        return "not found" if self.rank is None else f"result {self.rank}{doubt}"

    @property
    def failure(self) -> str:
        """What became of the expected page, in words that follow it."""
        if self.question.nothing:
            return "but something seems to answer"
        if self.rank is None:
            return "which is not among the results"
        if self.doubtful:
            return f"which is result {self.rank}, but unlikely to answer ({shown_confidence(self.confidence)})"
        return f"which is result {self.rank}; the first {self.question.within} count"


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """A page that differs between two indexes. ``old_path``: where it was, of one that moved. ``line``: the first line
    of its source file that differs, 1-based; None where that is not known."""

    kind: Literal["added", "changed", "removed", "moved"]
    file_path: str
    old_path: str | None = None
    line: int | None = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """A question whose answer got better or worse. ``blame``: the page that has to be put back so that it is answered
    as before; None when no edited page alone is the cause. ``reason``: the same in words. ``page`` and ``line``: the
    page that lost or won, in the documentation folder, and the line to look at; empty where there is none."""

    kind: Literal["better", "worse"]
    decisive: bool
    """Whether the test passed on one side and fails on the other."""
    before: Outcome
    after: Outcome
    blame: ChangedPage | None = None
    reason: str = ""
    page: str = ""
    line: int | None = 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of one suite. ``baseline``: what it was compared with, in words."""

    baseline: str
    hit: float
    mrr: float | None
    changed_pages: tuple[ChangedPage, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[Difference, ...]:
        """The questions that got worse."""
        return tuple(each for each in self.differences if each.kind == "worse")

    @property
    def better(self) -> tuple[Difference, ...]:
        """The questions that got better."""
        return tuple(each for each in self.differences if each.kind == "better")

    @property
    def lost(self) -> tuple[Difference, ...]:
        """The questions that passed before and fail now."""
        return tuple(each for each in self.worse if each.decisive)


@dataclass(frozen=True, slots=True)
class TestReport:
    """A run of a suite. ``hit``: the share of questions that passed, ``mrr``: the mean of 1/rank over those that expect
    a page. ``passed``: whether both reach what the suite asks for, and no question was lost against the baseline."""

    __test__ = False  # pytest collects classes of this name

    suite: str
    passed: bool
    hit: float
    mrr: float | None
    min_hit: float | None
    min_mrr: float | None
    outcomes: tuple[Outcome, ...]
    pages: int
    chunks: int
    seconds: float
    notes: tuple[str, ...] = ()
    comparison: Comparison | None = None

    def of(self, status: Status) -> tuple[Outcome, ...]:
        """The outcomes of a status."""
        return tuple(each for each in self.outcomes if each.status == status)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return self.of("fail")

    @property
    def new(self) -> tuple[Outcome, ...]:
        """The outcomes of questions that expect nothing in particular yet."""
        return self.of("new")
