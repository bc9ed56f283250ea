"""What to do when the documentation folder does not exist."""

from __future__ import annotations

import contextlib
import itertools
import os
from pathlib import Path

from anvil.values import PAGE_ENDINGS
from anvil.wording import listed

MAX_SEARCHED_ENTRIES = 2000
"""Limit of :func:`advice`."""


def advice(missing: Path) -> str:
    """A message for a missing documentation folder, with the names of folders near it that have Markdown."""
    around = next((folder for folder in missing.absolute().parents if folder.is_dir()), Path.cwd())
    near = [str(around / name) for name in _with_pages(around)[:4]]
    hold = f": {listed(near)} {'hold' if near[1:] else 'holds'} Markdown" if near else ""
    return f"Name the documentation folder with --docs{hold}."


def _with_pages(around: Path) -> list[str]:
    """Names of the folders in ``around`` with Markdown in them or in their subfolders."""
    left = MAX_SEARCHED_ENTRIES
    names_with_pages: list[str] = []
    for name, folder in sorted(_folders(around)):
        inside = [folder, *(subfolder for _, subfolder in sorted(_folders(folder)))]
        for subfolder in inside:
            with contextlib.suppress(OSError), os.scandir(subfolder) as entries:
                names = [entry.name for entry in itertools.islice(entries, left)]
                left -= len(names)
                if any(other.lower().endswith(PAGE_ENDINGS) for other in names):
                    names_with_pages.append(name)
                    break
        if left <= 0:
            break
    return names_with_pages


def _folders(around: Path) -> list[tuple[str, Path]]:
    """(name, path) of folders, without hidden ones, links and installed packages."""
    with contextlib.suppress(OSError), os.scandir(around) as entries:
        return [
            (entry.name, Path(entry.path))
            for entry in itertools.islice(entries, MAX_SEARCHED_ENTRIES)
            if not entry.name.startswith(".")
            and entry.name not in ("node_modules", "venv")
            and entry.is_dir(follow_symlinks=False)
        ]
    return []
