"""``anvil status``."""

from __future__ import annotations

import click

from anvil.cli import options, output
from anvil.status import EmbeddingStatus
from anvil.wording import counted


@click.command("status", epilog="Example: anvil status --docs docs --json")
@options.common
@options.as_json
def command(docs: str | None, index: str | None, config: str | None, provider: str | None, as_json: bool) -> None:
    """Show what the index holds, what it was built from, and how it differs from the documents."""
    import anvil

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        status, origin = opened.get_status(), opened.origin
    if as_json:
        output.print_json(status)
        return
    build = "" if origin else f" Run: {options.build(docs=docs, index=index, config=config, provider=provider)}"
    stale, index_ = status.index.stale, status.index
    holds = f"{counted(index_.total_pages, 'page')}, {counted(index_.total_chunks, 'chunk')}"
    rows = [
        ("docs", status.server.docs_root or "none: answered from the index alone"),
        ("index", f"{index_.db_path} ({index_.db_size_bytes / 1e6:.1f} MB)"),
        ("holds", f"{holds}, as of {index_.last_indexed or 'never'}"),
        ("fresh", "yes" if not (stale.changed or stale.added or stale.removed) else
            f"no: {stale.changed} changed, {stale.added} added, {stale.removed} removed."
            + build),
        ("embedding", _model(status.embedding)),
    ]  # fmt: skip
    if index_.artifact:
        rows.append(("digest", index_.artifact.digest))
        far = index_.artifact.distance
        beyond = f", HEAD is {counted(far, 'commit')} beyond it" if far else ""
        rows.append(("commit", (index_.artifact.commit or "none") + beyond))
    if status.git:
        dirty = ", docs folder has uncommitted changes" if status.git.dirty else ""
        rows.append(("git", f"HEAD {status.git.head_commit or 'unborn'}{dirty}"))
    if index_.pending_vectors:
        lacking = counted(index_.pending_vectors, "passage", "have")
        rows.append(("pending", f"{lacking} no vector yet.{build}"))
    if origin:
        rows.insert(1, ("from", origin))
    if index_.artifact and index_.artifact.note:
        rows.append(("note", index_.artifact.note))
    for name, text in rows:
        click.echo(f"{name:>10}  {text}")


def _model(status: EmbeddingStatus) -> str:
    if status.provider == "none":
        return "none: keyword search only"
    return f"{status.model} ({status.provider}, {status.dimensions} dimensions)"
