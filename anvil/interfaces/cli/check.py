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
    help="With --staged or --ref: the index, too, is the one in git, not the file in the folder.",
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
    """Does the index say what the documents say? Exit code 0: fresh, 1: stale, 2: could not tell."""
    import anvil

    with anvil.open(docs, index, config=config) as opened, contextlib.ExitStack() as held:
        source = options.documents(opened, staged, ref)
        file = held.enter_context(options.in_git(opened, staged or ref is not None).file(ref)) if tracked else None
        changes = opened.check(source, file)
        name = source.name if source else "documents"
        place = opened.origin or str(opened.index_path)
        shown = opened.origin or output.relative(opened.index_path)
        mend = ""
        if changes and not opened.origin:
            build = _mend(opened, docs, index, config, staged, ref, tracked)
            mend = f" {options.keep(file or opened.index_path, build)}"
    if as_json:
        output.print_json(
            {
                "fresh": not changes,
                "compared_with": name,
                "index": place,
                "changed": changes.changed,
                "added": changes.added,
                "removed": changes.removed,
            }
        )
    elif not quiet:
        output.say(_told(changes, name, shown, mend))
    return NO if changes else OK


def _mend(
    opened: Anvil,
    docs: str | None,
    index: str | None,
    config: str | None,
    staged: bool,
    ref: str | None,
    tracked: bool,
) -> str:
    """The command that brings the index in line, with the options that this one was given."""
    from anvil.backends import installation

    build = options.build(*(["--staged"] if staged else []), docs=docs, index=index, config=config, ref=ref)
    if not (tracked and staged):
        return build
    in_git = options.tracked(opened)
    add = installation.line(["git", "add", output.relative(opened.index_path)])
    if in_git.repository.temporary is None:
        return f"{build} && {add}"
    # Pages of 'git commit -a' and 'git commit FILE' are staged for that one commit only, so a build finds none of them.
    if in_git.repository.temporary == "all":
        return f"git add -u && {build} && {add}"
    pages = installation.line(["git", "add", "-u", output.relative(in_git.docs)])
    return f"{pages} && {build} && {add}. Then commit without naming files: git commit"


def _told(changes: Changes, name: str, place: str, mend: str) -> str:
    if not changes:
        return f"{place} is fresh: it says what the {name} says."
    kinds = (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed))
    lines = [f"{kind:>8}  {path}" for kind, paths in kinds for path in paths]
    differ = counted(len(changes), "page", "differ")
    return "\n".join([*lines, f"{place} is stale: {differ} from the {name}.{mend}"])
