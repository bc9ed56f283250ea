"""``anvil check``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import click

from anvil.cli import NO, OK, options, output
from anvil.models import Changes
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.api import Anvil


@click.command("check", epilog="Example: anvil check --staged --tracked && git commit")
@options.docs
@options.index
@options.config
@options.tree
@click.option(
    "--tracked", is_flag=True,
    help="With --staged or --ref: the index, too, is the one in git, not the file in the folder.",
)
@options.as_json
@options.quiet
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
        mend = "" if opened.origin else f" Run: {_mend(opened, docs, index, config, staged, ref, tracked)}"
    if as_json:
        output.print_json(
            {"fresh": not changes, "compared_with": name, "index": place, "changed": changes.changed,
             "added": changes.added, "removed": changes.removed}
        )  # fmt: skip
    elif not quiet:
        click.echo(_told(changes, name, shown, mend))
    return NO if changes else OK


def _mend(
    opened: Anvil, docs: str | None, index: str | None, config: str | None, staged: bool, ref: str | None,
    tracked: bool,
) -> str:  # fmt: skip
    """The command that brings the index in line, with the options that this one was given."""
    from anvil import program

    build = options.build(*(["--staged"] if staged else []), docs=docs, index=index, config=config, ref=ref)
    add = program.line(["git", "add", output.relative(opened.index_path)])
    return f"{build} && {add}" if tracked and staged else build


def _told(changes: Changes, name: str, place: str, mend: str) -> str:
    if not changes:
        return f"{place} is fresh: it says what the {name} says."
    kinds = (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed))
    lines = [f"{kind:>8}  {path}" for kind, paths in kinds for path in paths]
    differ = counted(len(changes), "page", "differ")
    return "\n".join([*lines, f"{place} is stale: {differ} from the {name}.{mend}"])
