"""Notes for stale pages, each at the first line that differs from the index."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from anvil.ci.runners import Level
from anvil.doc_tests.suite_report import standing
from anvil.search.pages import page_text
from anvil.text import markdown_parser
from anvil.text.includes import source_line
from anvil.values import Changes, Document

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.doc_tests.values import TestReport
    from anvil.impact.values import AffectedSection, Undocumented
    from anvil.index_file.reader import Reader
    from anvil.lint.rules import LintFinding


class Note(NamedTuple):
    """A message about a page. ``file`` is its path in the checkout, or None for one that is not there."""

    level: Level
    message: str
    file: str | None
    line: int | None


def stale_notes(changes: Changes, opened: Anvil, reader: Reader) -> Iterator[Note]:
    """A note for each stale page, changed pages first."""
    for path in changes.changed:
        line = _line(path, opened, reader)
        yield Note("warning", "The index has an older text of this page.", in_checkout(opened, path), line)
    for path in changes.added:
        yield Note("warning", "The index does not have this page.", in_checkout(opened, path), 1)
    for path in changes.removed:
        yield Note("warning", f"The index still has {path}, which was removed.", None, None)


def in_checkout(opened: Anvil, path: str) -> str | None:
    """A page's POSIX path from the root of the checkout; None if it is outside of it."""
    return None if opened.folder is None else in_workspace(opened.folder.resolve() / path)


def in_workspace(file: Path) -> str | None:
    """The POSIX path of an absolute one from the root of the checkout; None if it is outside of it."""
    root = Path(os.environ.get("GITHUB_WORKSPACE") or os.getcwd()).resolve()
    return file.relative_to(root).as_posix() if file.is_relative_to(root) else None


def shown(path: Path) -> str:
    """A POSIX path, relative to the working folder if it is below it."""
    absolute = path.absolute()
    here = Path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else absolute).as_posix()


def lint_notes(findings: Iterable[LintFinding], opened: Anvil) -> Iterator[Note]:
    """A note for each finding of the linter, at its line of the checkout."""
    for finding in findings:
        level: Level = "notice" if finding.level == "note" else finding.level
        yield Note(level, f"{finding.message} [{finding.rule}]", in_checkout(opened, finding.path), finding.line)


def impact_notes(
    findings: Iterable[AffectedSection], undocumented: Iterable[Undocumented], opened: Anvil
) -> Iterator[Note]:
    """A note for each section that a change probably concerns, and for each addition that no page has."""
    for finding in findings:
        why = "; ".join(finding.reasons[:2])
        message = f"This section may be wrong after this change (confidence {finding.confidence:.2f}): it {why}."
        yield Note("notice", message, in_checkout(opened, finding.path), finding.line)
    for addition in undocumented:
        yield Note("notice", f"No page has the {addition.kind} {addition.name}.", addition.path, addition.line)


def question_notes(report: TestReport, opened: Anvil) -> Iterator[Note]:
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


def _line(path: str, opened: Anvil, reader: Reader) -> int:
    indexed = reader.document(path)
    document = opened.tree.read(path) if opened.tree else None
    if indexed is None or not isinstance(document, Document):
        return 1
    page = markdown_parser.parse(document.text)
    from anvil.doc_tests.comparing import first_difference

    line = first_difference(page_text(reader.page_chunks(indexed.id)), page.text, page.first_line)
    return source_line(line, document.inserted)
