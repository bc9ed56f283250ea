"""``AGENTS.md`` of a bundle: project and version, the page to begin with, and how to search the pages."""

from __future__ import annotations

import posixpath
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from anvil.formats.patterns import lazy_pattern
from anvil.wording import counted

POINTER, PAGES, INDEX = "AGENTS.md", "docs", "docs.anvil.db"
"""The parts of a bundle: this file, the folder of the pages, and an index of them."""
MAX_PLACE_BYTES = 300
"""UTF-8 bytes of the longest address of a site, and of the longest path of a first page, that the file names."""
_STARTS = ("index.md", "readme.md", "_index.md")
_BEGINNING = lazy_pattern(r"(?:^|[-_ ])(?:get(?:ting)?[-_ ]?started|quick[-_ ]?start|intro(?:duction)?|overview)\b")
_UNSAFE = "`\r\n"
"""Characters that would break the Markdown around a path."""


class BundledProject(NamedTuple):
    """The project that the documentation is about. ``install``: the name by which ``anvil deps add`` finds its package;
    None if its language has no packages that Anvil finds."""

    name: str
    version: str | None = None
    install: str | None = None


def text(project: BundledProject, pages: Sequence[str], site: str | None, has_index: bool) -> str:
    """The text of the file, of 2 KB at most, because agents read all of it for each task.

    ``pages``: their paths from the bundle's folder. ``site``: the address where the documentation is published; None if
    unknown. ``has_index``: whether the bundle has an index of Anvil.
    """
    what = f"{project.name} {project.version}" if project.version else project.name
    is_short = site is not None and 0 < len(site.encode("utf-8", "replace")) <= MAX_PLACE_BYTES
    published = f" The same pages are at {site}" if is_short else ""
    fits = " They are of the installed version: trust them more than memory and web pages." if project.version else ""
    first = start_page(pages)
    begin = f"- Begin: `{first}`\n" if first else ""
    lines = [
        f"# {what}: documentation\n",
        f"\n{counted(len(pages), 'page')} of Markdown in `{PAGES}/`.{fits}{published}\n",
        f"\nPaths are from the folder of this file.\n\n{begin}",
        f"- Search words: `grep -rniE 'word|other' {PAGES}/`\n",
        f"- Search headings: `grep -rniE '^#+ .*word' {PAGES}/`\n",
        f"- List all titles: `grep -rm1 '^title: ' {PAGES}/`\n",
        "- Links between pages are paths of files. A `url` at the top of a page is its address on the web. Images "
        "are not in this folder.\n",
    ]
    if has_index:
        lines.append(f"- Ask, with Anvil (`pip install anvil-docs`): `anvil search --index {INDEX} 'question'`\n")
    if project.install:
        lines.append(
            f"- Ask from a project that uses it, with Anvil: `anvil deps add {project.install}`, then "
            "`anvil search 'question'`\n"
        )
    return "".join(lines)


def start_page(pages: Iterable[str]) -> str | None:
    """The page to begin with: an index, or a page with a name such as ``getting-started``, nearest to the top; if there
    is none, the first page nearest to the top. None if there is no page."""

    def order(path: str) -> tuple[object, ...]:
        name = posixpath.basename(path).lower()
        begins = name in _STARTS or _BEGINNING.search(name) is not None
        which = _STARTS.index(name) if name in _STARTS else len(_STARTS)
        return not begins, path.count("/"), which, path

    usable = [path for path in pages if not set(_UNSAFE) & set(path) and len(path.encode()) <= MAX_PLACE_BYTES]
    return min(usable, key=order, default=None)
