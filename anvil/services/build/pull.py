"""An index from where it is published into the place of one's own, and how it differs from the documents here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.backends.fetch.result import FetchResult
from anvil.backends.store import overwrite_guard, publish, verified_cache, verify
from anvil.errors import ArtifactRejected
from anvil.models.documents import Changes
from anvil.services.build import site_view

if TYPE_CHECKING:
    from anvil.backends.sources.git_tree import DocumentSource


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull did. ``outcome``: ``pulled`` or ``unchanged``; ``differs``: how the documents differ from the index,
    None where there are none; ``of_site``: whether the index was built with a site."""

    outcome: Literal["pulled", "unchanged"]
    index_path: str
    origin: str
    commit: str | None
    distance: int | None
    digest: str
    sha256: str
    size_bytes: int
    pages: int
    chunks: int
    fetched_at: str | None
    checked_at: str | None
    from_cache: str | None
    differs: Changes | None
    of_site: bool
    notes: tuple[str, ...]


def pull(
    fetch: Callable[[], FetchResult],
    target: Path | None,
    private: bool,
    tree: DocumentSource | None,
    wanted: str | None = None,
) -> Pulled:
    """Fetch, and put the index to ``target`` (None: it stays in the cache). It is not written when it is there already.

    ``private``: the folder of ``target`` is kept out of git if it is made. ``tree``: the documents to compare with.
    ``wanted``: the SHA-256 (hex) that the file must have, else :class:`ArtifactRejected`.
    Raises :class:`FetchError`, :class:`ArtifactError` or :class:`BuildError`; then what stood there stands.
    """
    if target is not None:
        overwrite_guard.ensure_overwritable(target)
    found = fetch()
    if wanted is not None and found.manifest.sha256 != wanted.lower():
        raise ArtifactRejected(
            f"{found.origin} has the SHA-256 {found.manifest.sha256}, not {wanted.lower()}. "
            "It is another index than the one asked for: correct --sha256, or the address."
        )
    path, same = target or found.path, False
    if path.is_file():
        same = target is not None and verified_cache.sha256(path) == found.manifest.sha256
    if target is not None and not same:
        if private:
            publish.keep_out_of_git(path.parent)
        publish.place(found.path, path)
    with verify.open_checked(path) as reader:
        differs = None if tree is None else site_view.compared(reader, tree)
        of_site = reader.excluded_hashes() is not None
    manifest = found.manifest
    return Pulled(
        outcome="unchanged" if same or (target is None and not found.downloaded) else "pulled",
        index_path=str(path),
        origin=found.origin,
        commit=found.commit,
        distance=found.distance,
        digest=manifest.digest,
        sha256=manifest.sha256,
        size_bytes=manifest.size,
        pages=manifest.pages,
        chunks=manifest.chunks,
        fetched_at=found.fetched_at,
        checked_at=found.checked_at,
        from_cache=found.from_cache,
        differs=differs,
        of_site=of_site,
        notes=found.notes,
    )
