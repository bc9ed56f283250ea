"""Admonitions of all generators: which elements are one, of which kind, and where its title is."""

from __future__ import annotations

import re

from anvil.sites.html_tree import Element, classes

_KINDS = frozenset(
    """
    note tip hint info important warning caution danger error attention seealso todo success check done question help
    faq failure bug example quote cite abstract summary tldr deprecated versionadded versionchanged
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
_ELEMENTS = frozenset({"div", "aside", "section", "blockquote", "details"})
_MARKERS = frozenset(
    """
    admonition custom-block markdown-alert alert callout starlight-aside admonitionblock theme-admonition
    blockquote-alert
    """.split()  # noqa: SIM905
)
_KIND_IN_CLASS = re.compile(
    r"(?:theme-admonition|markdown-alert|blockquote-alert|alert|callout|starlight-aside-|admonition|custom-block)-(\w+)"
)
_NOT_KINDS = frozenset({"style", "title", "dismissible", "titled", "empty", "expand", "default", "none", "block"})
_LOOKS = {"primary": "info", "secondary": "note", "light": "note", "dark": "note", "information": "info"}
"""Bootstrap's names for the looks of an alert, and what they mean."""
_TITLES = re.compile(
    r"(?:admonition|custom-block|markdown-alert|callout|blockquote-alert|alert)-(?:title|heading|header|label)"
    r"|starlight-aside__title|admonitionHeading\w*|title"
)


def kind_of(element: Element) -> str | None:
    """The kind of an admonition, such as ``warning``; None for another element."""
    if element.tag not in _ELEMENTS:
        return None
    names = classes(element)
    if not names:
        return None
    if _MARKERS.isdisjoint(names) and not (element.tag == "details" and not _KINDS.isdisjoint(names)):
        return None
    lowered = [name.lower() for name in names]
    in_class = [match[1] for name in lowered if (match := _KIND_IN_CLASS.fullmatch(name))]
    found = next((name for name in (*in_class, *lowered) if name in _KINDS or name in _LOOKS), None)
    if found is None:
        own = [name for name in (*in_class, *lowered) if name not in _MARKERS and name not in _NOT_KINDS]
        found = own[0] if own and own[0].isalpha() and in_class else "note"
    return _LOOKS.get(found, found)


def title_of(element: Element) -> Element | None:
    """The element with an admonition's title: its ``<summary>``, or a child whose class says so."""
    child = element.child
    while child is not None and not child.is_element_node:
        child = child.next
    if child is None:
        return None
    if child.tag == "summary" or any(_TITLES.fullmatch(name) for name in classes(child)):
        return child
    return None
