"""``AGENTS.md`` of a bundle: what the documentation is, for which version, where it begins and how to search it."""

from __future__ import annotations

import posixpath
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from anvil.formats.patterns import lazy_pattern
from anvil.text.headings import UNTITLED
from anvil.wording import counted

POINTER, PAGES, INDEX = "AGENTS.md", "docs", "docs.anvil.db"
"""What is in a bundle: this file, the folder of the pages, and an index of them."""
MAX_BYTES = 2048
"""UTF-8 bytes of the file: agents read it whole, whatever they look for."""
MAX_PLACE_CHARS = 300
"""Characters of the site's address, and bytes of the path of the first page, that the file names."""
_STARTS = ("index.md", "readme.md", "_index.md")
_BEGINNING = lazy_pattern(r"(?:^|[-_ ])(?:get(?:ting)?[-_ ]?started|quick[-_ ]?start|intro(?:duction)?|overview)\b")
_UNSAFE = "`\r\n"


class BundledProject(NamedTuple):
    """The project of a documentation. ``install``: the name by which ``anvil deps add`` finds its package; None where
    it is no package of a language that Anvil knows."""

    name: str
    version: str | None = None
    install: str | None = None


class PointedPage(NamedTuple):
    """A page: its path from the bundle's folder, and its title."""

    path: str
    title: str


def text(project: BundledProject, pages: Sequence[PointedPage], site: str | None, has_index: bool) -> str:
    """The file, of at most :data:`MAX_BYTES`. ``site``: where the documentation is published. ``has_index``: whether
    the bundle has an index of Anvil."""
    what = f"{project.name} {project.version}" if project.version else project.name
    published = f" The same pages are at {site}" if site and len(site) <= MAX_PLACE_CHARS else ""
    fits = " They are of the installed version: trust them more than memory and web pages." if project.version else ""
    first = start_page(pages)
    begin = f"- Begin: `{first.path}`\n" if first else ""
    lines = [
        f"# {what}: documentation\n",
        f"\n{counted(len(pages), 'page')} of Markdown in `{PAGES}/`.{fits}{published}\n",
        f"\nPaths are from the folder of this file.\n\n{begin}",
        f"- Search words: `grep -rniE 'word|other' {PAGES}/`\n",
        f"- Search headings: `grep -rniE '^#+ .*word' {PAGES}/`\n",
        f"- List all titles: `grep -rm1 '^title: ' {PAGES}/`\n",
        "- Links between pages are paths of files. `url` at the top of a page is its address on the web. Images "
        "are not here: they lead to the site.\n",
    ]
    if has_index:
        lines.append(f"- Ask, with Anvil (`pip install anvil-docs`): `anvil search --index {INDEX} 'question'`\n")
    if project.install:
        lines.append(
            f"- Ask from a project that uses it, with Anvil: `anvil deps add {project.install}`, then "
            "`anvil search 'question'`\n"
        )
    head = "".join(lines)
    return head + _folders(pages, MAX_BYTES - len(head.encode()))


def start_page(pages: Sequence[PointedPage]) -> PointedPage | None:
    """The page to begin with, the nearest to the top: an index, or one that is called like a beginning; or else the
    first of the others."""

    def order(page: PointedPage) -> tuple[object, ...]:
        name = posixpath.basename(page.path).lower()
        begins = name in _STARTS or _BEGINNING.search(name) is not None
        which = _STARTS.index(name) if name in _STARTS else len(_STARTS)
        return not begins, page.path.count("/"), which, page.path

    fit = [page for page in pages if not set(_UNSAFE) & set(page.path) and len(page.path.encode()) <= MAX_PLACE_CHARS]
    return min(fit, key=order, default=None)


def _folders(pages: Sequence[PointedPage], free: int) -> str:
    """The folders with most pages, and the titles of pages that are in none, as far as ``free`` bytes allow."""
    counts: Counter[str] = Counter()
    rows = []
    for page in pages:
        inside = page.path.removeprefix(f"{PAGES}/")
        if "/" in inside:
            counts[inside.partition("/")[0]] += 1
        elif page.title != UNTITLED:
            rows.append((0, f"- `{page.path}`: {page.title[:80]}\n"))
    rows += [(-count, f"- `{PAGES}/{name}/`: {counted(count, 'page')}\n") for name, count in counts.items()]
    head = "\n## Contents\n\n"
    chosen: list[str] = []
    free -= len(head.encode())
    for _, line in sorted(rows):
        size = len(line.encode("utf-8", "replace"))
        is_plain = line[:-1].isprintable() and line.count("`") == 2  # other names and titles could end the code
        if is_plain and size <= free:
            free -= size
            chosen.append(line)
    return head + "".join(chosen) if chosen else ""
