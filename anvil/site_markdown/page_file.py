"""The Markdown file of a page: front matter, a title, and the text that readers see, with its images and links."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from anvil.sites.site_pages import PageImage
from anvil.text import front_matter, markdown_sections, references, visible_text
from anvil.text.headings import page_title
from anvil.text.references import TargetSpan
from anvil.values import UNKNOWN_TIME, Document

_NOT_PRINTED = re.compile(r"[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
"""Characters that must be escaped in a quoted value of YAML, but not in JSON."""


@dataclass(frozen=True, slots=True)
class MarkdownPage:
    """A page for readers of Markdown. A value that is empty or None is not known.

    ``path``: the path of its file, POSIX, in the folder of all such files. ``text``: Markdown with a heading of level
    1, without front matter. ``last_modified``: ISO 8601 in UTC. ``above``: the titles of the sections above it in the
    navigation; None for a page that is not in the navigation.
    """

    path: str
    title: str
    text: str
    url: str | None = None
    description: str = ""
    version: str | None = None
    language: str | None = None
    last_modified: str | None = None
    above: tuple[str, ...] | None = None


def page_of(
    document: Document, path: str, above: tuple[str, ...] | None = None, images: Iterable[PageImage] = ()
) -> MarkdownPage:
    """The page of a document. If its text has no heading of level 1, it gets the title as one. ``images``: images of
    which the text has only the alternative text."""
    declared, begin = front_matter.split(document.text)
    text = with_images(document.text, images)[begin:]
    metadata = {**declared, **document.metadata}
    leading_title = markdown_sections.leading_title(text)
    title = document.title or _text(metadata, "title") or leading_title
    has_heading = leading_title is not None
    # Most pages begin with their title. Others are parsed only if they need a title or may have a heading further down.
    if not has_heading and (not title or markdown_sections.may_have_h1(text)):
        parsed = document.page or markdown_sections.parse(text)
        headings = ((section.heading_level, section.title) for section in parsed.sections if section.heading_level)
        title = title or page_title(document.path, parsed.title, headings)
        has_heading = any(section.heading_level == 1 for section in parsed.sections)
    assert title
    if document.cleaned:
        text = visible_text.without_hidden_lines(_mask(text))
    if not has_heading:
        text = f"# {one_line(title)}\n\n{text.lstrip()}"
    modified = document.last_modified
    return MarkdownPage(
        path=path,
        title=one_line(title),
        text=text.strip("\r\n") + "\n",
        url=document.url,
        description=one_line(_text(metadata, "description") or ""),
        version=_text(metadata, "version"),
        language=_text(metadata, "language"),
        last_modified=modified if modified and modified != UNKNOWN_TIME else None,
        above=above,
    )


def render(page: MarkdownPage, link: Callable[[str], str | None], spans: Sequence[TargetSpan] | None = None) -> str:
    """The text of a page's file. ``link``: gives the target to write for the target of a link or an image; for None,
    only the text of the link is written. ``spans``: the targets in the page's text, if they are known."""
    values = {
        "title": page.title,
        "url": page.url,
        "description": page.description,
        "version": page.version,
        "language": page.language,
        "last_modified": page.last_modified,
    }
    head = "".join(f"{key}: {_quoted(value)}\n" for key, value in values.items() if value)
    text = references.with_targets(page.text, references.target_spans(page.text) if spans is None else spans, link)
    return f"---\n{head}---\n\n{text}"


def _mask(text: str) -> str:
    """The text in which everything that readers do not see is masked, except definitions of links, which links need."""
    masked_text, at = visible_text.masked(text, site=True), 0
    pieces: list[str] = []
    for span in visible_text.spans(text, site=True):
        if span.kind == "definition" and text[span.start : span.end].lstrip(" \t>").startswith("["):
            pieces += masked_text[at : span.start], text[span.start : span.end]
            at = span.end
    return "".join([*pieces, masked_text[at:]])


def with_images(text: str, images: Iterable[PageImage]) -> str:
    """The Markdown of a page in which images replace their alternative texts."""
    pieces: list[str] = []
    at = 0
    for image in images:
        if image.start >= at and text.startswith(image.alt, image.start):
            pieces += text[at : image.start], image.markdown
            at = image.start + len(image.alt)
    return "".join([*pieces, text[at:]])


def _text(metadata: dict[str, object], key: str) -> str | None:
    value = metadata.get(key)
    return value.strip() or None if isinstance(value, str) else None


def one_line(text: str) -> str:
    """A text with single spaces and without line ends."""
    return " ".join(text.split())


def _quoted(value: str) -> str:
    """A value as a double-quoted YAML scalar, which no reader takes for a number, a date or a Boolean."""
    valid = value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")  # without halves of surrogate pairs
    return _NOT_PRINTED.sub(lambda match: f"\\u{ord(match[0]):04X}", json.dumps(valid, ensure_ascii=False))
