"""Anchors of headings as site generators make them from the heading's text, unique within a page."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, field

from anvil.settings.schema import Slugs

_VITEPRESS_SIGNS = re.compile(r"[\s~`!@#$%^&*()\-_+=\[\]{}|\\;:\"'\u201c\u201d\u2018\u2019<>,.?/]+")
_NOT_IN_ASCII_SLUG = re.compile(r"[^a-z0-9 _-]+")


def slug(title: str, style: Slugs) -> str:
    """The anchor for ``title``, before it is made unique.

    ``github``: lower case; letters, marks, digits, ``_`` and ``-`` stay, spaces become ``-``. ``mkdocs``: the default
    of Python-Markdown's ``toc``, folded to ASCII. ``vitepress``: without accents, runs of signs become one ``-``.
    ``hugo``: as ``github``, but of other characters than letters only decimal digits, ``_`` and ``-`` stay.
    """
    if style == "vitepress":
        unaccented = "".join(c for c in unicodedata.normalize("NFKD", title) if not "\u0300" <= c <= "\u036f")
        joined = _VITEPRESS_SIGNS.sub("-", "".join(c for c in unaccented if c > "\u001f")).strip("-")
        return ("_" + joined if joined[:1] in tuple("0123456789") else joined).lower()
    if style == "hugo":
        letters = (c for c in title.strip() if c in " -_" or unicodedata.category(c)[0] == "L" or c.isdecimal())
        return "".join(letters).lower().replace(" ", "-")
    if style == "mkdocs":
        folded = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode("ascii")
        return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", folded).strip().lower())
    if title.isascii():
        return _NOT_IN_ASCII_SLUG.sub("", title.lower()).replace(" ", "-")
    letters = (
        c
        for c in title.lower()
        if c in " -_" or unicodedata.category(c)[0] in "LM" or unicodedata.category(c) in ("Nd", "Nl", "Pc")
    )
    return "".join(letters).replace(" ", "-")


@dataclass(slots=True)
class Anchors:
    """Gives each heading of a page its own anchor; ``taken`` starts with the ids that the page sets itself."""

    style: Slugs
    taken: set[str] = field(default_factory=set)
    _slugs: dict[str, str] = field(default_factory=dict)
    _stems: dict[str, str] = field(default_factory=dict)
    _next: dict[str, int] = field(default_factory=dict)

    def claim(self, title: str) -> str:
        """The slug of ``title``; with a number when it is taken (``-1`` or, in MkDocs, ``_1``)."""
        anchor = self._slugs.get(title)
        if anchor is None:
            anchor = self._slugs[title] = slug(title, self.style) or ("heading" if self.style == "hugo" else "")
        taken = self.taken
        if anchor in taken or (not anchor and self.style == "mkdocs"):
            key = anchor
            stem = self._stems.get(key) or self._stem(key)
            number = self._next[key]
            while (anchor := f"{stem}{number}") in taken:
                number += 1
            self._next[key] = number + 1
        taken.add(anchor)
        return anchor

    def _stem(self, anchor: str) -> str:
        """What the numbers of a taken anchor go behind; the first of them is put into ``_next``."""
        stem, number = f"{anchor}{'_' if self.style == 'mkdocs' else '-'}", 1
        if self.style == "mkdocs" and (numbered := re.fullmatch(r"(.*_)([0-9]{1,9})", anchor)):
            stem, number = numbered[1], int(numbered[2]) + 1
        self._stems[anchor], self._next[anchor] = stem, number
        return stem
