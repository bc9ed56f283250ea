"""The indexes that an :class:`anvil.Anvil` answers from, and what an answer from several says about each of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anvil import registry
from anvil.errors import AnvilError, ArtifactMissing, ConfigError, NotFound, SourceError
from anvil.live.docs_corpus import DocsCorpus
from anvil.live.location import CLOSED, IndexLocation
from anvil.settings import index_url
from anvil.settings.files import index_file
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.live.live_index import LiveIndex
    from anvil.live.working_copy import WorkingCopy
    from anvil.requests import OpenRequest
    from anvil.results import Freshness, Mode
    from anvil.settings.schema import Collection, Config
    from anvil.status import CollectionStatus, Status
    from anvil.values import Changes

    Opened = list[tuple["Member", WorkingCopy]]
    Problems = list[tuple["Member", AnvilError]]

MAX_NAMED = 5
"""Collections that one sentence names."""

T = TypeVar("T")


class Member(DocsCorpus):
    """One index, its documents, and the answers from it. ``collection``: the one that it is; None for an index that was
    opened by itself."""

    def __init__(
        self,
        config: Config,
        base: Path,
        request: OpenRequest,
        *,
        index_only: bool = False,
        has_folder: bool = True,
        provider: EmbeddingProvider | None = None,
        collection: Collection | None = None,
    ) -> None:
        """``base``: the start of relative paths in ``config``. ``index_only``: ``docs`` may be missing or unrelated.
        ``has_folder``: whether ``docs`` counts at all. ``provider``: one that several share; the caller closes it."""
        self.base = base
        self.request = request
        self.started_at = time.monotonic()
        self.collection = collection
        folder = base / config.docs
        if not folder.is_dir() and not index_only:
            from anvil.documents.working_tree import missing_folder_advice

            problem = f"{folder} is not a folder" if folder.exists() else f"There is no folder {folder}"
            raise SourceError(f"{problem}. {missing_folder_advice(folder)}")
        own_folder = folder if has_folder and folder.is_dir() else None
        super().__init__(
            config,
            own_folder,
            _location(config, base, own_folder, has_folder=has_folder),
            index_only=index_only,
            provider=provider,
            site_folder=base / config.site.folder if config.site.folder else None,
        )
        self.lock = threading.RLock()
        """Guards the working copy of :attr:`live`; a build outside of a server holds it too."""
        self.closed = False
        self._live: LiveIndex | None = None
        self._live_lock = threading.Lock()

    @property
    def live(self) -> LiveIndex:
        """The index that is refreshed before each answer. A build and a check need none."""
        if self._live is None:
            from anvil.live.live_index import LiveIndex

            with self._live_lock:
                if self._live is None:
                    request = self.request
                    live = LiveIndex(
                        self,
                        background=request.background,
                        watch=request.watch and not self.closed,
                        progress=request.progress,
                        build_first=request.build_first,
                        lock=self.lock,
                    )
                    live.closed = self.closed
                    self._live = live
        return self._live

    @property
    def label(self) -> str:
        """``NAME``, or ``NAME@VERSION``; empty for an index that was opened by itself."""
        return self.collection.label if self.collection is not None else ""

    @property
    def collection_name(self) -> str | None:
        """The name of the collection; None for an index that was opened by itself."""
        return None if self.collection is None else self.collection.name

    @property
    def version(self) -> str | None:
        """The version of the collection."""
        return None if self.collection is None else self.collection.version

    @property
    def is_own(self) -> bool:
        """Whether this collection is built from a folder of the project."""
        return self.collection is not None and self.collection.docs is not None

    @property
    def name(self) -> str:
        """What is searched: the documentation folder, else where the index comes from."""
        return str(self.docs_root or self.location.origin or self.location.path)

    @property
    def provisional(self) -> bool:
        """Whether the last answer came from the documents alone, because there is no index file yet."""
        return self._live is not None and self._live.provisional

    @property
    def refused(self) -> str | None:
        """Why the last answer did not use the index file; None if it did."""
        return None if self._live is None else self._live.refused

    def path_of(self, file_path: str) -> str | None:
        """A page's path as in the index; None where it cannot be one."""
        from anvil.search import pages

        if len(file_path) > pages.MAX_PATH_CHARS:
            return None
        try:
            return pages.normalize_path(file_path, self.docs_root)
        except NotFound:
            return None

    def ensure_open(self) -> None:
        """Raise :class:`ConfigError` after :meth:`close`."""
        if self.closed:
            raise ConfigError(CLOSED)

    def ensure_fetched(self) -> None:
        """Fetch an index from elsewhere that is not here yet, however long it takes."""
        if not self.closed:
            if self.request.background:
                self.location.start()
            self.location.ensure_fetched(wait=True)

    def close(self) -> None:
        """Stop the background work, and close the files and the model. A second call does nothing."""
        with self._live_lock:
            self.closed = True
        if self._live is not None:
            self._live.close()
        else:
            self.location.stop()
        super().close()

    def status(self, status: Status | None, reason: str | None, is_default: bool) -> CollectionStatus:
        """This collection in the status of several. ``reason``: why it cannot answer."""
        from anvil.status import CollectionStatus

        collection = self.collection
        assert collection is not None
        common = CollectionStatus(collection.name, collection.version, collection.title or collection.name, is_default)
        if status is None:
            return replace(common, note=reason)
        artifact, is_fetched = status.index.artifact, collection.docs is None
        return replace(
            common,
            docs_root=status.server.docs_root,
            origin=artifact.origin if artifact and is_fetched else None,
            total_pages=status.index.total_pages,
            total_chunks=status.index.total_chunks,
            stale=status.index.stale,
            pending_vectors=status.index.pending_vectors,
            model=status.embedding.model if status.embedding.provider != "none" else None,
            note=artifact.note if artifact else None,
        )


