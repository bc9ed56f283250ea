"""``anvil verify``: the contents of an index file."""

from __future__ import annotations

from pathlib import Path

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.errors import ArtifactRejected, FormatTooNew
from anvil.wording import counted


@click.command("verify", epilog="Example: anvil verify docs/.anvil/index.db")
@click.argument("file")
@options.as_json
def command(file: str, as_json: bool) -> int:
    """Check the contents of an index file. Exit code 0: sound, 1: refused, 2: an error, such as no file."""
    from anvil.index_file import verify
    from anvil.settings import index_url

    try:
        reader = verify.open_foreign(Path(index_url.file(file)), thorough=True)
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
        contents = ", ".join(counted(count, name[:-1]) for name, count in counts.items())
        shard = f" It is shard {meta['shard']}." if "shard" in meta else ""
        output.say(f"{file} is sound: {contents}.{shard}\nDigest {meta['digest']}.")
    return OK
