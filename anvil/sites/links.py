"""What a page of HTML leads to and what can be led to in it: its links, images and ids."""

from __future__ import annotations

from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.page_content import NO_RULES, PageRules, content_of


class PageLink(NamedTuple):
    """A link or an image of a page: what it leads to as written, its text or alternative text, and whether it is in the
    page's content, not around it."""

    target: str
    text: str
    is_image: bool
    is_content: bool


class PageLinks(NamedTuple):
    """``ids``: of all elements. ``text``: that of the content, its white space single blanks. ``is_redirect``: the page
    only leads to another."""

    ids: frozenset[str]
    links: tuple[PageLink, ...]
    text: str
    is_redirect: bool


def read_links(html: bytes | str, rules: PageRules = NO_RULES) -> PageLinks:
    """Read a page. Raises :class:`html_tree.Unreadable` when it is too deep."""
    tree = html_tree.parse(html)
    roots = content_of(tree, rules).roots
    inside = html_tree.ids([element for root in roots for element in html_tree.select(root, "a[href], img[src]")])
    links = []
    for element in html_tree.select(tree, "a[href], img[src]"):
        attributes, is_image = element.attributes, element.tag == "img"
        target = attributes.get("src" if is_image else "href") or ""
        text = " ".join(((attributes.get("alt") or "") if is_image else element.text()).split())
        links.append(PageLink(target.strip(), text, is_image, element.mem_id in inside))
    attributes_of = [element.attributes for element in html_tree.select(tree, "[id], a[name]")]
    ids = frozenset(value for each in attributes_of for name in ("id", "name") if (value := each.get(name)))
    text = " ".join(" ".join(root.text() for root in roots).split())
    return PageLinks(ids, tuple(links), text, html_tree.first(tree, "meta[http-equiv=refresh i]") is not None)
