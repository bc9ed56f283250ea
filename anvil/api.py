"""``anvil.open`` and the object that it returns: an index over a folder of documents, or several collections as one."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Collection as AnyCollection
from contextlib import AbstractContextManager, ExitStack, nullcontext, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil import project_indexes, registry
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, ConfigError, SourceError
from anvil.project_indexes import IndexLocation, OpenedIndex
from anvil.queries import Queries
from anvil.requests import BuildRequest, OpenRequest, checked, checks_arguments, takes
from anvil.settings import index_url
from anvil.settings.configuration import configured, load_config, of_collection
from anvil.settings.schema import Collection, Config
from anvil.system import safe_files
from anvil.values import Changes, Progress, silent

if TYPE_CHECKING:
    from anvil.agents.skill import Skill
    from anvil.build.report import BuildReport
    from anvil.doc_tests.question_log import LoggedQuestion, QuestionGroup, QuestionLog
    from anvil.doc_tests.values import Suite, TestReport
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.lint.linter import LintReport
    from anvil.results import Mode
    from anvil.search.content_health import ContentHealth
    from anvil.site_markdown.site_files import MarkdownReport


@checks_arguments
class Anvil(Queries, AbstractContextManager["Anvil"]):
    """One index, or several collections as one. All methods may be called from any thread. It is a context manager; if
    it is not closed, there is a ResourceWarning.

    Of several collections, a question goes to one version of each: the default one, or else the newest. ``collection``
    chooses a collection by name, or by ``NAME@VERSION``; ``version`` chooses another version. If a collection cannot
    answer, the others do, and a note says so. Methods about one index alone, such as a build, then raise
    :class:`ConfigError`; :meth:`alone` gives an object for each collection.
    """

    other_folders: tuple[str, ...] = ()
    """The folders of the project's other collections, if the first was opened because nobody named one."""

    def alone(self, member: OpenedIndex) -> Anvil:
        """One of the indexes by itself. It is closed with this object."""
        return Anvil([member], member.config, owns_members=False) if self.is_several else self

    # --- start and close ---------------------------------------------------------------------------------

    def start(self, progress: Progress | None = None) -> None:
        """Open or build the index, and load the model, in the background. Returns at once.

        It needs ``background=True``. Without this call the first query does it. A second call does nothing.
        ``progress`` gets the progress of the first build, from another thread. Queries during the build are answered
        from what is indexed so far, and ``freshness.notes`` says so.

        Of several collections, folders and published indexes begin at once: they may have to be built or fetched. The
        others are opened one after the other, so that many of them do not delay the server's first answers.
        """
        if not self.members[0].request.background:
            raise ConfigError("start() needs background work. Open the index with anvil.open(..., background=True).")
        index_files = []  # of dependencies, mostly
        for member in self.members:
            if self.is_several and not member.is_own and not index_url.is_remote(member.config.index or ""):
                index_files.append(member)
            else:
                member.live.start(progress)
        if index_files and self._opener is None and not self._closed.is_set():
            self._opener = threading.Thread(
                target=self._open_files, args=(index_files,), name="anvil-open", daemon=True
            )
            self._opener.start()

    def _open_files(self, members: Sequence[OpenedIndex]) -> None:
        for member in members:
            if self._closed.is_set():
                return
            with suppress(AnvilError), member.live.query() as copy:  # each question raises the error again
                copy.searcher.index.warm()

    def on_change(self, callback: Callable[[Changes], None]) -> Callable[[], None]:
        """Call ``callback`` with the changed, added and removed pages after each refresh that found any. Pages of
        several collections are named ``COLLECTION:PATH``.

        The call is in the thread of the refresh, without a lock. Returns the function that ends the calls.
        """
        if not self.is_several:
            return self.only.live.on_change(callback)

        def listener(label: str) -> Callable[[Changes], None]:
            def addressed(paths: Iterable[str]) -> tuple[str, ...]:
                return tuple(f"{label}:{path}" for path in paths)

            return lambda changes: callback(Changes(*map(addressed, (changes.changed, changes.added, changes.removed))))

        stops = ExitStack()
        for member in self.members:
            stops.callback(member.live.on_change(listener(member.label)))
        return stops.close

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

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if hasattr(self, "_opener") and self._owns_members and not self._closed.is_set():
            paths = ", ".join(str(member.location.path) for member in self.members)
            warnings.warn(f"{paths} was not closed", ResourceWarning, source=self, stacklevel=2)
            self.close()

    # --- building ----------------------------------------------------------------------------------------

    @takes(BuildRequest)
    def index(self, request: BuildRequest) -> BuildReport:
        """Build or update the index file. It is not written if nothing changed.

        ``force``: read and embed all documents again. ``previous``: further indexes whose vectors may be reused.
        ``source``: other documents than those of the working tree, such as the staged ones. ``shard``, such as ``3/8``:
        only this share of them, for ``anvil merge``. ``executor``, such as ``ray://head:10001``: the cluster that
        embeds them. ``version``: of the software that they describe, such as ``1.2.0``; ``anvil deps`` reads it.
        Raises :class:`BuildError`.
        """
        return build(self, request)

    def check(self, source: DocumentSource | None = None, index: str | os.PathLike[str] | None = None) -> Changes:
        """The pages that differ between the documents and the index file. No model is loaded.

        ``source``: other documents than those of the working tree. ``index``: another file than :attr:`index_path`.
        Raises :class:`ArtifactError` if there is no usable index, :class:`SourceError` if there are no documents.
        """
        member = self.only
        member.ensure_open()
        member.location.ensure_fetched(wait=True)
        documents = source or (member.page_files if member.site_folder is None else member.site_pages())
        if documents is None:
            named = member.request.named("docs")
            raise SourceError(f"There are no documents to compare with. Name the documentation folder with {named}.")
        with member.lock:
            member.ensure_open()
            if source is None and member.site_folder is None:
                member.ensure_folder(member.folder)
            return (member.location if index is None else IndexLocation(Path(index))).compare(documents)

    # --- tests, lint and publishing ---

    def health(self) -> ContentHealth:
        """Findings about the pages, such as duplicates and long sections. The comparison does not lock the index."""
        from anvil.search import content_health

        member = self.only
        if not member.location.is_file:
            raise ConfigError(f"Health needs an index file, not {self.origin}. Open the file that was exported.")
        with member.live.query(by_meaning=True) as copy:
            health, vectors = content_health.read_index(copy.reader), content_health.compared_vectors(copy.reader)
        # Without the lock, because each page is compared with all others.
        return replace(health, near_duplicates=content_health.near_duplicates(vectors))

    def test(
        self,
        suite: str | os.PathLike[str] | Suite | None = None,
        baseline: str | None = None,
        mode: Mode | None = None,
        progress: Progress | None = None,
    ) -> TestReport:
        """Ask the questions of a suite, and report which of them the documents answer.

        ``suite``: a file, or a :class:`anvil.doc_tests.values.Suite`; by default the nearest ``anvil-tests.toml``.
        ``baseline``: a branch, tag or commit, or another index, to compare with. ``mode``: of the search, instead of
        that in the questions. Raises :class:`AnvilError`.
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
                fetch=lambda named: Path(registry.part("fetch")(named, self.config, self.base, head=self.folder).path),
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
        ``asked``, such as questions of the question log. Questions in ``suite`` are left out."""
        with self.only.live.query() as copy:
            return tuple(registry.part("suite suggestions")(copy.reader, suite, asked))

    @property
    def question_log(self) -> QuestionLog:
        """The log of questions of these documents; of several collections that of the first, which is the project's own
        if it has one. There is a file only if a server was asked to keep one."""
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

    def lint(
        self,
        source: DocumentSource | None = None,
        rules: Sequence[str] | None = None,
        site: str | os.PathLike[str] | None = None,
    ) -> LintReport:
        """Find problems in the pages, such as broken links and anchors, orphans and near duplicates. Needs no model.

        ``source``: other documents than the working tree's, such as the staged ones. ``rules``: the names of the rules
        to apply; all by default. ``site``: the folder of the built site, in which links, anchors and orphans are looked
        up; by default ``site.folder``, if there is one and ``source`` is not given. The index is used if it has the
        pages as they are, and is not changed. Raises :class:`SourceError` if there are no documents,
        :class:`ConfigError` for a rule that does not exist.
        """
        from anvil.documents import folder_advice, repository_files

        documents = source or self.tree
        if documents is None or self.folder is None:
            named = self.only.request.named("docs")
            raise SourceError(f"There are no documents to examine. Name the documentation folder with {named}.")
        repository = repository_files.repository_of(self.folder)
        files = repository_files.of(documents, self.folder, repository)
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
                documents, files, self.config, reader, repository, rules, built, self.only.request.progress
            )
        unread = None if source or report.looked_up else folder_advice.other_formats_note(self.folder, report.pages)
        return replace(report, notes=(*report.notes, unread)) if unread else report

    def skills(self, name: str | None = None, collection: str | None = None) -> tuple[Skill, ...]:
        """The Agent Skills of these documents for clients of a server: they say how many pages there are, and how to
        search them. Without pages there is none.

        ``name``: of the project. ``collection``: the server's name for these documents. Of several collections: the
        skills of the project's own, each with a name of its own; a collection that cannot be read has none.
        """
        agent_skills = registry.part("agent skills")
        if not self.is_several:
            with self.only.live.query() as copy:
                skill = agent_skills.served(copy.reader, name or self._project_name(), collection)
            return (skill,) if skill is not None else ()
        skills: dict[str, Skill] = {}
        for member in self.members:
            own = member.collection
            if own is not None and own.docs and self.is_default(member):
                free_name, number = own.name, 2
                while agent_skills.skill_name(free_name) in skills:
                    free_name, number = f"{own.name}-{number}", number + 1
                with suppress(AnvilError):
                    skills |= {skill.name: skill for skill in self.alone(member).skills(free_name, own.name)}
        return tuple(skills.values())

    def publish_skill(
        self, site: str | os.PathLike[str], name: str | None = None, *, mcp_url: str | None = None
    ) -> tuple[str, ...]:
        """Write an Agent Skill of the index into its site, where agents look for it; the paths of the files.

        ``name``: of the project. ``mcp_url``: a server over these pages. Raises :class:`BuildError`.
        """
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
        link_html: bool | None = None,
        mcp_url: str | None = None,
    ) -> MarkdownReport:
        """Write each page of a built site as Markdown beside its HTML, and ``llms.txt`` and ``llms-full.txt``. The site
        is the one that this index was built from. The index must be built first.

        ``name``: of the project. ``version``: of pages without one of their own, by default that of the index.
        ``link_html``: each HTML page gets a link to its Markdown in its head, by default as ``site.link_markdown``
        says. ``mcp_url``: a server over these pages. Raises :class:`ConfigError` without a site, and
        :class:`BuildError`.
        """
        site = self.only.site_pages()
        report: MarkdownReport = registry.part("markdown of a site")(
            self.index_path,
            site,
            name or self._project_name(),
            version=version,
            link_html=self.config.site.link_markdown if link_html is None else link_html,
            mcp_url=mcp_url,
            progress=self.only.request.progress,
        )
        return report

    def publish_search_page(self) -> Path:
        """Write a page into the built site that searches its index in the browser, and the script of a search box for
        other pages; the path of the page. The site is that from which this index was built, before this call.

        Raises :class:`ConfigError` without a site, or for an index that is not in it, and :class:`BuildError`.
        """
        site = self.only.site_pages()
        if not site.pages():
            site.scan()
        addresses = {path: page.address for path, page in site.pages().items()}
        return Path(registry.part("search page of a site")(self.index_path, site.folder, addresses))

    def _project_name(self) -> str:
        """The name of the project of these documents; for an index alone, the name of its host or file."""
        from urllib.parse import urlsplit

        files = registry.part("agents of a project").AgentFiles.around(self)
        if files is not None:
            return str(files.project_name)
        return urlsplit(self.name).hostname or Path(self.name).stem


