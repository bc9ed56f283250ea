"""An index built here from the documentation folder of a repository at one commit.

Only the commit, its trees and the pages travel: first the names of all files, then the configuration of the site's
generator, the pages of its folder, and what they include from elsewhere in the repository.
"""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from anvil.dependencies import docs_folder, remote_repository
from anvil.dependencies.docs_folder import DocsFolder
from anvil.dependencies.remote_repository import RemoteRepository
from anvil.dependencies.values import LockedDocs
from anvil.documents.file_selection import Selection
from anvil.documents.git_tree import CommitTree
from anvil.errors import FetchError, NotFound, SourceError
from anvil.git.objects import Entry
from anvil.git.repository import Repository
from anvil.settings.schema import SourceOptions
from anvil.text import includes
from anvil.wording import counted

MAX_CONFIG_BYTES = 500_000
MAX_ROUNDS = 4
"""Requests for files that pages include, which can include more."""


@dataclass(frozen=True, slots=True)
class RepositoryDocs:
    """The documents of a commit. ``notes``: what was not understood."""

    source: CommitTree
    folder: DocsFolder
    notes: tuple[str, ...]


def no_tag(remote: RemoteRepository, there: Collection[str], name: str, wanted: str) -> str:
    """The message for a tag that does not exist, with the closest ones."""
    near = remote_repository.closest(list(there), name, wanted)
    hint = f"The closest are {', '.join(near)}. Name one with --tag." if near else "It has no tags."
    return f"There is no tag for {wanted} in {remote.shown}. {hint}"


def ensure_tagged(remote: RemoteRepository, entry: LockedDocs) -> None:
    """Raise :class:`FetchError` unless the tag of an entry of ``anvil.lock`` still leads to its commit.

    The commit alone proves little: hosts such as GitHub also send commits of a repository's forks by their ids, so an
    edited lock could name the commit of anybody under the address of a known project.
    """
    there = remote.tags().get(entry.tag or "")
    if there is None:
        raise FetchError(
            f"{remote.shown} does not have the tag {entry.tag} any more, which anvil.lock names. "
            f"To search again, run: anvil deps update {entry.name}"
        )
    if there != entry.commit:
        raise remote.moved(entry.tag or "", there, entry.commit or "")


def read(
    remote: RemoteRepository, commit: str, tag: str | None, folder: str | None = None, directory: str | None = None
) -> RepositoryDocs:
    """Fetch the documents of a commit. ``folder``: the documentation folder, found by configuration when it is None.
    ``directory``: the package's folder in the repository.

    Raises :class:`NotFound` when there is no documentation, and :class:`FetchError`.
    """
    remote.fetch(commit, tag)
    tree = remote.tree()
    chosen = _chosen(remote, tree, folder, directory)
    options = SourceOptions(include=chosen.include, exclude=chosen.exclude)
    pages = _pages(tree, chosen, options)
    if not pages:
        raise NotFound(f"There is no Markdown in {chosen.path} of {remote.shown} at {tag or commit[:12]}.")
    remote.fetch_blobs(entry.id for entry in pages.values())
    repository = remote.repository()
    missing = _fetch_included(remote, repository, tree, pages, chosen)
    notes = [*chosen.notes, *docs_folder.unread(tree, chosen)]
    if missing:
        notes.append(f"{counted(missing, 'included file')} cannot be read.")
    try:
        source = CommitTree(remote.folder / chosen.path, commit, options)
    except SourceError as error:
        raise NotFound(str(error)) from None
    return RepositoryDocs(source, chosen, tuple(notes))


def _chosen(
    remote: RemoteRepository, tree: Mapping[str, Entry], folder: str | None, directory: str | None
) -> DocsFolder:
    named = docs_folder.named(folder) if folder is not None else None
    configs = docs_folder.configurations(tree, directory)
    files = {path: tree[path] for path in configs if tree[path].kind == "file"}
    remote.fetch_blobs(entry.id for entry in files.values())
    repository = remote.repository()

    def read(path: str) -> str:
        data = repository.read_blob(files[path].id) if path in files else b""
        return data[:MAX_CONFIG_BYTES].decode("utf-8", "replace")

    found = docs_folder.find(tree, read, directory)
    if named is not None:  # the generator that has this folder says how its anchors are made
        return found if found is not None and found.path == named.path else named
    if found is None:
        others = docs_folder.other_formats(tree, ".")
        there = f" It has {', '.join(others)}, which Anvil does not read." if others else ""
        raise NotFound(f"There is no Markdown documentation in {remote.shown}.{there}")
    return found


def _pages(tree: Mapping[str, Entry], folder: DocsFolder, options: SourceOptions) -> dict[str, Entry]:
    """The pages, and the links among them, by path from the repository's root."""
    prefix = "" if folder.path == "." else f"{folder.path}/"
    selection = Selection(options)
    return {
        path: entry
        for path, entry in tree.items()
        if path.startswith(prefix) and entry.kind in ("file", "symlink") and selection.wants(path[len(prefix) :])
    }


def _fetch_included(
    remote: RemoteRepository,
    repository: Repository,
    tree: Mapping[str, Entry],
    pages: Mapping[str, Entry],
    folder: DocsFolder,
) -> int:
    """Fetch what pages include, and what links lead to. The number of lines that include a file that is not there."""
    for _ in range(MAX_ROUNDS):
        wanted: set[str] = set()
        missing = 0

        def look(path: str, wanted: set[str] = wanted, repository: Repository = repository) -> includes.Found:
            entry = tree.get(path)
            if entry is None or entry.kind != "file" or includes.is_private(path):
                return includes.Found("", None)
            if not remote.has(entry.id):
                wanted.add(entry.id)
                return includes.Found(entry.id, None)
            data = repository.read_blob(entry.id)
            return includes.Found(entry.id, data.decode("utf-8", "replace"))

        prefix = "" if folder.path == "." else f"{folder.path}/"
        for path, page in sorted(pages.items()):
            data = repository.read_blob(page.id)
            if tree[path].kind == "symlink":
                wanted |= _link_target(tree, path, data, remote)
            elif includes.may_include(data):
                expanded = includes.expand(data.decode("utf-8", "replace"), path[len(prefix) :], folder.path, look)
                missing += len(expanded.missing)
        if not wanted:
            return missing
        remote.fetch_blobs(wanted)
        repository = remote.repository()
    return missing


def _link_target(tree: Mapping[str, Entry], path: str, data: bytes, remote: RemoteRepository) -> set[str]:
    """The blob that a link leads to, if it is not here."""
    target = posixpath.normpath(posixpath.join(posixpath.dirname(path), data.decode("utf-8", "replace")))
    entry = tree.get(target)
    return {entry.id} if entry is not None and entry.kind == "file" and not remote.has(entry.id) else set()
