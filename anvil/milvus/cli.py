"""``anvil export``: writing an index into Milvus."""

from __future__ import annotations

import contextlib
from pathlib import Path

import click

from anvil.cli import options, output
from anvil.errors import ConfigError
from anvil.wording import counted


@click.command("export", epilog="Example: anvil export --to milvus://milvus.internal:19530/docs")
@options.docs
@click.option("--index", metavar="FILE", help="The index file (default: FOLDER/.anvil/index.db).")
@options.config
@click.option(
    "--to", metavar="ADDRESS", required=True, help="milvus://HOST:19530/COLLECTION; over TLS milvus+https://."
)
@options.as_json
@options.quiet
def command(docs: str | None, index: str | None, config: str | None, to: str, as_json: bool, quiet: bool) -> None:
    """Write the index into Milvus, for 'anvil serve --index milvus://...': text, vectors and BM25. Queries get the
    former export until the new one is complete. A token is read from ANVIL_MILVUS_TOKEN."""
    import anvil
    from anvil.milvus import export
    from anvil.milvus.milvus_client import Client
    from anvil.settings import index_url

    address = index_url.milvus(to)
    with output.progress(quiet) as progress, anvil.open(docs, index, config=config) as opened:
        if opened.origin is not None:
            raise ConfigError(f"The index is {opened.origin}. Name the file to export with --index.")
        with contextlib.closing(Client(address, Path.cwd())) as client:
            report = export.export(opened.index_path, client, progress)
    if as_json:
        output.print_json(report)
    elif not quiet:
        size = (
            f"{counted(report.pages, 'page')}, {counted(report.chunks, 'chunk')}, {counted(report.vectors, 'vector')}"
        )
        if report.outcome == "unchanged":
            output.say(f"{report.target} is up to date: {size}.")
        else:
            output.say(f"Exported to {report.target}: {size} in {report.seconds:.1f} s. Digest {report.digest[:16]}.")
