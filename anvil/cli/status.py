"""``anvil status``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.requests import OpenRequest
from anvil.values import labelled
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.status import CollectionStatus, EmbeddingStatus, StaleCounts, Status


@click.command("status", epilog="Example: anvil status --docs docs --json")
@options.project
@options.in_site
@options.as_json
@options.folder
def command(given: OpenRequest, as_json: bool) -> None:
    """Show the contents of the index, its origin, and how it differs from the documents."""
    with options.opened(given) as opened:
        status = opened.get_status()
    if as_json:
        output.print_json(status)
        return
    if status.collections is not None:
        _print_collections(status.collections, status.embedding)
        return
    advice = "" if opened.origin else f" {options.update_advice(opened.index_path, options.build_command(given))}"
    for name, text in _rows(status, opened.origin, advice):
        output.say(f"{name:>10}  {text}")


def _rows(status: Status, origin: str | None, advice: str) -> list[tuple[str, str]]:
    """(name, text) of each line on one index. ``origin``: the address of a published one. ``advice``: how to update
    it."""
    index_ = status.index
    contents = f"{counted(index_.total_pages, 'page')}, {counted(index_.total_chunks, 'chunk')}"
    root, place = status.server.docs_root, index_.db_path if origin else output.relative(index_.db_path)
    fresh = _fresh(index_.stale, advice) if root else "not known: there are no documents to compare with"
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
        rows.append(("pending", f"{pending} no vector yet.{advice}"))
    if origin:
        rows.insert(1, ("from", origin))
    if index_.artifact and index_.artifact.note:
        rows.append(("note", index_.artifact.note))
    return rows


def _print_collections(collections: Sequence[CollectionStatus], embedding: EmbeddingStatus) -> None:
    """A block for each collection. The default version of one with several is marked."""
    for collection in collections:
        name = labelled(collection.name, collection.version)
        has_versions = sum(other.name == collection.name for other in collections) > 1
        mark = "  (default version)" if collection.default and has_versions else ""
        title = f"  {collection.title}" if collection.title != collection.name else ""
        output.say(f"{output.style(name, 'bold')}{title}{mark}")
        rows = []
        if collection.docs_root or collection.origin:
            place = output.relative(collection.docs_root) if collection.docs_root else collection.origin or ""
            rows.append(("docs" if collection.docs_root else "from", place))
        if collection.total_pages is not None and collection.total_chunks is not None:
            counts = counted(collection.total_pages, "page"), counted(collection.total_chunks, "chunk")
            rows.append(("holds", ", ".join(counts)))
        if collection.stale and collection.docs_root:
            rows.append(("fresh", _fresh(collection.stale, " Run: anvil build")))
        if collection.total_pages is not None and collection.model != embedding.model:
            rows.append(("embedding", collection.model or "none: keyword search only"))
        if collection.note:
            rows.append(("note", collection.note))
        for row, text in rows:
            output.say(f"{row:>10}  {text}")


def _fresh(stale: StaleCounts, advice: str) -> str:
    if stale.changed or stale.added or stale.removed:
        return f"no: {stale.changed} changed, {stale.added} added, {stale.removed} removed.{advice}"
    return "yes"


def _model(status: EmbeddingStatus) -> str:
    if status.provider == "none":
        return "none: keyword search only"
    reads = f", reads {status.scripts} script" if status.scripts else ""
    return f"{status.model} ({status.provider}, {status.dimensions} dimensions{reads})"
