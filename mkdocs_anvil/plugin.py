"""The plugin's options in ``mkdocs.yml``, and the hooks of MkDocs that put the index of all pages into the site.

A plugin for languages may start builds inside a build, so pages are collected until the outermost build ends. The index
is kept in a folder next to ``mkdocs.yml``, because MkDocs empties the site folder. After a build without changes it is
only copied. During ``mkdocs serve`` the plugin and the model stay loaded.
"""

from __future__ import annotations

import logging
import re
import shutil
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as options
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

from anvil import api
from anvil.agents import skill
from anvil.agents.pointer_text import SiteAccess
from anvil.build.report import BuildReport, ProgressLines
from anvil.doc_tests import suite_report
from anvil.embedding.provider import PROVIDERS
from anvil.errors import AnvilError
from anvil.formats.characters import log_line
from anvil.index_file import publish, verify
from anvil.search_page import publishing
from anvil.settings import index_url
from anvil.settings.configuration import keys, load_config, plain_type
from anvil.settings.schema import INDEX_FOLDER, ChunkingOptions, Config, EmbeddingSettings
from anvil.site_markdown import llms, paths_and_links, site_files
from anvil.site_markdown.page_file import page_of
from anvil.site_markdown.site_files import PlacedPage
from anvil.sites import page_addresses
from anvil.system import safe_files
from anvil.values import Document
from anvil.wording import counted
from mkdocs_anvil import pages

log = get_plugin_logger(__name__)


def _printable(record: logging.LogRecord) -> bool:
    """Replace control characters of the message, which may name pages."""
    record.msg, record.args = log_line(record.getMessage()), ()
    return True


log.logger.addFilter(_printable)

MAX_WARNINGS = 20
"""Unanswered questions that are logged."""
FIRST_PRIORITY = 200
"""The priority of the hook that reads the options. It runs before plugins such as monorepo, which copy the pages of
several folders into a temporary folder and make that ``docs_dir``."""
LAST_PRIORITY = -200
"""The priority of the other hooks. They run after all plugins, also those that build other languages (-100)."""


class IndexPath(options.Type[str]):
    """An option with the path of a file inside the site, such as ``anvil/index.db``."""

    def __init__(self) -> None:
        super().__init__(str, default="anvil/index.db")

    def run_validation(self, value: object) -> str:
        path = PurePosixPath(super().run_validation(value).replace("\\", "/"))
        is_outside = path.is_absolute() or ".." in path.parts or ":" in path.as_posix()
        # Only these suffixes, so that no other file of the site is replaced.
        if is_outside or path.suffix.lower() not in index_url.FILES:
            raise base.ValidationError(f"{value!r} is not a file inside the site. Write a path such as anvil/index.db.")
        return path.as_posix()


class Globs(options.ListOfItems[str]):
    """An option with globs over the paths of pages in ``docs_dir``."""

    def __init__(self) -> None:
        super().__init__(options.Type(str), default=[])


class Rendered(Globs):
    """An option that is ``auto``, false, or a list of globs and ``auto``. Its value is a list."""

    def __init__(self) -> None:
        super().__init__()
        self.default = [pages.AUTO]

    def run_validation(self, value: object) -> list[str]:
        if value is False:
            return []
        return super().run_validation([pages.AUTO] if value == pages.AUTO else value)


def _table(kind: type, without: Collection[str], **own: Any) -> options.SubConfig[base.Config]:
    """An option with the keys of a table of ``anvil.toml``. A key that is not set has the value of that file.

    ``without``: keys that the plugin does not have. ``own``: options for keys that need more than a check of the type.
    """
    by_key = {key: own.get(key) or options.Type(plain_type(hint)) for key, hint in keys(kind).items()}
    optional = {key: options.Optional(option) for key, option in by_key.items() if key not in without}
    return options.SubConfig(type(kind.__name__, (base.Config,), optional))


