"""``anvil agents``: its options and output, and the updates and checks of the pointer by other commands."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.requests import OpenRequest
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.agents.agent_files import AgentFiles, AgentsReport, StaleFiles
    from anvil.api import Anvil
    from anvil.documents.document_source import DocumentSource


@click.command("agents", epilog="Example: anvil agents --check && git commit")
@options.given(options.docs, options.config)
@click.option("--skill", is_flag=True, help="Write an Agent Skill, too, into .claude/skills and .agents/skills.")
@click.option("--check", "only_check", is_flag=True, help="Write nothing. Exit with 1 when a file is out of date.")
@click.option("--remove", is_flag=True, help="Remove the pointer from all files.")
@click.option("--print", "only_print", is_flag=True, help="Print the pointer, write nothing.")
@options.as_json
@options.quiet
@options.folder
def command(
    given: OpenRequest, skill: bool, only_check: bool, remove: bool, only_print: bool, as_json: bool, quiet: bool
) -> int:
    """Write a pointer to the documentation into AGENTS.md and the other files that agents read by themselves.

    What is outside of the two marker lines stays as it is. Exit code 0: done, 1: out of date (with --check), 2: a file
    could not be written.
    """
    from anvil.errors import SourceError

    if only_check + remove + only_print + skill > 1:
        raise click.UsageError("--skill, --check, --remove and --print cannot be combined. Give one of them.")
    with options.open_index(given) as opened:
        files, source = agent_files(opened), opened.tree
        assert source is not None
        documentation = None if remove or only_check else files.pointer(source)
        if documentation is not None and not documentation.pages:
            raise SourceError("There are no pages in the documentation folder. Name another one with --docs.")
        if only_print and documentation is not None:
            if as_json:
                output.print_json(documentation)
            else:
                output.say(documentation.text)
            return OK
        if only_check:
            return _print_comparison(files.compare(source), write_command(given), as_json, quiet)
        report = files.remove() if remove else files.write(source, skill_wanted=skill)
    _print(report, as_json, quiet)
    return ERROR if report.problems else OK


def agent_files(opened: Anvil) -> AgentFiles:
    """The agents' files around the documentation. Raises :class:`SourceError` without documents."""
    from anvil.agents.agent_files import AgentFiles
    from anvil.errors import SourceError

    files = AgentFiles.around(opened)
    if files is None:
        raise SourceError("There are no documents to point to. Name the documentation folder with --docs.")
    return files


def update(opened: Anvil, source: DocumentSource) -> tuple[str, ...]:
    """Write the pointer to ``source`` into the files that have one. Returns the paths of files that changed. A warning
    names files that cannot be written."""
    report = agent_files(opened).write(source, only_marked=True)
    for problem in report.problems:
        output.warn(problem)
    return tuple(output.relative(os.path.join(report.root, path)) for path in report.changed())


def unstaged(opened: Anvil) -> str | None:
    """The command that stages the files whose pointer is not staged yet; None if there are none."""
    from anvil.system import installation

    files = agent_files(opened)
    paths = [output.relative(files.root / path) for path in files.unstaged()]
    return installation.line(["git", "add", *paths]) if paths else None


def write_command(given: OpenRequest) -> str:
    """The command that writes the pointer, with the documents that this call names."""
    from anvil.system import installation

    return installation.line([*installation.user_command(), "agents", *options.option_words(given, "docs", "config")])


def _print_comparison(stale: StaleFiles, command: str, as_json: bool, quiet: bool) -> int:
    """Print the result of ``--check``, and return the exit code. ``command`` writes the pointer."""
    is_fresh = not stale and stale.compared > 0
    if as_json:
        output.print_json({"fresh": is_fresh, "stale": stale.stale, "problems": stale.problems})
    elif not quiet:
        if not stale.compared and not stale.problems:
            output.say(f"No file has the pointer for agents yet. Run: {command}")
        elif is_fresh:
            output.say(f"The pointer for agents is up to date in {counted(stale.compared, 'file')}.")
        for line in stale.messages(command):
            output.say(line)
    return OK if is_fresh else NO


def _print(report: AgentsReport, as_json: bool, quiet: bool) -> None:
    pointer = report.documentation
    if as_json:
        counts = {} if pointer is None else {"pages": pointer.pages, "skipped": pointer.skipped}
        output.print_json({"files": report.files, "problems": report.problems, **counts})
        return
    for problem in report.problems:
        output.warn(problem)
    for skipped in pointer.skipped if pointer else ():
        output.warn(f"skipped {skipped}")
    if quiet:
        return
    for file in report.files:
        output.say(f"{file.outcome:>9}  {output.relative(os.path.join(report.root, file.path))}")
    if pointer is None:
        output.say(f"The pointer was removed from {counted(len(report.files), 'file')}.")
    else:
        output.say(f"The pointer is to {counted(pointer.pages, 'page')}.")
