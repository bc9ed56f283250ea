"""The machine, user, folder and formats of a library, and whether it can read a path: why a file is not found."""

from __future__ import annotations

import getpass
import os
import platform
from pathlib import Path

from anvil._version import __version__
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError
from anvil.library import document_formats
from anvil.library.settings import LibraryOptions
from anvil.library.values import LibraryInfo, PathCheck
from anvil.settings.schema import Config


def library_info(
    index: Path, config: Config, provider: EmbeddingProvider, transport: str, check_path: str | None
) -> LibraryInfo:
    """The process, its formats and model. The library file ``index`` is not opened. ``check_path``: to examine."""
    formats = document_formats.available(config.table(LibraryOptions))
    try:
        model = f"{provider.name}: {config.embedding.model or provider.model}"
    except AnvilError as error:
        model = f"unusable: {error}"
    try:
        user = getpass.getuser()
    except (OSError, KeyError, ImportError):  # a container's user may have no name
        user = str(os.getuid()) if hasattr(os, "getuid") else "unknown"
    return LibraryInfo(
        platform=platform.platform(),
        python_version=platform.python_version(),
        cwd=os.getcwd(),
        index_path=str(index),
        model_path=model,
        transport=transport,
        note=_note(transport),
        version=__version__,
        user=user,
        formats=formats,
        missing_formats=tuple(ending for ending in document_formats.BY_ENDING if ending not in formats),
        path_check=path_check(check_path) if check_path is not None else None,
    )


def path_check(text: str) -> PathCheck:
    """Whether this process can read a path. If not, the error says why, and which part of the path is missing."""
    if not text.strip():
        return PathCheck(text, False, None, "check_path is empty. Name a file or a folder.")
    path = Path(os.path.abspath(os.path.expanduser(text)))
    try:
        if path.is_dir():
            with os.scandir(path):
                return PathCheck(str(path), True, None, "It is a folder: use ingest_folder.")
        if path.exists() and not path.is_file():  # opening a pipe would wait for a writer
            return PathCheck(str(path), False, None, "It is neither a file nor a folder.")
        with path.open("rb") as file:
            file.read(1)
        return PathCheck(str(path), True, path.stat().st_size)
    except FileNotFoundError:
        existing = next((folder for folder in path.parents if folder.exists()), None)
        where = f"{existing} exists, the rest of the path does not" if existing else "none of its folders exists"
        return PathCheck(str(path), False, None, f"There is no such file: {where}.")
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return PathCheck(str(path), False, None, f"It cannot be read: {reason}.")


def _note(transport: str) -> str:
    contained = Path("/.dockerenv").exists() or Path("/run/.containerenv").exists()
    place = "in a container" if contained else "on its own machine"
    advice = (
        "A client on another machine sends files with POST /upload."
        if transport in ("http", "sse")
        else "Send the text of other files with ingest_content."
    )
    return f"Paths are those of this server {place}, with the rights of its user; relative ones start at cwd. {advice}"
