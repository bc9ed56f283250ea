"""The site for agents without MCP: ``llms.txt``, ``llms-full.txt``, and each page's Markdown next to its HTML.

The form is that of https://llmstxt.org: a title, a summary in a quote, and sections of links. The sections are the top
entries of the navigation. Pages have its order.
"""

from __future__ import annotations

import posixpath
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

SITE_FILES = ("llms.txt", "llms-full.txt")
"""The files about the whole site."""
TOP_SECTION = "Pages"
"""The section of pages that are in no section of the navigation."""
OPTIONAL = "Optional"
"""The section of pages that are not in the navigation. llmstxt.org has this name for links that may be skipped."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: its title, the sections above it in the navigation, the path of its HTML in the site, its address, its
    description and its Markdown. ``above`` is None for a page that is not in the navigation."""

    title: str
    above: tuple[str, ...] | None
    dest: str
    url: str | None
    description: str
    text: str


def markdown_path(dest: str) -> str:
    """The path of a page's Markdown: ``guide/index.html`` -> ``guide/index.md``, ``guide.html`` -> ``guide.md``."""
    return posixpath.splitext(dest)[0] + ".md"


def files(
    name: str, summary: str, site_url: str, pages: Sequence[Entry], mcp_url: str | None = None
) -> Mapping[str, str]:
    """All files as path in the site -> text. ``site_url`` is empty or ends in ``/``. ``mcp_url``: a server over the
    pages."""
    page_files = {markdown_path(page.dest): _ended(page.text) for page in pages}
    head = f"# {_line(name)}\n" + (f"\n> {_line(summary)}\n" if _line(summary) else "")
    server = f"\nTo search these pages, use the MCP server at <{mcp_url}>.\n" if mcp_url else ""
    return (
        dict(zip(SITE_FILES, (head + server + _sections(site_url, pages), head + _all(pages)), strict=True))
        | page_files
    )


def _sections(site_url: str, pages: Sequence[Entry]) -> str:
    sections: dict[str, list[Entry]] = {}
    for page in pages:
        section = OPTIONAL if page.above is None else page.above[0] if page.above else TOP_SECTION
        sections.setdefault(section, []).append(page)
    order = sorted(
        sections, key=lambda section: section == OPTIONAL
    )  # stable: OPTIONAL is last, the others keep their order
    return "".join(
        f"\n## {_line(section)}\n\n" + "".join(_link(site_url, page) for page in sections[section]) for section in order
    )


def _link(site_url: str, page: Entry) -> str:
    title = _line(page.title).replace("[", "(").replace("]", ")")
    about = f": {_line(page.description)}" if _line(page.description) else ""
    return f"- [{title}]({site_url}{urllib.parse.quote(markdown_path(page.dest))}){about}\n"


def _all(pages: Sequence[Entry]) -> str:
    return "".join(f"\n<!-- {page.url or page.dest} -->\n\n{_ended(page.text)}" for page in pages)


def _line(text: str) -> str:
    return " ".join(text.split())


def _ended(text: str) -> str:
    return text.strip("\n") + "\n"