class Sources(options.Type[Any]):
    """An option that is a path or URL, or a list of them. Its value is a list."""

    def __init__(self) -> None:
        super().__init__((str, list), default=[])

    def run_validation(self, value: object) -> list[str]:
        source_or_list = super().run_validation(value)
        sources = [source_or_list] if isinstance(source_or_list, str) else source_or_list
        if not all(isinstance(source, str) for source in sources):
            raise base.ValidationError("Expected a path or URL, or a list of them.")
        return [source for source in sources if source.strip()]  # it is empty if an environment variable is not set


class AnvilConfig(base.Config):  # type: ignore[no-untyped-call]
    """All options. The texts under them are printed in the reference."""

    index_path = IndexPath()
    """The path of the index in the site: a `.db`, `.sqlite` or `.sqlite3`. Its manifest is next to it as `.json`."""
    include = Globs()
    """Globs of the pages that are indexed, by their paths in `docs_dir`; empty means all."""
    exclude = Globs()
    """Globs of pages and folders that are not indexed, even if `include` matches them."""
    rendered = Rendered()
    """Which pages are indexed as their HTML, converted to Markdown. `auto`: pages whose HTML has headings or many words
    that their Markdown lacks, such as API pages. `false`: none. Or globs, which may be combined with `auto`."""
    previous = Sources()
    """Earlier indexes, by path or URL. Their vectors are reused for text that did not change."""
    chunking = _table(ChunkingOptions, {"slugs"})  # anchors are made as MkDocs makes them
    # the key comes from the environment only
    embedding = _table(EmbeddingSettings, {"api_key", "passages", "cache"}, provider=options.Choice(tuple(PROVIDERS)))
    llms_txt = options.Type(bool, default=False)
    """Whether `llms.txt`, `llms-full.txt` and the Markdown of each page are added to the site."""
    link_markdown = options.Type(bool, default=False)
    """Whether `llms_txt` is on, and the head of each HTML page has a link to its Markdown."""
    skill = options.Type(bool, default=False)
    """Whether an Agent Skill of the pages is published with the site, as `.well-known/agent-skills/index.json` and the
    `SKILL.md` that it names."""
    search_page = options.Type(bool, default=False)
    """Whether the site also gets a page that searches the index in the browser, next to the index, and the script of a
    search box."""
    mcp_url = options.Optional(options.Type(str))
    """The address of an MCP server over these pages, such as `https://search.example.org/mcp`; `llms.txt` and the
    skill name it."""
    tests = options.Optional(options.File(exists=True))
    """A file of questions that the pages must answer, such as `anvil-tests.toml`, next to `mkdocs.yml`. When too few of
    them are answered, each that is not is a warning, and so `--strict` fails."""
    on_error = options.Choice(("warn", "fail"), default="warn")
    """What happens when the index cannot be built: a warning, which `--strict` makes an error, or an error."""


def configuration(chosen: AnvilConfig, folder: Path, docs: Path, purpose: str) -> Config:
    """The configuration for a site whose ``mkdocs.yml`` is in ``folder``. The plugin's options override the variables
    ``ANVIL_*``, and these ``anvil.toml``. Raises :class:`ConfigError`.

    ``purpose``: "site" or "serve", which have an index each, since pages have other addresses with ``mkdocs serve``.
    Anchors come from the HTML; where there is none, they are made as MkDocs makes them.
    """
    from_options = {
        f"{table}.{key}": value
        for table in ("chunking", "embedding")
        for key, value in chosen[table].items()
        if value is not None
    }
    flags = {**from_options, "chunking.slugs": "mkdocs", "docs": str(docs)}
    config, _ = load_config(flags=flags, start=folder)
    return replace(config, docs=str(docs), index=str(kept_index(folder, docs, purpose)))


def kept_index(folder: Path, docs: Path, purpose: str) -> Path:
    """The file that keeps the index of a site between builds, such as ``.anvil/site-docs.db``."""
    name = docs.relative_to(folder).as_posix() if docs.is_relative_to(folder) else docs.name
    return folder / INDEX_FOLDER / f"{purpose}-{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.') or 'docs'}.db"


