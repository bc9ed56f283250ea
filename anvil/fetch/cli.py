"""``anvil pull``: fetch a published index, put it in place, and compare it with the documents here."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from anvil.cli import options, output
from anvil.cli.output import NO, OK
from anvil.errors import ArtifactRejected, BuildError, ConfigError, FormatTooNew, SourceError
from anvil.fetch.settings import FetchOptions
from anvil.requests import OpenRequest
from anvil.settings import index_url
from anvil.values import Changes, Progress
from anvil.wording import counted, size

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.documents.document_source import DocumentSource
    from anvil.fetch.fetch_index import FetchResult


@dataclass(frozen=True, slots=True)
class Pulled:
    """An index in place. ``differs``: how the documents here differ from it; None if there are none. ``of_site``:
    whether it was built with a site. ``is_named``: whether the user named its file with ``--to``; a search in this file
    does not read the documents here."""

    fetched: FetchResult
    outcome: Literal["pulled", "unchanged"]
    path: Path
    differs: Changes | None
    of_site: bool
    is_named: bool


def digest(ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """Check the value of ``--sha256``."""
    if value is not None and not re.fullmatch(r"[0-9a-fA-F]{64}", value):
        raise click.BadParameter("A SHA-256 has 64 hexadecimal digits, as sha256sum prints them.")
    return value


@click.command("pull", epilog="Example: anvil pull github:acme/docs artifact:docs-index")
@options.docs
@options.config
@click.option("--to", metavar="FILE", help="The index file to write (default: the one that 'anvil build' writes).")
@click.option("--sha256", callback=digest, metavar="HEX", help="Refuse a file with another SHA-256.")
@click.option(
    "--attested-by",
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
    from anvil.fetch.attestation import rule_of
    from anvil.fetch.fetch_index import FetchRequest, fetch
    from anvil.index_file import publish
    from anvil.settings.schema import builder

    if what and not re.match(r"#?(artifact|release):", what, re.IGNORECASE):
        raise ConfigError(f"{what} is neither artifact:NAME nor release:TAG. To write that file, add: --to {what}")
    builder("--attested-by", attested_by)
    with _open_project(docs, to, config) as opened, output.progress(quiet) as progress:
        configured = opened.config.index
        target = None if configured and index_url.is_remote(configured) else opened.index_path
        fetch_options = opened.config.table(FetchOptions)
        if attested_by is not None:
            fetch_options = replace(fetch_options, attested_by=attested_by)
        try:
            if target is not None:
                publish.ensure_overwritable(target)
            request = FetchRequest(
                fetch_options,
                head=opened.folder or Path.cwd(),
                offline="--offline allows the cached copy only." if offline else None,
                progress=progress,
                attested=rule_of(fetch_options, opened.base),
                is_named_by_user=True,
            )
            fetched = fetch(f"{source}#{what}" if what else source, request)
            if sha256 is not None and fetched.manifest.sha256 != sha256.lower():
                raise ArtifactRejected(
                    f"{fetched.origin} has the SHA-256 {fetched.manifest.sha256}, not {sha256.lower()}. "
                    "Correct --sha256, or the address."
                )
            pulled = _place(fetched, target, configured is None, opened.tree, progress, is_named=to is not None)
        except BuildError as error:
            raise BuildError(str(error).replace("--index", "--to")) from error
        except (ArtifactRejected, FormatTooNew) as error:
            if as_json:
                output.print_json({"outcome": "refused", "reason": str(error)})
            else:
                output.warn(str(error))
            return NO
    if as_json:
        output.print_json(_report(pulled))
        return OK
    for note in fetched.notes:
        output.warn(note)
    if fetched.from_cache:
        output.warn(f"The cached index of {fetched.checked_at} is used: {fetched.from_cache}")
    if not quiet:
        output.say(_render(pulled, options.build_command(OpenRequest(docs, to, config))))
    return OK


def _open_project(docs: str | None, to: str | None, config: str | None) -> Anvil:
    """The project of the index. If only ``--to`` is given, the project has this index file and no documents."""
    import anvil

    try:
        return anvil.open(docs, to, config=config)
    except SourceError as error:
        if docs is not None or to is not None:
            raise
        raise ConfigError(f"{str(error).partition('.')[0]}. Name it with --docs, or a file with --to.") from None


def _place(
    fetched: FetchResult,
    target: Path | None,
    private: bool,
    tree: DocumentSource | None,
    progress: Progress,
    *,
    is_named: bool,
) -> Pulled:
    """Copy an index to ``target``, unless the same file is there already. None: it stays in the cache.

    ``private``: whether a new folder of ``target`` is excluded from git. ``tree``: the documents to compare with. If
    the user named the file (``is_named``), they are compared only if they have at least half of the index's pages;
    otherwise the index is of other documents.
    """
    from anvil.index_file import publish, verify
    from anvil.live import site_view
    from anvil.system import safe_files

    path, same = target or fetched.path, False
    if path.is_file():
        same = target is not None and safe_files.sha256(path) == fetched.manifest.sha256
    if target is not None and not same:
        if private:
            publish.keep_out_of_git(path.parent, parents=True)
        publish.place(fetched.path, path, fetched.manifest.sha256, progress)
    with verify.open_checked(path) as reader:
        differs = None if tree is None else site_view.compared(reader, tree)
        of_site = reader.excluded_hashes() is not None
    if differs is not None and is_named and 2 * len(differs.removed) > fetched.manifest.pages:
        differs = None
    is_new = target is not None or fetched.downloaded
    return Pulled(fetched, "pulled" if is_new and not same else "unchanged", path, differs, of_site, is_named)


def _report(pulled: Pulled) -> dict[str, Any]:
    fetched, manifest = pulled.fetched, pulled.fetched.manifest
    return {
        "outcome": pulled.outcome,
        "index_path": str(pulled.path),
        "digest": manifest.digest,
        "sha256": manifest.sha256,
        "size_bytes": manifest.size,
        "pages": manifest.pages,
        "chunks": manifest.chunks,
        "differs": pulled.differs,
        "of_site": pulled.of_site,
        **{name: getattr(fetched, name) for name in _FETCHED_FIELDS},
    }


_FETCHED_FIELDS = ("origin", "commit", "distance", "fetched_at", "checked_at", "from_cache", "notes", "attestation")
"""Fields of :class:`FetchResult` that the report has."""


def _render(pulled: Pulled, build: str) -> str:
    """The report for people. ``build``: the command that updates the index."""
    fetched, manifest = pulled.fetched, pulled.fetched.manifest
    counts = f"{counted(manifest.pages, 'page')}, {counted(manifest.chunks, 'chunk')}, {size(manifest.size)}"
    done = "is up to date" if pulled.outcome == "unchanged" else "pulled"
    lines = [f"{output.relative(pulled.path)} {done}: {counts}, from {fetched.origin}."]
    if fetched.attestation is not None:
        lines.append(f"Its attestation is valid: built by {fetched.attestation.shown}.")
    if fetched.commit:
        behind = f", {counted(fetched.distance or 0, 'commit')} before HEAD"
        distance = {None: "", 0: ", which is HEAD"}.get(fetched.distance, behind)
        lines.append(f"Built from commit {fetched.commit[:12]}{distance}.")
    if pulled.differs is not None:
        count = len(pulled.differs)
        advice = (
            "The index is built with its site: run 'mkdocs build' where the site is built, and pull it again."
            if pulled.of_site
            else f"To update the index, run: {build}"
        )
        searched = "" if pulled.is_named else "; search uses the pages of the working tree"
        lines.append(
            f"{count} {'page differs' if count == 1 else 'pages differ'} from the working tree{searched}. {advice}"
            if count
            else "No page differs from the working tree."
        )
    return "\n".join(lines)
