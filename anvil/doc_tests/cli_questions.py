"""``anvil questions``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.doc_tests import suite_report
from anvil.requests import OpenRequest
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.doc_tests.gaps import QuestionGroup
    from anvil.doc_tests.question_log import PageReport


@click.command("questions", epilog="Example: anvil questions --to-tests")
@options.common
@options.in_site
@click.option("--all", "everything", is_flag=True, help="Also questions that the pages answer.")
@click.option("--to-tests", is_flag=True, help="Print them as TOML, for the questions of 'anvil test'.")
@click.option("--log", metavar="FILE", help="Another log than that of the documentation folder.")
@options.as_json
def command(given: OpenRequest, everything: bool, to_tests: bool, log: str | None, as_json: bool) -> None:
    """Print the logged questions that no page answers, and the reports about pages.

    A server logs questions with serve.question_log = true in anvil.toml. Similar questions are one group. Each is
    asked again, so a question disappears when a page answers it.
    """
    from anvil.doc_tests import gaps, question_log
    from anvil.doc_tests.question_log_file import QuestionLog
    from anvil.errors import ConfigError

    if to_tests and as_json:
        raise click.UsageError("--to-tests and --json cannot be combined. Give one of them.")
    with output.progress() as progress, options.open_index(given, progress) as opened:
        file = opened.question_log if log is None else QuestionLog(Path(log), opened.config.serve.log_bytes)
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
        for entry in gaps.as_tests(shown):
            output.say(entry)
    else:
        output.say("\n".join(_lines(shown, len(questions), len(groups), reports)))


def _lines(
    groups: list[QuestionGroup], question_count: int, group_count: int, reports: list[PageReport]
) -> Iterator[str]:
    if groups:
        yield "asked  conf.  question"
    for group in groups:
        confidence = "-" if group.confidence is None else f"{group.confidence:.2f}"
        yield f"{group.count:>5}  {confidence:>5}  {suite_report.cut(group.question)}"
        page = group.page or "no result"
        also = f"; also: {' / '.join(map(suite_report.cut, group.wordings))}" if group.wordings else ""
        yield f"{'':12}  {page}, last asked {group.last_asked[:10]}{also}"
    unanswered = sum(not group.answered for group in groups)
    yield f"{counted(question_count, 'question')} in {counted(group_count, 'group')}, {unanswered:,} without an answer."
    for report in reports:
        comment = f": {' '.join(report.comment.split())}" if report.comment else ""
        yield f"{report.time[:10]}  {report.problem}  {report.page}{comment}"