class AnvilPlugin(BasePlugin[AnvilConfig]):  # type: ignore[no-untyped-call]
    """Builds the index of the site's pages and puts it into the site."""

    def __init__(self) -> None:
        self._serving = self._dirty = False
        self._opened: api.Anvil | None = None
        self._settings: Config | None = None
        self._contents: dict[str, pages.Fragment] = {}
        """HTML of a page -> its content. ``mkdocs serve`` keeps it, so that only edited pages are read again."""
        self._forget()

    def _forget(self) -> None:
        """Drop the pages of the last build."""
        self._depth = 0
        """The number of running builds, one inside the other."""
        self._shown: dict[str, tuple[Page, str]] = {}
        """Path -> (page, its HTML)."""
        self._unread: set[str] = set()
        """Paths of pages that a dirty build did not render."""
        self._order: dict[str, int] = {}
        """Path -> position in the navigation."""

    # --- hooks ---------------------------------------------------------------------------------------------

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Remember how MkDocs was called. A plugin with this hook is kept between builds of ``mkdocs serve``."""
        self._serving, self._dirty = command == "serve", dirty

    @event_priority(FIRST_PRIORITY)
    def on_config(self, config: MkDocsConfig) -> None:
        """Read the options. Raises PluginError if one is not valid."""
        folder = Path(config.config_file_path or config.docs_dir).absolute().parent
        purpose = "serve" if self._serving else "site"
        try:
            settings = configuration(self.config, folder, Path(config.docs_dir).absolute(), purpose)
        except AnvilError as error:
            raise PluginError(f"anvil: {error}") from error
        if settings != self._settings:
            self._close()
        self._settings, self._folder = settings, folder

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """Start a build, which may be inside another."""
        if not self._depth:
            self._forget()
        self._depth += 1

    @event_priority(LAST_PRIORITY)
    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
        """Remember the order of pages in the navigation."""
        for page in nav.pages:
            self._order.setdefault(page.file.src_uri, len(self._order))

    @event_priority(LAST_PRIORITY)
    def on_env(self, env: Any, *, config: MkDocsConfig, files: Files) -> None:
        """Collect the pages. At this time all plugins are done, and links between API pages are resolved.

        A page that replaces a missing translation is collected once. A dirty build renders only changed pages; the
        others are noted in ``_unread``.
        """
        for file in files.documentation_pages(inclusion=InclusionLevel.is_in_serve):
            if file.page is not None and file.page.content is not None:
                self._shown.setdefault(file.src_uri, (file.page, file.page.content))
            elif self._dirty and (self._serving or file.inclusion is not InclusionLevel.DRAFT):
                self._unread.add(file.src_uri)

    @event_priority(LAST_PRIORITY)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Put the index into the finished site."""
        self._depth -= 1
        if self._depth:
            return
        try:
            documents = self._documents(config)
            report = self._build(documents)
            if self.config.llms_txt or self.config.link_markdown:
                self._write_markdown(config, documents, Path(report.index_path))
            target = Path(config.site_dir) / self.config.index_path
            self._put(Path(report.index_path), target, Path(config.site_dir))
            if self.config.search_page:
                addresses = {
                    path: page_addresses.of_file(page.file.dest_uri) for path, (page, _) in self._shown.items()
                }
                publishing.publish(target, Path(config.site_dir), addresses)
            if self.config.skill:
                self._publish_skill(config, target)
            if self.config.tests:
                self._test(self.config.tests)
        except AnvilError as error:
            self._complain(f"The site has no index: {error}")
        except Exception as error:  # a defect of Anvil must not make the build of the site fail
            log.debug("The index could not be built.", exc_info=True)
            self._complain(f"The site has no index, because of an error in Anvil ({type(error).__name__}: {error}).")
        else:
            self._report(report, target)
            if not config.site_url:
                log.info("Results have no URL: set site_url in mkdocs.yml.")
        finally:
            self._forget()
            if not self._serving:
                self._close()

    def on_build_error(self, *, error: Exception) -> None:
        """Forget the pages of the failed build."""
        self._forget()
        if not self._serving:
            self._close()

    def on_shutdown(self) -> None:
        """Close the index when MkDocs ends."""
        self._close()

    # --- the index -----------------------------------------------------------------------------------------

    def _build(self, documents: list[Document]) -> BuildReport:
        assert self._settings is not None and self._settings.index is not None
        kept = Path(self._settings.index)
        publish.keep_out_of_git(kept.parent, parents=True)
        if self._opened is None:
            self._opened = api.open(config=self._settings, progress=ProgressLines(log.info))
        tree = self._opened.only.site_tree
        assert tree is not None
        source = pages.PagesSource(
            documents,
            tree,
            unread=self._unread - self._shown.keys(),
            limit=self._settings.source.max_file_bytes,
        )
        kept_files = sorted(kept.parent.glob("*.db"))  # a build can reuse the index of 'mkdocs serve', and vice versa
        previous = [path for path in kept_files if path != kept] if kept_files else self._previous()
        return self._opened.index(source=source, previous=previous)

    def _documents(self, config: MkDocsConfig) -> list[Document]:
        choice = pages.Choice(self.config.include, self.config.exclude, self.config.rendered)
        expand = pages.expansion(config)
        wanted = {path: shown for path, shown in self._shown.items() if choice.wants(path, shown[0].meta)}
        self._contents = {html: self._contents.get(html) or pages.read_fragment(html) for _, html in wanted.values()}
        documents, converted_paths = [], []
        for path, (page, html) in wanted.items():
            content = self._contents[html]
            if pages.is_bare(page, content):
                log.debug(f"{path} is not indexed: a plugin made it, and it has only headings")
                continue
            text, rendered = None, choice.as_rendered(path)
            # The authors' Markdown is better than Markdown made from HTML, unless it lacks text that readers see.
            if not rendered:
                text = self._source(path, page, expand)
                rendered = choice.auto and pages.is_incomplete(f"{page.title}\n{text}", content)
            converted = None
            if rendered:
                try:  # one page must not stop the index
                    converted = content.converted.markdown
                except Exception as error:
                    log.warning(f"{path} is indexed as Markdown, because its HTML cannot be converted: {error!r}")
            is_source = converted is None
            if converted is None:
                converted = self._source(path, page, expand) if text is None else text
            elif text is not None:
                converted_paths.append(path)
            documents.append(pages.document(page, content.headings, converted, path in self._order, is_source))
        if converted_paths:
            shown = ", ".join(sorted(converted_paths))
            log.info(f"Indexed as HTML, because it has more text than the Markdown: {shown}")
        return documents

    def _source(self, path: str, page: Page, expand: pages.Expand) -> str:
        """The Markdown of a page with its snippets inserted."""
        try:
            return pages.source_text(page, expand)
        except Exception as error:
            log.warning(f"{path} is indexed without its snippets, because they cannot be read: {error!r}")
            return pages.source_text(page, str)

    def _previous(self) -> list[Path]:
        """The indexes of the option ``previous`` whose vectors can be reused."""
        assert self._opened is not None
        if not self.config.previous or not self._opened.provider.dimensions:
            return []
        digest = self._opened.provider.digest
        files, warnings = reusable(self.config.previous, self._folder, digest, self._opened.config)
        for warning in warnings:
            log.warning(warning)
        return files

    def _write_markdown(self, config: MkDocsConfig, documents: list[Document], index: Path) -> None:
        """Write ``llms.txt`` and the Markdown of each page into the site."""
        with verify.open_checked(index) as reader:
            times = reader.times()
        last = len(self._order)
        ordered = sorted(documents, key=lambda document: (self._order.get(document.path, last), document.path))
        places = {each.path: pages.placed(self._shown[each.path][0], each) for each in ordered}
        layout = paths_and_links.lay_out(places.values())
        url = _site_url(config)
        sources = {path: page.file.dest_uri for path, (page, _) in self._shown.items()}
        site = paths_and_links.SiteLinks(places.values(), url, sources=sources)

        def placed_pages() -> Iterator[PlacedPage]:
            for each in ordered:
                page, html = self._shown[each.path]
                for path in layout.files[places[each.path].html][:1]:
                    above = None if each.nav_path is None else pages.above(page)
                    timed = replace(each, last_modified=times.get(each.path, ("", ""))[1])
                    images = () if each.cleaned else self._contents[html].converted.images
                    yield PlacedPage(places[each.path], page_of(timed, path, above, images))

        report = site_files.write(
            Path(config.site_dir),
            llms.PublishedSite(config.site_name, config.site_description or "", url, self.config.mcp_url),
            placed_pages(),
            paths_and_links.MarkdownLinks(layout, site),
            link_html=self.config.link_markdown,
            is_whole=not self._unread,  # else the lists would lack the pages that a dirty build skipped
        )
        for note in report.notes:
            log.warning(f"llms_txt: {note}")

    def _put(self, kept: Path, target: Path, site: Path) -> None:
        """Copy the index into the site, with its manifest."""
        with safe_files.writing(target):
            safe_files.ensure_inside_parent(target.parent, site)
            target.parent.mkdir(parents=True, exist_ok=True)
            publish.ensure_overwritable(target)
            fresh = target.with_name(target.name + ".new")
            safe_files.clear(fresh)
            shutil.copyfile(kept, fresh)
            safe_files.rename(fresh, target)
            publish.write_manifest(target)

    def _publish_skill(self, config: MkDocsConfig, index: Path) -> None:
        if self._unread:  # it would lack the pages that a dirty build skipped
            return
        access = SiteAccess(_site_url(config), self.config.index_path, self.config.mcp_url, self.config.llms_txt)
        skill.publish(index, Path(config.site_dir), config.site_name, access)

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    # --- reports -------------------------------------------------------------------------------------------

    def _report(self, report: BuildReport, target: Path) -> None:
        for reason in report.reasons:
            log.info(reason)
        for skipped in report.skipped:
            log.warning(f"{skipped.path} is not in the index: {skipped.reason}")
        for failed in report.failed:
            log.warning(f"{failed.path} has no vector: {failed.reason}")
        if report.nothing_embedded:
            self._complain(report.nothing_embedded_because)
        done = "unchanged" if report.outcome == "unchanged" else f"{counted(report.embedded, 'passage')} embedded"
        log.info(f"{counted(report.pages, 'page')}, {done}: {target}")

    def _test(self, suite: str) -> None:
        """Ask the questions of a suite, and log a warning for each unanswered one if too many are."""
        assert self._opened is not None
        try:
            report = self._opened.test(suite)
        except AnvilError as error:
            log.warning(f"The questions are not asked: {error}")
            return
        for note in report.notes:
            log.info(note)
        warn = log.info if report.passed else log.warning
        for outcome in report.failed[:MAX_WARNINGS]:
            warn(suite_report.failure_sentence(outcome))
        warn(suite_report.totals(report))

    def _complain(self, message: str) -> None:
        if self.config.on_error == "fail":
            raise PluginError(message)
        log.warning(message)


