"""``anvil deps``: the documentation of a project's dependencies at their locked versions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.cli.program import SuggestingGroup
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.dependencies.finder import DocsFinder
    from anvil.dependencies.values import DocsReport

explain = click.option("--explain", is_flag=True, help="Say which places were tried, and what was there.")


class _Group(SuggestingGroup):
    """A group whose command is ``list`` if none is given."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        is_of_list = not args or (args[0].startswith("-") and not set(args) & {*self.commands, "--help", "-h"})
        return super().parse_args(ctx, ["list", *args] if is_of_list else args)


@click.group("deps", cls=_Group, epilog="Example: anvil deps add fastapi")
def command() -> None:
    """The documentation of your dependencies, at the versions that you use.

    Without a command: the same as 'list'. Only the commands 'add', 'sync' and 'update' use the network.
    """


@command.command("list", epilog="Example: anvil deps list --all")
@options.config
@click.option("--all", "everything", is_flag=True, help="Also packages that the project does not name itself.")
@options.as_json
def list_command(config: str | None, everything: bool, as_json: bool) -> None:
    """List the packages of the lockfiles, and which of them are in anvil.lock."""
    from anvil.dependencies import ecosystems, project_dependencies

    listed = project_dependencies.overview(_base(config))
    any_direct = any(row.direct for row in listed)  # none without pyproject.toml or package.json: then all are shown
    shown = [row for row in listed if everything or not any_direct or row.direct or row.locked is not None]
    if as_json:
        output.print_json({"dependencies": shown})
        return
    if not listed:
        lockfiles = ", ".join(name for each in ecosystems.ECOSYSTEMS for name in ecosystems.of(each).LOCKFILES)
        output.say(
            f"No package is named here. Read are {lockfiles}, and what is installed "
            "in an environment or node_modules. Install the packages, or name one: anvil deps add NAME==VERSION"
        )
        return
    width = max((len(row.listed) for row in shown), default=0)
    for row in shown:
        state = (
            f"in anvil.lock, from its {row.locked.source}{'' if row.is_here else ', not on this machine'}"
            if row.locked
            else row.documentation or "not installed here"
        )
        output.say(f"{row.listed:<{width}}  {row.ecosystem:<4}  {state}")
    hidden = len(listed) - len(shown)
    more = f" {counted(hidden, 'more package')} with --all." if hidden else ""
    output.say(
        f"{counted(len(shown), 'package')}, {sum(row.locked is not None for row in shown):,} in anvil.lock.{more}"
    )
    if any(row.is_here is False for row in shown):
        output.say("To fetch what is not on this machine, run: anvil deps sync")


@command.command("add", epilog="Example: anvil deps add fastapi react@18.3.1")
@options.config
@click.option(
    "--repository",
    metavar="URL",
    help="The git repository, where the package does not name it; OWNER/REPO is one at GitHub.",
)
@click.option("--tag", metavar="TAG", help="The tag of the version, where it is an unusual one.")
@click.option("--folder", metavar="FOLDER", help="The documentation folder in the repository.")
@click.option("--refresh", is_flag=True, help="Search again, also when it was found before.")
@explain
@options.as_json
@options.quiet
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def add(
    config: str | None,
    repository: str | None,
    tag: str | None,
    folder: str | None,
    refresh: bool,
    explain: bool,
    as_json: bool,
    quiet: bool,
    names: tuple[str, ...],
) -> int:
    """Find the documentation of the locked versions, and write it into anvil.lock.

    NAME is a package of a lockfile, NAME==VERSION, or NAME@VERSION of npm. Exit code 0: done, 1: some have no
    documentation, 2: an error.
    """
    from anvil.dependencies import anvil_lock_changes
    from anvil.dependencies.project_urls import named_by_user
    from anvil.dependencies.values import DocsHints

    hints = DocsHints(repository and named_by_user(repository), tag, folder)
    if hints != DocsHints() and len(names) > 1:
        raise click.UsageError("--repository, --tag and --folder are for one package. Name one.")
    with _finder(config, quiet) as (finder, base):
        reports = anvil_lock_changes.add(finder, base, names, hints, refresh)
    return _print(reports, explain, as_json, quiet)


@command.command("sync", epilog="Example: anvil deps sync")
@options.config
@explain
@options.as_json
@options.quiet
def sync(config: str | None, explain: bool, as_json: bool, quiet: bool) -> int:
    """Fetch or build what anvil.lock says, and refuse anything else. For CI and for another machine.

    Exit code 0: all is here, 1: something is refused, or cannot be fetched or built, 2: an error.
    """
    from anvil.dependencies import anvil_lock_changes, docs_cache
    from anvil.settings.configuration import load_config

    settings, base = load_config(config)
    with output.progress(quiet) as progress:
        reports = anvil_lock_changes.sync(settings, base, docs_cache.cache(), progress)
    return _print(reports, explain, as_json, quiet)


