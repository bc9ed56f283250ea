"""``anvil check``."""

from __future__ import annotations

import click

from anvil.cli import NO, OK, options, output
from anvil.models import Changes


@click.command("check", epilog="Example: anvil check --staged && git commit")
@options.docs
@options.index
@options.config
@click.option("--staged", is_flag=True, help="Compare with what is staged for the next commit.")
@click.option("--ref", metavar="REV", help="Compare with a commit.")
@options.as_json
@options.quiet
def command(
    docs: str | None,
    index: str | None,
    config: str | None,
    staged: bool,
    ref: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Does the index say what the documents say? Exit code 0: fresh, 1: stale, 2: could not tell."""
    import anvil
    from anvil import sources

    if staged and ref is not None:
        raise click.UsageError("--staged and --ref exclude each other. Give one of them.")
    with anvil.open(docs, index, config=config) as opened:
        source = opened.tree
        if opened.folder is not None and (staged or ref is not None):
            chosen = opened.config.source
            source = (
                sources.commit_tree(opened.folder, ref, chosen)
                if ref is not None
                else sources.staged_tree(opened.folder, chosen)
            )
        changes = opened.check(source)
        name = source.name if source else "documents"
        place, build = opened.origin or str(opened.index_path), "" if opened.origin else " Run 'anvil build'."
    if as_json:
        output.print_json(
            {"fresh": not changes, "compared_with": name, "index": place, "changed": changes.changed,
             "added": changes.added, "removed": changes.removed}
        )  # fmt: skip
    elif not quiet:
        click.echo(_told(changes, name, place, build))
    return NO if changes else OK


def _told(changes: Changes, name: str, place: str, build: str) -> str:
    if not changes:
        return f"{place} is fresh: it says what the {name} says."
    kinds = (("changed", changes.changed), ("added", changes.added), ("removed", changes.removed))
    lines = [f"{kind:>8}  {path}" for kind, paths in kinds for path in paths]
    return "\n".join([*lines, f"{place} is stale: {len(changes)} pages differ from the {name}.{build}"])
