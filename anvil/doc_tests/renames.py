"""The new paths of renamed pages that a suite names, from git's history."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from anvil.documents.file_selection import refusal
from anvil.errors import AnvilError
from anvil.git.repository import Repository
from anvil.index_file.reader_protocol import IndexReader
from anvil.search.pages import page_text
from anvil.text import text_changes

MAX_COMMITS = 5000
"""Commits that are searched, from HEAD down its first parents."""


def from_history(folder: Path | None, missing: Collection[str], reader: IndexReader) -> dict[str, str]:
    """Old path -> path in the index, of pages in ``missing`` that were renamed.

    A page was renamed when a commit from HEAD down held it, and a page that is in the index and not in that commit has
    the same text or most of it. Empty outside a repository, and for pages that git never knew.
    """
    if folder is None or not missing:
        return {}
    try:
        repository = Repository.discover(folder)
        if repository is None:
            return {}
        root = repository.relative(folder)
        prefix = "" if root == "." else f"{root}/"
        last = repository.last_with([prefix + path for path in missing], MAX_COMMITS)
    except AnvilError:
        return {}
    renamed: dict[str, str] = {}
    for commit in sorted({commit for commit, _ in last.values()}):
        before = repository.tree(commit, root)
        old = {}
        for path, (last_commit, blob) in last.items():
            if last_commit == commit:
                data = repository.read_blob(blob)
                if refusal(data, len(data)) is None:
                    old[path.removeprefix(prefix)] = _body(data.decode("utf-8-sig"))
        added = {path: _text(reader, path) for path in reader.identities() if path not in before}
        renamed |= {was: path for path, was in text_changes.moved(old, added).items()}
    return renamed


def between(before: IndexReader, after: IndexReader) -> dict[str, str]:
    """New path -> old path of the pages that were moved between two indexes."""
    old, new = before.identities(), after.identities()
    removed = {path: _text(before, path) for path in old.keys() - new.keys()}
    added = {path: _text(after, path) for path in new.keys() - old.keys()} if removed else {}
    return text_changes.moved(removed, added)


def _text(reader: IndexReader, path: str) -> str:
    document = reader.document(path)
    return page_text(reader.page_chunks(document.id)) if document else ""


def _body(source: str) -> str:
    """The text of a page without its front matter, as an index holds it."""
    from anvil.text import markdown_parser

    return markdown_parser.parse(source).text
