"""The manifest of an index file: a small JSON file next to it."""

from __future__ import annotations

from pathlib import Path

from anvil.index_file import connection, manifest, verify
from anvil.system import safe_read, safe_write
from anvil.values import Manifest, ModelIdentity


def describe(path: Path) -> Manifest:
    """The manifest for the index at ``path``. The index is checked first. Raises :class:`ArtifactError`."""
    with verify.open_checked(path) as reader:
        meta, counts = reader.meta(), reader.counts()
        sha256, size = connection.sha256(reader.connection)
    return Manifest(
        format=int(meta["format_version"]),
        file=path.name,
        sha256=sha256,
        size=size,
        digest=meta["digest"],
        commit=meta.get("commit") or None,
        last_modified=meta["last_index_timestamp"],
        anvil_version=meta["anvil_version"],
        model=ModelIdentity(
            provider=meta["embedding_provider"],
            name=meta["embedding_model"],
            digest=meta["embedding_model_digest"],
            dimensions=int(meta["embedding_dimensions"]),
        ),
        pages=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
    )


def manifest_path(index: Path) -> Path:
    """The path of an index's manifest: ``index.json`` for ``index.db``."""
    return index.with_suffix(".json")


def write_manifest(index: Path) -> Path:
    """Write the manifest of an index, if it changed; its path."""
    text, path = manifest.render(describe(index)), manifest_path(index)
    if _read(path, len(text.encode())) != text.encode():
        safe_write.write_file(path, text, replace=True)
    return path


def _read(path: Path, max_bytes: int) -> bytes | None:
    """The bytes of a file; None for a larger one, and for what is not a file."""
    try:
        return None if path.is_symlink() else safe_read.data(path, max_bytes)
    except OSError:
        return None
