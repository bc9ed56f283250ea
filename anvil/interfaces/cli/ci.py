"""``anvil ci``."""

from __future__ import annotations

import functools
import os

import click

from anvil.errors import AnvilError
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import ERROR, NO, OK


@click.command("ci", epilog="Example: anvil ci build --docs docs --keep anvil-index")
@click.argument("mode", metavar="build|check|plan|artifact", type=click.Choice(["build", "check", "plan", "artifact"]))
@options.common
@click.option(
    "--previous",
    metavar="SOURCE",
    multiple=True,
    help="An index whose vectors may be reused: a path, a "
    "pattern, or what 'anvil pull' takes; several lines name several (repeatable).",
)
@click.option("--shard", metavar="N/COUNT", help="Only this share of the pages, such as 3/8.")
@click.option(
    "--keep",
    metavar="FOLDER",
    help="A folder kept between runs: the last index is found in it, and the "
    "new one left there as index.db with its manifest index.json.",
)
@click.option(
    "--mark-stale",
    metavar="true/false",
    type=bool,
    default=True,
    help="With check: a warning at each stale page, up to ten (default: true).",
)
@click.option("--kept-key", metavar="NAME", help="The name under which a cache had what is in --keep.")
@click.option("--artifact-name", metavar="NAME", help="With artifact: what the index was uploaded as.")
@click.option("--artifact-url", metavar="URL", help="With artifact: where it can be downloaded.")
@click.option("--summary", metavar="FILE", help="Add the summary to this file (default: GitHub's, where it runs).")
@options.as_json
def command(
    mode: str,
    docs: str | None,
    index: str | None,
    config: str | None,
    provider: str | None,
    previous: tuple[str, ...],
    shard: str | None,
    keep: str | None,
    mark_stale: bool,
    kept_key: str | None,
    artifact_name: str | None,
    artifact_url: str | None,
    summary: str | None,
    as_json: bool,
) -> int:
    """Build or check the index in a CI job: warnings at the files, values for later steps, a summary to read.

    On GitHub it speaks the runner's commands and files, elsewhere in plain lines. An empty value is none. Exit code 0:
    done, 1: stale, 2: could not. The mode 'plan' says where to keep the index, and how a cache finds it;
    'artifact' adds to the summary where it was uploaded.
    """
    from anvil.interfaces.ci import hosts, run
    from anvil.interfaces.ci.summary import artifact, failure

    order = run.Order(
        docs or None,
        index or None,
        config or None,
        provider or None,
        previous,
        shard or None,
        keep or None,
        mark_stale,
        kept_key or None,
    )
    say = functools.partial(output.say, err=as_json)  # standard output is the JSON's alone
    host = hosts.host(os.environ, say, summary or None, values=not as_json)
    if mode == "artifact":
        if not artifact_name or not artifact_url:
            raise click.UsageError("The mode 'artifact' needs --artifact-name and --artifact-url.")
        host.summarize(artifact(artifact_name, artifact_url, os.environ.get("GITHUB_REPOSITORY")))
        return OK
    fresh = True
    try:
        if mode == "build":
            values = run.build(order, host)
        elif mode == "check":
            fresh, values = run.check(order, host)
        else:
            values = run.plan(order, host, os.environ)
    except AnvilError as error:
        host.annotate("error", str(error))
        host.summarize(failure(str(error)))
        return ERROR
    if as_json:
        output.print_json(values)
    return OK if fresh else NO
