"""Numbers of things, as a sentence has them, and sentences that are said in several places."""

from __future__ import annotations

from collections.abc import Sequence

_ONE = {"are": "is", "have": "has", "were": "was", "could": "could"}
"""Verbs whose form for one thing is more than an ``s`` longer, or the same."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """``1 page``, ``1,200 pages``; with the verb ``differ``: ``1 page differs``, ``2 pages differ``."""
    said = f"{number:,} {noun}{'s' * (number != 1)}"
    if verb:
        said += f" {_ONE.get(verb, f'{verb}s') if number == 1 else verb}"
    return said


def no_page(folder: object, include: Sequence[str]) -> str:
    """That a folder of documents holds none, and why that may be; ``include``: the globs that files must fit."""
    if not include:
        return f"No file in {folder} is a page: source.include names none."
    return f"No file in {folder} is a page: none fits {', '.join(include)}, or all are left out."
