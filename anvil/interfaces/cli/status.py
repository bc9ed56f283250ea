"""``anvil status``."""

from __future__ import annotations

import click

from anvil.core.pluralize import counted
from anvil.interfaces.cli import options, output
from anvil.models.status import EmbeddingStatus


@click.command("status", epilog="Example: anvil status --docs docs --json")
@options.common
@options.as_json
@options.folder
def command(docs: str | None, index: str | None, config: str | None, provider: str | None, as_json: bool) -> None:
    """Show the contents of the index, its origin, and how it differs from the documents."""
    import anvil

    with output.progress() as progress, anvil.open(docs, index, provider, config, progress=progress) as opened:
        status, origin = opened.get_status(), opened.origin
    if as_json:
        output.print_json(status)
        return
    build = ""
    if not origin:
        command = options.build_command(docs=docs, index=index, config=config, provider=provider)
        build = f" {options.update_advice(opened.index_path, command)}"
    stale, index_ = status.index.stale, status.index
    contents = f"{counted(index_.total_pages, 'page')}, {counted(index_.total_chunks, 'chunk')}"
    root, place = status.server.docs_root, index_.db_path if origin else output.relative(index_.db_path)
    if not root:
        fresh = "not known: there are no documents to compare with"
    elif stale.changed or stale.added or stale.removed:
        fresh = f"no: {stale.changed} changed, {stale.added} added, {stale.removed} removed.{build}"
    else:
        fresh = "yes"
    rows = [
        ("docs", output.relative(root) if root else "none: answers come from the index only"),
        ("index", f"{place} ({index_.db_size_bytes / 1e6:.1f} MB)"),
        ("holds", f"{contents}; newest document: {index_.newest_document or 'none'}"),
        ("made", index_.last_indexed or "not known"),
        ("fresh", fresh),
        ("embedding", _model(status.embedding)),
    ]
    if index_.artifact:
        rows.append(("digest", index_.artifact.digest))
        distance = index_.artifact.distance
        ahead = f", HEAD is {counted(distance, 'commit')} ahead" if distance else ""
        rows.append(("commit", (index_.artifact.commit or "none") + ahead))
    if status.git:
        dirty = ", docs folder has uncommitted changes" if status.git.dirty else ""
        rows.append(("git", f"HEAD {status.git.head_commit or 'unborn'}{dirty}"))
    if index_.pending_vectors:
        pending = counted(index_.pending_vectors, "passage", "have")
        rows.append(("pending", f"{pending} no vector yet.{build}"))
    if origin:
        rows.insert(1, ("from", origin))
    if index_.artifact and index_.artifact.note:
        rows.append(("note", index_.artifact.note))
    for name, text in rows:
        output.say(f"{name:>10}  {text}")


def _model(status: EmbeddingStatus) -> str:
    if status.provider == "none":
        return "none: keyword search only"
    return f"{status.model} ({status.provider}, {status.dimensions} dimensions)"
