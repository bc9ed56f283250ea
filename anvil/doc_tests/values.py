"""Values of a suite and its run: questions, expected pages, answers, outcomes, comparisons and reports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from anvil.results import Mode
from anvil.search.confidence import UNLIKELY
from anvil.values import ROOT

Status = Literal["pass", "fail", "new", "unjudged"]
"""``new``: the question has no ``expect`` yet. ``unjudged``: the model gives no confidence to judge it by."""
RECORDING_ADVICE = "'anvil test --update' shows today's answers and records them."
"""The end of the note on questions without ``expect``."""
NO_CONFIDENCE = "There is no confidence for this model, so nobody can tell that nothing answers."


class StatusEntry(NamedTuple):
    """How outcomes of a status count, and how reports show them."""

    mark: str
    colour: str
    is_judged: bool = False
    """Whether they count in the shares and in a comparison."""
    has_details: bool = False
    """Whether a report lists the answers below its table."""
    verb: str = ""
    note: str = ""
    """The end of a note that begins with "3 questions" and the verb. Empty for no note."""


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
    """A section in the form of ``expect``: ``page#section``. For text above all headings, it is the page."""
    return str(Expectation(path, anchor or ("" if heading_path == ROOT else heading_path)))


@dataclass(frozen=True, slots=True)
class Question:
    """A question of a suite. ``expect``: pages or sections, of which any answers it. ``nothing``: no page should answer
    it. ``within``: number of results that count. ``line``: of its beginning in the file, 1-based; 0 if unknown."""

    ask: str
    expect: tuple[Expectation, ...] = ()
    nothing: bool = False
    within: int = 5
    mode: Mode = "hybrid"
    line: int = 0

    @property
    def new(self) -> bool:
        """Whether the question has no ``expect`` yet."""
        return not self.expect and not self.nothing

    @property
    def weak(self) -> bool:
        """Whether it expects a page without a section. It may pass although the section that answers was deleted."""
        return any(not expectation.section for expectation in self.expect)

    @property
    def pages(self) -> tuple[str, ...]:
        return tuple(expectation.page for expectation in self.expect)

    @property
    def expected(self) -> str:
        """Its ``expect``, as in the file."""
        return "nothing" if self.nothing else " or ".join(map(str, self.expect))


@dataclass(frozen=True, slots=True)
class Suite:
    """Questions, and the share of them that must be answered. ``origin``: the file's name, for messages."""

    questions: tuple[Question, ...]
    min_hit: float | None = 1.0
    min_mrr: float | None = None
    origin: str = "the suite"


@dataclass(frozen=True, slots=True)
class Answer:
    """A result of the search. ``heading``: the full breadcrumb for people. ``confidence``: 0 to 1, or None. ``line``:
    of the section in its source file, 1-based; None if unknown."""

    file_path: str
    heading_path: str
    heading: str
    anchor: str
    line: int | None
    score: float
    confidence: float | None

    @property
    def is_unlikely(self) -> bool:
        return self.confidence is not None and self.confidence < UNLIKELY

    @property
    def address(self) -> str:
        """The answer in the form of ``expect``."""
        return expected_address(self.file_path, self.anchor, self.heading_path)


def shown_confidence(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a question.

    ``rank``: the 1-based rank of the first expected result, None if no result is expected. ``confidence``: of that
    result, else the highest of the results that count. ``answers``: the first results. ``better_expect``: for a
    question that expects a page without a section, the section of it that answers.
    """

    question: Question
    status: Status
    rank: int | None
    confidence: float | None
    answers: tuple[Answer, ...]
    note: str = ""
    better_expect: str = ""

    @property
    def is_judged(self) -> bool:
        """Whether the outcome counts in the shares and in a comparison."""
        return STATUSES[self.status].is_judged

    @property
    def likely_address(self) -> str | None:
        """An ``expect`` for the question: its first answer. None if this is unlikely to answer."""
        return None if not self.answers or self.answers[0].is_unlikely else self.answers[0].address

    @property
    def doubtful(self) -> bool:
        """Whether the expected page is among the results that count, but unlikely to answer."""
        return self.status == "fail" and self.rank is not None and self.rank <= self.question.within

    @property
    def standing(self) -> str:
        """The rank of the expected page, in words."""
        if self.question.nothing:
            return "unanswered" if self.status == "pass" else "answered"
        doubt = " (unlikely to answer)" if self.doubtful else ""
        return "not found" if self.rank is None else f"result {self.rank}{doubt}"

    @property
    def failure(self) -> str:
        """The reason of a failure, as the end of a sentence about the expected page."""
        if self.question.nothing:
            return "but something seems to answer"
        if self.rank is None:
            return "which is not among the results"
        if self.doubtful:
            return f"which is result {self.rank}, but unlikely to answer ({shown_confidence(self.confidence)})"
        return f"which is result {self.rank}; the first {self.question.within} count"


@dataclass(frozen=True, slots=True)
class ChangedPage:
    """A page that differs between two indexes. ``old_path``: the former path of a moved page. ``line``: the first line
    of its source file that differs, 1-based; None if unknown."""

    kind: Literal["added", "changed", "removed", "moved"]
    file_path: str
    old_path: str | None = None
    line: int | None = 1


@dataclass(frozen=True, slots=True)
class Difference:
    """A question whose answer got better or worse.

    ``blame``: the page that must be restored to get the former answer; None if no single page is the cause. ``reason``:
    a sentence on it. ``page``, ``line``: the page that lost or won, in the documentation folder, and the line to look
    at; ``page`` is empty if there is none.
    """

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
    """Two runs of one suite. ``baseline``: the name of the former run. ``hit``, ``mrr``: of the former run."""

    baseline: str
    hit: float
    mrr: float | None
    changed_pages: tuple[ChangedPage, ...]
    differences: tuple[Difference, ...]
    notes: tuple[str, ...] = ()

    @property
    def worse(self) -> tuple[Difference, ...]:
        return tuple(each for each in self.differences if each.kind == "worse")

    @property
    def better(self) -> tuple[Difference, ...]:
        return tuple(each for each in self.differences if each.kind == "better")

    @property
    def lost(self) -> tuple[Difference, ...]:
        """The questions that passed before and fail now."""
        return tuple(each for each in self.worse if each.decisive)


@dataclass(frozen=True, slots=True)
class TestReport:
    """A run of a suite. ``hit``: the share of questions that passed. ``mrr``: the mean of 1/rank over the questions
    that expect a page. ``passed``: whether both reach the suite's minimum, and no question of the baseline was lost."""

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
        return tuple(each for each in self.outcomes if each.status == status)

    @property
    def failed(self) -> tuple[Outcome, ...]:
        return self.of("fail")

    @property
    def new(self) -> tuple[Outcome, ...]:
        """The outcomes of questions without ``expect``."""
        return self.of("new")
