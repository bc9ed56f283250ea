"""The text of ``llms.txt``, which lists the pages of a site, and the head of ``llms-full.txt``, which contains them.

The format is that of https://llmstxt.org: a title, a summary as a quote, and sections of links. The sections are the
top entries of the navigation if it is known, else the top folders.
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
"""The section of pages that are in no section of the navigation, or in no folder with several pages."""
OPTIONAL = "Optional"
"""The section of pages that are not in the navigation. In llmstxt.org it has the links that readers may skip."""
MAX_LIST_BYTES = 100_000
"""The largest ``llms.txt``. Clients cut what they fetch at about this size. Descriptions are shortened, and then deeper
pages are left out, until it fits."""
DESCRIPTION_CHARS = (300, 100, 0)
"""Limits on the description of a page. The first one with which the list fits is used."""
MAX_FULL_BYTES = 50_000_000
"""The largest ``llms-full.txt``. A larger site has none."""


class PublishedSite(NamedTuple):
    """A site. ``url``: its address, which ends in ``/``; empty if unknown. ``mcp_url``: the address of an MCP server
    over its pages."""

    name: str
    summary: str = ""
    url: str = ""
    mcp_url: str | None = None


def list_file(site: PublishedSite, pages: Sequence[MarkdownPage], has_full: bool = True) -> str:
    """The text of ``llms.txt`` with the pages in this order. ``has_full``: the site has ``llms-full.txt``, too."""
    server = f"\nTo search these pages, use the MCP server at <{site.mcp_url}>.\n" if site.mcp_url else ""
    start = head(site) + server
    sections = _sections(pages)
    depth = max((page.path.count("/") for page in pages), default=0)
    limits = [*((chars, depth) for chars in DESCRIPTION_CHARS), *((0, lower) for lower in reversed(range(depth)))]
    for chars, max_depth in limits:
        text = start + _list(site, sections, chars, max_depth, has_full)
        if len(text.encode(errors="replace")) <= MAX_LIST_BYTES:
            break
    return text


def head(site: PublishedSite) -> str:
    """The title and the summary of the site, with which both files begin."""
    return f"# {one_line(site.name)}\n" + (f"\n> {one_line(site.summary)}\n" if one_line(site.summary) else "")


def _sections(pages: Sequence[MarkdownPage]) -> dict[str, list[MarkdownPage]]:
    """Title of a section -> its pages. Sections are in the order of their first pages; :data:`OPTIONAL` is last."""
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
    """A function that gives the section of a page by its folder.

    It is the folder below the folders that contain all pages, if it has several pages. Its title is that of the
    folder's index page, else the name of the folder.
    """
    paths = [page.path.split("/") for page in pages if "/" in page.path]
    common = 0
    while paths and all(len(path) > common + 1 and path[common] == paths[0][common] for path in paths):
        common += 1
    counts = Counter("/".join(path[: common + 1]) for path in paths if len(path) > common + 1)
    names: dict[str, str] = {}
    for page in pages:
        names.setdefault(page.path.removesuffix(".md").removesuffix("/index"), page.title)

    def name(page: MarkdownPage) -> str:
        parts = page.path.split("/")
        folder = "/".join(parts[: common + 1])
        return names.get(folder, parts[common]) if counts[folder] > 1 else TOP_SECTION

    return name


def _list(
    site: PublishedSite, sections: dict[str, list[MarkdownPage]], chars: int, max_depth: int, has_full: bool
) -> str:
    """The sections with a link to each page of at most ``max_depth`` folders, and to at least one page each."""
    lines = []
    for section, pages in sections.items():
        linked = [page for page in pages if page.path.count("/") <= max_depth] or pages[:1]
        lines.append(f"\n## {section}\n\n")
        lines += [_link(site.url, page, chars) for page in linked]
        if remaining := len(pages) - len(linked):
            full = f": [{FULL}]({site.url}{FULL})" if has_full else ""
            lines.append(f"- {counted(remaining, 'page')} more{full}\n")
    return "".join(lines)


def _link(site_url: str, page: MarkdownPage, chars: int) -> str:
    title = one_line(page.title).replace("[", "(").replace("]", ")")
    description = one_line(page.description)
    if len(description) > chars:
        description = description[: chars - 1].rstrip() + "…" if chars else ""
    return f"- [{title}]({site_url}{urllib.parse.quote(page.path)}){f': {description}' if description else ''}\n"
