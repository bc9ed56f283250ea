"""What ``anvil.open`` returns: one index over one folder of documents, or several collections that answer as one."""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from anvil import registry, several
from anvil.errors import AnvilError, ArtifactError, ConfigError, NotFound, SourceError
from anvil.formats.argument_types import checks_arguments
from anvil.live.location import IndexLocation
from anvil.member import Member
from anvil.requests import BuildRequest
from anvil.settings import index_url
from anvil.values import BuildReport, Changes, Progress
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.agents.skill import Skill
    from anvil.doc_tests.gaps import QuestionGroup
    from anvil.doc_tests.question_log import LoggedQuestion, QuestionLog
    from anvil.doc_tests.values import Suite, TestReport
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.index_file.reader import Reader
    from anvil.lint.values import LintReport
    from anvil.markdown.site_files import MarkdownReport
    from anvil.requests import SearchRequest
    from anvil.results import GrepMatch, GrepResult, Hit, Mode, Page, PageList, PageSummary, SearchResult, SectionText
    from anvil.search.content_health import ContentHealth
    from anvil.search.pages import Outline
    from anvil.search.searcher import Explained
    from anvil.settings.schema import Collection, Config
    from anvil.status import Status

P = TypeVar("P", "GrepMatch", "Hit", "Page", "PageSummary", "SectionText")

MAX_PEEK_BYTES = 100_000_000
"""A larger index file is not read before a server introduces itself: that must take no time."""


