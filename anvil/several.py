"""Several indexes that answer together: one ranking over all, and pages by collection, version and path."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from anvil.api import Anvil, confidence_limit
from anvil.core import index_url
from anvil.core.closest_paths import closest_paths
from anvil.core.config.schema import Collection, Config
from anvil.core.pluralize import counted, first_of
from anvil.errors import AnvilError, ArtifactMissing, ConfigError, NotFound
from anvil.models.agents import Skill
from anvil.models.documents import Changes, Progress
from anvil.models.results import (
    Freshness,
    GrepMatch,
    GrepResult,
    Hit,
    Mode,
    Page,
    PageList,
    PageSummary,
    SearchRequest,
    SearchResult,
    SectionText,
)
from anvil.models.status import CollectionStatus, Status
from anvil.services.collections import project

if TYPE_CHECKING:
    from anvil.backends.embedding.provider import EmbeddingProvider
    from anvil.backends.question_log import QuestionLog
    from anvil.services.live.live_index import LiveIndex
    from anvil.services.live.working_copy import WorkingCopy
    from anvil.services.search.pages import Outline
    from anvil.services.search.searcher import Explained

    Opened = list[tuple["Member", WorkingCopy]]

P = TypeVar("P", GrepMatch, Hit, Page, PageSummary, SectionText)
MAX_NAMED = 5
"""Collections that one sentence names."""


@dataclass(frozen=True, slots=True)
class Member:
    """One collection, open."""

    collection: Collection
    documents: Anvil
    live: LiveIndex

    @property
    def label(self) -> str:
        """``NAME``, or ``NAME@VERSION``."""
        return self.collection.label


class Collections:
    """Several collections as one. Methods may be called from any thread. A context manager.

    A question goes to one version of each collection, the default one or else the newest. ``collection`` chooses a
    collection by name, or by ``NAME@VERSION``; ``version`` chooses another version. If a collection cannot answer, the
    others do, and a note says so.
    """

    def __init__(self, members: Sequence[Member], config: Config, provider: EmbeddingProvider) -> None:
        """``members``: in the order that decides between equal results. ``provider``: theirs; it is closed here."""
        self.members = tuple(members)
        self.config = config
        self._provider = provider
        self._closed = threading.Event()
        self._opener: threading.Thread | None = None
        by_name: dict[str, list[Collection]] = {}
        for member in self.members:
            by_name.setdefault(member.collection.name, []).append(member.collection)
        self._default = {name: project.answering_version(versions) for name, versions in by_name.items()}

    @property
    def provisional(self) -> bool:
        """Whether an answer came from documents that have no index file yet."""
        return any(member.documents.provisional for member in self.members)

    @property
    def name(self) -> str:
        """What the log of questions calls these: the name of the first."""
        return self.members[0].documents.name

    @property
    def question_log(self) -> QuestionLog:
        """The log of questions: that of the first collection, which is the project's own if it has one."""
        return self.members[0].documents.question_log

    # --- the choice ----------------------------------------------------------------------------------------

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections, each once."""
        return tuple(self._default)

    def is_default(self, member: Member) -> bool:
        """Whether this version answers questions that name none."""
        return self._default[member.collection.name] is member.collection

    def selected(self, collection: str | None = None, version: str | None = None) -> tuple[Member, ...]:
        """The members that a question is for. Raises :class:`ConfigError`, with what there is."""
        chosen = project.chosen([member.collection for member in self.members], collection and [collection])
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

    def _holder(self, file_path: str, collection: str | None, version: str | None) -> Member:
        """The member that has a page. Raises :class:`NotFound` where none or several have it."""
        members = self.selected(collection, version)
        if len(members) == 1:
            return members[0]
        paths: dict[str, list[str]] = {}
        holders = []
        with ExitStack() as stack:
            opened, problems = self._open(stack, members, page=file_path)
            for member, copy in opened:
                from anvil.services.search import pages

                if pages.has_page(copy.reader, file_path, member.documents.docs_root):
                    holders.append(member)
                elif not holders:
                    paths[member.label] = list(copy.reader.identities())
        if len(holders) == 1:
            return holders[0]
        if holders:
            labels = ", ".join(member.label for member in holders)
            raise NotFound(
                f"{counted(len(holders), 'collection', 'have')} a page {file_path}: {labels}. Name one with collection."
            )
        raise NotFound(_no_page(file_path, paths, [_problem(*problem) for problem in problems]))

    # --- queries -------------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int | None = None,
        mode: Mode = "hybrid",
        min_confidence: float | None = None,
        collection: str | None = None,
        version: str | None = None,
    ) -> SearchResult:
        """The chunks of all chosen collections that answer ``query`` best. Arguments are those of
        :meth:`anvil.Anvil.search`, without ``language``; ``version`` is that of a collection. Raises
        :class:`ConfigError` for a blank query."""
        return self.explain(query, top_k, file_filter, max_chars, mode, min_confidence, collection, version).result

    def explain(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int | None = None,
        mode: Mode = "hybrid",
        min_confidence: float | None = None,
        collection: str | None = None,
        version: str | None = None,
    ) -> Explained:
        """Like :meth:`search`, with the parts of each score; see :meth:`anvil.Anvil.explain`."""
        started_at = time.perf_counter()
        members = self.selected(collection, version)
        limit = confidence_limit(self.config, min_confidence)
        embedded = (member.live.embed_query(query, mode) for member in members)
        question = next((question for question in embedded if question is not None), None)
        from anvil.services.search import pages, several
        from anvil.services.search.searcher import Explained

        with ExitStack() as stack:
            opened, problems = self._open(stack, members, SearchRequest(query, mode, file_filter))
            ranked, places = several.search(
                [copy.searcher for _, copy in opened],
                query,
                top_k,
                file_filter,
                max_chars,
                mode,
                self.config.search.threshold,
                question,
                min_confidence=limit,
            )
            hits = tuple(_labelled(hit, opened[place][0]) for hit, place in zip(ranked.hits, places, strict=True))
            notes = [*_problems(problems), *(_words_only(opened) if mode == "hybrid" else ()), *ranked.notes]
            if not ranked.total_chunks:
                notes += pages.none_chosen([copy.reader for _, copy in opened], file_filter)
            freshness = _freshness(opened, frozenset(places), notes)
        query_ms = round((time.perf_counter() - started_at) * 1000, 3)
        result = SearchResult(hits, ranked.total_chunks, query_ms, freshness)
        return Explained(result, ranked.parts, ranked.spans, ranked.evidence)

    def grep(
        self,
        pattern: str,
        path: str | None = None,
        regex: bool = False,
        ignore_case: bool = True,
        context: int = 0,
        max_matches: int = 50,
        offset: int = 0,
        max_chars: int | None = 16_000,
        collection: str | None = None,
        version: str | None = None,
    ) -> GrepResult:
        """The lines that contain ``pattern``, by collection, path and line; see :meth:`anvil.Anvil.grep`."""
        matches: list[GrepMatch] = []
        skipped, is_full, left = max(0, offset), False, max(1, max_matches)

        def of(member: Member) -> GrepResult:
            nonlocal skipped, is_full, left, max_chars
            limit = 1 if is_full else left  # the matches of the others are only counted
            found = member.documents.grep(
                pattern, path, regex, ignore_case, context, limit, skipped, max_chars and max(1, max_chars)
            )
            if not is_full:
                matches.extend(_labelled(match, member) for match in found.matches)
                left -= len(found.matches)
                if max_chars is not None:
                    max_chars -= sum(len(match.text) + len(match.heading_path) for match in found.matches)
                is_full = found.next_offset is not None or left <= 0 or (max_chars is not None and max_chars <= 0)
            skipped = max(0, skipped - found.total_matches)
            return found

        results, problems = _each(self.selected(collection, version), of)
        reasons = [problem for problem in problems if not isinstance(problem[1], NotFound)]  # no such path there
        total = sum(found.total_matches for _, found in results)
        end = max(0, offset) + len(matches)
        notes = [f"{member.label}: {note}" for member, found in results for note in found.notes or ()]
        return GrepResult(
            tuple(matches),
            total,
            sum(found.total_pages for _, found in results),
            end if matches and end < total else None,
            tuple([*_problems(reasons), *notes]) or None,
        )

    def get_page(self, file_path: str, collection: str | None = None, version: str | None = None) -> Page:
        """A whole page. Without ``collection``, of the only one that has it. Raises :class:`NotFound`."""
        member = self._holder(file_path, collection, version)
        return _labelled(member.documents.get_page(file_path), member)

    def outline(self, file_path: str, collection: str | None = None, version: str | None = None) -> Outline:
        """A whole page, and where its sections are in it. Raises :class:`NotFound`."""
        member = self._holder(file_path, collection, version)
        outline = member.documents.outline(file_path)
        return replace(outline, page=_labelled(outline.page, member))

    def get_section(
        self,
        file_path: str,
        heading_path: str,
        include_children: bool = False,
        collection: str | None = None,
        version: str | None = None,
    ) -> SectionText:
        """The text under one heading. Raises :class:`NotFound`."""
        member = self._holder(file_path, collection, version)
        return _labelled(member.documents.get_section(file_path, heading_path, include_children), member)

    def headings(self, file_path: str, collection: str | None = None, version: str | None = None) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order. Raises :class:`NotFound`."""
        return self._holder(file_path, collection, version).documents.headings(file_path)

    def list_pages(
        self,
        prefix: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        max_chars: int | None = None,
        collection: str | None = None,
        version: str | None = None,
    ) -> PageList:
        """The pages of the chosen collections, sorted by collection and path; see :meth:`anvil.Anvil.list_pages`."""
        from anvil.services.search.pages import bounded_list

        members = self.selected(collection, version)
        listings, problems = _each(members, lambda member: member.documents.list_pages(prefix))
        pages = tuple(_labelled(page, member) for member, listing in listings for page in listing.pages)
        notes = [f"{member.label}: {note}" for member, listing in listings for note in listing.notes or ()]
        listed = PageList(pages, len(pages), tuple([*_problems(problems), *notes]) or None)
        return bounded_list(listed, limit, offset, max_chars)

    def skills(self) -> tuple[Skill, ...]:
        """The Agent Skills of the project's own collections, each with a name of its own; one that cannot be read has
        none."""
        from anvil.core.agents.skill import skill_name

        skills: dict[str, Skill] = {}
        for member in self.members:
            if member.collection.docs and self.is_default(member):
                name, number = member.collection.name, 2
                while skill_name(name) in skills:
                    name, number = f"{member.collection.name}-{number}", number + 1
                with suppress(AnvilError):
                    skills |= {skill.name: skill for skill in member.documents.skills(name, member.collection.name)}
        return tuple(skills.values())

    def get_status(self) -> Status:
        """The state of the server and of all collections. Collections that cannot answer have a note."""
        statuses, problems = _each(self.members, lambda member: member.documents.get_status())
        reasons = {id(member): str(error) for member, error in problems}
        by_member = {id(member): status for member, status in statuses}
        listed = tuple(
            self._status(member, by_member.get(id(member)), reasons.get(id(member))) for member in self.members
        )
        return replace(statuses[0][1], collections=listed)

    def _status(self, member: Member, status: Status | None, reason: str | None) -> CollectionStatus:
        collection = member.collection
        common = CollectionStatus(
            collection.name, collection.version, collection.title or collection.name, self.is_default(member)
        )
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

    def _open(
        self, stack: ExitStack, members: Iterable[Member], search: SearchRequest | None = None, page: str | None = None
    ) -> tuple[Opened, list[tuple[Member, AnvilError]]]:
        """The working copies of the members that can answer, locked until the stack is closed, and why others cannot.

        The locks are taken in the order of the members, so two questions never wait for each other. Raises the error
        of the first member if none can answer.
        """
        return _each(members, lambda member: stack.enter_context(member.live.query(search, page)))

    # --- start and close -----------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the indexes, and load the model, in the background; see :meth:`anvil.Anvil.start`.

        Folders, which may have to be built, and published indexes, which may have to be fetched, begin at once. The
        others are opened one after the other, so that many of them do not delay the server's first answers.
        """
        files = []
        for member in self.members:
            collection = member.collection
            if collection.docs is None and not index_url.is_remote(collection.index or ""):
                files.append(member)
            else:
                member.documents.start(progress)
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
        """Call ``callback`` with the changed, added and removed pages after each refresh that found any, each as
        ``COLLECTION:PATH``. Returns the function that ends the calls."""

        def listener(label: str) -> Callable[[Changes], None]:
            return lambda changes: callback(addressed(changes, label))

        stops = [member.documents.on_change(listener(member.label)) for member in self.members]

        def stop() -> None:
            for stop_one in stops:
                stop_one()

        return stop

    def close(self) -> None:
        """Stop the background work, and close the files and the model. A second call does nothing."""
        self._closed.set()
        if self._opener is not None:
            self._opener.join(60)
        for member in self.members:
            member.documents.close()
        self._provider.close()

    def __enter__(self) -> Collections:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


T = TypeVar("T")


def _each(
    members: Iterable[Member], call: Callable[[Member], T]
) -> tuple[list[tuple[Member, T]], list[tuple[Member, AnvilError]]]:
    """(member, result) of each call that succeeds, and (member, error) of the others. Raises if all fail."""
    results: list[tuple[Member, T]] = []
    problems: list[tuple[Member, AnvilError]] = []
    for member in members:
        try:
            results.append((member, call(member)))
        except ArtifactMissing as error:
            problems.append((member, ArtifactMissing(member.collection.missing or str(error))))
        except AnvilError as error:
            problems.append((member, error))
    if problems and not results:
        raise problems[0][1]
    return results, problems


def addressed(changes: Changes, label: str) -> Changes:
    """Changes with each path as ``COLLECTION:PATH``."""

    def of(paths: Iterable[str]) -> tuple[str, ...]:
        return tuple(f"{label}:{path}" for path in paths)

    return Changes(of(changes.changed), of(changes.added), of(changes.removed))


def _labelled(part: P, member: Member) -> P:
    """A part of an answer, with the collection that it is from."""
    return replace(part, collection=member.collection.name, version=member.collection.version)


def _problem(member: Member, error: AnvilError) -> str:
    return f"{member.label} cannot answer: {error}"


def _problems(problems: Sequence[tuple[Member, AnvilError]]) -> list[str]:
    """Sentences on the collections that cannot answer."""
    if len(problems) <= 2:
        return [_problem(*problem) for problem in problems]
    names = first_of([member.label for member, _ in problems], MAX_NAMED)
    return [f"{counted(len(problems), 'collection')} cannot answer: {names}. get_status says why."]


def _words_only(opened: Opened) -> Iterator[str]:
    """A sentence on the collections that are searched by words although others are searched by meaning too."""
    words = [member.label for member, copy in opened if not copy.searcher.semantic]
    if words and len(words) < len(opened):
        yield f"Searched by words only, because they have no vectors of this model: {first_of(words, MAX_NAMED)}."


def _freshness(opened: Opened, shown: frozenset[int], notes: Sequence[str]) -> Freshness:
    """The freshness of an answer from several collections. ``shown``: the places of those that have results; others
    have no notes here."""
    each = [member.live.freshness(copy) for member, copy in opened]
    own = [
        f"{member.label}: {note}"
        for place, ((member, _), freshness) in enumerate(zip(opened, each, strict=True))
        if place in shown
        for note in freshness.notes
    ]
    return Freshness(
        next((freshness.checked for freshness in each if freshness.checked), None),
        next((freshness.commit for freshness in each if freshness.checked), None),
        tuple(
            f"{member.label}:{path}"
            for (member, _), freshness in zip(opened, each, strict=True)
            for path in freshness.refreshed
        ),
        sum(freshness.pending_vectors for freshness in each),
        (*own, *notes),
    )


def _no_page(file_path: str, paths: dict[str, list[str]], problems: Sequence[str]) -> str:
    """The message for a page that no collection has. A path that begins with the name of a collection is explained."""
    shown = file_path[:500]
    for label, known in paths.items():
        for name in dict.fromkeys((label, label.rpartition("@")[0] or label)):
            below = file_path[len(name) + 1 :]
            if file_path.startswith((f"{name}/", f"{name}:")) and below in known:
                return f"No page found at path: {shown}. {name} is a collection: give {below} with collection {name}."
    addresses = [f"{label}:{path}" for label, known in paths.items() for path in known]
    near = closest_paths(file_path, addresses)
    closest = f" Closest: {', '.join(near)}." if near else ""
    more = "".join(f" {problem}" for problem in problems)
    where = f"{shown} in {first_of(list(paths), MAX_NAMED)}"
    return f"No page found at path: {where}. Use list_pages to discover available pages.{closest}{more}"
