"""The document library: whether its file is sound, and whether its vectors are of the configured model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from anvil.doctor.examined_project import Place
from anvil.doctor.values import Finding
from anvil.errors import AnvilError
from anvil.wording import counted

MAX_LIBRARY_BYTES = 500_000_000
"""A larger library is not checked."""


def examine(place: Place) -> Iterator[Finding]:
    """The library that ``anvil ingest`` and the library surface would use here."""
    from anvil.library import library_file, verify_library

    own = place.config.library.index
    path = Path(os.path.abspath(place.project / own)) if own else library_file.default_path()
    if not path.exists():
        yield Finding("library", "ok", "There is no document library yet. 'anvil ingest FOLDER' makes one.")
        return
    size = path.stat().st_size
    if size > MAX_LIBRARY_BYTES:
        yield Finding(
            "library", "note", f"{place.shown(path)} has {size:,} bytes and was not checked: that would take long."
        )
        return
    try:
        meta, documents = verify_library.examine(path)
    except AnvilError as error:
        yield Finding("library", "wrong", str(error))
        return
    text = f"{place.shown(path)} is sound and has {counted(documents, 'document')}."
    other = _other_model(place, meta) if documents else None
    if other is None:
        yield Finding("library", "ok", text)
        return
    text += (
        f" Its vectors are of {meta['embedding_model']}, the configured model is {other}: search uses keywords only."
    )
    yield Finding("library", "note", text, place.anvil("ingest", "--reembed", options=("--config", "--provider")))


def _other_model(place: Place, meta: dict[str, str]) -> str | None:
    """The configured model if the library's vectors are of another one, else None. None also for a model that cannot be
    used: that is another finding."""
    from anvil.build.indexer import settings
    from anvil.embedding.factory import create_provider

    try:
        provider = create_provider(place.config.embedding.provider, place.config.embedding)
        wanted = settings(provider, place.config.chunking)
    except AnvilError:
        return None
    same = all(meta[key] == value for key, value in wanted.items() if key.startswith("embedding_"))
    return None if same else provider.model
