"""Documentation that a package carries: an index, or pages from which one is built."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

MAX_PAGES = 5000
_INDEX = re.compile(r"(?P<above>(?:[^/]+/)*?)(?:anvil/index\.db|[^/]*\.anvil\.db)")
_LLMS = re.compile(r"(?P<above>(?:[^/]+/)*?)llms-full\.txt", re.IGNORECASE)
_PAGE = re.compile(r"(?P<above>(?:[^/]+/)*?)(?:docs?|documentation)/.*\.(?:md|mdx|markdown)", re.IGNORECASE)
_MAX_ABOVE = 3
"""Folders above a folder of pages that no ``AGENTS.md`` is beside."""
_POINTER = re.compile(r"(?P<above>(?:[^/]+/)*)AGENTS\.md", re.IGNORECASE)
_NO_DOCUMENTATION = re.compile(r"(?:^|/)(?:node_modules|tests?|templates?|examples?)/", re.IGNORECASE)
_METADATA = re.compile(r"(?:^|/)[^/]*\.dist-info/", re.IGNORECASE)
"""The folder of a wheel's metadata, which also has licences. Pages in it count only beside an ``AGENTS.md``."""


@dataclass(frozen=True, slots=True)
class Carried:
    """``index``: the path of an index; ``pages``: paths of pages; ``llms``: the path of a ``llms-full.txt``. Of these
    the first that is there is used."""

    index: str | None
    pages: tuple[str, ...]
    llms: str | None

    def __bool__(self) -> bool:
        return bool(self.index or self.pages or self.llms)


def find(paths: Collection[str]) -> Carried:
    """What the files of a package carry. Of several indexes the one nearest to the top counts.

    Pages are those in folders ``docs``. Where an ``AGENTS.md`` is beside such a folder, as publishers put it there for
    agents, only the pages of these folders count.
    """
    pointers = {match["above"].lower() for path in paths if (match := _POINTER.fullmatch(path))}

    def above(pattern: re.Pattern[str], path: str) -> str | None:
        """The folders above what is documentation; None where it is none. What is below may have any name."""
        match = pattern.fullmatch(path)
        if match is None or _NO_DOCUMENTATION.search(match["above"]):
            return None
        is_metadata = _METADATA.search(match["above"]) and match["above"].lower() not in pointers
        return None if is_metadata else match["above"]

    def nearest(pattern: re.Pattern[str]) -> str | None:
        fit = (path for path in paths if above(pattern, path) is not None)
        return min(fit, key=lambda path: (path.count("/"), path), default=None)

    folders = {path: folder.lower() for path in paths if (folder := above(_PAGE, path)) is not None}
    is_pointed = any(folder in pointers for folder in folders.values())
    pages = sorted(
        path
        for path, folder in folders.items()
        if (folder in pointers if is_pointed else folder.count("/") <= _MAX_ABOVE)
    )
    return Carried(index=nearest(_INDEX), pages=tuple(pages[:MAX_PAGES]), llms=nearest(_LLMS))


def sections(text: str) -> list[tuple[str, str]]:
    """(name, text) of the pages in a ``llms-full.txt``: it is cut at its first-level headings outside of code."""
    pages: list[tuple[str, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = re.match(r" {0,3}(`{3,}|~{3,})", line)
        if mark and not fence:
            fence = mark[1]
        elif mark and mark[1].startswith(fence) and not line.strip().strip(mark[1][0]):
            fence = ""
        heading = None if fence else re.match(r"# +(\S.*)", line)
        if heading or not pages:
            pages.append((heading[1].strip() if heading else "", []))
        pages[-1][1].append(line)
    named: dict[str, str] = {}
    for title, lines in pages:
        slug = re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")[:60] or "page"
        name = slug
        for number in range(2, len(pages) + 2):
            if f"{name}.md" not in named:
                break
            name = f"{slug}-{number}"
        if "".join(lines).strip():
            named[f"{name}.md"] = "".join(lines)
    return sorted(named.items())
