"""``anvil pull``."""

from __future__ import annotations

import re
from pathlib import Path

import click

from anvil.core.pluralize import counted
from anvil.errors import ArtifactRejected, ConfigError, FormatTooNew, SourceError
from anvil.interfaces.cli import options, output
from anvil.interfaces.cli.exit_codes import NO, OK
from anvil.services.build.pull import Pulled


def digest(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A SHA-256 as ``sha256sum`` prints it."""
    if value is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise click.BadParameter("A SHA-256 has 64 hexadecimal digits, as sha256sum prints them.")
    return value


@click.command("pull", epilog="Example: anvil pull github:acme/docs artifact:docs-index")
@options.docs
@options.config
@click.option("--to", metavar="FILE", help="Where the index is put (default: where it would be built).")
@click.option("--sha256", callback=digest, metavar="HEX", help="Refuse an index whose file has another SHA-256.")
@click.option("--offline", is_flag=True, help="Ask nobody: what was fetched before, or nothing.")
@options.as_json
@options.quiet
@click.argument("source")
@click.argument("what", required=False, metavar="[artifact:NAME|release:TAG]")
def command(
    docs: str | None,
    config: str | None,
    to: str | None,
    sha256: str | None,
    offline: bool,
    as_json: bool,
    quiet: bool,
    source: str,
    what: str | None,
) -> int:
    """Fetch an index from SOURCE, verify it and put it in place. SOURCE is a path, https://HOST/..., or
    github:OWNER/REPO[@REF] with artifact:NAME or release:TAG. Exit code 0: it is there, 1: what was found is refused,
    2: nothing could be had."""
    import anvil
    from anvil.backends.fetch.fetch_index import fetch
    from anvil.backends.fetch.http_client import Limits
    from anvil.core import index_url
    from anvil.services.build import pull

    try:
        opened = anvil.open(docs, to, config=config)
    except SourceError as error:
        if docs is not None or to is not None:
            raise
        raise ConfigError(f"{str(error).partition('.')[0]}. Name it with --docs, or a file with --to.") from None
    with opened, output.progress(quiet) as progress:
        own = opened.config.index
        target = None if own and index_url.is_remote(own) else opened.index_path
        limits = Limits(size=opened.config.fetch.max_bytes)
        reason = "It was asked for what was fetched before (--offline)." if offline else None
        whole = f"{source}#{what}" if what else source
        try:
            pulled = pull.pull(
                lambda: fetch(
                    whole, head=opened.folder or Path.cwd(), offline=reason, limits=limits, progress=progress
                ),
                target,
                own is None,
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
        output.say(_told(pulled, options.build(docs=docs, index=to, config=config)))
    return OK


def _told(pulled: Pulled, build: str) -> str:
    """What came, from where, and how it stands to what is here."""
    size = f"{counted(pulled.pages, 'page')}, {counted(pulled.chunks, 'chunk')}, {pulled.size_bytes / 1e6:.1f} MB"
    done = "is up to date" if pulled.outcome == "unchanged" else "pulled"
    lines = [f"{output.relative(pulled.index_path)} {done}: {size}, from {pulled.origin}."]
    if pulled.commit:
        away = f", {counted(pulled.distance or 0, 'commit')} before HEAD"
        far = {None: "", 0: ", which is HEAD"}.get(pulled.distance, away)
        lines.append(f"Built from commit {pulled.commit[:12]}{far}.")
    if pulled.differs is not None:
        count = len(pulled.differs)
        advice = (
            "The index is built with its site: run 'mkdocs build' where the site is built, and pull it again."
            if pulled.of_site
            else f"To bring the index up to date, run: {build}"
        )
        lines.append(
            f"{count} {'page differs' if count == 1 else 'pages differ'} from the working tree; "
            f"answers come from the files. {advice}"
            if count
            else "It says what the working tree says."
        )
    return "\n".join(lines)
