"""The names in signatures: what a heading of the documentation of an API shows besides the parameters."""

from __future__ import annotations

from collections.abc import Container

from anvil.sites import html_tree
from anvil.sites.content_words import spaced_text
from anvil.sites.html_tree import Element, classes

_END_OF_NAME = ("(", "=", ": ", "[", " ->", "\u2192")
_MKDOCSTRINGS = ".doc-object-name, code:not(.doc-symbol)"


def name_in(node: Element, skipped: Container[int] = frozenset()) -> str:
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
