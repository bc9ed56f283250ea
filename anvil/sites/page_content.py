"""The part of a page that is its content, and what in it is left out: navigation, links to edit, buttons, twins."""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

from anvil.sites import html_tree
from anvil.sites.generators import GENERATORS, GENERIC, Generator
from anvil.sites.html_tree import Element, Tree

INERT = frozenset(
    """
    script style template noscript iframe svg canvas object embed audio video select textarea datalist dialog xmp
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
"""Elements whose content is not text of the page."""
_LINKS_TO_ITSELF = ", ".join(
    f"{tag} a[href^='#']" for tag in ("h1", "h2", "h3", "h4", "h5", "h6", "dt", "caption", "figcaption", "summary")
)
_ANCHOR_SIGN = re.compile(r"[\W_]*", re.S)


class PageRules(NamedTuple):
    """A user's CSS selectors: of the content element, where the generator's is wrong, and of what is left out."""

    content: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()


NO_RULES = PageRules()


class Content(NamedTuple):
    """The content elements of a page, in order, and the elements in them that are left out (see
    :func:`html_tree.ids`)."""

    roots: tuple[Element, ...]
    skipped: frozenset[int]


def validate(rules: PageRules) -> None:
    """Raises :class:`ConfigError` for a selector that cannot be read."""
    tree = html_tree.parse("")
    for selector in (*rules.content, *rules.ignore):
        html_tree.select(tree, selector)


def generator_of(tree: Tree) -> Generator:
    """The generator that made a page; :data:`GENERIC` for an unknown one."""
    metas = [
        (element.attributes.get("content") or "").strip().lower()
        for element in html_tree.select(tree, "meta[name=generator i]")
    ]
    for generator in GENERATORS:
        named = bool(generator.meta) and any(meta.startswith(generator.meta) for meta in metas)
        if named or not generator.meta:
            if not generator.markup or html_tree.first(tree, generator.markup) is not None:
                return generator
        elif generator.markup and not metas and html_tree.first(tree, generator.markup) is not None:
            return generator
    return GENERIC


def content_of(tree: Tree, rules: PageRules = NO_RULES, generator: Generator | None = None) -> Content:
    """The content of a page. Elements with ``data-pagefind-body`` come first, then the user's selectors, then those of
    the generator, then :data:`GENERIC`'s."""
    generator = generator or generator_of(tree)
    selectors = (*rules.content, "[data-pagefind-body]", *generator.content, *GENERIC.content)
    roots: Sequence[Element] = ()
    for selector in selectors:
        roots = _outermost(html_tree.select(tree, selector))
        if roots:
            break
    ignored = _ignored(rules.ignore, generator)
    left_out = [element for root in roots for element in html_tree.select(root, ignored)]
    around = _around(roots)
    skipped = html_tree.ids([element for element in left_out if element.mem_id not in around])
    return Content(tuple(roots), skipped | _anchor_links(roots))


@functools.lru_cache(maxsize=64)
def _ignored(own: tuple[str, ...], generator: Generator) -> str:
    lists = (*own, "[data-pagefind-ignore]", *sorted(INERT), generator.ignore, GENERIC.ignore)
    return ", ".join(filter(None, lists))


def is_note_reference(link: Element) -> bool:
    """Whether a link leads to a footnote."""
    attributes = link.attributes
    names = (attributes.get("class") or "").split()
    return (
        "footnote-ref" in names
        or "footnote-reference" in names
        or attributes.get("role") == "doc-noteref"
        or "data-footnote-ref" in attributes
        or (attributes.get("rel") == "footnote" and "footnote" in names)
        or (link.parent is not None and "footnote-ref" in html_tree.classes(link.parent))
    )


def _outermost(elements: Sequence[Element]) -> list[Element]:
    """The elements that are in none of the others."""
    if len(elements) < 2:
        return list(elements)
    chosen: list[Element] = []
    known = html_tree.ids(elements)
    for element in elements:
        above = element.parent
        while above is not None and above.mem_id not in known:
            above = above.parent
        if above is None:
            chosen.append(element)
    return chosen


def _around(elements: Sequence[Element]) -> frozenset[int]:
    """The elements and those that contain them, which are never left out."""
    around: set[int] = set()
    for element in elements:
        above: Element | None = element
        while above is not None and above.mem_id not in around:
            around.add(above.mem_id)
            above = above.parent
    return frozenset(around)


def _anchor_links(roots: Sequence[Element]) -> frozenset[int]:
    """The links of headings to themselves that are only a sign, such as "#", "¶" or a picture."""
    links = (link for root in roots for link in html_tree.select(root, _LINKS_TO_ITSELF))
    return html_tree.ids([link for link in links if _ANCHOR_SIGN.fullmatch(link.text())])
