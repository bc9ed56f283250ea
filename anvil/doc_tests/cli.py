"""``anvil test``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.exit_codes import NO, OK
from anvil.errors import ConfigError
from anvil.requests import OpenRequest
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.doc_tests.values import TestReport
    from anvil.results import Mode


@click.command("test", epilog="Example: anvil test --baseline main")
@options.common
@options.in_site
@click.option("--baseline", metavar="REF|INDEX", help="Compare with a branch, tag or commit, or with another index.")
@click.option(
    "--mode", type=click.Choice(["hybrid", "semantic", "keyword"]), help="How to search, whatever the questions say."
)
@click.option("--update", is_flag=True, help="Write what answers today to the questions that have no expect.")
@click.option(
    "--suggest",
    is_flag=True,
    help="Print questions of the pages' own, such as a FAQ's, and of the question log, as TOML.",
)
@click.option("--lint", is_flag=True, help="Name the questions that expect a page alone, not a section; exit code 1.")
@click.option("--junit", metavar="FILE", help="Write the outcomes as JUnit XML, too.")
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
    root. --quiet prints what failed only.
    """
    from anvil.doc_tests import suite_report
    from anvil.doc_tests.testing import RECORDING_ADVICE

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
        weak = list(suite_report.weak_questions(report, questions.questions, output.relative(Path(questions.origin))))
        for line in weak:
            output.say(line)
        if not weak and not quiet:
            output.say("Each question expects a section.")
        return NO if weak else OK
    if junit is not None:
        output.write_file(junit, suite_report.junit(report), "--junit")
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
    from anvil.doc_tests import question_log, writing

    try:
        suite_now = opened.test_suite(suite)
    except ConfigError:
        if suite is not None:
            raise
        suite_now = None  # no suite yet: the suggestions are its first questions
    log = opened.question_log
    groups = opened.question_groups(question_log.questions(log.read())) if log.path.is_file() else []
    suggestions = opened.test_suggestions(suite_now, [group.question for group in groups])
    for entry in suggestions:
        output.say(entry)
    if any(writing.FIRST_QUESTION in entry for entry in suggestions):
        output.warn(
            "No heading is a question. These are headings of your pages: put each as a reader would ask, then run "
            "'anvil test'."
        )
    if not suggestions:
        output.warn("No heading is a question that the suite lacks.")


def _update(file: Path, report: TestReport) -> None:
    """Write today's answers of new questions into the suite, after showing them."""
    from anvil.doc_tests import suite_file, writing

    answers = writing.answers_of_today(report)
    if not answers:
        output.say("Every question has its expect: nothing to write.", err=True)
        return
    for answer in answers:
        expect = "nothing is likely to answer: name a page" if answer.expect is None else f'expect = "{answer.expect}"'
        output.say(f"{answer.ask}\n      {expect}", err=True)
    number = sum(answer.expect is not None for answer in answers)
    if not number:
        return
    count = counted(number, "answer")
    if sys.stdin.isatty() and not click.confirm(f"Write {count} to {output.relative(file)}?", err=True):
        return
    suite_file.write(file, writing.recorded(suite_file.read(file), answers, str(file)))
    output.say(f"{count} written to {output.relative(file)}.", err=True)
