"""A pull: fetch a published index, put it in place, and compare it with the documents here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil.errors import ArtifactRejected
from anvil.fetch.attestation_bundle import Attestation
from anvil.fetch.fetch_index import FetchResult
from anvil.index_file import publish, verify
from anvil.live import site_view
from anvil.system import safe_files
from anvil.values import Changes

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource


@dataclass(frozen=True, slots=True)
class Pulled:
    """The report of a pull. ``differs``: how the documents differ from the index, None without documents. ``of_site``:
    whether the index was built with a site. ``attestation``: who built it, where that is proven."""

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
    attestation: Attestation | None = None


def pull(
    fetch: Callable[[], FetchResult],
    target: Path | None,
    private: bool,
    tree: DocumentSource | None,
    wanted: str | None = None,
) -> Pulled:
    """Fetch an index and copy it to ``target`` (None: it stays in the cache), unless the same file is there already.

    ``private``: the folder of ``target`` is kept out of git if it is made. ``tree``: the documents to compare with.
    ``wanted``: the SHA-256 (hex) that the file must have, else :class:`ArtifactRejected`.
    Raises :class:`FetchError`, :class:`ArtifactError` or :class:`BuildError`. Then ``target`` is not changed.
    """
    if target is not None:
        publish.ensure_overwritable(target)
    fetched = fetch()
    if wanted is not None and fetched.manifest.sha256 != wanted.lower():
        raise ArtifactRejected(
            f"{fetched.origin} has the SHA-256 {fetched.manifest.sha256}, not {wanted.lower()}. "
            "Correct --sha256, or the address."
        )
    path, same = target or fetched.path, False
    if path.is_file():
        same = target is not None and safe_files.sha256(path) == fetched.manifest.sha256
    if target is not None and not same:
        if private:
            publish.keep_out_of_git(path.parent)
        publish.place(fetched.path, path, fetched.manifest.sha256)
    with verify.open_checked(path) as reader:
        differs = None if tree is None else site_view.compared(reader, tree)
        of_site = reader.excluded_hashes() is not None
    manifest = fetched.manifest
    return Pulled(
        outcome="unchanged" if same or (target is None and not fetched.downloaded) else "pulled",
        index_path=str(path),
        origin=fetched.origin,
        commit=fetched.commit,
        distance=fetched.distance,
        digest=manifest.digest,
        sha256=manifest.sha256,
        size_bytes=manifest.size,
        pages=manifest.pages,
        chunks=manifest.chunks,
        fetched_at=fetched.fetched_at,
        checked_at=fetched.checked_at,
        from_cache=fetched.from_cache,
        differs=differs,
        of_site=of_site,
        notes=fetched.notes,
        attestation=fetched.attestation,
    )