def build(opened: Anvil, request: BuildRequest) -> BuildReport:
    """:meth:`Anvil.index` for a whole request."""
    member = opened.only
    progress = member.request.progress if request.progress is silent else request.progress
    request = replace(request, progress=progress, named=member.request.named)
    # In a server, queries do not wait for a build: it writes another file, with a lock of its own. Elsewhere the next
    # query must see what was built.
    with nullcontext() if member.request.background else member.lock:
        member.ensure_open()
        return member.build(request)


def publish_site_files(
    opened: Anvil, name: str | None = None, version: str | None = None
) -> tuple[tuple[str, ...], list[str]]:
    """Write the configured files of a built site besides its index; notes, and a line for each thing.

    ``name`` and ``version``: as of :meth:`Anvil.publish_markdown`.
    """
    site, lines = opened.config.site, []
    notes: tuple[str, ...] = ()
    if site.writes_markdown:
        written = opened.publish_markdown(name, version=version)
        notes = written.notes
        lines.append(str(written))
    if site.search_page:
        lines.append(f"The search page is {safe_files.from_working_folder(opened.publish_search_page())}.")
    return notes, lines


@checked
def open(
    docs: str | os.PathLike[str] | None = None,
    index: str | os.PathLike[str] | None = None,
    provider: str | None = None,
    config: str | os.PathLike[str] | Config | None = None,
    *,
    collections: Iterable[str] | Literal["all"] | None = None,
    site: str | os.PathLike[str] | None = None,
    site_url: str | None = None,
    progress: Progress = silent,
    background: bool = False,
    watch: bool = False,
    build_first: bool = True,
) -> Anvil:
    """Open a folder of documents, an index, or both; or several collections.

    ``docs``: the folder. ``index``: the index file (default ``<docs>/.anvil/index.db``), or the address of a published
    one: ``https://...``, ``github:OWNER/REPO#artifact:NAME``. ``provider``: as ``embedding.provider`` names it.
    ``config``: a file or a :class:`Config`, with the values that are not given here. ``site``: the folder of a built
    site, whose pages are indexed as readers see them; its index is ``anvil/index.db`` in it. With ``docs``, pages have
    the paths of their sources. ``site_url``: where the site is published; overrides what its pages say.

    If only an index or a site is given, answers come from it alone. But if half of the index's paths exist in the
    configured folder, Anvil compares the two.

    ``collections``: names of collections of the configuration and of ``anvil.lock``, each as ``NAME`` or
    ``NAME@VERSION``, or ``"all"``. One search then answers from all of them; see :class:`Anvil`. Without it, and
    without ``docs`` and ``index``, the project's own documentation is opened. With ``docs`` alone, the keys of the
    collection that has this folder count.

    ``background``, for servers: no answer waits for the first build or for the vectors of a large change; see
    :meth:`Anvil.start`. ``watch``, with ``background``: file events also start a refresh. So the next query is faster,
    and :meth:`Anvil.on_change` reports changes before it.

    ``build_first``, without ``background``: whether a large index that is missing is built before the first answer. If
    not, :attr:`Anvil.provisional` is true after it, and :meth:`Anvil.index` builds the index. Raises
    :class:`AnvilError`.
    """
    return open_index(
        OpenRequest(
            docs=_path(docs),
            index=_path(index),
            config=None if isinstance(config, Config) else _path(config),
            provider=provider,
            collections=collections if collections is None or collections == "all" else tuple(collections),
            site=_path(site),
            site_url=site_url,
            progress=progress,
            background=background,
            watch=watch,
            build_first=build_first,
            settings=config if isinstance(config, Config) else None,
            from_python=True,
        )
    )