def _site_url(config: MkDocsConfig) -> str:
    """The address of the site, which ends in a slash; empty if unknown."""
    root = (config.site_url or "").rstrip("/")
    return f"{root}/" if root else ""


def reusable(sources: Sequence[str], folder: Path, model_digest: str, config: Config) -> tuple[list[Path], list[str]]:
    """(local files of the indexes at ``sources``, a warning for each index that cannot be used).

    Relative paths are relative to ``folder``, which has ``mkdocs.yml``. ``config`` says whether a published index needs
    an attestation, as for ``anvil pull``. A local file needs none.
    """
    from anvil.fetch.fetch_index import fetch, fetch_as_configured

    files: list[Path] = []
    warnings: list[str] = []
    for source in sources:
        try:
            address = index_url.parse(source)
            if isinstance(address, index_url.LocalPath):
                fetched = fetch(folder / address.path)
            else:
                fetched = fetch_as_configured(source, config, folder, head=folder)
        except AnvilError as error:
            warnings.append(f"The previous index is not used: {error}")
            continue
        if fetched.manifest.model.digest == model_digest:
            files.append(fetched.path)
        else:
            warnings.append(
                f"The previous index {fetched.origin} is not used: its vectors are of another model, "
                f"{fetched.manifest.model.name}."
            )
    return files, warnings
