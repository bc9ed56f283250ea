"""Open the documents of a folder: its files, its staged files, or those of a commit."""

from __future__ import annotations

from pathlib import Path

from anvil.documents.document_source import DocumentSource
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.working_tree import WorkingTree
from anvil.settings.schema import SourceOptions


def working_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """The files of a folder. Raises :class:`SourceError` when there is no such folder."""
    return WorkingTree(docs, options or SourceOptions())


def staged_tree(docs: Path, options: SourceOptions | None = None) -> DocumentSource:
    """The staged files of a folder. Raises :class:`SourceError` outside a repository."""
    return StagedTree(docs, options or SourceOptions())


def commit_tree(docs: Path, revision: str, options: SourceOptions | None = None) -> DocumentSource:
    """The documents of a commit. Raises :class:`SourceError` outside a repository, and without the commit or folder."""
    return CommitTree(docs, revision, options or SourceOptions())
