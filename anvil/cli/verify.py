"""``anvil verify``."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.cli import NO, OK, options, output
from anvil.errors import ArtifactRejected, FormatTooNew


@click.command("verify", epilog="Example: anvil verify docs/.anvil/index.db")
@click.argument("file")
@options.as_json
def command(file: str, as_json: bool) -> int:
    """Check an index file from anywhere. Exit code 0: sound, 1: refused, 2: there is none."""
    from anvil import addresses
    from anvil.store import checking

    try:
        reader = checking.open_checked(Path(addresses.file(file)))
    except (ArtifactRejected, FormatTooNew) as error:
        if as_json:
            output.print_json({"sound": False, "file": file, "reason": str(error)})
        else:
            output.warn(str(error))
        return NO
    with reader:
        meta, counts = reader.meta(), reader.counts()
    if as_json:
        output.print_json({"sound": True, "file": file, "manifest": meta, "counts": counts})
    else:
        held = ", ".join(f"{count} {name}" for name, count in counts.items())
        part = f" It is shard {meta['shard']}." if "shard" in meta else ""
        click.echo(f"{file} is sound: {held}.{part}\nDigest {meta['digest']}.")
    return OK
