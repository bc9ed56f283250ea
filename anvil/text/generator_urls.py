"""URLs of pages by the rules of site generators: MkDocs, Docusaurus, VitePress, Hugo, GitHub."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from anvil.formats.patterns import lazy_pattern
from anvil.settings.schema import SiteOptions, Slugs

SLUGS: Mapping[str, Slugs] = {"docusaurus": "github", "github": "github", "vitepress": "vitepress", "hugo": "hugo"}
"""Rule -> the style of the generator's anchors. For other rules ``chunking.slugs`` is used."""

# Docusaurus removes a number at the beginning of a name, except in a date or a version.
_NUMBER = lazy_pattern(r"\d+\s*[-_.]+\s*([^-_.\s].*)")
_NO_NUMBER = lazy_pattern(r"\d+[-_.]\d+.*")
SAFE = "/:@!$&'()*+,;=~"
"""The signs that RFC 3986 allows in a path without escaping, besides those that ``quote`` never escapes."""


def address(site: SiteOptions, path: str, metadata: Mapping[str, Any]) -> str | None:
    """The URL of the page at ``path`` with the front matter ``metadata``; None if the site does not publish it."""
    if not site.url:
        return None
    base = site.url.rstrip("/") + "/"
    stem, _ = posixpath.splitext(path)
    folder, name = posixpath.split(stem)
    above = f"{folder}/" if folder else ""
    # In MkDocs, README and index are the page of their folder, in VitePress only index.
    if site.rule == "github":
        relative: str | None = path
    elif site.rule == "html":
        relative = above + ("index" if name == "README" else name) + ".html"
    elif site.rule == "directory":
        relative = above if name in ("index", "README") else f"{stem}/"
    elif site.rule == "vitepress":
        relative = above if name == "index" else f"{stem}.html"
    elif site.rule == "hugo":
        # Pages of the default language have no folder in the URL. It is English unless a site sets another one.
        relative = _hugo(above.removeprefix("en/"), name, metadata)
    else:
        relative = _docusaurus(folder, name, metadata)
    return None if relative is None else base + quote(relative.lstrip("/"), safe=SAFE)


def _hugo(above: str, name: str, metadata: Mapping[str, Any]) -> str | None:
    url, slug = metadata.get("url"), metadata.get("slug")
    if metadata.get("draft") is True:
        return None
    if isinstance(url, str) and url.startswith("/"):
        return url
    if name in ("index", "_index"):
        parent, _, last = above.rstrip("/").rpartition("/")
        # In a leaf bundle the folder of an index.md is the page, and the slug replaces the folder's name.
        if name == "index" and isinstance(slug, str) and slug and last:
            return _hugo_path(f"{parent}/" if parent else "") + _hugo_path(slug) + "/"
        return _hugo_path(above)
    return _hugo_path(above) + _hugo_path(slug if isinstance(slug, str) and slug else name) + "/"


def _hugo_path(path: str) -> str:
    """Lower case, ``-`` for white space, and only the characters that Hugo keeps in paths."""
    characters = (
        c for c in re.sub(r"\s+", "-", path.strip().lower()) if c in "/._-#+~@" or unicodedata.category(c)[0] in "LMN"
    )
    return "".join(characters)


def _docusaurus(folder: str, name: str, metadata: Mapping[str, Any]) -> str | None:
    parts = [*folder.split("/"), name] if folder else [name]
    if any(part.startswith("_") for part in parts) or metadata.get("draft") is True:
        return None  # a partial or a draft
    folders = [_unnumbered(part) for part in parts[:-1]]
    above = "".join(f"{part}/" for part in folders)
    slug = metadata.get("slug")
    if isinstance(slug, str) and slug:
        return slug if slug.startswith("/") else posixpath.normpath(above + slug)
    # Docusaurus also serves guide/guide.md as the page of the folder guide/.
    is_index = name.lower() in ("index", "readme") or (
        len(parts) > 1 and _unnumbered(name).lower() == folders[-1].lower()
    )
    if is_index:
        return above
    own = metadata.get("id")
    return above + (own if isinstance(own, str) and own else _unnumbered(name))


def _unnumbered(name: str) -> str:
    match = None if _NO_NUMBER.fullmatch(name) else _NUMBER.fullmatch(name)
    return match[1] if match else name
