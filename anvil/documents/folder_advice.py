"""What to name where a documentation folder is missing, has no page, or is mostly of formats that are not read."""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator
from pathlib import Path

from anvil.documents import document_source
from anvil.values import PAGE_ENDINGS
from anvil.wording import listed

MAX_SEARCHED_ENTRIES = 2000
"""Names that a search for pages looks at."""


def no_folder(folder: Path, shown: str = "") -> str:
    """A message: there is no such documentation folder, and what to name in place of it. ``shown``: as it was typed."""
    problem = f"{folder} is not a folder" if folder.exists() else f"There is no folder {shown or folder}"
    return f"{problem}. {folder_advice(folder)}"


def folder_advice(folder: Path) -> str:
    """What to name in place of a documentation folder that is missing or has no page: the folders near it that have
    Markdown, and the folder around it if that has."""
    around = next((parent for parent in folder.absolute().parents if parent.is_dir()), Path.cwd())
    near = [str(around / name) for name in _with_pages(around) if name != folder.name][:4]
    hold = [f"{listed(near)} {'hold' if near[1:] else 'holds'} Markdown"] if near else []
    own = sorted(_pages_in(around)[0], key=lambda name: (not name.lower().startswith("readme."), name))
    if own:
        hold.append(f"{repr('.') if around == Path.cwd() else around} has {own[0]}")
    return f"Name the documentation folder with --docs{': ' if hold else ''}{', and '.join(hold)}."


def other_formats_note(folder: Path, pages: int) -> str | None:
    """A message: a folder has more documentation in other formats than ``pages``, its pages, and how to index that."""

    def names_below() -> Iterator[str]:  # without hidden and built folders
        for _, folders, names in os.walk(folder):
            folders[:] = [name for name in folders if name[:1] not in "._" and name not in ("node_modules", "venv")]
            yield from names

    names = itertools.islice(names_below(), MAX_SEARCHED_ENTRIES) if pages < MAX_SEARCHED_ENTRIES else ()
    formats = document_source.other_formats(name for name in names if not name.endswith(".html"))
    if formats.total() <= pages:
        return None
    return (
        f"{listed(document_source.named_formats(formats))} in the documentation folder are not read: Anvil reads "
        "Markdown, and the HTML of a site. Build the site, then run 'anvil build --site FOLDER' for the folder of its "
        "HTML."
    )


def _pages_in(folder: Path, most: int = MAX_SEARCHED_ENTRIES) -> tuple[list[str], int]:
    """Names of the Markdown files in a folder, without those in its subfolders; and how many names were looked at."""
    names = [entry.name for entry in _entries(folder, most)]
    return [name for name in names if name.lower().endswith(PAGE_ENDINGS)], len(names)


def _with_pages(around: Path) -> list[str]:
    """Names of the folders in ``around`` with Markdown in them or in their subfolders."""
    left = MAX_SEARCHED_ENTRIES
    names_with_pages: list[str] = []
    for folder in _folders_in(around):
        for inside in (folder, *_folders_in(folder)):
            pages, looked_at = _pages_in(inside, left)
            left -= looked_at
            if pages:
                names_with_pages.append(folder.name)
                break
        if left <= 0:
            break
    return names_with_pages


def _folders_in(around: Path) -> list[Path]:
    """Folders, without hidden ones, links and installed packages."""
    entries = [entry for entry in _entries(around) if entry.is_dir(follow_symlinks=False)]
    names = (entry.name for entry in entries if entry.name not in ("node_modules", "venv"))
    return sorted(around / name for name in names if not name.startswith("."))


def _entries(folder: Path, most: int = MAX_SEARCHED_ENTRIES) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(itertools.islice(entries, most))
    return []