def _location(config: Config, base: Path, folder: Path | None, *, has_folder: bool) -> IndexLocation:
    """The configured index: a file, an address from which it is fetched, or Milvus. ``has_folder``: whether it is built
    from ``folder``."""
    index = config.index or ""
    if index_url.is_milvus(index):
        location: IndexLocation = registry.part("index in Milvus")(index, base)
        return location
    if index_url.is_remote(index):
        updater: IndexLocation = registry.part("published index")(config, base, folder or base)
        return updater
    return IndexLocation(index_file(config, base), built_here=has_folder or config.site.folder is not None)


def each(members: Iterable[Member], call: Callable[[Member], T]) -> tuple[list[tuple[Member, T]], Problems]:
    """(member, result) of each call that succeeds, and (member, error) of the others. Raises if all fail."""
    results: list[tuple[Member, T]] = []
    problems: Problems = []
    for member in members:
        try:
            results.append((member, call(member)))
        except ArtifactMissing as error:
            missing = member.collection and member.collection.missing
            problems.append((member, ArtifactMissing(missing) if missing else error))
        except AnvilError as error:
            problems.append((member, error))
    if problems and not results:
        raise problems[0][1]
    return results, problems


def addressed(changes: Changes, label: str) -> Changes:
    """Changes with each path as ``COLLECTION:PATH``."""
    kinds = (changes.changed, changes.added, changes.removed)
    return type(changes)(*(tuple(f"{label}:{path}" for path in paths) for paths in kinds))


def problem(member: Member, error: AnvilError) -> str:
    """A sentence on a collection that cannot answer."""
    return f"{member.label} cannot answer: {error}"


def sentences(problems: Problems) -> list[str]:
    """Sentences on the collections that cannot answer."""
    if len(problems) <= 2:
        return [problem(*each) for each in problems]
    names = first_of([member.label for member, _ in problems], MAX_NAMED)
    return [f"{counted(len(problems), 'collection')} cannot answer: {names}. get_status says why."]


def obstacles(opened: Opened) -> list[str]:
    """Why none of these collections can be searched by meaning; empty where one can. Those with the same reason are
    named together."""
    labels: dict[str, list[str]] = {}
    for member, copy in opened:
        if (obstacle := member.live.obstacle(copy)) is None:
            return []
        labels.setdefault(obstacle, []).append(member.label)
    return [f"{first_of(names, MAX_NAMED)}: {obstacle}" for obstacle, names in labels.items()]


def without_meaning(opened: Opened, mode: Mode) -> Iterator[str]:
    """Sentences on the collections that are not searched by meaning although others are."""
    lacking = [(member, copy) for member, copy in opened if not copy.searcher.semantic]
    if mode == "keyword" or not lacking or len(lacking) == len(opened):
        return
    what = "Searched by words only" if mode == "hybrid" else "Not searched"
    names = first_of([member.label for member, _ in lacking], MAX_NAMED)
    yield f"{what}, because they have no vectors of this model: {names}."
    if soon := [member.label for member, copy in lacking if member.live.will_embed_again(copy)]:
        yield f"Embedded again when no page has changed for a minute: {first_of(soon, MAX_NAMED)}."


def freshness(opened: Opened, shown: frozenset[int], notes: Sequence[str]) -> Freshness:
    """The freshness of an answer from several collections. ``shown``: the places of those that have results; others
    have no notes here."""
    from anvil.results import Freshness

    parts = [(member.label, member.live.freshness(copy)) for member, copy in opened]
    own = [f"{label}: {note}" for place, (label, part) in enumerate(parts) if place in shown for note in part.notes]
    return Freshness(
        next((part.checked for _, part in parts if part.checked), None),
        next((part.commit for _, part in parts if part.checked), None),
        tuple(f"{label}:{path}" for label, part in parts for path in part.refreshed),
        sum(part.pending_vectors for _, part in parts),
        (*own, *notes),
    )


def no_page(file_path: str, paths: dict[str, list[str]], problems: Problems) -> str:
    """The message for a page that no collection has. A path that begins with the name of a collection is explained."""
    from anvil.wording import closest_paths

    shown = file_path[:500]
    for label, known in paths.items():
        for name in dict.fromkeys((label, label.rpartition("@")[0] or label)):
            below = file_path[len(name) + 1 :]
            if file_path.startswith((f"{name}/", f"{name}:")) and below in known:
                return f"No page found at path: {shown}. {name} is a collection: give {below} with collection {name}."
    addresses = [f"{label}:{path}" for label, known in paths.items() for path in known]
    near = closest_paths(file_path, addresses)
    closest = f" Closest: {', '.join(near)}." if near else ""
    more = "".join(f" {problem(*each)}" for each in problems)
    where = f"{shown} in {first_of(list(paths), MAX_NAMED)}"
    return f"No page found at path: {where}. Use list_pages to discover available pages.{closest}{more}"
