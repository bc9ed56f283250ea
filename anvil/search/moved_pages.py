"""Pages that have another path in a later index, found by their text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from anvil.index_file.reader import IndexReader
from anvil.search.pages import page_text

MIN_SIMILARITY = 0.5
"""Two pages are one that was moved when they share at least so much of their text; git's own limit."""
MAX_PAIRS = 20_000
"""Pairs of pages whose texts are compared; beyond it only equal texts are found."""


def moved_pages(before: IndexReader, after: IndexReader) -> dict[str, str]:
    """New path -> old path of the pages that were moved between two indexes."""
    old, new = before.identities(), after.identities()
    removed = {path: _text(before, path) for path in old.keys() - new.keys()}
    added = {path: _text(after, path) for path in new.keys() - old.keys()} if removed else {}
    return moved_pairs(removed, added)


def _text(reader: IndexReader, path: str) -> str:
    document = reader.document(path)
    return page_text(reader.page_chunks(document.id)) if document else ""


def moved_pairs(removed: Mapping[str, str], added: Mapping[str, str]) -> dict[str, str]:
    """New path -> old path of the pages that were moved. Both arguments: path -> text.

    Pages of equal text are paired first, then the most similar ones; each page is in one pair at most.
    """
    found: dict[str, str] = {}
    by_text: dict[str, list[str]] = {}
    for path, text in sorted(removed.items()):
        by_text.setdefault(text, []).append(path)
    for path, text in sorted(added.items()):
        if text.strip() and by_text.get(text):
            found[path] = by_text[text].pop(0)
    old = {path: text for path, text in removed.items() if path not in found.values()}
    new = {path: text for path, text in added.items() if path not in found}
    if len(old) * len(new) > MAX_PAIRS:
        return found
    scored = sorted(
        (-_similarity(was, now), path, before)
        for path, now in new.items()
        for before, was in old.items()
        if was.strip() and min(len(was), len(now)) >= MIN_SIMILARITY * max(len(was), len(now))
    )
    for score, path, before in scored:
        if -score >= MIN_SIMILARITY and path not in found and before not in found.values():
            found[path] = before
    return found


def _similarity(old: str, new: str) -> float:
    """The share of the longer text, in characters of whole lines, that the other one has as well: 0..1."""
    left, right = Counter(old.splitlines()), Counter(new.splitlines())
    shared = sum(len(line) * count for line, count in (left & right).items())
    longest = max(sum(len(line) * count for line, count in each.items()) for each in (left, right))
    return shared / longest if longest else 1.0
