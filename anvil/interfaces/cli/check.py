"""``anvil check``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from anvil.core.pluralize import counted
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK
from anvil.models.documents import Changes

if TYPE_CHECKING:
    from anvil.api import Anvil


@click.command("check", epilog="Example: anvil check --staged --tracked && git commit")
@options.docs
@options.index
@options.config
@options.tree
@click.option(
    "--tracked",
    is_flag=True,
    help="With --staged or --ref: compare the index in git, not the file in the folder.",
)
@options.as_json
@options.quiet
@options.folder
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    staged: bool,
    ref: str | None,
    tracked: bool,
    as_json: bool,
    quiet: bool,
) -> int:
    """Compare the index with the documents, and the map of 'anvil agents' where a file has it.

    Exit code 0: fresh, 1: stale, 2: an error.
    """
    import anvil
    from anvil.interfaces.cli import agents

    with anvil.open(docs, index, config=config) as opened, contextlib.ExitStack() as held:
        options.warn_of_unrun_plugin(opened)
        source = options.documents(opened, staged, ref)
        file = held.enter_context(options.in_git(opened, staged or ref is not None).file(ref)) if tracked else None
        changes = opened.check(source, file)
        stale_files = None
        if source is not None:
            stale_files = agents.agent_files(opened).compare(source, ref, staged)
        name = source.name if source else "documents"
        place = opened.origin or str(opened.index_path)
        shown = opened.origin or output.relative(opened.index_path)
        advice = ""
        if changes and not opened.origin:
            build = _build_command(opened, docs, index, config, staged, ref, tracked)
            advice = f" {options.update_advice(file or opened.index_path, build)}"
    if as_json:
        output.print_json(
            {
                "fresh": not changes,
                "compared_with": name,
                "index": place,
                "changed": changes.changed,
                "added": changes.added,
                "removed": changes.removed,
                "agents": stale_files.stale if stale_files else (),
            }
        )
    elif not quiet:
        output.say(_rendered(changes, name, shown, advice))
    for line in stale_files.messages(agents.write_command(docs, config)) if stale_files else ():
        output.warn(line)
    return NO if changes or stale_files else OK


def _build_command(
    opened: Anvil,
    docs: str | None,
    index: str | None,
    config: str | None,
    staged: bool,
    ref: str | None,
    tracked: bool,
) -> str:
    """The command that updates the index, with the options of this call."""
    from anvil.backends import installation

    build = options.build_command(*(["--staged"] if staged else []), docs=docs, index=index, config=config, ref=ref)
    if not (tracked and staged):
        return build
    in_git = options.tracked_index(opened)
    add = installation.line(["git", "add", output.relative(opened.index_path)])
    if in_git.repository.temporary is None:
        return f"{build} && {add}"
    # 'git commit -a' and 'git commit FILE' stage pages for that one commit only. A build afterwards would not see them.
    if in_git.repository.temporary == "all":
        return f"git add -u && {build} && {add}"
    pages = installation.line(["git", "add", "-u", output.relative(in_git.docs)])
    return f"{pages} && {build} && {add}. Then commit without naming files: git commit"


def _rendered(changes: Changes, name: str, place: str, advice: str) -> str:
    if not changes:
        return f"{place} is fresh: no page differs from the {name}."
    kinds = (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed))
    lines = [f"{kind:>8}  {path}" for kind, paths in kinds for path in paths]
    differ = counted(len(changes), "page", "differ")
    return "\n".join([*lines, f"{place} is stale: {differ} from the {name}.{advice}"])
