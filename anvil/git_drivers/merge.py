"""The index of a merge in git, from those of its two sides."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path

from anvil.build.builder import build
from anvil.build.report import BuildReport
from anvil.documents import document_source
from anvil.documents.document_source import PageDecoder
from anvil.embedding.provider import EmbeddingProvider
from anvil.git.repository import Repository
from anvil.index_file import verify
from anvil.index_file import writer as transfer
from anvil.index_file.manifests import OPTIONAL_SETTINGS, SETTINGS, recalled_chunking
from anvil.index_file.reader import Reader
from anvil.live import site_view
from anvil.requests import BuildRequest
from anvil.settings.schema import SourceOptions
from anvil.values import Document, KnownTimes, Progress, Scan, Skipped, silent


def reconcile(
    base: Path | None,
    ours: Path,
    theirs: Path,
    repository: Repository,
    provider: Callable[[Mapping[str, str]], EmbeddingProvider],
    options: SourceOptions = SourceOptions(),
    progress: Progress = silent,
) -> tuple[BuildReport, tuple[str, ...]]:
    """Write the index of the merged pages to ``ours``. Returns the report, and the pages in conflict, of which the
    index has one side.

    When git runs a merge driver, nothing is merged in the work tree yet. So the pages are merged here as git merges
    them, with renames (:meth:`Repository.merge`), from the blob ids in the three indexes and the repository's blobs.
    This needs no commit, and works for a rebase, a cherry-pick and a revert too. Vectors come from both sides.
    ``base`` is None when the index has no common ancestor. If one side changed settings, the merged index has the new
    ones. ``provider`` gets the manifest with these settings. ``options``: how pages are read. Raises
    :class:`AnvilError`. Then the file at ``ours`` is not changed.
    """
    with contextlib.ExitStack() as opened:
        own = opened.enter_context(transfer.detached(verify.open_checked(ours)))  # detached, since its file is replaced
        other = opened.enter_context(verify.open_checked(theirs))
        ancestor = opened.enter_context(verify.open_checked(base)) if base is not None else None
        meta = own.meta()
        pages = (_blobs(ancestor) if ancestor else {}, _blobs(own), _blobs(other))
        entries, conflicts = repository.merge(*pages, meta["docs_root_path"])
        if ancestor and all(ancestor.meta()[key] == meta[key] for key in SETTINGS):
            meta = other.meta()
        source = site_view.view_of(_Merged(repository, entries, (own, other), options), own)
        report = build(
            source,
            ours,
            provider(meta),
            recalled_chunking(meta["chunking"]),
            BuildRequest(previous=(theirs,), progress=progress),
            configured={key: meta.get(key) for key in OPTIONAL_SETTINGS},
        )
    return report, conflicts


def _blobs(reader: Reader) -> dict[str, str]:
    """Path -> blob id. Files that pages include are not merged; the next check finds a difference in them."""
    return {path: document_source.parts(identity)[0] for path, identity in reader.blob_ids().items()}


class _Merged:
    """The pages of a merge, read from the repository's blobs, with the times of the side that a page comes from. A page
    of a site that is unchanged on our side stays as it is in the index; a merged one is read from its file."""

    name = "merged tree"
    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None

    def __init__(
        self, repository: Repository, entries: Mapping[str, str], sides: Sequence[Reader], options: SourceOptions
    ) -> None:
        self._git = repository
        self._decoder = PageDecoder(options)
        self._entries = entries
        mine, known = _blobs(sides[0]), sides[0].identities()
        self._identities = {path: known[path] if mine.get(path) == blob else blob for path, blob in entries.items()}
        self._identities |= {path: known[path] for path in known.keys() - mine.keys()}  # pages without a file
        self._rows = [{document.file_path: document for document in side.documents()} for side in sides]
        meta = sides[0].meta()
        self.root_path = meta["docs_root_path"]
        self._commit = meta.get("commit")

    def commit(self) -> str | None:
        """The commit of our side's index. The next build reads the history from there."""
        return self._commit

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan(dict(sorted(self._identities.items())))

    def read(self, path: str) -> Document | Skipped:
        blob = self._entries.get(path)
        if blob is None:  # it must be cut again, and no file has its text
            del self._identities[path]
            return Skipped(path, "a site generator made it without a file; build the site again")
        data = self._git.read_blob(blob)
        reason = self._decoder.refusal(data)
        if reason is not None:
            return Skipped(path, reason)
        return self._decoder.document(path, blob, data)  # with includes, the next check says: stale

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        return {path: self._time(path) for path in paths}

    def _time(self, path: str) -> str:
        rows = [rows[path] for rows in self._rows if path in rows]
        same = [row for row in rows if row.blob_id == self._entries.get(path, "")]
        times = [row.last_modified for row in same[:1] or rows]
        return max(times or (row.last_modified for rows in self._rows for row in rows.values()))
