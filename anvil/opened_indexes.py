"""Indexes that are opened together: which of them a question is for, and the life of their files and threads."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anvil.errors import AnvilError, ArtifactMissing, ConfigError
from anvil.formats.argument_types import checks_arguments
from anvil.member import Member
from anvil.settings import index_url
from anvil.values import Changes, Progress
from anvil.wording import counted, first_of

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.results import GrepMatch, Hit, Page, PageSummary, SectionText
    from anvil.settings.schema import Collection, Config

    Problems = list[tuple[Member, AnvilError]]

MAX_NAMED = 5
"""Collections that one sentence names."""

T = TypeVar("T")
P = TypeVar("P", "GrepMatch", "Hit", "Page", "PageSummary", "SectionText")
Opened = TypeVar("Opened", bound="OpenedIndexes")


@checks_arguments
class OpenedIndexes:
    """One index, or several collections as one: the choice among them, and their life. See :class:`anvil.Anvil`."""

    def __init__(
        self,
        members: Sequence[Member],
        config: Config,
        provider: EmbeddingProvider | None = None,
        *,
        owns_members: bool = True,
    ) -> None:
        """``members``: in the order that decides between equal results. ``provider``: that of several members, which
        is closed here. ``owns_members``: whether :meth:`close` closes them."""
        self.members = tuple(members)
        self.config = config
        self._provider = provider
        self._owns_members = owns_members
        self._closed = threading.Event()
        self._opener: threading.Thread | None = None
        by_name: dict[str, list[Collection]] = {}
        for member in self.members:
            if member.collection is not None:
                by_name.setdefault(member.collection.name, []).append(member.collection)
        self._default: dict[str, Collection] = {}
        if by_name:
            from anvil.settings import collection_choice

            self._default = {name: collection_choice.answering_version(versions) for name, versions in by_name.items()}

    # --- the choice ----------------------------------------------------------------------------------------

    @property
    def is_several(self) -> bool:
        """Whether there are several indexes. Then each part of an answer has the collection that it is from."""
        return len(self.members) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections, each once."""
        return tuple(self._default)

    def is_default(self, member: Member) -> bool:
        """Whether this version answers questions that name none."""
        return member.collection is None or self._default[member.collection.name] is member.collection

    def selected(self, collection: str | None = None, version: str | None = None) -> tuple[Member, ...]:
        """The members that a question is for. Raises :class:`ConfigError`, with what there is."""
        if not self._default:
            if collection is not None or version is not None:
                raise ConfigError("There is one collection. Leave out its name.")
            return self.members
        from anvil.settings import collection_choice

        collections = [member.collection for member in self.members if member.collection is not None]
        chosen = collection_choice.chosen(collections, collection and [collection])
        if version is None:
            by_label = [each for each in chosen if each.label == collection]
            wanted = by_label or [each for each in chosen if self._default[each.name] is each]
        else:
            wanted = [each for each in chosen if each.version == version]
            if not wanted:
                versions = ", ".join(dict.fromkeys(each.version for each in chosen if each.version))
                where = f"collection {collection}" if collection else "any collection"
                raise ConfigError(
                    f"There is no version {version[:80]} of {where}. "
                    + (f"There are: {versions}." if versions else "No version is set: leave it out.")
                )
        return tuple(member for member in self.members if member.collection in wanted)

    def _labelled(self, part: P, member: Member) -> P:
        """A part of an answer; of several, with the collection that it is from."""
        if not self.is_several:
            return part
        return replace(part, collection=member.collection_name, version=member.version)

    def _notes(self, member: Member, notes: Sequence[str] | None) -> list[str]:
        """Notes of a member; of several, with its label."""
        return [f"{member.label}: {note}" if self.is_several else note for note in notes or ()]

    # --- the only index ------------------------------------------------------------------------------------

    @property
    def only(self) -> Member:
        """The only index. Raises :class:`ConfigError` where there are several."""
        if self.is_several:
            labels = ", ".join(member.label for member in self.members)
            raise ConfigError(f"Several collections are open: {labels}. Open one of them alone.")
        return self.members[0]

    @property
    def base(self) -> Path:
        """The folder that relative paths in the configuration start from."""
        return self.only.base

    @property
    def folder(self) -> Path | None:
        """The documentation folder that a build and a check read."""
        return self.only.folder

    @property
    def index_path(self) -> Path:
        """The index file."""
        return self.only.location.path

    @property
    def origin(self) -> str | None:
        """The address of a published index or of Milvus, without credentials; None for a local file."""
        return self.only.location.origin

    @property
    def tree(self) -> DocumentSource | None:
        """The documents as they are in :attr:`folder`."""
        return self.only.tree

    @property
    def docs_root(self) -> Path | None:
        """The documentation folder that answers are compared with; None when there is only an index."""
        return self.only.docs_root

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider. Its model is loaded at first use."""
        return self._provider or self.only.provider

    @property
    def provisional(self) -> bool:
        """Whether the last answer came from the documents alone, because there is no index file yet."""
        return any(member.provisional for member in self.members)

    @property
    def refused(self) -> tuple[str, ...]:
        """Why the last answer did not use the index file: it cannot be read, or none can be written. Of several
        collections, a sentence for each such one."""
        return tuple(self._notes(member, [member.refused])[0] for member in self.members if member.refused)

    @property
    def name(self) -> str:
        """What is searched: the documentation folder, else where the index comes from; of several, the first."""
        return self.members[0].name

    # --- start and close ---------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the index, and load the model, in the background. Returns at once.

        It needs ``background=True``. Without this call the first query does it. A second call does nothing.
        ``progress`` gets the progress of the first build, from another thread. Queries during the build are answered
        from what is indexed so far, and ``freshness.notes`` says so.

        Of several collections, folders, which may have to be built, and published indexes, which may have to be
        fetched, begin at once. The others are opened one after the other, so that many of them do not delay the
        server's first answers.
        """
        if not self.members[0].request.background:
            raise ConfigError("start() needs background work. Open the index with anvil.open(..., background=True).")
        files = []
        for member in self.members:
            if self.is_several and not member.is_own and not index_url.is_remote(member.config.index or ""):
                files.append(member)
            else:
                member.live.start(progress)
        if files and self._opener is None and not self._closed.is_set():
            self._opener = threading.Thread(target=self._open_files, args=(files,), name="anvil-open", daemon=True)
            self._opener.start()

    def _open_files(self, members: Sequence[Member]) -> None:
        for member in members:
            if self._closed.is_set():
                return
            with suppress(AnvilError), member.live.query() as copy:  # each question raises the error again
                copy.searcher.warm()

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Call ``callback`` with the changed, added and removed pages after each refresh that found any; of several
        collections each as ``COLLECTION:PATH``.

        The call is in the thread of the refresh, without a lock. Returns the function that ends the calls.
        """
        if not self.is_several:
            return self.only.live.on_change(callback)

        def listener(label: str) -> Callable[[Changes], None]:
            return lambda changes: callback(_addressed(changes, label))

        stops = [member.live.on_change(listener(member.label)) for member in self.members]

        def stop() -> None:
            for stop_one in stops:
                stop_one()

        return stop

    def close(self) -> None:
        """Stop the background work, and close the files and the model. A second call does nothing."""
        self._closed.set()
        if not self._owns_members:
            return
        if self._opener is not None:
            self._opener.join(60)
        for member in self.members:
            member.close()
        if self._provider is not None:
            self._provider.close()

    def __enter__(self: Opened) -> Opened:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_opener") and self._owns_members and not self._closed.is_set():
            paths = ", ".join(str(member.location.path) for member in self.members)
            warnings.warn(f"{paths} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()


def call_each(members: Iterable[Member], call: Callable[[Member], T]) -> tuple[list[tuple[Member, T]], Problems]:
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


def _addressed(changes: Changes, label: str) -> Changes:
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
