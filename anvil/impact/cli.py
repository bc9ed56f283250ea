"""``anvil impact``."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil import registry
from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.impact.settings import ImpactOptions
from anvil.requests import OpenRequest
from anvil.values import at_line
from anvil.wording import counted, full_heading

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.impact.assessment import Impact
    from anvil.impact.ranking import AffectedSection


@click.command("impact", epilog="Example: anvil impact --staged --docs docs --provider none")
@options.common
@click.option(
    "--base",
    metavar="REV",
    help="Examine the work tree since the branch left REV (default: the remote's default branch, else HEAD).",
)
@click.option("--staged", is_flag=True, help="Examine the change that is staged for the next commit.")
@click.option(
    "--title", metavar="TEXT", default="", help="The subject of the change (default: the subjects of its commits)."
)
@click.option(
    "--min-confidence",
    type=click.FloatRange(0, 1),
    help="Leave out findings with a lower confidence (default: impact.min_confidence).",
)
@click.option("--github", is_flag=True, help="Print annotations, as GitHub Actions reads them.")
@click.option("--gitlab", is_flag=True, help="Print a report for GitLab's Code Quality.")
@click.option(
    "--fail/--no-fail",
    "fails",
    default=None,
    help="Exit with 1 if a section is probably wrong (default: yes; with --github or --gitlab: no).",
)
@options.as_json
@options.quiet
@click.argument("diff", metavar="[DIFF|-]", required=False)
def command(
    given: OpenRequest,
    base: str | None,
    staged: bool,
    title: str,
    min_confidence: float | None,
    github: bool,
    gitlab: bool,
    fails: bool | None,
    as_json: bool,
    quiet: bool,
    diff: str | None,
) -> int:
    """List the sections of the documentation that a change of code probably makes wrong, without a language model.

    DIFF is a file with a unified diff, or '-' for standard input. Without it, the change in this git repository is
    examined. Exit code 0: no section is probably wrong, 1: some are, 2: an error.
    """
    from anvil.impact import change
    from anvil.impact.assessment import assess

    if sum((diff is not None, base is not None, staged)) > 1:
        raise click.UsageError("DIFF, --base and --staged name different changes. Give one of them.")
    if as_json + github + gitlab > 1:
        raise click.UsageError("--json, --github and --gitlab all print to standard output. Give one of them.")
    repository_folder = Path.cwd()
    examined = change.from_file(diff) if diff is not None else change.from_git(repository_folder, base, staged)
    with options.open_index(replace(given, build_first=False)) as opened:
        impact = assess(
            examined.diff, opened, title=title or examined.title, repository=repository_folder, before=examined.before
        )
        if min_confidence is None:
            min_confidence = opened.config.table(ImpactOptions).min_confidence
        likely = impact.at_least(min_confidence)
        if as_json:
            output.print_json(
                {
                    "likely": bool(likely),
                    "findings": likely,
                    "undocumented": impact.undocumented,
                    "done": impact.done,
                    "files": impact.files,
                    "notes": impact.notes,
                }
            )
        elif github or gitlab:
            notes = registry.part("impact notes of a CI job")(likely, impact.undocumented, opened)
            if gitlab:
                output.say(registry.part("code quality of a CI job")(notes, "anvil impact"))
            else:
                registry.part("runner of a CI job")(output.say, None, None).show(notes)
        else:
            _print(impact, likely, opened, examined.name, quiet)
    fails = not (github or gitlab) if fails is None else fails
    return NO if likely and fails else OK


def _print(impact: Impact, likely: tuple[AffectedSection, ...], opened: Anvil, name: str, quiet: bool) -> None:
    folder = output.relative(os.path.abspath(opened.folder or "."))
    for number, finding in enumerate(likely, 1):
        location = output.style(_location(finding, folder), "cyan")
        output.say(f"{number}. {location}  confidence {finding.confidence:.2f}")
        output.say(f"   {full_heading(finding.title, finding.heading_path)}")
        for reason in finding.reasons:
            output.say(f"   - {reason}")
        output.say()
    if impact.undocumented:
        output.say("No page has:")
        for addition in impact.undocumented:
            output.say(f"   {output.style(addition.name, 'bold')}  {addition.path}:{addition.line}")
        output.say()
    if quiet:
        return
    if impact.done:
        output.say("The change edits already:")
        for finding in impact.done:
            output.say(f"   {_location(finding, folder)}  {full_heading(finding.title, finding.heading_path)}")
        output.say()
    sections = counted(len(likely), "section") if likely else "no section"
    if impact.files:
        output.say(f"{counted(impact.files, 'changed file')} of code in {name}: {sections} probably concerned.")
    else:
        output.say(f"No code changed in {name}.")
    for note in impact.notes:
        output.warn(note)


def _location(finding: AffectedSection, folder: str) -> str:
    return at_line(os.path.join(folder, finding.path) if folder != "." else finding.path, finding.line)
