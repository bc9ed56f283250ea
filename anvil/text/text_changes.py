"""Two texts of a page side by side: where they begin to differ, how much they share, and which pages were moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

MIN_SIMILARITY = 0.5
"""Two pages are one that was moved when they share at least so much of their text; git's own limit."""
MAX_PAIRS = 20_000
"""Pairs of pages whose texts are compared; beyond it only equal texts are found."""


def first_difference(old: str, new: str, first_line: int = 1) -> int:
    """The 1-based line at which ``new``, which begins at ``first_line``, stops saying what ``old`` says.

    Equal texts differ above: in the front matter, at line 1.
    """
    if old == new:
        return 1
    lines = new.splitlines() or [""]
    same = 0
    for left, right in zip(old.splitlines(), lines, strict=False):
        if left != right:
            break
        same += 1
    return first_line + min(same, len(lines) - 1)


def similarity(old: str, new: str) -> float:
    """The share of the longer text, in characters of whole lines, that the other one has as well: 0..1."""
    left, right = Counter(old.splitlines()), Counter(new.splitlines())
    shared = sum(len(line) * count for line, count in (left & right).items())
    longest = max(sum(len(line) * count for line, count in each.items()) for each in (left, right))
    return shared / longest if longest else 1.0


def moved(removed: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """New path -> old path of the pages that were moved. Both arguments: path -> text.

    Pages of equal text are paired first, then the most similar ones; each page is in one pair at most.
    """
    pairs: dict[str, str] = {}
    by_text: dict[str, list[str]] = {}
    for path, text in sorted(removed.items()):
        by_text.setdefault(text, []).append(path)
    for path, text in sorted(added.items()):
        if text.strip() and by_text.get(text):
            pairs[path] = by_text[text].pop(0)
    old = {path: text for path, text in removed.items() if path not in pairs.values()}
    new = {path: text for path, text in added.items() if path not in pairs}
    if len(old) * len(new) > MAX_PAIRS:
        return pairs
    scored = sorted(
        (-similarity(was, now), path, before)
        for path, now in new.items()
        for before, was in old.items()
        if was.strip() and min(len(was), len(now)) >= MIN_SIMILARITY * max(len(was), len(now))
    )
    for score, path, before in scored:
        if -score >= MIN_SIMILARITY and path not in pairs and before not in pairs.values():
            pairs[path] = before
    return pairs
