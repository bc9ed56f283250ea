"""The site for readers without MCP: ``llms.txt``, ``llms-full.txt``, and each page's Markdown beside its HTML.

The form is that of https://llmstxt.org: a title, a summary in a quote, and sections of links. Sections are the topmost
entries of the navigation, pages stand in its order.
"""

from __future__ import annotations

import posixpath
import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

WHOLE = ("llms.txt", "llms-full.txt")
LOOSE = "Pages"
"""The section of pages that stand alone in the navigation."""
OPTIONAL = "Optional"
"""llmstxt.org's name for what may be left out: pages that are not in the navigation."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A page: its title, the sections it stands under, where its HTML lies in the site, its address, what it is about,
    and its Markdown. ``above`` is None for a page that is not in the navigation."""

    title: str
    above: tuple[str, ...] | None
    dest: str
    url: str | None
    description: str
    text: str


def markdown_path(dest: str) -> str:
    """Where a page's Markdown lies: ``guide/index.html`` -> ``guide/index.md``, ``guide.html`` -> ``guide.md``."""
    return posixpath.splitext(dest)[0] + ".md"


def files(name: str, summary: str, site_url: str, pages: Sequence[Entry]) -> Mapping[str, str]:
    """Path in the site -> text, of all that is written. ``site_url`` is empty or ends in ``/``."""
    found = {markdown_path(page.dest): _ended(page.text) for page in pages}
    head = f"# {_line(name)}\n" + (f"\n> {_line(summary)}\n" if _line(summary) else "")
    return dict(zip(WHOLE, (head + _sections(site_url, pages), head + _all(pages)), strict=True)) | found


def _sections(site_url: str, pages: Sequence[Entry]) -> str:
    sections: dict[str, list[Entry]] = {}
    for page in pages:
        section = OPTIONAL if page.above is None else page.above[0] if page.above else LOOSE
        sections.setdefault(section, []).append(page)
    order = sorted(sections, key=lambda section: section == OPTIONAL)  # stable: it comes last, the rest as it is
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
