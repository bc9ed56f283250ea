"""The report on a run of a suite, as text for a terminal and as JUnit XML."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from anvil.doc_tests.values import STATUSES, shown_confidence
from anvil.values import at_line
from anvil.wording import counted, shown

if TYPE_CHECKING:
    from anvil.doc_tests.values import Comparison, Difference, Outcome, TestReport

Style = Callable[..., str]
"""A function that colours a text: text, names of colours -> text with the codes of the terminal."""

MAX_ASK_CHARS = 100
"""Characters of a question in a line of the table."""
_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def table(report: TestReport, style: Style, *, quiet: bool = False) -> str:
    """The outcomes as lines, then details of failures, the comparison and the totals. ``quiet``: without the lines."""
    lines = []
    if not quiet:
        lines += ["      rank  conf.  question"]
        lines += [_row(outcome, style) for outcome in report.outcomes]
        lines.append("")
    for status in (status for status, entry in STATUSES.items() if entry.has_details):
        for outcome in report.of(status):
            lines += [*_details(outcome, style), ""]
    if report.comparison is not None:
        lines += [*_comparison(report.comparison, style), ""]
    return "\n".join([*lines, *_totals(report, style)]) + "\n"


def _row(outcome: Outcome, style: Style) -> str:
    mark, colour, *_ = STATUSES[outcome.status]
    rank, ask = "-" if outcome.rank is None else str(outcome.rank), one_line(outcome.question.ask)
    return f"{style(f'{mark:<4}', colour)}  {rank:>4}  {shown_confidence(outcome.confidence):>5}  {ask}"


def _details(outcome: Outcome, style: Style) -> Iterator[str]:
    mark, colour, *_ = STATUSES[outcome.status]
    question = outcome.question
    location = f" (line {question.line})" if question.line else ""
    yield f"{style(mark, colour, 'bold')}  {one_line(question.ask)}{location}"
    if outcome.status == "fail":
        yield f"      expected  {question.expected}, {outcome.failure}"
    if outcome.note:
        yield f"      {outcome.note}"
    label = "answered by" if question.nothing or question.new else "came instead"
    for number, answer in enumerate(outcome.answers, 1):
        place = f"{at_line(answer.file_path, answer.line)}  {answer.heading}  ({shown_confidence(answer.confidence)})"
        yield f"      {label if number == 1 else '':<12}  {number}. {place}"
    if not outcome.answers:
        yield "      no result"


def _comparison(comparison: Comparison, style: Style) -> Iterator[str]:
    yield f"Compared with {comparison.baseline}: {summary(comparison)}"
    for note in comparison.notes:
        yield f"  {note}"
    for difference in comparison.differences:
        kind = style(difference.kind, "red" if difference.kind == "worse" else "green")
        yield f"  {kind}  {one_line(difference.after.question.ask)}"
        yield f"         {movement(difference)}"


def movement(difference: Difference) -> str:
    """The rank of the expected page before and now, and the reason of the difference."""
    return f"{difference.before.standing} before, {difference.after.standing} now. {difference.reason}".strip()


def summary(comparison: Comparison) -> str:
    """A sentence on the numbers of questions that got better and worse."""
    worse, better = len(comparison.worse), len(comparison.better)
    if not worse and not better:
        return "no question got better or worse."
    lost = f" ({counted(len(comparison.lost), 'question', 'are')} lost)" if comparison.lost else ""
    return f"{counted(worse, 'question')} got worse{lost}, {better} better."


def failure_sentence(outcome: Outcome) -> str:
    """A sentence on a question that failed: the rank of the expected page, and the page that comes first."""
    first = f" {outcome.answers[0].file_path} comes first." if outcome.answers else ""
    return f"{outcome.question.ask!r} expects {outcome.question.expected}: {outcome.standing}.{first}"


def weak_questions(report: TestReport, file: str) -> Iterator[str]:
    """Lines on each question that expects a page without a section, with the section that answers it today.

    ``file`` is the path of the suite.
    """
    for outcome in report.outcomes:
        question = outcome.question
        if question.weak:
            pages = " and ".join(str(expected) for expected in question.expect if not expected.section)
            better = f" Today this answers: {outcome.better_expect}" if "#" in outcome.better_expect else ""
            location = f"{file}:{question.line}" if question.line else file
            yield f"{location}: {one_line(question.ask)}\n      expects {pages}, whichever section answers.{better}"


def totals(report: TestReport) -> str:
    """A sentence on the share of questions that are answered, and the share that must be."""
    judged = sum(outcome.is_judged for outcome in report.outcomes)
    passed = judged - len(report.failed)
    wanted = "" if report.min_hit is None else f", and {_percent(report.min_hit)} must be"
    verb = "is" if 1 in (passed, judged) else "are"
    return f"{passed} of {counted(judged, 'question')} {verb} answered as expected ({_percent(report.hit)}{wanted})."


def _totals(report: TestReport, style: Style) -> Iterator[str]:
    yield totals(report)
    if report.mrr is not None:
        wanted = "" if report.min_mrr is None else f", at least {report.min_mrr:.2f} wanted"
        yield f"Mean reciprocal rank {report.mrr:.2f}{wanted}."
    searched = f"{counted(report.pages, 'page')} in {counted(report.chunks, 'chunk')}, {report.seconds:.1f} s."
    yield f"{style('PASSED' if report.passed else 'FAILED', 'green' if report.passed else 'red', 'bold')}  {searched}"


def _percent(share: float) -> str:
    return f"{share:.1%}".replace(".0%", "%")


def one_line(text: str) -> str:
    """A question on one line, cut if it is long."""
    return shown(" ".join(text.split()), MAX_ASK_CHARS)


def junit(report: TestReport, file: str) -> str:
    """The outcomes as JUnit XML, with a test case for each question. ``file``: the path of the suite."""
    from xml.etree import ElementTree as xml

    counts = {"tests": str(len(report.outcomes)), "failures": str(len(report.failed))}
    root = xml.Element("testsuites", counts | {"time": f"{report.seconds:.3f}"})
    skipped = sum(not outcome.is_judged for outcome in report.outcomes)
    more = {"name": _xml_text(file), "errors": "0", "skipped": str(skipped)}
    suite = xml.SubElement(root, "testsuite", root.attrib | more)
    for outcome in report.outcomes:
        question = outcome.question
        expected = _xml_text(question.expected or "new")
        case = xml.SubElement(suite, "testcase", name=_xml_text(question.ask), classname=expected)
        case.attrib |= {"file": _xml_text(file), "line": str(question.line)}
        if outcome.status == "fail":
            failure = xml.SubElement(case, "failure", message=_xml_text(f"expected {expected}, {outcome.failure}"))
            failure.text = _xml_text("\n".join(_details(outcome, lambda plain, *_: plain)))
        elif outcome.status != "pass":
            xml.SubElement(case, "skipped", message=_xml_text(outcome.note or "It has no expect yet."))
    xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{xml.tostring(root, encoding="unicode")}\n'


def _xml_text(text: str) -> str:
    """``text`` with a replacement for each character that XML does not allow."""
    return _NOT_XML.sub("\ufffd", text)
