"""An index on this machine: a file, or a folder or a built site that contains one. It is used in place."""

from __future__ import annotations

from pathlib import Path

from anvil.errors import ArtifactRejected, FetchError
from anvil.fetch.result import FetchResult, agree
from anvil.index_file import manifest, manifest_file
from anvil.settings import index_url
from anvil.settings.schema import INDEX_FOLDER, INDEX_NAME
from anvil.values import Manifest


def find(path: Path) -> FetchResult:
    """The index at or in ``path``. Raises :class:`FetchError` or :class:`ArtifactError`."""
    if not path.is_dir():
        manifest_path = manifest_file.manifest_path(path)
        return _local(path, _manifest_at(manifest_path) if manifest_path.is_file() else None)
    for place in (*index_url.PLACES, f"{INDEX_FOLDER}/{INDEX_NAME}"):
        file = path / place
        if file.suffix == ".json" and file.is_file():
            published = _manifest_at(file)
            if published is not None:
                return _local(file.with_name(published.file), published)
        elif file.is_file():
            return _local(file, None)
    raise FetchError(f"There is no index in {path}. Name the folder that holds index.json and index.db, or the file.")


def _manifest_at(path: Path) -> Manifest | None:
    """The manifest at a path; None for another JSON file. Raises :class:`ArtifactRejected` for a damaged manifest."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ArtifactRejected(f"The manifest {path} cannot be read ({error.strerror}). Check the file.") from error
    return manifest.found(text, str(path))


def _local(path: Path, published: Manifest | None) -> FetchResult:
    described = manifest_file.describe(path)
    if published is not None:
        agree(published, described, str(path))
    return FetchResult(path=path, manifest=described, origin=str(path), commit=described.commit)
