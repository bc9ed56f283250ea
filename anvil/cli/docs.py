"""``anvil docs``."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.values import Progress


@click.command("docs", epilog='Example: anvil docs "how do I keep the index fresh?"')
@click.option("--top-k", "-k", type=click.IntRange(1, 20), default=3, show_default=True, help="Results, 1 to 20.")
@options.as_json
@options.question
def command(top_k: int, as_json: bool, query: str) -> None:
    """Ask Anvil's own documentation, offline. Without a release's index the first question builds one."""
    from anvil.cli import search

    with output.progress() as progress, _opened(progress) as opened:
        explained = opened.explain(query, top_k)
        root = str(opened.docs_root) if opened.docs_root is not None else ""
    if as_json:
        output.print_json(explained.result)
        return
    for note in explained.result.freshness.notes:
        output.warn(note)
    output.say(search.rendered(explained.result, explained.spans, query, {None: output.relative(root) if root else ""}))


def _opened(progress: Progress) -> Anvil:
    """The index that a released package carries; else one of the pages, kept in the user's cache."""
    import anvil
    from anvil.errors import ArtifactMissing, BuildError
    from anvil.settings.schema import Config
    from anvil.system import installation, user_folders

    if installation.OWN_INDEX.is_file():
        return anvil.open(index=installation.OWN_INDEX, config=Config(), progress=progress)
    docs = next((folder for folder in installation.OWN_DOCS if (folder / "index.md").is_file()), None)
    if docs is None:
        raise ArtifactMissing(
            "This installation does not carry its documentation, which is damage: a package and a checkout have it. "
            f"Install it again: {installation.line(installation.reinstall(installation.DISTRIBUTION))}"
        )
    index = user_folders.cache() / "own-docs" / "index.db"
    with suppress(OSError):  # such as a read-only file system: see below
        user_folders.make(index.parent)
    opened = anvil.open(docs, index, config=Config(), progress=progress)
    with suppress(BuildError):  # the answer is from the pages then, and has a note
        opened.index()  # also in place of one that is damaged, or of an Anvil with another format
    return opened
