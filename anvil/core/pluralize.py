"""Numbers of things, as a sentence has them, and sentences that are said in several places."""

from __future__ import annotations

from collections.abc import Sequence

from anvil.models.documents import ROOT, SEPARATOR

_ONE = {"are": "is", "have": "has", "were": "was", "could": "could"}
"""Verbs whose form for one thing is more than an ``s`` longer, or the same."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """``1 page``, ``1,200 pages``; with the verb ``differ``: ``1 page differs``, ``2 pages differ``."""
    said = f"{number:,} {noun}{'s' * (number != 1)}"
    if verb:
        said += f" {_ONE.get(verb, f'{verb}s') if number == 1 else verb}"
    return said


def full_heading(title: str, heading_path: str) -> str:
    """A section as people read it, ``Title > A > B``: the title alone for text before any heading, and not twice where
    the breadcrumb begins with it."""
    title = " ".join(title.split())
    if heading_path == ROOT or heading_path.startswith(f"{ROOT} [part "):
        return title + heading_path.removeprefix(ROOT)
    if not title or f"{heading_path}{SEPARATOR}".startswith((title + SEPARATOR, f"{title} [part ")):
        return heading_path
    return f"{title}{SEPARATOR}{heading_path}"


def no_page(folder: object, include: Sequence[str]) -> str:
    """That a folder of documents holds none, and why that may be; ``include``: the globs that files must fit."""
    if not include:
        return f"No file in {folder} is a page: source.include names none."
    return f"No file in {folder} is a page: none fits {', '.join(include)}, or all are left out."
