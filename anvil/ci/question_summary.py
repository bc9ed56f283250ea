"""The questions of a suite in a CI job: a section of the summary, and messages at the pages that lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci.annotations import Note, in_checkout, in_workspace
from anvil.ci.hosts import Level
from anvil.ci.summary import code, folded, linked, listed
from anvil.doc_tests.suite_report import standing
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.doc_tests.values import ChangedPage, Comparison, Difference, Outcome, TestReport

MAX_NAMED = 3
"""Pages that a headline names."""


def headline(report: TestReport) -> str:
    """The result in one sentence."""
    comparison = report.comparison
    if comparison is not None and comparison.worse:
        pages = Counter(page.file_path for difference in comparison.worse for page in difference.blame[:1])
        named = [path for path, _ in pages.most_common(MAX_NAMED)]
        because = f" because of {_and(named)}" if named else ""
        return f"{counted(len(comparison.worse), 'question')} got worse{because}"
    if report.failed:
        return f"{counted(len(report.failed), 'question', 'are')} not answered as expected"
    if not report.passed:
        return f"the mean reciprocal rank is {report.mrr or 0:.2f}, at least {report.min_mrr or 0:.2f} is wanted"
    if comparison is not None and comparison.better:
        return f"{counted(len(comparison.better), 'question')} got better"
    return "all questions are answered as expected" if report.outcomes else "no question was asked"


def render(report: TestReport, since: str | None, pages_url: str | None) -> str:
    """A section for the summary, in Markdown. ``since``: the branch that it is compared with; ``pages_url``: the
    address of the pages' folder, with a slash at its end."""
    judged = sum(outcome.status in ("pass", "fail") for outcome in report.outcomes)
    wanted = "" if report.min_hit is None else f" At least {report.min_hit:.0%} must be."
    rank = "" if report.mrr is None else f" Mean reciprocal rank {report.mrr:.2f}."
    passed = judged - len(report.failed)
    parts = [
        f"## Questions: {_escaped(headline(report))}",
        f"**{passed} of {counted(judged, 'question', 'are')} answered as expected ({report.hit:.1%}).**{wanted}{rank}",
    ]
    comparison = report.comparison
    if comparison is not None:
        parts += [*_comparison(comparison, since, pages_url)]
    known = {difference.ask for difference in comparison.worse} if comparison else set()
    failed = [outcome for outcome in report.failed if outcome.ask not in known]
    if failed:
        rows = [(code(outcome.ask), code(outcome.expected), _instead(outcome)) for outcome in failed]
        title = "Not answered, here and before" if comparison else "Not answered"
        parts += [f"### {title}", listed(("question", "expected", "came instead"), rows)]
    if report.new:
        answers = [(code(outcome.ask), _instead(outcome)) for outcome in report.new]
        parts.append(folded(counted(len(report.new), "new question"), listed(("question", "answered by"), answers)))
    return "\n\n".join(parts) + "\n"


def _comparison(comparison: Comparison, since: str | None, pages_url: str | None) -> Iterator[str]:
    name = code(since) if since else code(comparison.baseline)
    for title, differences in ((f"Worse than in {name}", comparison.worse), ("Better", comparison.better)):
        if differences:
            yield f"### {title}"
            rows = [
                (
                    f"{'**lost** ' if each.kind == 'worse' and each.decisive else ''}{code(each.ask)}",
                    f"{standing(each.before)} → {standing(each.after)}",
                    _blame(each, pages_url),
                )
                for each in differences
            ]
            yield listed(("question", "", "because of"), rows)
    if not comparison.differences:
        yield f"No question got better or worse than in {name}."
    for note in comparison.notes:
        yield _escaped(note)


def _blame(difference: Difference, pages_url: str | None) -> str:
    if not difference.blame:
        return "no page alone"
    return ", ".join(_page(page, pages_url) for page in difference.blame[:MAX_NAMED])


def _page(page: ChangedPage, pages_url: str | None) -> str:
    return f"{linked(page.file_path, None if page.kind == 'removed' else pages_url)} ({page.kind})"


def _instead(outcome: Outcome) -> str:
    if not outcome.answers:
        return "no result"
    first = outcome.answers[0]
    return code(f"{first.file_path}#{first.anchor}" if first.anchor else first.file_path)


def notes(report: TestReport, opened: Anvil) -> Iterator[Note]:
    """Messages for what got worse, at the pages that lost, and for other failures, at the question in the suite."""
    comparison = report.comparison
    worse = comparison.worse if comparison is not None else ()
    for difference in worse:
        level: Level = "error" if difference.decisive else "warning"
        message = f"{difference.ask!r}: {standing(difference.before)} before, {standing(difference.after)} now."
        file = in_checkout(opened, difference.page) if difference.page else None
        yield Note(level, f"{message} {difference.reason}".strip(), file, difference.line if file else None)
    suite = in_workspace(Path(report.suite).resolve())
    known = {difference.ask for difference in worse}
    for outcome in report.failed:
        if outcome.ask not in known:
            first = f" {outcome.answers[0].file_path} comes first." if outcome.answers else ""
            message = f"{outcome.ask!r} expects {outcome.expected}: {standing(outcome)}.{first}"
            yield Note("error" if not report.passed else "warning", message, suite, outcome.line or 1)


def _and(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _escaped(text: str) -> str:
    """Text of documents in a heading or a paragraph: marks of Markdown and HTML are shown as they are."""
    return "".join(f"\\{character}" if character in "\\`*_[]<>#|&!" else character for character in text)
