"""Queries to one index, or to several collections as one: which is asked; search, exact lines, pages and status."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anvil import project_indexes, registry
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, ConfigError, NotFound
from anvil.project_indexes import OpenedIndex
from anvil.requests import GrepRequest, SearchRequest, checks_arguments, takes
from anvil.settings.schema import Collection, Config
from anvil.wording import closest_note, closest_paths, counted, first_of

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.index_file.reader import Reader
    from anvil.live.memory_copy import MemoryCopy
    from anvil.results import GrepMatch, GrepResult, Hit, Mode, Page, PageList, PageSummary, SearchResult, SectionText
    from anvil.search.pages import Outline
    from anvil.search.searcher import Explained
    from anvil.status import Status

    Opened = list[tuple[OpenedIndex, MemoryCopy]]
    Problems = list[tuple[OpenedIndex, AnvilError]]

A = TypeVar("A", "GrepResult", "PageList")
T = TypeVar("T")
P = TypeVar("P", "GrepMatch", "Hit", "Page", "PageSummary", "SectionText")


@checks_arguments
class Queries:
    """Indexes that are opened together: which of them a question is for, and the queries to their pages. See
    :class:`anvil.Anvil`."""

    def __init__(
        self,
        members: Sequence[OpenedIndex],
        config: Config,
        provider: EmbeddingProvider | None = None,
        *,
        owns_members: bool = True,
    ) -> None:
        """``members``: in the order that decides between equal results. ``provider``: the one that several members
        share; it is closed here. ``owns_members``: whether :meth:`close` closes them."""
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
        for name, versions in by_name.items():
            self._default[name] = project_indexes.answering_version(versions)

    # --- the choice ----------------------------------------------------------------------------------------

    @property
    def is_several(self) -> bool:
        """Whether there are several indexes. Each part of an answer then names its collection."""
        return len(self.members) > 1

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the collections, each once."""
        return tuple(self._default)

    def is_default(self, member: OpenedIndex) -> bool:
        """Whether this version of the collection answers questions that name none."""
        return member.collection is None or self._default[member.collection.name] is member.collection

    def selected(self, collection: str | None = None, version: str | None = None) -> tuple[OpenedIndex, ...]:
        """The members for a question. Raises :class:`ConfigError`, with the collections or versions that exist."""
        if not self._default:
            if collection is not None or version is not None:
                raise ConfigError("There is one collection. Leave out its name.")
            return self.members
        collections = [member.collection for member in self.members if member.collection is not None]
        chosen = project_indexes.chosen(collections, collection and [collection])
        if version is None:
            by_label = [candidate for candidate in chosen if candidate.label == collection]
            wanted = by_label or [candidate for candidate in chosen if self._default[candidate.name] is candidate]
        else:
            wanted = [candidate for candidate in chosen if candidate.version == version]
            if not wanted:
                versions = ", ".join(dict.fromkeys(candidate.version for candidate in chosen if candidate.version))
                where = f"collection {collection}" if collection else "any collection"
                raise ConfigError(
                    f"There is no version {version[:80]} of {where}. "
                    + (f"There are: {versions}." if versions else "No version is set: leave it out.")
                )
        return tuple(member for member in self.members if member.collection in wanted)

    def _labelled(self, part: P, member: OpenedIndex) -> P:
        """A part of an answer; with several collections, with the name of its own."""
        if not self.is_several:
            return part
        return replace(part, collection=member.collection_name, version=member.version)

    def _notes(self, member: OpenedIndex, notes: Sequence[str] | None) -> list[str]:
        """Notes of a member; with several collections, each with its label."""
        return [f"{member.label}: {note}" if self.is_several else note for note in notes or ()]

    # --- the only index ------------------------------------------------------------------------------------

    @property
    def only(self) -> OpenedIndex:
        """The only index. Raises :class:`ConfigError` if there are several."""
        if self.is_several:
            labels = ", ".join(member.label for member in self.members)
            raise ConfigError(f"Several collections are open: {labels}. Open one of them alone.")
        return self.members[0]

    @property
    def base(self) -> Path:
        """The folder at which relative paths in the configuration start."""
        return self.only.base

    @property
    def folder(self) -> Path | None:
        """The documentation folder that a build and a check read."""
        return self.only.folder

    @property
    def index_path(self) -> Path:
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
        """The documentation folder with which answers are compared; None if there is only an index."""
        return self.only.docs_root

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider. Its model is loaded at first use."""
        return self._provider or self.only.provider

    @property
    def provisional(self) -> bool:
        """Whether the last answer came from the documents alone, because there is no index file yet."""
        return any(member.live.provisional for member in self.members)

    @property
    def refused(self) -> tuple[str, ...]:
        """Why the last answer did not use the index file: it cannot be read, or cannot be written. There is a sentence
        for each such collection."""
        return tuple(self._notes(member, [member.live.refused])[0] for member in self.members if member.live.refused)

    @property
    def name(self) -> str:
        """What is searched: documentation folder, else origin of the index; of several collections, the first."""
        return self.members[0].name

    # --- questions ---------------------------------------------------------------------------------------

    @takes(SearchRequest)
    def search(self, request: SearchRequest) -> SearchResult:
        """The chunks that answer ``query`` best.

        ``top_k`` is clamped to 1..20. ``file_filter``: a glob over paths, applied before ranking. ``max_chars``: the
        budget for all contents together, most of which the likely ones get; None: 800, and 100 for each result.
        ``min_confidence``: results with less are left out (default: ``search.min_confidence``). ``version``,
        ``language``: only pages of a site that have it, such as ``1.2`` and ``de``. Of several collections, ``version``
        is that of a collection, and there is no ``language``. Raises :class:`ConfigError` for a blank query.
        """
        return answer(self, request).result

    @takes(SearchRequest)
    def explain(self, request: SearchRequest) -> Explained:
        """:meth:`search` with parts of each score, spans of matching sections, and the evidence for each confidence."""
        return answer(self, request)

    def _search_several(self, members: Sequence[OpenedIndex], request: SearchRequest) -> Explained:
        """One search of several members. Their locks are taken in order, so two searches never wait for each other."""
        started_at = time.perf_counter()
        # The query is embedded once, by the first member that compares vectors: all have the same model.
        embedded = (member.live.embed_query(request) for member in members)
        question = next((question for question in embedded if question is not None), None)
        with ExitStack() as stack:
            opened, problems = _call_each(members, lambda member: stack.enter_context(member.live.query(request)))
            from anvil.results import Freshness
            from anvil.search import several_collections

            obstacles = _obstacles(opened) if request.mode != "keyword" else []
            if obstacles and request.mode == "semantic":
                raise ConfigError(" ".join(obstacles))
            ranked = several_collections.search([copy.searcher for _, copy in opened], request, question)
            not_by_meaning = [*obstacles, *_without_meaning(opened, request.mode)]
            notes = [*_cannot_answer(problems), *not_by_meaning, *ranked.notes]
            shown = {opened[result.number][0].label for result in ranked.ranked}
            parts = {member.label: member.live.freshness(copy) for member, copy in opened}
        freshness = Freshness.joined(parts, shown, notes)
        labelled = (
            result._replace(hit=self._labelled(result.hit, opened[result.number][0])) for result in ranked.ranked
        )
        return replace(ranked, ranked=tuple(labelled)).explained(freshness, started_at)

    @takes(GrepRequest)
    def grep(self, request: GrepRequest) -> GrepResult:
        """The lines that contain ``pattern``, by path and line: exact text, without ranking.

        ``path``: a page, a folder or a glob; None for all pages, each in its newest version that matches. ``regex``:
        ``pattern`` is a regular expression of RE2, which has no look-around. ``word``: only whole words match.
        ``context``: lines before and after each match. ``max_matches`` and ``max_chars`` bound the answer;
        ``max_chars=None``: only ``max_matches`` does, and long lines are whole. ``offset``: matches to leave out, such
        as ``next_offset`` of the answer before. Raises :class:`ConfigError` for a pattern that is not valid, and
        :class:`NotFound` if no page is in ``path``.
        """
        from anvil.results import GrepResult
        from anvil.search import grep

        path = request.path
        matcher = grep.compile(request)

        def of(member: OpenedIndex) -> GrepResult:
            with member.live.query(page=member.path_of(path) if path else None) as copy:
                result = grep.grep(copy.reader, matcher, request, member.docs_root)
                return replace(result, notes=(*member.live.missing_pages(copy), *(result.notes or ())))

        results, notes = self._of_each(of, request.collection, request.version)
        matches = [self._labelled(match, member) for member, result in results for match in result.matches]
        shown = grep.bounded(matches, request)
        total = sum(result.total_matches for _, result in results)
        end = request.offset + len(shown)
        if not total and grep.is_read_literally(request):
            notes = (*(notes or ()), grep.READ_LITERALLY)
        return GrepResult(
            tuple(shown),
            total,
            sum(result.total_pages for _, result in results),
            end if shown and end < total else None,
            notes,
        )

    def get_page(
        self,
        file_path: str,
        collection: str | None = None,
        version: str | None = None,
        offset: int = 0,
        max_chars: int | None = None,
    ) -> Page:
        """A whole page. Of several collections, without ``collection``, the page of the only one that has it. Raises
        :class:`NotFound`, with the closest paths.

        ``max_chars`` bounds the text, to whole chunks and at least one; None: no limit. ``offset``: characters of the
        text to leave out, such as ``next_offset`` of the answer before.
        """
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            page = pages.get_page(reader, file_path, member.docs_root)
        return self._labelled(pages.bounded_page(page, offset, max_chars), member)

    def outline(self, file_path: str, collection: str | None = None, version: str | None = None) -> Outline:
        """A whole page, and the positions of its sections in it. Raises :class:`NotFound`, with the closest paths."""
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            outline = pages.outline(reader, file_path, member.docs_root)
            return replace(outline, page=self._labelled(outline.page, member))

    def get_section(
        self,
        file_path: str,
        heading_path: str,
        include_children: bool = False,
        collection: str | None = None,
        version: str | None = None,
        offset: int = 0,
        max_chars: int | None = None,
    ) -> SectionText:
        """The text under one heading. ``max_chars`` and ``offset`` as in :meth:`get_page`, but in whole lines. Raises
        :class:`NotFound`, with the closest breadcrumbs."""
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            text = pages.get_section(reader, file_path, heading_path, include_children, member.docs_root)
        return self._labelled(pages.bounded_section(text, offset, max_chars), member)

    def headings(self, file_path: str, collection: str | None = None, version: str | None = None) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order. :meth:`get_section` accepts them."""
        return tuple(section.heading_path for section in self.outline(file_path, collection, version).sections)

    def list_pages(
        self,
        prefix: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        max_chars: int | None = None,
        collection: str | None = None,
        version: str | None = None,
    ) -> PageList:
        """The pages, or those in a folder, sorted by collection and path. ``notes`` say which are missing, such as
        during a first build.

        ``limit`` and ``max_chars``, which counts characters of the entries, bound the answer; None: no limit.
        ``offset``: pages to leave out, such as ``next_offset`` of the answer before.
        """
        from anvil.results import PageList
        from anvil.search import pages

        end = None if max_chars is None else max(0, offset) + max(0, max_chars) // pages.ENTRY_CHARS + 1

        def of(member: OpenedIndex) -> PageList:
            with member.live.query() as copy:
                return replace(pages.list_pages(copy.reader, prefix, end), notes=tuple(member.live.missing_pages(copy)))

        listings, notes = self._of_each(of, collection, version)
        listed = tuple(self._labelled(page, member) for member, listing in listings for page in listing.pages)
        return pages.bounded_list(PageList(listed, len(listed), notes), limit, offset, max_chars)

    def topics(self, wait: bool = True) -> str:
        """A sentence on the subjects of the documents: quoted titles of the top pages. "" without pages, and for
        several collections, whose names tell the subjects.

        ``wait=False``: from the index file as it is, at once; "" if it was never checked on this machine.
        """
        if self.is_several:
            return ""
        topics = registry.part("topics")

        member = self.only
        if wait:
            with member.live.query() as copy:
                return str(topics((page.file_path, page.title) for page in copy.reader.documents()))
        from anvil.index_file import verify

        with suppress(ArtifactError):
            if member.location.is_file and (reader := verify.open_known(member.location.path, MAX_PEEK_BYTES)):
                with reader:
                    return str(topics((page.file_path, page.title) for page in reader.documents()))
        return ""

    def get_status(self) -> Status:
        """The state of the server, the index, the embedding and the repository, and of each of several collections;
        those that cannot answer have a note. Errors of git do not make it fail."""
        from anvil import status

        def of(member: OpenedIndex) -> Status:
            with member.live.query() as copy:
                return status.of_index(member, copy)

        statuses, problems = _call_each(self.members, of)
        first = statuses[0][1]
        if not self.is_several:
            return first
        reasons = {id(member): str(error) for member, error in problems}
        by_member = {id(member): own for member, own in statuses}
        listed = (
            status.of_collection(member, by_member.get(id(member)), reasons.get(id(member)), self.is_default(member))
            for member in self.members
        )
        return replace(first, collections=tuple(listed))

    def _of_each(
        self, call: Callable[[OpenedIndex], A], collection: str | None, version: str | None
    ) -> tuple[list[tuple[OpenedIndex, A]], tuple[str, ...] | None]:
        """The results of ``call`` for each member that the question is for, and the notes: of the answers, and on
        members that cannot answer. None without notes."""
        answers, problems = _call_each(self.selected(collection, version), call)
        # A member that only has no such path can answer.
        reasons: Problems = [problem for problem in problems if not isinstance(problem[1], NotFound)]
        notes: list[str] = [note for member, result in answers for note in self._notes(member, result.notes)]
        return answers, (*_cannot_answer(reasons), *notes) or None

    # Apart from _holding(): all members are locked while they are asked for the page, but only one while it is read.
    def _holder(self, file_path: str, collection: str | None, version: str | None) -> OpenedIndex:
        """The member that has a page. Raises :class:`NotFound` if none or several have it."""
        members = self.selected(collection, version)
        if len(members) == 1:
            return members[0]
        from anvil.search import pages

        paths: dict[str, list[str]] = {}
        holders = []
        with ExitStack() as stack:
            opened, problems = _call_each(
                members, lambda member: stack.enter_context(member.live.query(page=file_path))
            )
            for member, copy in opened:
                if pages.has_page(copy.reader, file_path, member.docs_root):
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
        raise NotFound(_no_page(file_path, paths, problems))

    @contextmanager
    def _holding(
        self, file_path: str, collection: str | None, version: str | None
    ) -> Iterator[tuple[OpenedIndex, Reader]]:
        """The member that has a page, and its index."""
        member = self._holder(file_path, collection, version)
        with member.live.query(page=member.path_of(file_path)) as copy:
            yield member, copy.reader


