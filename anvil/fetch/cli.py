"""``anvil pull``."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.errors import ArtifactRejected, ConfigError, FormatTooNew, SourceError
from anvil.fetch.settings import FetchOptions
from anvil.requests import OpenRequest
from anvil.settings import index_url
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.fetch.pull import Pulled


def digest(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A SHA-256 as ``sha256sum`` prints it."""
    if value is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise click.BadParameter("A SHA-256 has 64 hexadecimal digits, as sha256sum prints them.")
    return value


def builder(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """An owner or a repository of GitHub."""
    if value is not None and not index_url.is_builder(value):
        raise click.BadParameter("Name an owner or a repository of GitHub: OWNER or OWNER/REPO.")
    return value


@click.command("pull", epilog="Example: anvil pull github:acme/docs artifact:docs-index")
@options.docs
@options.config
@click.option("--to", metavar="FILE", help="The index file to write (default: the one that 'anvil build' writes).")
@click.option("--sha256", callback=digest, metavar="HEX", help="Refuse a file with another SHA-256.")
@click.option(
    "--attested-by",
    callback=builder,
    metavar="OWNER/REPO",
    help="Refuse an index unless a valid attestation says that this repository (or OWNER) on GitHub built it.",
)
@click.option("--offline", is_flag=True, help="Send no request: use the copy of an earlier pull.")
@options.as_json
@options.quiet
@click.argument("source")
@click.argument("what", required=False, metavar="[artifact:NAME|release:TAG]")
def command(
    docs: str | None,
    config: str | None,
    to: str | None,
    sha256: str | None,
    attested_by: str | None,
    offline: bool,
    as_json: bool,
    quiet: bool,
    source: str,
    what: str | None,
) -> int:
    """Fetch an index from SOURCE, verify it and put it in place. SOURCE is a path, https://HOST/..., or
    github:OWNER/REPO[@REF] with artifact:NAME or release:TAG. Exit code 0: done, 1: the index was refused,
    2: no index could be fetched."""
    import anvil
    from anvil.fetch import pull
    from anvil.fetch.attestation_check import rule_of
    from anvil.fetch.fetch_index import fetch
    from anvil.http.client import Limits
    from anvil.settings import index_url

    try:
        opened = anvil.open(docs, to, config=config)
    except SourceError as error:
        if docs is not None or to is not None:
            raise
        raise ConfigError(f"{str(error).partition('.')[0]}. Name it with --docs, or a file with --to.") from None
    with opened, output.progress(quiet) as progress:
        configured = opened.config.index
        target = None if configured and index_url.is_remote(configured) else opened.index_path
        limits = Limits(size=opened.config.table(FetchOptions).max_bytes)
        fetch_options = opened.config.table(FetchOptions)
        if attested_by is not None:
            fetch_options = replace(fetch_options, attested_by=attested_by)
        reason = "--offline allows the cached copy only." if offline else None
        address = f"{source}#{what}" if what else source
        try:
            pulled = pull.pull(
                lambda: fetch(
                    address,
                    head=opened.folder or Path.cwd(),
                    offline=reason,
                    limits=limits,
                    progress=progress,
                    attested=rule_of(fetch_options, opened.base),
                ),
                target,
                configured is None,
                opened.tree,
                sha256,
            )
        except (ArtifactRejected, FormatTooNew) as error:
            if as_json:
                output.print_json({"outcome": "refused", "reason": str(error)})
            else:
                output.warn(str(error))
            return NO
    if as_json:
        output.print_json(pulled)
        return OK
    for note in pulled.notes:
        output.warn(note)
    if pulled.from_cache:
        output.warn(f"The cached index of {pulled.checked_at} is used: {pulled.from_cache}")
    if not quiet:
        output.say(_rendered(pulled, options.build_command(OpenRequest(docs, to, config))))
    return OK


def _rendered(pulled: Pulled, build: str) -> str:
    """What was pulled, from where, its commit, and how it differs from the working tree."""
    size = f"{counted(pulled.pages, 'page')}, {counted(pulled.chunks, 'chunk')}, {pulled.size_bytes / 1e6:.1f} MB"
    done = "is up to date" if pulled.outcome == "unchanged" else "pulled"
    lines = [f"{output.relative(pulled.index_path)} {done}: {size}, from {pulled.origin}."]
    if pulled.attestation is not None:
        lines.append(f"Its attestation is valid: built by {pulled.attestation.shown}.")
    if pulled.commit:
        behind = f", {counted(pulled.distance or 0, 'commit')} before HEAD"
        distance = {None: "", 0: ", which is HEAD"}.get(pulled.distance, behind)
        lines.append(f"Built from commit {pulled.commit[:12]}{distance}.")
    if pulled.differs is not None:
        count = len(pulled.differs)
        advice = (
            "The index is built with its site: run 'mkdocs build' where the site is built, and pull it again."
            if pulled.of_site
            else f"To update the index, run: {build}"
        )
        lines.append(
            f"{count} {'page differs' if count == 1 else 'pages differ'} from the working tree; "
            f"search uses the pages of the working tree. {advice}"
            if count
            else "No page differs from the working tree."
        )
    return "\n".join(lines)