def _path(path: str | os.PathLike[str] | None) -> str | None:
    return None if path is None else os.fspath(path)


def open_index(request: OpenRequest) -> Anvil:
    """:func:`open` for a whole request."""
    # The most exact name goes first: collections, then the project's own documentation, one folder, one index.
    settings, base = _settings(request)
    if request.collections is not None:
        if request.names_index:
            raise ConfigError(
                "collections cannot be combined with docs, index or site. Give the names of collections alone."
            )
        names = None if request.collections == "all" else request.collections
        return _several(settings, base, _chosen(settings, base, names), request)
    if not request.names_index and settings.collections:
        own = _own(settings, base, request)
        first = _one(_member(settings, base, own, request))
        folder = own.docs or settings.docs
        first.other_folders = tuple(each.docs for each in settings.collections if each.docs not in (None, folder))
        return first
    if (opened := _of_folder(settings, base, request)) is not None:
        return opened
    is_elsewhere = request.index is not None or _has_index_elsewhere(settings)
    return _one(OpenedIndex(settings, base, request, index_only=request.docs is None and is_elsewhere))


def open_project(request: OpenRequest) -> Anvil:
    """Open a project for a command or a server: one index, or several collections if there are several.

    No name in ``collections`` means all.
    """
    if request.names_index and request.collections:
        raise ConfigError("--collection cannot be combined with --docs, --index or --site. Leave one of them out.")
    if request.names_index:
        return open_index(replace(request, collections=None))
    settings, base = _settings(request)
    chosen = _chosen(settings, base, request.collections or None)
    if len(chosen) > 1:
        return _several(settings, base, chosen, request)
    [only] = chosen
    if only.missing and only.index and not Path(only.index).is_file():
        raise ArtifactMissing(only.missing)
    return _one(_member(settings, base, only, request))