@checks_arguments
class Anvil:
    """One index, or several collections as one. All methods may be called from any thread. A context manager; without
    :meth:`close` there is a ResourceWarning.

    Of several, a question goes to one version of each collection, the default one or else the newest. ``collection``
    chooses a collection by name, or by ``NAME@VERSION``; ``version`` chooses another version. If a collection cannot
    answer, the others do, and a note says so. What is about one index alone, such as a build, then raises
    :class:`ConfigError`; :meth:`alone` gives each of them.
    """

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

    def alone(self, member: Member) -> Anvil:
        """One of the indexes by itself. It is closed with this object."""
        return Anvil([member], member.config, owns_members=False) if self.is_several else self

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

    def _holder(self, file_path: str, collection: str | None, version: str | None) -> Member:
        """The member that has a page. Raises :class:`NotFound` where none or several have it."""
        members = self.selected(collection, version)
        if len(members) == 1:
            return members[0]
        from anvil.search import pages

        paths: dict[str, list[str]] = {}
        holders = []
        with ExitStack() as stack:
            opened, problems = several.each(
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
        raise NotFound(several.no_page(file_path, paths, problems))

    @contextmanager
    def _holding(self, file_path: str, collection: str | None, version: str | None) -> Iterator[tuple[Member, Reader]]:
        """The member that has a page, and its index."""
        member = self._holder(file_path, collection, version)
        with member.live.query(page=member.path_of(file_path)) as copy:
            yield member, copy.reader

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
    def source(self) -> DocumentSource | None:
        """The documents that answers are compared with, or None when there is only an index."""
        return self.only.source

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

    # --- queries -----------------------------------------------------------------------------------------

    def search(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int | None = None,
        mode: Mode = "hybrid",
        min_confidence: float | None = None,
        *,
        collection: str | None = None,
        version: str | None = None,
        language: str | None = None,
    ) -> SearchResult:
        """The chunks that answer ``query`` best.

        ``top_k`` is clamped to 1..20. ``file_filter``: a glob over paths, applied before ranking.
        ``max_chars``: the budget for all contents together, of which the likely ones get most; None: 1,000, and 100 for
        each result, as in ``search_docs``. ``min_confidence``: results with less are left out (default:
        ``search.min_confidence``). ``version``, ``language``: only pages of a site that have it, such as ``1.2`` and
        ``de``. Of several collections, ``version`` is that of a collection, and there is no ``language``. Raises
        :class:`ConfigError` for a blank query.
        """
        return self.explain(
            query,
            top_k,
            file_filter,
            max_chars,
            mode,
            min_confidence,
            collection=collection,
            version=version,
            language=language,
        ).result

    def explain(
        self,
        query: str,
        top_k: int = 5,
        file_filter: str | None = None,
        max_chars: int | None = None,
        mode: Mode = "hybrid",
        min_confidence: float | None = None,
        *,
        collection: str | None = None,
        version: str | None = None,
        language: str | None = None,
        base_chars: int | None = None,
    ) -> Explained:
        """Like :meth:`search`, with the parts of each score, the span of each matching section, and the evidence behind
        each confidence. ``base_chars``: in place of the 1,000 of a budget of None."""
        from anvil.requests import BASE_CHARS, SearchRequest

        options, by_name = self.config.search, bool(self._default)
        if by_name and language is not None:
            raise ConfigError("language is for one index, not for collections. Leave it out.")
        members = self.selected(collection, version if by_name else None)
        request = SearchRequest(
            query,
            top_k,
            file_filter,
            max_chars,
            mode,
            min_confidence=options.min_confidence if min_confidence is None else min_confidence,
            threshold=options.threshold,
            version=None if by_name else version,
            language=language,
            base_chars=BASE_CHARS if base_chars is None else base_chars,
        )
        return self._search_several(members, request) if self.is_several else members[0].live.search(request)

    def _search_several(self, members: Sequence[Member], request: SearchRequest) -> Explained:
        """One search of members that answer together. Their locks are taken in their order, so two questions never wait
        for each other."""
        started_at = time.perf_counter()
        embedded = (member.live.embed_query(request) for member in members)
        question = next((question for question in embedded if question is not None), None)
        with ExitStack() as stack:
            opened, problems = several.each(members, lambda member: stack.enter_context(member.live.query(request)))
            from anvil.search import searcher

            obstacles = several.obstacles(opened) if request.mode != "keyword" else []
            if obstacles and request.mode == "semantic":
                raise ConfigError(" ".join(obstacles))
            found = searcher.search([copy.searcher for _, copy in opened], request, question)
            not_by_meaning = [*obstacles, *several.without_meaning(opened, request.mode)]
            notes = [*several.sentences(problems), *not_by_meaning, *found.notes]
            freshness = several.freshness(opened, frozenset(found.places), notes)
        labelled = (self._labelled(hit, opened[place][0]) for hit, place in zip(found.hits, found.places, strict=True))
        return replace(found, hits=tuple(labelled)).explained(freshness, started_at)

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
        """The lines that contain ``pattern``, by path and line: exact text, without ranking.

        ``path``: a page, a folder or a glob. ``regex``: ``pattern`` is a regular expression of RE2, which has no
        look-around. ``context``: lines before and after each match. ``max_matches`` and ``max_chars`` bound the
        answer; ``max_chars=None``: only ``max_matches`` does, and long lines are whole. ``offset``: matches to leave
        out, such as ``next_offset`` of the answer before. Raises :class:`ConfigError` for a pattern that is not
        valid, and :class:`NotFound` when no page is in ``path``.
        """
        from anvil.requests import GrepRequest
        from anvil.results import GrepResult
        from anvil.search import grep, line_matcher

        request = GrepRequest(pattern, path, regex, ignore_case, context, max_matches, offset, max_chars)
        matcher = line_matcher.compile(pattern, regex=regex, ignore_case=ignore_case)
        matches: list[GrepMatch] = []
        skipped, is_full = request.offset, False
        left, chars_left = request.max_matches, request.max_chars

        def of(member: Member) -> GrepResult:
            nonlocal skipped, is_full, left, chars_left
            limit = 1 if is_full else left  # the matches of the others are only counted
            own = replace(request, max_matches=limit, offset=skipped, max_chars=chars_left)
            with member.live.query(page=member.path_of(path) if path else None) as copy:
                found = grep.grep(copy.reader, matcher, own, member.docs_root)
                notes = (*member.live.missing_pages(copy), *(found.notes or ()))
            if not is_full:
                matches.extend(self._labelled(match, member) for match in found.matches)
                left -= len(found.matches)
                if chars_left is not None:
                    chars_left -= sum(len(match.text) + len(match.heading_path) for match in found.matches)
                is_full = found.next_offset is not None or left <= 0 or (chars_left is not None and chars_left <= 0)
            skipped = max(0, skipped - found.total_matches)
            return replace(found, notes=notes)

        results, problems = several.each(self.selected(collection, version), of)
        reasons = [problem for problem in problems if not isinstance(problem[1], NotFound)]  # no such path there
        notes = [note for member, found in results for note in self._notes(member, found.notes)]
        total = sum(found.total_matches for _, found in results)
        end = request.offset + len(matches)
        return GrepResult(
            tuple(matches),
            total,
            sum(found.total_pages for _, found in results),
            end if matches and end < total else None,
            tuple([*several.sentences(reasons), *notes]) or None,
        )

    def get_page(self, file_path: str, collection: str | None = None, version: str | None = None) -> Page:
        """A whole page. Of several collections, without ``collection``, of the only one that has it. Raises
        :class:`NotFound`, naming the closest paths."""
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            return self._labelled(pages.get_page(reader, file_path, member.docs_root), member)

    def outline(self, file_path: str, collection: str | None = None, version: str | None = None) -> Outline:
        """A whole page, and where its sections are in it. Raises :class:`NotFound`, naming the closest paths."""
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
    ) -> SectionText:
        """The text under one heading. Raises :class:`NotFound`, naming the closest breadcrumbs."""
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            text = pages.get_section(reader, file_path, heading_path, include_children, member.docs_root)
            return self._labelled(text, member)

    def headings(self, file_path: str, collection: str | None = None, version: str | None = None) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order. :meth:`get_section` accepts them."""
        from anvil.search import pages

        with self._holding(file_path, collection, version) as (member, reader):
            return pages.headings(reader, file_path, member.docs_root)

    def breadcrumb(self, file_path: str, heading: str) -> str:
        """The exact breadcrumb of a section. It may be named by breadcrumb, by anchor, or by a heading that only one
        section has."""
        from anvil.search import pages

        with self.only.live.query() as copy:
            return pages.breadcrumb(copy.reader, file_path, heading, self.docs_root)

    def list_pages(
        self,
        prefix: str | None = None,
        limit: int | None = None,
        offset: int = 0,
        max_chars: int | None = None,
        collection: str | None = None,
        version: str | None = None,
    ) -> PageList:
        """The pages, or those in a folder, sorted by collection and path. ``notes`` say which are missing, as during a
        first build.

        ``limit`` and ``max_chars``, which counts characters of the entries, bound the answer; None: no limit.
        ``offset``: pages to leave out, such as ``next_offset`` of the answer before."""
        from anvil.results import PageList
        from anvil.search import pages

        def of(member: Member) -> PageList:
            with member.live.query() as copy:
                return replace(pages.list_pages(copy.reader, prefix), notes=tuple(member.live.missing_pages(copy)))

        listings, problems = several.each(self.selected(collection, version), of)
        listed = tuple(self._labelled(page, member) for member, listing in listings for page in listing.pages)
        notes = [note for member, listing in listings for note in self._notes(member, listing.notes)]
        whole = PageList(listed, len(listed), tuple([*several.sentences(problems), *notes]) or None)
        return pages.bounded_list(whole, limit, offset, max_chars)

    def topics(self, wait: bool = True) -> str:
        """A sentence on what the documents are about: quoted titles of the top pages; "" if there are none, and for
        several collections, whose names say it.

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

    def skills(self, name: str | None = None, collection: str | None = None) -> tuple[Skill, ...]:
        """The Agent Skills of these documents for clients of a server: how many there are, and how to search them. None
        without pages. ``name``: of the project; ``collection``: what the server calls these documents. Of several
        collections: those of the project's own, each with a name of its own; one that cannot be read has none."""
        agent_skills = registry.part("agent skills")
        if not self.is_several:
            with self.only.live.query() as copy:
                skill = agent_skills.served(copy.reader, name or self._project_name(), collection)
            return (skill,) if skill is not None else ()
        skills: dict[str, Skill] = {}
        for member in self.members:
            own = member.collection
            if own is not None and own.docs and self.is_default(member):
                free, number = own.name, 2
                while agent_skills.skill_name(free) in skills:
                    free, number = f"{own.name}-{number}", number + 1
                with suppress(AnvilError):
                    skills |= {skill.name: skill for skill in self.alone(member).skills(free, own.name)}
        return tuple(skills.values())

    def publish_skill(
        self, site: str | os.PathLike[str], name: str | None = None, *, mcp_url: str | None = None
    ) -> tuple[str, ...]:
        """Write an Agent Skill of the index into the folder of its site, where agents look for it; the paths of the
        files. ``name``: of the project; ``mcp_url``: a server over these pages. Raises :class:`BuildError`."""
        agent_skills = registry.part("agent skills")
        address = (self.config.site.url or "").rstrip("/")
        folder = Path(site)
        inside = self.index_path.is_relative_to(folder.absolute())
        path = self.index_path.relative_to(folder.absolute()).as_posix() if inside else ""
        access = agent_skills.SiteAccess(f"{address}/" if address else "", path, mcp_url)
        return tuple(agent_skills.publish(self.index_path, folder, name or self._project_name(), access))

    def publish_markdown(
        self,
        name: str | None = None,
        *,
        version: str | None = None,
        link_html: bool = False,
        mcp_url: str | None = None,
    ) -> MarkdownReport:
        """Write each page of a built site as Markdown beside its HTML, and ``llms.txt`` and ``llms-full.txt``. The site
        is the one that this index was built from, and is indexed first.

        ``name``: of the project; ``version``: of pages without one of their own, by default that of the index;
        ``link_html``: each HTML page gets a link to its Markdown in its head; ``mcp_url``: a server over these pages.
        Raises :class:`ConfigError` without a site, and :class:`BuildError`.
        """
        site = self.only.site_pages(self.only.request.progress)
        report: MarkdownReport = registry.part("markdown of a site")(
            self.index_path,
            site,
            name or self._project_name(),
            version=version,
            link_html=link_html,
            mcp_url=mcp_url,
            progress=self.only.request.progress,
        )
        return report

    def _project_name(self) -> str:
        """The name of the project of these documents; of an index alone, the name of its host or file."""
        from urllib.parse import urlsplit

        agents = registry.part("agents of a project")

        if self.folder is not None:
            return str(agents.project_name(agents.AgentFiles(self.folder, self.base).root))
        return urlsplit(self.name).hostname or Path(self.name).stem

    def get_status(self) -> Status:
        """The state of the server, the index, the embedding and the repository, and of each collection where there are
        several; those that cannot answer have a note. Errors of git do not make it fail."""

        def of(member: Member) -> Status:
            with member.live.query() as copy:
                return member.status(copy)

        statuses, problems = several.each(self.members, of)
        first = statuses[0][1]
        if not self.is_several:
            return first
        reasons = {id(member): str(error) for member, error in problems}
        by_member = {id(member): status for member, status in statuses}
        listed = (
            member.collection_status(by_member.get(id(member)), reasons.get(id(member)), self.is_default(member))
            for member in self.members
        )
        return replace(first, collections=tuple(listed))

    def health(self) -> ContentHealth:
        """Findings about the pages, such as duplicates and long sections. The index is not locked during comparison."""
        from anvil.search import content_health

        member = self.only
        if not member.location.is_file:
            raise ConfigError(f"Health needs an index file, not {self.origin}. Open the file that was exported.")
        with member.live.query() as copy:
            contents = content_health.read_index(copy.reader)
        return contents.finish()

    def test(
        self,
        suite: str | os.PathLike[str] | Suite | None = None,
        baseline: str | None = None,
        mode: Mode | None = None,
        progress: Progress | None = None,
    ) -> TestReport:
        """Ask the questions of a suite, and say which of them the documents answer.

        ``suite``: a file, or a :class:`anvil.doc_tests.values.Suite`; by default the nearest ``anvil-tests.toml``.
        ``baseline``: a branch, tag or commit, or another index, to compare with. ``mode``: instead of what the
        questions say. Raises :class:`AnvilError`.
        """
        member = self.only
        questions = self.test_suite(suite) if suite is None or isinstance(suite, (str, os.PathLike)) else suite
        if mode is not None:
            in_mode = tuple(replace(question, mode=mode) for question in questions.questions)
            questions = replace(questions, questions=in_mode)
        with member.live.query(by_meaning=mode != "keyword") as copy:
            report: TestReport = registry.part("suite run")(
                copy,
                questions,
                member.docs_root,
                baseline=baseline,
                options=self.config.source,
                fetch=self._fetch_index,
                progress=progress or member.request.progress,
            )
            return report

    def test_suite(self, path: str | os.PathLike[str] | None = None) -> Suite:
        """The suite in a file; by default the ``anvil-tests.toml`` in the documentation folder, or in a folder above it
        up to the repository's root. Its ``origin`` is the file. Raises :class:`ConfigError`."""
        suite: Suite = registry.part("suite")(None if path is None else Path(path), self.folder, self.base)
        return suite

    def test_suggestions(self, suite: Suite | None = None, asked: AnyCollection[str] = ()) -> tuple[str, ...]:
        """Suggested questions, as TOML for a suite: headings that end in a question mark, entries of FAQs, and those in
        ``asked``, such as the ones of the question log. Questions in ``suite`` are left out."""
        with self.only.live.query() as copy:
            return tuple(registry.part("suite suggestions")(copy.reader, suite, asked))

    @property
    def question_log(self) -> QuestionLog:
        """The log of questions of these documents; of several collections that of the first, which is the project's
        own if it has one. There is a file only where a server was asked to keep one."""
        first = self.members[0]
        log: QuestionLog = registry.part("question log").of(first.docs_root, first.name, first.config)
        return log

    def question_groups(self, asked: Sequence[LoggedQuestion]) -> list[QuestionGroup]:
        """Groups of similar logged questions, each asked again; unanswered groups come first."""
        with self.only.live.query(by_meaning=True) as copy:
            groups: list[QuestionGroup] = registry.part("question groups")(
                asked, copy.searcher, self.only.request.progress
            )
            return groups

    def _fetch_index(self, named: str) -> Path:
        """The file of a published index. Raises :class:`FetchError`."""
        return Path(registry.part("fetch")(named, self.config, self.base, head=self.folder).path)

    def lint(
        self,
        source: DocumentSource | None = None,
        rules: Sequence[str] | None = None,
        site: str | os.PathLike[str] | None = None,
    ) -> LintReport:
        """What is wrong in the pages: broken links and anchors, orphans, near duplicates, and more; needs no model.

        ``source``: other documents than the working tree's, such as the staged ones. ``rules``: the names of the rules
        to apply; all by default. ``site``: the folder of the built site, in which links, anchors and orphans are looked
        up; by default ``site.folder``, if there is one and ``source`` is not given. The index is used where it has the
        pages as they are, and is not changed.
        Raises :class:`SourceError` when there are no documents, :class:`ConfigError` for a rule that does not exist.
        """
        from anvil.documents import file_tree

        documents = source or self.tree
        if documents is None or self.folder is None:
            raise SourceError("There are no documents to examine. Name the documentation folder with --docs.")
        repository = file_tree.repository_of(self.folder)
        files = file_tree.of(documents, self.folder, repository)
        with ExitStack() as stack:
            reader = None
            if self.only.location.is_file and self.index_path.is_file():
                from anvil.index_file import verify

                with suppress(ArtifactError):  # such as one of a newer version: the pages are read without it
                    reader = stack.enter_context(verify.open_checked(self.index_path))
            built = self.only.built_site(None if site is None else Path(site), by_default=source is None)
            if built is not None:
                stack.callback(built.close)
            report: LintReport = registry.part("linter")(
                documents, files, self.config, reader, repository, rules, built
            )
            return report

    # --- building ----------------------------------------------------------------------------------------

    def index(
        self,
        force: bool = False,
        previous: Sequence[str | os.PathLike[str]] = (),
        source: DocumentSource | None = None,
        shard: str | None = None,
        executor: str | None = None,
        version: str | None = None,
    ) -> BuildReport:
        """Build or update the index file. It is not written if nothing changed.

        ``force``: read and embed all documents again. ``previous``: further indexes whose vectors may be reused.
        ``source``: other documents than those of the working tree, such as the staged ones. ``shard``, such as
        ``3/8``: only this share of them, for :func:`anvil.git_drivers.merge.join`. ``executor``, such as
        ``ray://head:10001``: the cluster that embeds them. ``version``: of what the documents describe, such as
        ``1.2.0``; the index says it to ``anvil deps``. Raises :class:`BuildError`.
        """
        from anvil.documents.shards import Shard

        member = self.only
        request = BuildRequest(
            source=source,
            previous=tuple(Path(path) for path in previous),
            force=force,
            shard=Shard.parse(shard) if shard is not None else None,
            executor=member.cluster(executor) if executor else None,
            version=version,
            progress=member.request.progress,
        )
        # In a server, queries do not wait for a build: it writes another file, with a lock of its own.
        with nullcontext() if member.request.background else member.lock:
            member.ensure_open()
            return member.build(request)

    def check(self, source: DocumentSource | None = None, index: str | os.PathLike[str] | None = None) -> Changes:
        """The pages in which the documents differ from the index file. No model is loaded.

        ``source``: other documents than those of the working tree. ``index``: another file than :attr:`index_path`.
        Raises :class:`ArtifactError` when there is no usable index, :class:`SourceError` when there are no
        documents.
        """
        member = self.only
        documents = source or member.documents(member.request.progress)
        if documents is None:
            raise SourceError("There are no documents to compare with. Name the documentation folder with --docs.")
        member.ensure_fetched()
        with member.lock:
            member.ensure_open()
            if source is None and member.site_folder is None:
                member.ensure_folder(member.folder)
            return (member.location if index is None else IndexLocation(Path(index))).compare(documents)

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
            return lambda changes: callback(several.addressed(changes, label))

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

    def __enter__(self) -> Anvil:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_opener") and self._owns_members and not self._closed.is_set():
            paths = ", ".join(str(member.location.path) for member in self.members)
            warnings.warn(f"{paths} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()
