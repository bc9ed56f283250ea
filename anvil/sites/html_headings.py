"""The headings of a page, the ids by which they are reached, and the names in signatures: what a heading of the
documentation of an API shows besides the parameters."""

from __future__ import annotations

from collections.abc import Container

from anvil.sites import html_tree
from anvil.sites.content_words import spaced_text
from anvil.sites.html_tree import Element, classes
from anvil.sites.page_content import Content
from anvil.text.rendered_anchors import Heading

LEVELS = {f"h{level}": level for level in range(1, 7)}


def headings_of(content: Content) -> tuple[Heading, ...]:
    """The headings of a page in order, also those that have no id."""
    return tuple(
        Heading(LEVELS[node.tag or ""], anchor_of(node), text_of(node, content.skipped))
        for root in content.roots
        for node, begins in html_tree.walk(root, content.skipped)
        if begins and node.is_element_node and node.tag in LEVELS
    )


def text_of(heading: Element, skipped: Container[int]) -> str:
    """The text of a heading; of a signature its name."""
    return signature_name(heading, skipped) or " ".join(spaced_text(heading, skipped).split())


def anchor_of(heading: Element) -> str:
    """The id by which a heading is reached: its own, else one in it, that of an empty element before it, or of the
    section that it begins."""
    own = heading.attributes.get("id")
    if own:
        return own
    inner = html_tree.first(heading, "[id], a[name]")
    if inner is not None:
        return _id(inner)
    before = _before(heading)
    if before is not None and before.is_element_node and before.tag in ("a", "span", "div"):
        name = _id(before)
        if name and not before.text().strip():
            return name
    above = heading.parent
    for _ in range(2):
        if above is None or before is not None:
            return ""
        name = above.attributes.get("id") or ""
        if name and above.tag in ("section", "div", "article"):
            return name
        before, above = _before(above), above.parent
    return ""


def _id(element: Element) -> str:
    return element.attributes.get("id") or element.attributes.get("name") or ""


def _before(element: Element) -> Element | None:
    """The node before an element, blank text left out."""
    before = element.prev
    while before is not None and before.is_text_node and not (before.text_content or "").strip():
        before = before.prev
    return before


_END_OF_NAME = ("(", "=", ": ", "[", " ->", "\u2192")
_MKDOCSTRINGS = ".doc-object-name, code:not(.doc-symbol)"


def signature_name(node: Element, skipped: Container[int] = frozenset()) -> str:
    """The name in a signature of Sphinx (``dt.sig``) or in a heading of mkdocstrings, with the module in front if the
    page shows it there; empty for another element."""
    names = classes(node)
    if "sig" in names:
        return _of_sphinx(node)
    if "doc-heading" not in names:
        return ""
    named = html_tree.first(node, _MKDOCSTRINGS)
    text = "" if named is None else _plain(spaced_text(named, skipped))
    for end in _END_OF_NAME:
        text = text.partition(end)[0]
    return text.strip()


def _of_sphinx(node: Element) -> str:
    """Of several names of one entry, as ``-v, --verbose``, all."""
    found, module = [], ""
    for part in html_tree.select(node, ".sig-name, .sig-prename"):
        if "sig-prename" in classes(part):
            module = _plain(part.text())
        else:
            found.append(module + _plain(part.text()))
            module = ""
    return ", ".join(found)


def _plain(text: str) -> str:
    return " ".join(text.split())