def _chosen(config: Config, base: Path, names: Iterable[str] | None) -> tuple[Collection, ...]:
    return project_indexes.chosen(project_indexes.of_project(config, base), names)


def _own(config: Config, base: Path, request: OpenRequest) -> Collection:
    """The collection that is opened if none is named: the first with a folder, else the only one."""
    collections = _chosen(config, base, None)
    if len(collections) == 1 or collections[0].docs is not None:
        return collections[0]
    search = ' To search these, open them with collections="all", or name some of them.' if request.from_python else ""
    raise ConfigError(
        f"None of the {len(collections)} collections is a folder of this project. Name a folder of documentation with "
        f"{request.named('docs')}.{search}"
    )


def _of_folder(config: Config, base: Path, request: OpenRequest) -> Anvil | None:
    """The collection whose folder is ``docs``, if that alone is named; None if there is none. Its own keys count, as if
    all collections were opened."""
    if not config.collections or request.index is not None or request.site is not None:
        return None
    folder = (base / config.docs).resolve()
    for collection in config.collections:
        if collection.docs is not None and (base / collection.docs).resolve() == folder:
            # The settings without ``docs``: of_collection() sets that of the collection.
            return _one(_member(*_settings(replace(request, docs=None)), collection, request))
    return None


def _one(member: OpenedIndex) -> Anvil:
    return Anvil([member], member.config)


