"""Versions of documentation, in the order of their age."""

from __future__ import annotations

import re
from collections.abc import Iterable

ALIASES = {"latest": 2, "stable": 3}
"""Names that publishers give to their newest version -> their rank above all numbers."""
PRERELEASE = re.compile(
    r"(?:^|[^a-z])(?:a|b|c|rc|alpha|beta|pre|preview|dev|next|canary)\b|\d(?:a|b|rc)\d", re.IGNORECASE
)


def newest(versions: Iterable[str]) -> str:
    """The newest of some versions. A release is newer than any pre-release; ``stable`` and ``latest`` are newer than
    all numbers; names without a number are older."""
    return max(versions, key=_key)


def _key(version: str) -> tuple[int, bool, list[tuple[int, int, str]]]:
    parts = re.findall(r"\d{1,18}|[a-z]+", version.lower().removeprefix("v"))
    has_number = any(part.isdigit() for part in parts)
    natural = [(1, int(part), "") if part.isdigit() else (0, 0, part) for part in parts]
    return ALIASES.get(version.lower(), int(has_number)), not PRERELEASE.search(version), natural
