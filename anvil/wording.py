"""Counts with singular or plural nouns, and sentences that several modules use."""

from __future__ import annotations

from collections.abc import Sequence

from anvil.values import ROOT, SEPARATOR

_ONE = {"are": "is", "have": "has", "were": "was", "could": "could"}
"""Verbs whose singular is not the plural with an ``s``."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """``1 page``, ``1,200 pages``; with the verb ``differ``: ``1 page differs``, ``2 pages differ``."""
    phrase = f"{number:,} {noun}{'s' * (number != 1)}"
    if verb:
        phrase += f" {_ONE.get(verb, f'{verb}s') if number == 1 else verb}"
    return phrase


def listed(names: Sequence[str]) -> str:
    """``a``; ``a and b``; ``a, b and c``."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def first_of(names: Sequence[str], most: int) -> str:
    """The first ``most`` names, and how many more there are: ``a, b and 3 more``."""
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def full_heading(title: str, heading_path: str) -> str:
    """A section for people: ``Title > A > B``. Text before the first heading is the title alone, and a breadcrumb that
    begins with the title does not repeat it."""
    title = " ".join(title.split())
    if heading_path == ROOT or heading_path.startswith(f"{ROOT} [part "):
        return title + heading_path.removeprefix(ROOT)
    if not title or f"{heading_path}{SEPARATOR}".startswith((title + SEPARATOR, f"{title} [part ")):
        return heading_path
    return f"{title}{SEPARATOR}{heading_path}"


def no_page(folder: object, include: Sequence[str], *, staged: bool = False) -> str:
    """A message: a folder has no page, and why. ``include``: the globs of pages; ``staged``: only staged files."""
    found = f"{'Nothing staged' if staged else 'No file'} in {folder} is a page"
    if not include:
        return f"{found}: source.include names none."
    return f"{found}: none fits {', '.join(include)}, or all are left out."
