"""An HTML file of a site as its page: the facts that decide about it, its Markdown and its headings."""

from __future__ import annotations

import hashlib
import html
import posixpath
import re
from typing import NamedTuple
from urllib.parse import quote, unquote, urljoin, urlsplit

from anvil.formats.canonical_json import canonical
from anvil.sites import content_words, copies, html_tree
from anvil.sites.html_page import read_page
from anvil.sites.page_content import PageRules
from anvil.sites.page_facts import PageFacts
from anvil.text import front_matter
from anvil.text.rendered_anchors import Heading


class ReadFile(NamedTuple):
    """What an HTML file says. ``markdown`` is empty for a page without text."""

    facts: PageFacts
    markdown: str
    headings: tuple[Heading, ...]


_TWIN_LINK = re.compile(rb"<link\b[^>]{0,500}\btext/markdown\b[^>]{0,500}>", re.I)
_HREF = re.compile(rb"\shref\s*=\s*(?:\"([^\">]*)\"|'([^'>]*)'|([^\s\"'>]+))", re.I)
_OTHER_FOLDER = frozenset("\\:\0")
MIN_PASSAGE_WORDS = 8
"""Words of a passage that is looked for in other pages."""
_HEADING_LINE = re.compile(r"^#{1,6} .*\n?", re.M)
MAX_FOLDERS_ABOVE = 4
"""Folders of an address in which the site may be published."""


def linked_twins(data: bytes, path: str) -> tuple[str, ...]:
    """The paths at which the Markdown may be that an HTML file names: ``<link rel=alternate type="text/markdown">``.

    The address may begin with folders in which the site is published, so there are several.
    """
    link = _TWIN_LINK.search(data) if b"text/markdown" in data else None
    target = _HREF.search(link[0]) if link else None
    if target is None:
        return ()
    href = html.unescape((target[1] or target[2] or target[3] or b"").decode("utf-8", "replace"))
    try:
        address = unquote(urlsplit(urljoin(f"https://site.invalid/{quote(path)}", href)).path)
    except ValueError:
        return ()
    parts = posixpath.normpath(address).strip("/").split("/")
    if not parts[-1].endswith(".md") or not is_plain("/".join(parts)):
        return ()
    return tuple("/".join(parts[above:]) for above in range(min(len(parts), MAX_FOLDERS_ABOVE + 1)))


def is_plain(path: str) -> bool:
    """Whether a path of a file in a site names that file on all systems. On Windows a backslash or a colon leads to
    another folder, a drive, a network share or a second stream of a file."""
    return _OTHER_FOLDER.isdisjoint(path) and ".." not in path.split("/")


def digest_of(data: bytes, twin: bytes | None) -> str:
    """The SHA-256 (hex) of a file, with the Markdown that the site has of it."""
    digest = hashlib.sha256(data)
    if twin is not None:
        digest.update(b"\0twin" + twin)
    return digest.hexdigest()


def read_file(data: bytes, twin: bytes | None, rules: PageRules) -> ReadFile:
    """Read an HTML file. ``twin``: the Markdown that the site has of this page, which is used if it says the same."""
    try:
        page = read_page(data, rules)
    except html_tree.Unreadable as error:
        return ReadFile(PageFacts(problem=str(error)), "", ())
    markdown = page.markdown
    if twin is not None and (same := _said_by(twin, markdown)) is not None:
        markdown = same
    facts = page.facts
    values = [markdown, page.headings, facts.title, facts.description, facts.language]
    digest = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest()
    facts = facts._replace(digest=digest, passages=_passages(markdown))
    return ReadFile(facts, markdown if facts.word_count else "", page.headings)


def _passages(markdown: str) -> str:
    """The texts between the headings of a page, in short: the number of all their words, then digest and number of
    words of each that is long enough to be looked for."""
    total = 0
    found = []
    for body in _HEADING_LINE.split(markdown):
        own = content_words.of_markdown(body)
        total += len(own)
        if len(own) >= MIN_PASSAGE_WORDS:
            digest = hashlib.sha256(" ".join(own).encode("utf-8", "surrogatepass")).hexdigest()
            found.append(f"{digest[: copies.DIGEST_CHARACTERS]}{len(own)}")
    return " ".join((str(total), *found))


def _said_by(twin: bytes, markdown: str) -> str | None:
    try:
        text = twin.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    _, begin = front_matter.split(text)
    return text[begin:] if content_words.say_the_same(markdown, text[begin:]) else None
