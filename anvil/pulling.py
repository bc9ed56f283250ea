"""An index from where it is published into the place of one's own, and how it differs from the documents here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil import freshness
from anvil.errors import ArtifactRejected
from anvil.fetching import Fetched
from anvil.models import Changes
from anvil.store import checking, foreign, publishing, trust

if TYPE_CHECKING:
    from anvil.sources import DocumentSource


@dataclass(frozen=True, slots=True)
class Pulled:
    """What a pull did. ``outcome``: ``pulled`` or ``unchanged``; ``differs``: how the documents differ from the index,
    None where there are none."""

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
    notes: tuple[str, ...]


def pull(
    fetch: Callable[[], Fetched],
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
        foreign.refuse(target)
    found = fetch()
    if wanted is not None and found.manifest.sha256 != wanted.lower():
        raise ArtifactRejected(
            f"{found.origin} has the SHA-256 {found.manifest.sha256}, not {wanted.lower()}. "
            "It is another index than the one asked for: correct --sha256, or the address."
        )
    path, same = target or found.path, False
    if path.is_file():
        same = target is not None and trust.sha256(path) == found.manifest.sha256
    if target is not None and not same:
        if private:
            publishing.keep_out_of_git(path.parent)
        publishing.place(found.path, path)
    differs = None
    if tree is not None:
        with checking.open_checked(path) as reader:
            indexed = reader.blob_ids()
        differs = freshness.compare(indexed, tree.scan(indexed).entries)
    manifest = found.manifest
    return Pulled(
        "unchanged" if same or (target is None and not found.downloaded) else "pulled",
        str(path), found.origin, found.commit, found.distance, manifest.digest, manifest.sha256, manifest.size,
        manifest.pages, manifest.chunks, found.fetched_at, found.checked_at, found.from_cache, differs, found.notes,
    )  # fmt: skip
