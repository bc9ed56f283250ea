"""What ``anvil.open`` returns: one index over one folder of documents.

Here and in :class:`DocsCorpus` the source, the embedding provider and the index are chosen.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.backends.config_files import index_file
from anvil.core import index_url
from anvil.core.config.schema import Config
from anvil.errors import ArtifactError, ConfigError, NotFound, SourceError
from anvil.models.documents import BuildReport, Changes, Progress, silent
from anvil.services.live import status
from anvil.services.live.docs_corpus import DocsCorpus
from anvil.services.live.live_index import LiveIndex
from anvil.services.live.location import IndexLocation

if TYPE_CHECKING:
    from anvil.backends.embedding.provider import EmbeddingProvider
    from anvil.backends.question_log import QuestionLog
    from anvil.backends.sources.document_source import DocumentSource
    from anvil.models.agents import Skill
    from anvil.models.doc_tests import Suite, TestReport
    from anvil.models.lint import LintReport
    from anvil.models.results import GrepResult, Mode, Page, PageList, SearchResult, SectionText
    from anvil.models.status import Status
    from anvil.services.doc_tests.gaps import QuestionGroup
    from anvil.services.doc_tests.question_log import LoggedQuestion
    from anvil.services.reports.content_health import ContentHealth
    from anvil.services.search.pages import Outline
    from anvil.services.search.searcher import Explained


MAX_PEEK_BYTES = 100_000_000
"""A larger index file is not read before a server introduces itself: that must take no time."""


class Anvil:
    """One index over one folder. All methods may be called from any thread. A context manager; without :meth:`close`
    there is a ResourceWarning."""

    def __init__(
        self,
        config: Config,
        base: Path,
        *,
        index_only: bool = False,
        has_folder: bool = True,
        provider: EmbeddingProvider | None = None,
        progress: Progress = silent,
        background: bool = False,
        watch: bool = False,
        build_first: bool = True,
    ) -> None:
        """``base``: the start of relative paths in ``config``. ``index_only``: ``docs`` may be missing or unrelated.
        ``has_folder``: whether ``docs`` counts at all. ``provider``: one that several share; the caller closes it."""
        self.config = config
        self._base = base
        self._progress = progress
        self._started_at = time.monotonic()
        self._background = background
        folder = base / config.docs
        if not folder.is_dir() and not index_only:
            from anvil.backends.sources import missing_folder

            problem = f"{folder} is not a folder" if folder.exists() else f"There is no folder {folder}"
            raise SourceError(f"{problem}. {missing_folder.advice(folder)}")
        self.folder: Path | None = folder if has_folder and folder.is_dir() else None
        """The documentation folder that a build and a check read."""
        self._location = _location(config, base, self.folder, has_folder=has_folder)
        self.index_path = self._location.path
        self.origin = self._location.origin
        """The address of a published index or of Milvus, without credentials; None for a local file."""
        site = base / config.site.folder if config.site.folder else None
        self._corpus = DocsCorpus(
            config, self.folder, self._location, index_only=index_only, provider=provider, site_folder=site
        )
        self._live = LiveIndex(
            self._corpus, background=background, watch=watch, progress=progress, build_first=build_first
        )

    @property
    def base(self) -> Path:
        """The folder that relative paths in the configuration start from."""
        return self._base

    @property
    def provisional(self) -> bool:
        """Whether the last answer came from the documents alone, because there is no index file yet."""
        return self._live.provisional

    @property
    def tree(self) -> DocumentSource | None:
        """The documents as they are in :attr:`folder`."""
        return self._corpus.tree

    @property
    def docs_root(self) -> Path | None:
        """The documentation folder that answers are compared with; None when there is only an index."""
        return self._corpus.docs_root

    @property
    def source(self) -> DocumentSource | None:
        """The documents that answers are compared with, or None when there is only an index."""
        return self._corpus.source

    @property
    def provider(self) -> EmbeddingProvider:
        """The embedding provider. Its model is loaded at first use."""
        return self._corpus.provider

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
        version: str | None = None,
        language: str | None = None,
    ) -> SearchResult:
        """The chunks that answer ``query`` best.

        ``top_k`` is clamped to 1..20. ``file_filter``: a glob over paths, applied before ranking.
        ``max_chars``: the budget for all contents together, of which the first results get most; None: 12,000, as in
        ``search_docs``. ``min_confidence``: results with less are left out (default: ``search.min_confidence``).
        ``version``, ``language``: only pages of a site that have it, such as ``1.2`` and ``de``. Raises
        :class:`ConfigError` for a blank query.
        """
        return self.explain(
            query, top_k, file_filter, max_chars, mode, min_confidence, version=version, language=language
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
        version: str | None = None,
        language: str | None = None,
    ) -> Explained:
        """Like :meth:`search`, with the parts of each score, the span of each matching section, and the evidence behind
        each confidence."""
        from anvil.models.results import SearchRequest, SearchResult  # no command but a search needs these

        started_at = time.perf_counter()
        query_vector = self._live.embed_query(query, mode)
        limit = confidence_limit(self.config, min_confidence)
        with self._live.query(SearchRequest(query, mode, file_filter)) as copy:
            from anvil.services.search import pages
            from anvil.services.search.searcher import Explained

            ranked = copy.searcher.search(
                query,
                top_k,
                file_filter,
                max_chars,
                mode,
                self.config.search.threshold,
                query_vector,
                paths=pages.of_edition(copy.reader, version, language),
                min_confidence=limit,
            )
            unmatched: tuple[str, ...] = ()
            if not ranked.total_chunks:
                unmatched = pages.none_chosen([copy.reader], file_filter, version, language)
            result = SearchResult(
                ranked.hits,
                ranked.total_chunks,
                round((time.perf_counter() - started_at) * 1000, 3),
                self._live.freshness(copy, (*ranked.notes, *unmatched)),
            )
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
    ) -> GrepResult:
        """The lines that contain ``pattern``, by path and line: exact text, without ranking.

        ``path``: a page, a folder or a glob. ``regex``: ``pattern`` is a regular expression of RE2, which has no
        look-around. ``context``: lines before and after each match. ``max_matches`` and ``max_chars`` bound the
        answer; ``max_chars=None``: only ``max_matches`` does, and long lines are whole. ``offset``: matches to leave
        out, such as ``next_offset`` of the answer before. Raises :class:`ConfigError` for a pattern that is not
        valid, and :class:`NotFound` when no page is in ``path``.
        """
        from anvil.core.search import line_matcher
        from anvil.services.search import grep

        matcher = line_matcher.compile(pattern, regex=regex, ignore_case=ignore_case)
        limits = grep.Limits(max(1, max_matches), max(0, offset), max(0, context), max_chars)
        with self._live.query(page=self._path(path) if path else None) as copy:
            found = grep.grep(copy.reader, matcher, path, limits, self.docs_root)
            notes = (*self._live.missing_pages(copy), *(found.notes or ()))
        return replace(found, notes=notes or None)

    def get_page(self, file_path: str) -> Page:
        """A whole page. Raises :class:`NotFound`, naming the closest paths."""
        from anvil.services.search import pages

        with self._live.query(page=self._path(file_path)) as copy:
            return pages.get_page(copy.reader, file_path, self.docs_root)

    def outline(self, file_path: str) -> Outline:
        """A whole page, and where its sections are in it. Raises :class:`NotFound`, naming the closest paths."""
        from anvil.services.search import pages

        with self._live.query(page=self._path(file_path)) as copy:
            return pages.outline(copy.reader, file_path, self.docs_root)

    def get_section(self, file_path: str, heading_path: str, include_children: bool = False) -> SectionText:
        """The text under one heading. Raises :class:`NotFound`, naming the closest breadcrumbs."""
        from anvil.services.search import pages

        with self._live.query(page=self._path(file_path)) as copy:
            return pages.get_section(copy.reader, file_path, heading_path, include_children, self.docs_root)

    def headings(self, file_path: str) -> tuple[str, ...]:
        """The breadcrumbs of all sections of a page, in order. :meth:`get_section` accepts them."""
        from anvil.services.search import pages

        with self._live.query(page=self._path(file_path)) as copy:
            return pages.headings(copy.reader, file_path, self.docs_root)

    def breadcrumb(self, file_path: str, heading: str) -> str:
        """The exact breadcrumb of a section. It may be named by breadcrumb, by anchor, or by a heading that only one
        section has."""
        from anvil.services.search import pages

        with self._live.query() as copy:
            return pages.breadcrumb(copy.reader, file_path, heading, self.docs_root)

    def _path(self, file_path: str) -> str | None:
        """A page's path as in the index; None where it cannot be one."""
        from anvil.services.search import pages

        if len(file_path) > pages.MAX_PATH_CHARS:
            return None
        try:
            return pages.normalize_path(file_path, self.docs_root)
        except NotFound:
            return None

    def list_pages(
        self, prefix: str | None = None, limit: int | None = None, offset: int = 0, max_chars: int | None = None
    ) -> PageList:
        """The pages, or those in a folder, sorted by path. ``notes`` say which are missing, as during a first build.

        ``limit`` and ``max_chars``, which counts characters of the entries, bound the answer; None: no limit.
        ``offset``: pages to leave out, such as ``next_offset`` of the answer before."""
        from anvil.services.search import pages

        with self._live.query() as copy:
            listed = pages.bounded_list(pages.list_pages(copy.reader, prefix), limit, offset, max_chars)
            return replace(listed, notes=tuple(self._live.missing_pages(copy)) or None)

    def topics(self, wait: bool = True) -> str:
        """A sentence on what the documents are about: quoted titles of the top pages; "" if there are none.

        ``wait=False``: from the index file as it is, at once; "" if it was never checked on this machine.
        """
        from anvil.core.agents.topics import topics

        if wait:
            with self._live.query() as copy:
                return topics((document.file_path, document.title) for document in copy.reader.documents())
        from anvil.backends.store import verify

        with suppress(ArtifactError):
            if self._location.is_file and (reader := verify.open_known(self._location.path, MAX_PEEK_BYTES)):
                with reader:
                    return topics((document.file_path, document.title) for document in reader.documents())
        return ""

    def skills(self, name: str | None = None, collection: str | None = None) -> tuple[Skill, ...]:
        """The Agent Skill of these documents for clients of a server: how to search them, and a map of the pages. None
        without pages. ``name``: of the project; ``collection``: what the server calls these documents."""
        from anvil.services.agents import index_skill

        with self._live.query() as copy:
            skill = index_skill.served(copy.reader, name or self._project_name(), collection)
        return (skill,) if skill is not None else ()

    def publish_skill(
        self, site: str | os.PathLike[str], name: str | None = None, *, mcp_url: str | None = None
    ) -> tuple[str, ...]:
        """Write an Agent Skill of the index into the folder of its site, where agents look for it; the paths of the
        files. ``name``: of the project; ``mcp_url``: a server over these pages. Raises :class:`BuildError`."""
        from anvil.core.agents.documentation_map import SiteAccess
        from anvil.services.agents import index_skill

        address = (self.config.site.url or "").rstrip("/")
        folder = Path(site)
        inside = self.index_path.is_relative_to(folder.absolute())
        path = self.index_path.relative_to(folder.absolute()).as_posix() if inside else ""
        access = SiteAccess(f"{address}/" if address else "", path, mcp_url)
        return index_skill.publish(self.index_path, folder, name or self._project_name(), access)

    def _project_name(self) -> str:
        """The name of the project of these documents; of an index alone, the name of its host or file."""
        from urllib.parse import urlsplit

        from anvil.services.agents.agent_files import AgentFiles, project_name

        if self.folder is not None:
            return project_name(AgentFiles(self.folder, self.base).root)
        return urlsplit(self.name).hostname or Path(self.name).stem

    def get_status(self) -> Status:
        """The state of the server, the index, the embedding and the repository. Errors of git do not make it fail."""
        with self._live.query() as copy:
            return status.status(copy, self._location, self.docs_root, self._started_at)

    def health(self) -> ContentHealth:
        """Findings about the pages, such as duplicates and long sections. The index is not locked during comparison."""
        from anvil.services.reports import content_health

        if not self._location.is_file:
            raise ConfigError(f"Health needs an index file, not {self.origin}. Open the file that was exported.")
        with self._live.query() as copy:
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

        ``suite``: a file, or a :class:`anvil.models.doc_tests.Suite`; by default the nearest ``anvil-tests.toml``.
        ``baseline``: a branch, tag or commit, or another index, to compare with. ``mode``: instead of what the
        questions say. Raises :class:`AnvilError`.
        """
        from anvil.models.doc_tests import Suite
        from anvil.models.results import SearchRequest
        from anvil.services.doc_tests import testing

        questions = suite if isinstance(suite, Suite) else self.test_suite(suite)
        with self._live.query(SearchRequest("", mode or "hybrid")) as copy:
            return testing.run(
                copy,
                questions,
                self.docs_root,
                mode=mode,
                baseline=baseline,
                options=self.config.source,
                fetch=self._fetch_index,
                progress=progress or self._progress,
            )

    def test_suite(self, path: str | os.PathLike[str] | None = None) -> Suite:
        """The suite in a file; by default the ``anvil-tests.toml`` in the documentation folder, or in a folder above it
        up to the repository's root. Its ``origin`` is the file. Raises :class:`ConfigError`."""
        from anvil.backends import suite_file
        from anvil.core.doc_tests.suite import parse

        file = suite_file.find(self.folder, self._base) if path is None else Path(path)
        if file is None:
            raise ConfigError(suite_file.none_found(self.folder, self._base))
        return parse(suite_file.read(file), str(file))

    def test_suggestions(self, suite: Suite | None = None, asked: AnyCollection[str] = ()) -> tuple[str, ...]:
        """Suggested questions, as TOML for a suite: headings that end in a question mark, entries of FAQs, and those in
        ``asked``, such as the ones of the question log. Questions in ``suite`` are left out."""
        from anvil.services.doc_tests import writing

        with self._live.query() as copy:
            return tuple(writing.suggestions(copy.reader, suite, asked))

    @property
    def name(self) -> str:
        """What is searched: the documentation folder, else where the index comes from."""
        return str(self.docs_root or self.origin or self.index_path)

    @property
    def question_log(self) -> QuestionLog:
        """The log of questions of these documents. There is a file only where a server was asked to keep one."""
        from anvil.backends.question_log import QuestionLog

        return QuestionLog.of(self.docs_root, self.name, self.config.serve.log_bytes)

    def question_groups(self, asked: Sequence[LoggedQuestion]) -> list[QuestionGroup]:
        """Groups of similar logged questions, each asked again; unanswered groups come first."""
        from anvil.models.results import SearchRequest
        from anvil.services.doc_tests import gaps

        with self._live.query(SearchRequest("", "hybrid")) as copy:
            return gaps.groups(asked, copy.searcher, self._progress)

    def _fetch_index(self, named: str) -> Path:
        """The file of a published index. Raises :class:`FetchError`."""
        from anvil.backends.fetch.attestations import rule_of
        from anvil.backends.fetch.fetch_index import fetch
        from anvil.backends.fetch.http_client import Limits

        limits, attested = Limits(size=self.config.fetch.max_bytes), rule_of(self.config.fetch, self._base)
        return fetch(named, head=self.folder, limits=limits, attested=attested if attested.required else None).path

    def lint(self, source: DocumentSource | None = None, rules: Sequence[str] | None = None) -> LintReport:
        """What is wrong in the pages: broken links and anchors, orphans, near duplicates, and more; needs no model.

        ``source``: other documents than the working tree's, such as the staged ones. ``rules``: the names of the rules
        to apply; all by default. The index is used where it has the pages as they are, and is not changed.
        Raises :class:`SourceError` when there are no documents, :class:`ConfigError` for a rule that does not exist.
        """
        from anvil.backends.sources import file_names
        from anvil.services.lint import linter

        documents = source or self.tree
        if documents is None or self.folder is None:
            raise SourceError("There are no documents to examine. Name the documentation folder with --docs.")
        repository = file_names.repository_of(self.folder)
        files = file_names.of(documents, self.folder, repository)
        with ExitStack() as stack:
            reader = None
            if self._location.is_file and self.index_path.is_file():
                from anvil.backends.store import verify

                with suppress(ArtifactError):  # such as one of a newer version: the pages are read without it
                    reader = stack.enter_context(verify.open_checked(self.index_path))
            return linter.lint(documents, files, self.config, reader, repository, rules)

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
        ``3/8``: only this share of them, for :func:`anvil.services.build.merge.join`. ``executor``, such as
        ``ray://head:10001``: the cluster that embeds them. ``version``: of what the documents describe, such as
        ``1.2.0``; the index says it to ``anvil deps``. Raises :class:`BuildError`.
        """
        # In a server, queries do not wait for a build: it writes another file, with a lock of its own.
        with nullcontext() if self._background else self._live.lock:
            self._live.ensure_open()
            return self._corpus.build(
                self._progress,
                source=source,
                previous=[Path(path) for path in previous],
                force=force,
                shard=shard,
                executor=executor,
                version=version,
            )

    def check(self, source: DocumentSource | None = None, index: str | os.PathLike[str] | None = None) -> Changes:
        """The pages in which the documents differ from the index file. No model is loaded.

        ``source``: other documents than those of the working tree. ``index``: another file than :attr:`index_path`.
        Raises :class:`ArtifactError` when there is no usable index, :class:`SourceError` when there are no
        documents.
        """
        documents = source or self._corpus.documents(self._progress)
        if documents is None:
            raise SourceError("There are no documents to compare with. Name the documentation folder with --docs.")
        self._live.ensure_available(wait=True)
        with self._live.lock:
            self._live.ensure_open()
            if source is None and self._corpus.site_folder is None:
                self._corpus.ensure_folder(self.folder)
            return (self._location if index is None else IndexLocation(Path(index))).compare(documents)

    # --- start and close ---------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the index, and load the model, in the background. Returns at once.

        It needs ``background=True``. Without this call the first query does it. A second call does nothing.
        ``progress`` gets the progress of the first build, from another thread. Queries during the build are answered
        from what is indexed so far, and ``freshness.notes`` says so.
        """
        if not self._background:
            raise ConfigError("start() needs background work. Open the index with anvil.open(..., background=True).")
        self._live.start(progress)

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Call ``callback`` with the changed, added and removed pages after each refresh that found any.

        The call is in the thread of the refresh, without a lock. Returns the function that ends the calls.
        """
        return self._live.on_change(callback)

    def close(self) -> None:
        """Stop the background work, and close the files and the model. A second call does nothing."""
        self._live.close()
        self._corpus.close()

    def __enter__(self) -> Anvil:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_live") and not self._live.closed:
            warnings.warn(f"{self.index_path} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()


def confidence_limit(config: Config, given: float | None) -> float:
    """The least confidence of a search's results: as ``given``, else as configured. Raises :class:`ConfigError`."""
    if given is not None and not 0 <= given <= 1:
        raise ConfigError(f"min_confidence is {given}. Use a value from 0 to 1.")
    return config.search.min_confidence if given is None else given


def _location(config: Config, base: Path, folder: Path | None, *, has_folder: bool) -> IndexLocation:
    """The configured index: a file, an address from which it is fetched, or Milvus. ``has_folder``: whether it is built
    from ``folder``."""
    index = config.index or ""
    if index_url.is_milvus(index):
        from anvil.services.milvus.working_copy import MilvusCollection

        return MilvusCollection(index, base)
    if index_url.is_remote(index):
        from anvil.backends.fetch.attestations import rule_of
        from anvil.services.live.auto_update import AutoUpdater

        return AutoUpdater(index, config.fetch, folder or base, rule_of(config.fetch, base))
    return IndexLocation(index_file(config, base), built_here=has_folder or config.site.folder is not None)
