"""Where a library runs, for whoever asks why it cannot find a file: mostly another machine, container or user."""

from __future__ import annotations

import getpass
import os
import platform
from pathlib import Path
from typing import TYPE_CHECKING

from anvil import __version__
from anvil.errors import AnvilError
from anvil.holdings import LibraryInfo, PathCheck

if TYPE_CHECKING:
    from anvil.library import Library


def library_info(library: Library, check_path: str | None) -> LibraryInfo:
    """All of it; it fails for nothing."""
    from anvil.converting import formats

    notes: list[str] = []
    documents = chunks = 0
    try:
        for each in library.list_libraries().libraries:
            documents, chunks = documents + each.document_count, chunks + each.chunk_count
    except AnvilError as error:
        notes.append(str(error))
    options = library.config.library
    return LibraryInfo(
        platform=platform.platform(),
        python_version=platform.python_version(),
        cwd=os.getcwd(),
        index_path=str(library.path),
        model_path=_model_path(library),
        transport=library.transport,
        note=_note(library.transport),
        version=__version__,
        user=_user(),
        formats=formats.available(options),
        missing_formats=formats.unavailable(options),
        documents=documents,
        chunks=chunks,
        notes=tuple(notes),
        path_check=path_check(check_path) if check_path is not None else None,
    )


def path_check(given: str) -> PathCheck:
    """Whether a path can be read, and why not: which part of it is missing."""
    path = Path(given).expanduser().absolute()
    try:
        if path.is_dir():
            with os.scandir(path):
                return PathCheck(str(path), True, None, "It is a folder: use ingest_folder.")
        with path.open("rb") as file:
            file.read(1)
        return PathCheck(str(path), True, path.stat().st_size)
    except FileNotFoundError:
        there = next((each for each in path.parents if each.exists()), None)
        where = f"{there} is there, what follows is not" if there else "none of its folders is there"
        return PathCheck(str(path), False, None, f"There is no such file: {where}.")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return PathCheck(str(path), False, None, f"It cannot be read: {reason}.")


def _note(transport: str) -> str:
    contained = Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()
    place = "in a container" if contained else "on its own machine"
    tail = (
        "A client on another machine sends files with POST /upload."
        if transport in ("http", "sse")
        else "What it cannot reach can be handed in with ingest_content."
    )
    return f"Paths are those that this server sees {place}, as its own user; relative ones start at cwd. {tail}"


def _model_path(library: Library) -> str:
    try:
        model = library.config.embedding.model or library.provider.model
    except AnvilError as error:
        return f"unusable: {error}"
    return f"{library.provider.name}: {model}"


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        return str(os.getuid()) if hasattr(os, "getuid") else "unknown"
