"""The index of a merge in git, from the indexes of its two sides."""

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
from anvil.index_file import verify, writer
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
    """Write the index of the merged pages to ``ours``. Returns the report, and the paths of pages in conflict.

    When git runs a merge driver, nothing is merged in the work tree yet. So the pages are merged here as git merges
    them, with renames (:meth:`Repository.merge`), from the blob ids in the three indexes and the repository's blobs.
    This needs no commit, and works for a rebase, a cherry-pick and a revert too. Vectors come from both sides. Of a
    page in conflict, the index has one side. If one side changed settings, the merged index has the new settings.

    ``base`` is None if the index has no common ancestor. ``provider`` makes an embedding provider from the manifest
    with the merged settings. ``options`` say how pages are read.

    If it raises :class:`AnvilError`, ``ours`` is unchanged.
    """
    with contextlib.ExitStack() as stack:
        own = stack.enter_context(writer.detach(verify.open_checked(ours)))  # detached, since its file is replaced
        other = stack.enter_context(verify.open_checked(theirs))
        ancestor = stack.enter_context(verify.open_checked(base)) if base is not None else None
        meta = own.meta()
        pages = (_blob_ids(ancestor) if ancestor else {}, _blob_ids(own), _blob_ids(other))
        entries, conflicts = repository.merge(*pages, meta["docs_root_path"])
        if ancestor and all(ancestor.meta()[key] == meta[key] for key in SETTINGS):
            meta = other.meta()
        source = site_view.view_of(_MergedPages(repository, entries, (own, other), options), own)
        report = build(
            source,
            ours,
            provider(meta),
            recalled_chunking(meta["chunking"]),
            BuildRequest(previous=(theirs,), progress=progress),
            configured={key: meta.get(key) for key in OPTIONAL_SETTINGS},
        )
    return report, conflicts


def _blob_ids(reader: Reader) -> dict[str, str]:
    """Path -> blob id of the page alone. Files that pages include are not merged; the next check compares them."""
    return {path: document_source.parts(identity)[0] for path, identity in reader.blob_ids().items()}


class _MergedPages:
    """The pages of a merge, read from the repository's blobs, as a source of documents.

    A page has the time of the side that it comes from. A page of a site that the merge leaves as it is on our side
    stays as it is in our index; other pages are read from their files.
    """

    name = "merged tree"
    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None

    def __init__(
        self, repository: Repository, entries: Mapping[str, str], sides: Sequence[Reader], options: SourceOptions
    ) -> None:
        self._git = repository
        self._decoder = PageDecoder(options)
        self._entries = entries
        our_blobs, ours = _blob_ids(sides[0]), sides[0].identities()
        self._identities = {path: ours[path] if our_blobs.get(path) == blob else blob for path, blob in entries.items()}
        self._identities |= {path: ours[path] for path in ours.keys() - our_blobs.keys()}  # pages without a file
        self._rows = [{document.file_path: document for document in side.documents()} for side in sides]
        meta = sides[0].meta()
        self.root_path = meta["docs_root_path"]
        self._commit = meta.get("commit")

    def commit(self) -> str | None:
        """The commit of our index. The next build reads the history from this commit on."""
        return self._commit

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan(dict(sorted(self._identities.items())))

    def read(self, path: str) -> Document | Skipped:
        blob = self._entries.get(path)
        if blob is None:  # the page must be cut again, and no file has its text
            del self._identities[path]
            return Skipped(path, "a site generator made it without a file; build the site again")
        data = self._git.read_blob(blob)
        reason = self._decoder.refusal(data)
        if reason is not None:
            return Skipped(path, reason)
        return self._decoder.document(path, blob, data)  # a page with includes is stale at the next check

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        return {path: self._time(path) for path in paths}

    def _time(self, path: str) -> str:
        rows = [side[path] for side in self._rows if path in side]
        unchanged = [row for row in rows if row.blob_id == self._entries.get(path, "")]
        times = [row.last_modified for row in unchanged[:1] or rows]
        return max(times or (row.last_modified for side in self._rows for row in side.values()))
