"""An HTML file of a site as its page: the facts that decide about it, its Markdown and its headings."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

from anvil.core.canonical_json import canonical
from anvil.core.html import parser, words
from anvil.core.html.content import PageRules
from anvil.core.html.page import read_page
from anvil.core.markdown import front_matter
from anvil.core.markdown.rendered_anchors import Heading
from anvil.core.site.pages import PageFacts


class ReadFile(NamedTuple):
    """What an HTML file says. ``markdown`` is empty for a page without text."""

    facts: PageFacts
    markdown: str
    headings: tuple[Heading, ...]


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
    except parser.Unreadable as error:
        return ReadFile(PageFacts(problem=str(error)), "", ())
    markdown = page.markdown
    if twin is not None and (same := _said_by(twin, markdown)) is not None:
        markdown = same
    values = [markdown, page.headings, page.title, page.description, page.language]
    facts = PageFacts(
        title=page.title,
        language=page.language,
        generator=page.generator,
        description=page.description,
        word_count=page.word_count,
        own_words=page.own_words,
        canonical=page.canonical,
        edit_url=page.edit_url,
        refresh=page.refresh,
        noindex=page.noindex,
        shell=page.shell,
        frames=page.frames,
        digest=hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest(),
    )
    return ReadFile(facts, markdown if page.word_count else "", page.headings)


def _said_by(twin: bytes, markdown: str) -> str | None:
    try:
        text = twin.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    _, begin = front_matter.split(text)
    return text[begin:] if words.say_the_same(markdown, text[begin:]) else None
