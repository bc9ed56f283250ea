"""Moved and renamed pages: which page of an older index has which path in a newer one, found by text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from anvil.index_file.reader import IndexReader
from anvil.search.pages import page_text

MIN_SIMILARITY = 0.5
"""Share of their text that two pages must have in common to be one page that was moved; git's own limit."""
MAX_PAIRS = 20_000
"""Pairs of pages whose texts are compared. If there are more, only equal texts are found."""


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
    moved: dict[str, str] = {}
    by_text: dict[str, list[str]] = {}
    for path, text in sorted(removed.items()):
        by_text.setdefault(text, []).append(path)
    for path, text in sorted(added.items()):
        if text.strip() and by_text.get(text):
            moved[path] = by_text[text].pop(0)
    old = {path: text for path, text in removed.items() if path not in moved.values()}
    new = {path: text for path, text in added.items() if path not in moved}
    if len(old) * len(new) > MAX_PAIRS:
        return moved
    scored = sorted(
        (-_similarity(old_text, new_text), new_path, old_path)
        for new_path, new_text in new.items()
        for old_path, old_text in old.items()
        if old_text.strip() and min(len(old_text), len(new_text)) >= MIN_SIMILARITY * max(len(old_text), len(new_text))
    )
    for score, new_path, old_path in scored:
        if -score >= MIN_SIMILARITY and new_path not in moved and old_path not in moved.values():
            moved[new_path] = old_path
    return moved


def _similarity(old: str, new: str) -> float:
    """The share of the longer text, in characters of whole lines, that is in the other one too: 0..1."""
    old_lines, new_lines = Counter(old.splitlines()), Counter(new.splitlines())
    shared = sum(len(line) * count for line, count in (old_lines & new_lines).items())
    longest = max(sum(len(line) * count for line, count in lines.items()) for lines in (old_lines, new_lines))
    return shared / longest if longest else 1.0