def answer(opened: Queries, request: SearchRequest) -> Explained:
    """:meth:`Queries.explain` for a whole request."""
    # ``version`` is that of a collection, if there are collections; else that of a site's pages in one index.
    by_name = bool(opened.names)
    if by_name and request.language is not None:
        raise ConfigError("language is for one index, not for collections. Leave it out.")
    members = opened.selected(request.collection, request.version if by_name else None)
    request = replace(request, options=opened.config.search, version=None if by_name else request.version)
    return opened._search_several(members, request) if opened.is_several else members[0].live.search(request)


def _call_each(
    members: Iterable[OpenedIndex], call: Callable[[OpenedIndex], T]
) -> tuple[list[tuple[OpenedIndex, T]], Problems]:
    """(member, result) of each call that succeeds, and (member, error) of the others. Raises if all fail."""
    results: list[tuple[OpenedIndex, T]] = []
    problems: Problems = []
    for member in members:
        try:
            results.append((member, call(member)))
        except ArtifactMissing as error:  # such as documentation of a dependency that was not fetched yet
            missing = member.collection and member.collection.missing
            problems.append((member, ArtifactMissing(missing) if missing else error))
        except AnvilError as error:
            problems.append((member, error))
    if problems and not results:  # the first error is that of the project's own documentation, if it has some
        raise problems[0][1]
    return results, problems


