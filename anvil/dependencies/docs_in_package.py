"""Documentation that a package carries: an index, or pages from which one is built."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass

MAX_PAGES = 5000
_INDEX = re.compile(r"(?:[^/]+/)*(?:anvil/index\.db|[^/]*\.anvil\.db)")
_LLMS = re.compile(r"(?:[^/]+/)*llms-full\.txt", re.IGNORECASE)
_PAGE = re.compile(r"(?:[^/]+/){0,3}(?:docs?|documentation)/.*\.(?:md|mdx|markdown)", re.IGNORECASE)
_NO_DOCUMENTATION = re.compile(r"(?:^|/)(?:node_modules|[^/]*\.dist-info|tests?|templates?|examples?)/", re.IGNORECASE)


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
    """What the files of a package carry. Of several indexes the one nearest to the top counts."""
    fit = sorted(
        (path for path in paths if not _NO_DOCUMENTATION.search(path)), key=lambda path: (path.count("/"), path)
    )
    pages = sorted(path for path in fit if _PAGE.fullmatch(path))
    return Carried(
        index=next((path for path in fit if _INDEX.fullmatch(path)), None),
        pages=tuple(pages[:MAX_PAGES]),
        llms=next((path for path in fit if _LLMS.fullmatch(path)), None),
    )


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
