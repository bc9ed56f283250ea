"""Numbers of things, as a sentence has them."""

from __future__ import annotations

_ONE = {"are": "is", "have": "has", "were": "was", "could": "could"}
"""Verbs whose form for one thing is more than an ``s`` longer, or the same."""


def counted(number: int, noun: str, verb: str = "") -> str:
    """``1 page``, ``1,200 pages``; with the verb ``differ``: ``1 page differs``, ``2 pages differ``."""
    said = f"{number:,} {noun}{'s' * (number != 1)}"
    if verb:
        said += f" {_ONE.get(verb, f'{verb}s') if number == 1 else verb}"
    return said
