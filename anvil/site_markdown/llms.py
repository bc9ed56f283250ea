"""``llms.txt`` and ``llms-full.txt``: the list of a site's pages, and all of them in one file. Pure.

The form is that of https://llmstxt.org: a title, a summary in a quote, and sections of links. The sections are the top
entries of the navigation where it is known, else the top folders.
"""

from __future__ import annotations

import urllib.parse
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from anvil.site_markdown.page_file import MarkdownPage, one_line
from anvil.wording import counted

LIST, FULL = "llms.txt", "llms-full.txt"
TOP_SECTION = "Pages"
"""The section of pages that are in no section of the navigation, or in no folder."""
OPTIONAL = "Optional"
"""The section of pages that are not in the navigation. llmstxt.org has this name for links that may be skipped."""
MAX_LIST_BYTES = 100_000
"""Size of ``llms.txt``, which is made to be read whole: clients cut what they fetch at about this size. Descriptions
get shorter, and then deeper pages get left out, until it fits."""
DESCRIPTION_CHARS = (300, 100, 0)
"""Longest description of a page, in the first list that fits."""
MAX_FULL_BYTES = 50_000_000
"""Size of ``llms-full.txt``. Of a larger site there is none."""


class PublishedSite(NamedTuple):
    """A site. ``url``: its address, which ends in ``/``; empty where it is not known. ``mcp_url``: a server over its
    pages."""

    name: str
    summary: str = ""
    url: str = ""
    mcp_url: str | None = None


def list_file(site: PublishedSite, pages: Sequence[MarkdownPage], has_full: bool = True) -> str:
    """``llms.txt``, with the pages in this order. ``has_full``: ``llms-full.txt`` is beside it."""
    server = f"\nTo search these pages, use the MCP server at <{site.mcp_url}>.\n" if site.mcp_url else ""
    start = head(site) + server
    sections = _sections(pages)
    depth = max((page.path.count("/") for page in pages), default=0)
    limits = [*((chars, depth) for chars in DESCRIPTION_CHARS), *((0, less) for less in reversed(range(depth)))]
    for chars, deepest in limits:
        text = start + _listed(site, sections, chars, deepest, has_full)
        if len(text.encode(errors="replace")) <= MAX_LIST_BYTES:
            break
    return text


def head(site: PublishedSite) -> str:
    """The first lines of both files."""
    return f"# {one_line(site.name)}\n" + (f"\n> {one_line(site.summary)}\n" if one_line(site.summary) else "")


def _sections(pages: Sequence[MarkdownPage]) -> dict[str, list[MarkdownPage]]:
    """Title -> pages, in the order of the first page of each; the optional ones are last."""
    by_folder = None if any(page.above is not None for page in pages) else _by_folder(pages)
    sections: dict[str, list[MarkdownPage]] = {}
    for page in pages:
        if by_folder is not None:
            name = by_folder(page)
        else:  # by navigation
            name = OPTIONAL if page.above is None else page.above[0] if page.above else TOP_SECTION
        sections.setdefault(one_line(name), []).append(page)
    last = sections.pop(OPTIONAL, None)
    return sections if last is None else {**sections, OPTIONAL: last}


def _by_folder(pages: Sequence[MarkdownPage]) -> Callable[[MarkdownPage], str]:
    """Section of a page: the folder below those that all pages are in, if it has several. It is called what its first
    page is."""
    paths = [page.path.split("/") for page in pages if "/" in page.path]
    above = 0
    while paths and all(len(path) > above + 1 and path[above] == paths[0][above] for path in paths):
        above += 1
    counts = Counter("/".join(path[: above + 1]) for path in paths if len(path) > above + 1)
    names: dict[str, str] = {}
    for page in pages:
        names.setdefault(page.path.removesuffix(".md").removesuffix("/index"), page.title)

    def name(page: MarkdownPage) -> str:
        parts = page.path.split("/")
        folder = "/".join(parts[: above + 1])
        return names.get(folder, parts[above]) if counts[folder] > 1 else TOP_SECTION

    return name


def _listed(
    site: PublishedSite, sections: dict[str, list[MarkdownPage]], chars: int, depth: int, has_full: bool
) -> str:
    lines = []
    for section, pages in sections.items():
        shown = [page for page in pages if page.path.count("/") <= depth] or pages[:1]
        lines.append(f"\n## {section}\n\n")
        lines += [_link(site.url, page, chars) for page in shown]
        if left := len(pages) - len(shown):
            where = f": [{FULL}]({site.url}{FULL})" if has_full else ""
            lines.append(f"- {counted(left, 'page')} more{where}\n")
    return "".join(lines)


def _link(site_url: str, page: MarkdownPage, chars: int) -> str:
    title = one_line(page.title).replace("[", "(").replace("]", ")")
    about = one_line(page.description)
    if len(about) > chars:
        about = about[: chars - 1].rstrip() + "…" if chars else ""
    return f"- [{title}]({site_url}{urllib.parse.quote(page.path)}){f': {about}' if about else ''}\n"
