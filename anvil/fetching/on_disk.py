"""An index on this machine: a file, a folder that holds one, or a site that was built here. It stays where it is."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from anvil import addresses, manifest
from anvil.config import INDEX_FOLDER, INDEX_NAME
from anvil.errors import ArtifactRejected, FetchError
from anvil.fetching.fetched import Fetched, agree
from anvil.models import Manifest
from anvil.store import describing


def find(path: Path) -> Fetched:
    """The index at or in ``path``. Raises :class:`FetchError` or :class:`ArtifactError`."""
    if not path.is_dir():
        beside = describing.manifest_path(path)
        published = _manifest_at(beside) if beside.is_file() else None
        return _local(path, published if published and published.file == path.name else None)
    for place in (*addresses.PLACES, f"{INDEX_FOLDER}/{INDEX_NAME}"):
        file = path / place
        if file.suffix == ".json" and file.is_file():
            published = _manifest_at(file)
            if published is not None:
                return _local(file.with_name(published.file), published)
        elif file.is_file():
            return _local(file, None)
    raise FetchError(f"There is no index in {path}. Name the folder that holds index.json and index.db, or the file.")


def _manifest_at(path: Path) -> Manifest | None:
    with suppress(ArtifactRejected, OSError):  # a file of that name may be something else
        return manifest.parse(path.read_text(encoding="utf-8", errors="replace"), str(path))
    return None


def _local(path: Path, published: Manifest | None) -> Fetched:
    described = describing.describe(path)
    if published is not None:
        agree(published, described, str(path))
    return Fetched(path, described, str(path), described.commit)