def _member(
    config: Config,
    base: Path,
    collection: Collection,
    request: OpenRequest,
    provider: EmbeddingProvider | None = None,
    *,
    one_of_several: bool = False,
) -> OpenedIndex:
    if collection.of_project:  # its keys are those at the top of the configuration
        settings, index_only, has_folder = replace(config, collections=()), _has_index_elsewhere(config), True
    else:
        has_folder = collection.docs is not None
        settings, index_only = of_collection(config, collection), not has_folder
    own = collection if one_of_several else None
    return OpenedIndex(
        settings, base, request, index_only=index_only, has_folder=has_folder, provider=provider, collection=own
    )


def _several(config: Config, base: Path, collections: Sequence[Collection], request: OpenRequest) -> Anvil:
    from anvil.embedding.provider import create_cached_provider

    provider = create_cached_provider(config.embedding.provider, config.embedding)
    members = []
    with ExitStack() as stack:
        stack.callback(provider.close)
        for collection in collections:
            members.append(_member(config, base, collection, request, provider, one_of_several=True))
            stack.callback(members[-1].close)
        stack.pop_all()  # all are open; the returned object closes them
    return Anvil(members, config, provider)


def _has_index_elsewhere(config: Config) -> bool:
    """Whether the index is not that of the documentation folder alone: it is published, or that of a site."""
    return index_url.is_remote(config.index or "") or config.site.folder is not None


def _settings(request: OpenRequest) -> tuple[Config, Path]:
    """The configuration with the options of the request, and the base of its relative paths."""
    flags = {
        "docs": request.docs,
        "index": request.index,
        "embedding.provider": request.provider,
        "site.folder": request.site,
        "site.url": request.site_url,
        **request.keys,
    }
    if request.settings is not None:  # no file, so paths start from the working folder
        flags["embedding.provider"] = request.provider or None
        config, base = configured(request.settings, flags), Path.cwd()
    else:
        config, base = load_config(request.config, flags)
    if request.site is not None and request.index is None:
        config = replace(config, index=None)  # the index is that of the site, whatever a file says
    return config, base