@command.command("update", epilog="Example: anvil deps update fastapi")
@options.config
@explain
@options.as_json
@options.quiet
@click.argument("names", nargs=-1, metavar="[NAME...]")
def update(config: str | None, explain: bool, as_json: bool, quiet: bool, names: tuple[str, ...]) -> int:
    """Update to the documentation of the versions that the lockfiles have now. With NAME, search again in any case.

    Exit code 0: done, 1: some have no documentation, 2: an error.
    """
    from anvil.dependencies import anvil_lock_changes

    with _finder(config, quiet) as (finder, base):
        reports = anvil_lock_changes.update(finder, base, names)
    return _print(reports, explain, as_json, quiet)


@command.command("remove", epilog="Example: anvil deps remove fastapi")
@options.config
@options.as_json
@options.quiet
@click.argument("names", nargs=-1, required=True, metavar="NAME...")
def remove(config: str | None, as_json: bool, quiet: bool, names: tuple[str, ...]) -> int:
    """Remove packages from anvil.lock."""
    from anvil.dependencies import anvil_lock_changes

    return _print(anvil_lock_changes.remove(_base(config), names), False, as_json, quiet)


@command.command("outdated", epilog="Example: anvil deps outdated")
@options.config
@options.as_json
def outdated(config: str | None, as_json: bool) -> int:
    """Compare anvil.lock with the versions that the lockfiles have. Exit code 0: the same, 1: some differ, 2: an
    error."""
    from anvil.dependencies import anvil_lock_changes

    outdated_entries = anvil_lock_changes.outdated(_base(config))
    if as_json:
        output.print_json({"outdated": outdated_entries})
    else:
        for row in outdated_entries:
            now = f"the project uses {row.current}" if row.current else "the project does not use it"
            output.say(f"{row.docs.shown}: {now}")
        output.say("To update anvil.lock, run: anvil deps update" if outdated_entries else "anvil.lock is up to date.")
    return NO if outdated_entries else OK


def _base(config: str | None) -> Path:
    """The project's folder: that of the configuration, else the working folder."""
    from anvil.settings.configuration import load_config

    return load_config(config)[1]


@contextmanager
def _finder(config: str | None, quiet: bool) -> Iterator[tuple[DocsFinder, Path]]:
    from anvil.dependencies import docs_cache
    from anvil.dependencies.finder import DocsFinder
    from anvil.settings.configuration import load_config

    settings, base = load_config(config)
    with output.progress(quiet) as progress, DocsFinder(settings, base, docs_cache.cache(), progress) as finder:
        yield finder, base


_WORDS = {"current": "is up to date", "removed": "removed from anvil.lock"}


def _print(reports: Sequence[DocsReport], explain: bool, as_json: bool, quiet: bool) -> int:
    failed = any(report.outcome == "failed" for report in reports)
    if as_json:
        output.print_json({"failed": failed, "packages": reports})
        return NO if failed else OK
    for report in reports:
        if explain:
            for attempt in report.attempts:
                mark = "+" if attempt.found else "-"
                output.say(f"  {mark} {attempt.source:<10} {attempt.place}: {attempt.outcome}")
        if report.problem is not None:
            output.warn(report.problem)
        elif not quiet:
            output.say(_line(report))
        if not quiet:
            for note in report.notes:
                output.warn(f"{report.name}: {note}")
    if not reports and not quiet:
        output.say("anvil.lock has no entry.")
    return NO if failed else OK


def _line(report: DocsReport) -> str:
    docs = report.docs
    line = f"{report.name} {report.version} {_WORDS.get(report.outcome, report.outcome)}"
    if docs is None or report.outcome == "removed":
        return f"{line}."
    pages = "" if report.pages is None else f": {counted(report.pages, 'page')}"
    where = f"{docs.folder} of {docs.url} at {docs.tag or (docs.commit or '')[:12]}" if docs.folder else docs.url
    if docs.attested_by is None:
        return f"{line}{pages} from {where}."
    is_new = report.outcome in ("added", "updated")  # if not, it was verified when the entry was written
    proof = "Its attestation is valid: built by" if is_new else "By anvil.lock it was built by"
    return f"{line}{pages} from {where}. {proof} {docs.attested_by}."
