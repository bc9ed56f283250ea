"""``anvil test``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK

if TYPE_CHECKING:
    from anvil.models.documents import Mode


@click.command("test", epilog="Example: anvil test --baseline main")
@options.common
@click.option("--baseline", metavar="REF|INDEX", help="Compare with a branch, tag or commit, or with another index.")
@click.option(
    "--mode", type=click.Choice(["hybrid", "semantic", "keyword"]), help="How to search, whatever the questions say."
)
@click.option("--junit", metavar="FILE", help="Write the outcomes as JUnit XML, too.")
@options.as_json
@options.quiet
@click.argument("suite", required=False, metavar="[FILE]")
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    baseline: str | None,
    mode: Mode | None,
    junit: str | None,
    as_json: bool,
    quiet: bool,
    suite: str | None,
) -> int:
    """Ask the questions in anvil-tests.toml: do the documents answer them? Exit code 0: yes, 1: no, 2: error.

    FILE is by default the anvil-tests.toml in the documentation folder, or in a folder above it up to the repository's
    root. --quiet prints what failed only.
    """
    import anvil
    from anvil.interfaces import doc_test_report

    with output.progress(quiet) as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        report = opened.test(suite, baseline, mode)
    if junit is not None:
        Path(junit).write_text(doc_test_report.junit(report), encoding="utf-8")
    if as_json:
        output.print_json(report)
    else:
        for note in report.notes:
            output.warn(note)
        output.say(doc_test_report.table(report, output.style, quiet=quiet), nl=False)
    return OK if report.passed else NO
