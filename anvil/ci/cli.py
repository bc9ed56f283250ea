"""``anvil ci``."""

from __future__ import annotations

import functools
import os
from typing import Any

import click

from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.errors import AnvilError
from anvil.lint.settings import LEVELS


@click.command("ci", epilog="Example: anvil ci build --docs docs --keep anvil-index")
@click.argument(
    "mode",
    metavar="build|check|lint|test|impact|deps|plan",
    type=click.Choice(["build", "check", "lint", "test", "impact", "deps", "plan"]),
)
@options.docs
@options.index
@options.config
@options.provider
@options.site
@click.option(
    "--markdown",
    type=click.Choice(["true", "false", ""]),
    metavar="true/false",
    help="With build and --site: also write the pages as Markdown beside their HTML (default: site.markdown).",
)
@click.option(
    "--previous",
    metavar="SOURCE",
    multiple=True,
    help="An index whose vectors may be reused: a path, a pattern, or a SOURCE of 'anvil pull'. "
    "One per line; repeatable.",
)
@click.option("--shard", metavar="N/COUNT", help="Only this share of the pages, such as 3/8.")
@click.option(
    "--keep",
    metavar="FOLDER",
    help="A folder that is kept between runs. The last index is read from it. The new one is written there as "
    "index.db, with its manifest index.json. With deps: documentation that anvil.lock names is read from it, "
    "and kept there. What the lock does not name is removed.",
)
@click.option(
    "--mark-stale",
    metavar="true/false",
    type=bool,
    default=True,
    help="With check: a warning at each stale page, ten at most (default: true).",
)
@click.option("--kept-key", metavar="NAME", help="The cache key from which the folder of --keep was restored.")
@click.option("--tests", metavar="FILE", help="With test: the questions. 'true': the nearest anvil-tests.toml.")
@click.option(
    "--fail-level",
    type=click.Choice(LEVELS),
    help="With lint: the lowest level of finding that fails (default: lint.fail_level, else error).",
)
@click.option(
    "--base",
    metavar="REV",
    help="With impact: the commit that the change starts from (default: the pull request's branch).",
)
@click.option(
    "--fail-impact",
    metavar="true/false",
    type=bool,
    default=False,
    help="With impact: exit with 1 when a section is probably wrong (default: false).",
)
@click.option(
    "--comment",
    metavar="true/false",
    type=bool,
    is_flag=False,
    flag_value=True,
    default=False,
    help="With impact: also write the findings into one comment on the pull request, with GITHUB_TOKEN "
    "(default: false).",
)
@click.option(
    "--artifact-name", metavar="NAME", help="With build: the name of the artifact that a later step uploads to GitHub."
)
@click.option("--summary", metavar="FILE", help="Add the summary to this file (default on GitHub: the step's summary).")
@options.as_json
def command(mode: str, summary: str | None, as_json: bool, **given: Any) -> int:
    """Build, check, lint or test in a CI job, with warnings at the files, values for later steps and a summary.

    On GitHub it writes workflow commands, elsewhere plain lines. An empty option counts as not given. The mode
    'deps' does what 'anvil deps sync' does. 'plan' prints the folder in which to keep the index, and its cache keys.
    'impact' names the sections that a pull request probably makes wrong. Exit code 0: done. 1: the index is stale,
    questions are not answered, findings reach the fail level, or documentation of dependencies is missing. 2: error.
    """
    from anvil.ci import jobs, runners
    from anvil.ci.summary import failure

    option_values: dict[str, Any] = {name: None if value == "" else value for name, value in given.items()}
    ci_options = jobs.CiOptions(**option_values)
    options.repeat_in_messages(ci_options)
    say = functools.partial(output.say, err=as_json)  # with --json, standard output has the JSON only
    runner = runners.runner(os.environ, say, summary or None)
    try:
        is_good, values = jobs.MODES[mode](ci_options, runner)
    except AnvilError as error:
        message = output.in_commands(str(error))
        runner.annotate("error", message)
        runner.summarize(failure(message))
        return ERROR
    runner.output(values)
    if as_json:
        output.print_json(values)
    else:
        for name, value in values.items():
            runner.line(f"{name}: {value}")
    return OK if is_good else NO
