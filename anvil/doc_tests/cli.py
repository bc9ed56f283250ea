"""``anvil test`` and ``anvil questions``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.doc_tests import suite_report
from anvil.errors import ConfigError
from anvil.requests import MODES, OpenRequest
from anvil.system import safe_files
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.doc_tests.question_log import PageReport, QuestionGroup
    from anvil.doc_tests.values import TestReport
    from anvil.results import Mode


@click.command("test", epilog="Example: anvil test --baseline main")
@options.common
@options.in_site
@click.option("--baseline", metavar="REF|INDEX", help="Compare with a branch, tag or commit, or with another index.")
@click.option("--mode", type=click.Choice(MODES), help="Search in this mode, instead of the mode of each question.")
@click.option("--update", is_flag=True, help="Write today's answers as expect of the questions that have none.")
@click.option(
    "--suggest",
    is_flag=True,
    help="Print questions that are in the pages, such as in a FAQ, and in the question log, as TOML.",
)
@click.option("--lint", is_flag=True, help="Name the questions that expect a page without a section; exit code 1.")
@click.option("--junit", metavar="FILE", help="Also write the outcomes as JUnit XML.")
@options.as_json
@options.quiet
@click.argument("suite", required=False, metavar="[FILE]")
def command(
    given: OpenRequest,
    baseline: str | None,
    mode: Mode | None,
    update: bool,
    suggest: bool,
    lint: bool,
    junit: str | None,
    as_json: bool,
    quiet: bool,
    suite: str | None,
) -> int:
    """Do the documents answer these questions? Exit code 0: yes, 1: no, 2: error.

    FILE is by default the anvil-tests.toml in the documentation folder, or in a folder above it up to the repository's
    root. With --quiet, only failures are printed.
    """
    from anvil.doc_tests.values import RECORDING_ADVICE

    if suggest and (update or as_json or baseline is not None or junit is not None or mode is not None):
        raise click.UsageError("--suggest asks nothing, so options about outcomes cannot be combined with it.")
    if lint and (suggest or update or as_json or baseline is not None or junit is not None):
        raise click.UsageError("--lint is about the suite alone, so it cannot be combined with options about outcomes.")
    with output.progress(quiet) as progress, options.open_index(given, progress) as opened:
        if suggest:
            _suggest(opened, suite)
            return OK
        questions = opened.test_suite(suite)
        report = opened.test(questions, baseline, mode)
    if lint:
        weak = list(suite_report.weak_questions(report, output.relative(Path(questions.origin))))
        for line in weak:
            output.say(line)
        if not weak and not quiet:
            output.say("Each question expects a section.")
        return NO if weak else OK
    if junit is not None:
        output.write_file(junit, suite_report.junit(report, output.relative(report.suite)), "--junit")
    if as_json:
        output.print_json(report)
    else:
        for note in report.notes:
            if not (update and note.endswith(RECORDING_ADVICE)):
                output.warn(note)
        output.say(suite_report.table(report, output.style, quiet=quiet), nl=False)
    if update:
        _update(Path(questions.origin), report)
    return OK if report.passed else NO


def _suggest(opened: Anvil, suite: str | None) -> None:
    from anvil.doc_tests import question_log
    from anvil.doc_tests.suite import FIRST_QUESTION

    try:
        current_suite = opened.test_suite(suite)
    except ConfigError:
        if suite is not None:
            raise
        current_suite = None  # without a suite, the suggestions are its first questions
    log = opened.question_log
    groups = opened.question_groups(question_log.questions(log.read())) if log.path.is_file() else []
    suggestions = opened.test_suggestions(current_suite, [group.question for group in groups])
    for entry in suggestions:
        output.say(entry)
    if any(FIRST_QUESTION in entry for entry in suggestions):
        output.warn(
            "No heading is a question. These are headings of your pages: put each as a reader would ask, then run "
            "'anvil test'."
        )
    if not suggestions:
        output.warn("No heading is a question that the suite lacks.")


def _update(file: Path, report: TestReport) -> None:
    """Show today's answers of new questions, and write them into the suite. On a terminal, the user is asked first."""
    from anvil.doc_tests import suite

    if not report.new:
        output.say("Every question has its expect: nothing to write.", err=True)
        return
    for outcome in report.new:
        address = outcome.likely_address
        expect = "nothing is likely to answer: name a page" if address is None else f'expect = "{address}"'
        output.say(f"{outcome.question.ask}\n      {expect}", err=True)
    answer_count = sum(outcome.likely_address is not None for outcome in report.new)
    if not answer_count:
        return
    answers = counted(answer_count, "answer")
    if sys.stdin.isatty() and not click.confirm(f"Write {answers} to {output.relative(file)}?", err=True):
        return
    safe_files.put_file(file, suite.record_answers(suite.read(file), report, str(file)))
    output.say(f"{answers} written to {output.relative(file)}.", err=True)


@click.command("questions", epilog="Example: anvil questions --to-tests")
@options.common
@options.in_site
@click.option("--all", "everything", is_flag=True, help="Also questions that the pages answer.")
@click.option("--to-tests", is_flag=True, help="Print the questions as TOML for 'anvil test'.")
@click.option("--log", metavar="FILE", help="Read this log, instead of the log of the documentation folder.")
@options.as_json
def questions_command(given: OpenRequest, everything: bool, to_tests: bool, log: str | None, as_json: bool) -> None:
    """Print the logged questions that no page answers, and the reports about pages.

    A server logs questions with serve.question_log = true in anvil.toml. Similar questions are one group. Each is
    asked again, so a question disappears when a page answers it.
    """
    from anvil.doc_tests import question_log

    if to_tests and as_json:
        raise click.UsageError("--to-tests and --json cannot be combined. Give one of them.")
    with output.progress() as progress, options.open_index(given, progress) as opened:
        # max_bytes is for writing, and the log is only read
        file = opened.question_log if log is None else question_log.QuestionLog(Path(log), max_bytes=0)
        if not file.path.is_file():
            raise ConfigError(
                f"There is no log at {file.path}. Set question_log = true under [serve] in anvil.toml, and serve again."
            )
        entries = list(file.read())
        questions, reports = question_log.questions(entries), question_log.reports(entries)
        groups = opened.question_groups(questions)
    shown = groups if everything else [group for group in groups if not group.answered]
    if as_json:
        output.print_json({"questions": len(questions), "groups": shown, "reports": reports})
    elif to_tests:
        for entry in question_log.as_tests(shown):
            output.say(entry)
    else:
        output.say("\n".join(question_lines(shown, len(questions), len(groups), reports)))


def question_lines(
    groups: list[QuestionGroup], question_count: int, group_count: int, reports: list[PageReport]
) -> Iterator[str]:
    if groups:
        yield "asked  conf.  question"
    for group in groups:
        confidence = "-" if group.confidence is None else f"{group.confidence:.2f}"
        yield f"{group.count:>5}  {confidence:>5}  {suite_report.one_line(group.question)}"
        page = group.page or "no result"
        also = f"; also: {' / '.join(map(suite_report.one_line, group.wordings))}" if group.wordings else ""
        yield f"{'':12}  {page}, last asked {group.last_asked[:10]}{also}"
    unanswered = sum(not group.answered for group in groups)
    yield f"{counted(question_count, 'question')} in {counted(group_count, 'group')}, {unanswered:,} without an answer."
    for report in reports:
        comment = f": {' '.join(report.comment.split())}" if report.comment else ""
        yield f"{report.time[:10]}  {report.problem}  {report.page}{comment}"