MAX_PEEK_BYTES = 100_000_000
"""A larger index file is not read before a server introduces itself: that must take no time."""


# --- sentences in an answer from several collections ---

MAX_NAMED = 5
"""Collections that one sentence names."""


def _cannot_answer(problems: Problems) -> list[str]:
    """Sentences on the collections that cannot answer."""
    if len(problems) <= 2:
        return [_problem(*problem) for problem in problems]
    names = first_of([member.label for member, _ in problems], MAX_NAMED)
    return [f"{counted(len(problems), 'collection')} cannot answer: {names}. get_status says why."]


def _problem(member: OpenedIndex, error: AnvilError) -> str:
    return f"{member.label} cannot answer: {error}"


def _no_page(file_path: str, paths: dict[str, list[str]], problems: Problems) -> str:
    """The message for a page that no collection has. A path that begins with the name of a collection is explained."""
    shown = file_path[:500]
    for label, own_paths in paths.items():
        for name in dict.fromkeys((label, label.rpartition("@")[0] or label)):
            below = file_path[len(name) + 1 :]
            if file_path.startswith((f"{name}/", f"{name}:")) and below in own_paths:
                return f"No page found at path: {shown}. {name} is a collection: give {below} with collection {name}."
    addresses = [f"{label}:{path}" for label, own_paths in paths.items() for path in own_paths]
    closest = closest_note(closest_paths(file_path, addresses))
    more = "".join(f" {_problem(*problem)}" for problem in problems)
    where = f"{shown} in {first_of(list(paths), MAX_NAMED)}"
    return f"No page found at path: {where}. Use list_pages to discover available pages.{closest}{more}"


def _obstacles(opened: Opened) -> list[str]:
    """Why none of these collections can be searched by meaning; empty if one can. The same reason is named once."""
    labels: dict[str, list[str]] = {}
    for member, copy in opened:
        if (obstacle := member.live.obstacle(copy)) is None:
            return []
        labels.setdefault(obstacle, []).append(member.label)
    return [f"{first_of(names, MAX_NAMED)}: {obstacle}" for obstacle, names in labels.items()]


def _without_meaning(opened: Opened, mode: Mode) -> Iterator[str]:
    """Sentences on the collections that are not searched by meaning although others are."""
    lacking = [(member, copy) for member, copy in opened if not copy.searcher.semantic]
    if mode == "keyword" or not lacking or len(lacking) == len(opened):
        return
    consequence = "Searched by words only" if mode == "hybrid" else "Not searched"
    names = first_of([member.label for member, _ in lacking], MAX_NAMED)
    yield f"{consequence}, because they have no vectors of this model: {names}."
    if soon := [member.label for member, copy in lacking if member.live.will_embed_again(copy)]:
        yield f"Embedded again when no page has changed for a minute: {first_of(soon, MAX_NAMED)}."
