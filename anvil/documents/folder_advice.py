"""Advice if the documentation folder is missing, has no page or few pages, or has formats that are not read."""

from __future__ import annotations

import contextlib
import itertools
import os
import posixpath
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from anvil.values import has_page_ending
from anvil.wording import counted, listed

MAX_SEARCHED_ENTRIES = 2000
"""A search for pages looks at so many names."""
MAX_COUNTED_ENTRIES = 500
"""When several folders are compared, so many names of each are counted."""
MAX_FOLDERS = 100
"""So many folders are compared."""
_INSTALLED = ("node_modules", "venv")
OTHER_FORMATS = {
    ".rst": "reStructuredText",
    ".adoc": "AsciiDoc",
    ".ipynb": "notebook",
    ".html": "HTML",
}
"""Ending -> format of documentation that site generators read and Anvil does not."""


def no_folder(folder: Path, shown: str = "", named: str = "--docs") -> str:
    """The message that there is no such documentation folder, with advice. ``shown``: the folder as it was typed.
    ``named``: the option or key that names it."""
    problem = f"{folder} is not a folder" if folder.exists() else f"There is no folder {shown or folder}"
    return f"{problem}. {folder_advice(folder, named)}"


def folder_advice(folder: Path, named: str = "--docs") -> str:
    """Advice in place of a documentation folder that is missing or has no page: the folders beside it, those with most
    pages first, and the folder above it, if they have Markdown."""
    parent = next((above for above in folder.absolute().parents if above.is_dir()), Path.cwd())
    beside = [parent / name for name, _ in _page_counts(parent).most_common() if name != folder.name][:4]
    inner = [each / "docs" for each in beside]  # as website/docs
    has_pages = [any(map(has_page_ending, _names_below(docs))) for docs in inner]
    siblings = [str(docs if has else docs.parent) for docs, has in zip(inner, has_pages, strict=True)]
    clauses = [f"{listed(siblings)} {'hold' if siblings[1:] else 'holds'} Markdown"] if siblings else []
    pages = (entry.name for entry in _entries(parent) if has_page_ending(entry.name))
    names = sorted(pages, key=lambda name: (not name.lower().startswith("readme."), name))
    if names:
        has = f"{names[0]} and {counted(len(names) - 1, 'more Markdown file')}" if names[1:] else names[0]
        clauses.append(f"{repr('.') if parent == Path.cwd() else parent} has {has}")
    return f"Name the documentation folder with {named}{': ' if clauses else ''}{', and '.join(clauses)}."


def other_formats_note(folder: Path, pages: int) -> str | None:
    """The message that a folder has more documentation in other formats than pages, and how to index it; None if it has
    not. ``pages``: the number of its pages."""
    names = itertools.islice(_names_below(folder), MAX_SEARCHED_ENTRIES) if pages < MAX_SEARCHED_ENTRIES else ()
    formats = other_formats(name for name in names if not name.endswith(".html"))
    if formats.total() <= pages:
        return None
    return (
        f"{listed(named_formats(formats))} in the documentation folder are not read: Anvil reads "
        "Markdown, and the HTML of a site. Build the site, then run 'anvil build --site FOLDER' for the folder of its "
        "HTML."
    )


def other_formats(paths: Iterable[str]) -> Counter[str]:
    """The number of files in each format of :data:`OTHER_FORMATS`."""
    kinds = (OTHER_FORMATS.get(posixpath.splitext(path)[1].lower()) for path in paths)
    return Counter(kind for kind in kinds if kind)


def named_formats(formats: Counter[str]) -> list[str]:
    """Texts such as ``30 reStructuredText files``."""
    return [counted(formats[kind], f"{kind} file") for kind in sorted(formats)]


def no_page(folder: object, include: Sequence[str], *, staged: bool = False) -> str:
    """The message that a folder has no page, and why. ``include``: globs of pages. ``staged``: of staged files."""
    subject = f"{'Nothing staged' if staged else 'No file'} in {folder} is a page"
    if not include:
        return f"{subject}: source.include names none."
    return f"{subject}: none fits {', '.join(include)}, or all are left out."


def _names_below(folder: Path) -> Iterator[str]:
    """The names of files in a folder and its subfolders, except hidden, built and installed folders."""
    for _, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if name[:1] not in "._" and name not in _INSTALLED)
        yield from names


def _page_counts(around: Path) -> Counter[str]:
    """Name -> number of Markdown files, of the folders in ``around`` that have some, except hidden ones, links and
    installed packages. No more than :data:`MAX_COUNTED_ENTRIES` names are counted."""
    folders = (entry.name for entry in _entries(around) if entry.is_dir(follow_symlinks=False))
    counts = Counter[str]()
    for name in sorted(name for name in folders if name not in _INSTALLED and name[:1] != ".")[:MAX_FOLDERS]:
        files = itertools.islice(_names_below(around / name), MAX_COUNTED_ENTRIES)
        counts[name] = sum(map(has_page_ending, files))
    return +counts


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        return list(itertools.islice(entries, MAX_SEARCHED_ENTRIES))
    return []
