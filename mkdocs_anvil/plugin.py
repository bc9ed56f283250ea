"""Hooks of MkDocs that call Anvil: after a build, the site carries the index of the pages it shows.

One run may build a site several times, once for each language, a build within a build: pages gather until the
outermost ends. The index is kept beside ``mkdocs.yml``, because MkDocs empties the site folder; a build without
changes copies it, no more. Under ``mkdocs serve`` the plugin lives as long as the server, and so does the model.
"""

from __future__ import annotations

import contextlib
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.plugins import BasePlugin, event_priority, get_plugin_logger
from mkdocs.structure.files import Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

import anvil
from anvil.backends import safe_write
from anvil.backends.sources import site
from anvil.backends.store import manifest_file, overwrite_guard
from anvil.core.config.schema import Config
from anvil.core.pluralize import counted
from anvil.errors import AnvilError, BuildError
from anvil.models.documents import BuildReport, Document
from mkdocs_anvil import llms, options, pages, rendering

log = get_plugin_logger(__name__)

TELL = 5.0
"""Seconds between two lines about a build that takes long."""
LAST = -200
"""After all other plugins, and after those that build other languages when the first is done (-100)."""


class AnvilPlugin(BasePlugin[options.AnvilConfig]):  # type: ignore[no-untyped-call]
    """Builds the index of the site's pages and puts it into the site."""

    def __init__(self) -> None:
        self._llms_written: dict[Path, int] = {}
        self._serving = self._dirty = False
        self._opened: anvil.Anvil | None = None
        self._settings: Config | None = None
        self._read = rendering.Remembered(rendering.read)
        self._converted = rendering.Remembered(rendering.to_markdown)
        self._forget()

    def _forget(self) -> None:
        self._depth = 0
        self._began = time.time()
        self._shown: dict[str, tuple[Page, str]] = {}
        self._unread: set[str] = set()
        self._order: dict[str, int] = {}

    # --- hooks ---------------------------------------------------------------------------------------------

    def on_startup(self, *, command: str, dirty: bool) -> None:
        """Remember how MkDocs was called. That there is such a hook keeps the plugin between builds of a server."""
        self._serving, self._dirty = command == "serve", dirty

    def on_config(self, config: MkDocsConfig) -> None:
        """Settle the options. Raises PluginError for those that make no sense."""
        if not self.config.enabled:
            return
        folder = Path(config.config_file_path or config.docs_dir).absolute().parent
        purpose = "serve" if self._serving else "site"
        try:
            settled = options.settings(self.config, folder, Path(config.docs_dir).absolute(), purpose)
        except AnvilError as error:
            raise PluginError(f"anvil: {error}") from error
        if settled != self._settings:
            self._close()
        self._settings, self._folder = settled, folder

    def on_pre_build(self, *, config: MkDocsConfig) -> None:
        """A build begins, perhaps within another."""
        if not self._depth:
            self._forget()
        self._depth += 1

    @event_priority(LAST)
    def on_nav(self, nav: Navigation, *, config: MkDocsConfig, files: Files) -> None:
        """Remember the order in which readers are led through the pages."""
        for page in nav.pages:
            self._order.setdefault(page.file.src_uri, len(self._order))

    @event_priority(LAST)
    def on_env(self, env: Any, *, config: MkDocsConfig, files: Files) -> None:
        """Keep the pages as all plugins left them; links between API pages, too, are resolved by now.

        A page shown again in place of its translation counts once. A dirty build reads only what changed: what it
        passed over is noted.
        """
        for file in files.documentation_pages(inclusion=InclusionLevel.is_in_serve):
            if file.page is not None and file.page.content is not None:
                self._shown.setdefault(file.src_uri, (file.page, file.page.content))
            elif self._dirty and (self._serving or file.inclusion is not InclusionLevel.DRAFT):
                self._unread.add(file.src_uri)

    @event_priority(LAST)
    def on_post_build(self, *, config: MkDocsConfig) -> None:
        """Put the index into the finished site."""
        self._depth -= 1
        if self._depth or not self.config.enabled:
            return
        try:
            documents = self._documents(config)
            if self.config.llms_txt:
                self._write_llms(config, documents)
            report = self._build(documents)
            target = Path(config.site_dir) / self.config.index_path
            self._put(Path(report.index_path), target)
        except AnvilError as error:
            self._complain(f"The site has no index: {error}")
        except Exception as error:  # whatever nobody foresaw: the site itself is finished
            log.debug("The index could not be built.", exc_info=True)
            self._complain(f"The site has no index, by a defect of Anvil ({type(error).__name__}: {error}).")
        else:
            self._tell(report, target)
        finally:
            self._forget()
            if not self._serving:
                self._close()

    def on_build_error(self, *, error: Exception) -> None:
        """The build ends here."""
        self._forget()
        if not self._serving:
            self._close()

    def on_shutdown(self) -> None:
        """MkDocs ends."""
        self._close()

    # --- the index -----------------------------------------------------------------------------------------

    def _build(self, documents: list[Document]) -> BuildReport:
        assert self._settings is not None and self._settings.index is not None
        kept = Path(self._settings.index)
        safe_write.ensure_inside_parent(kept.parent)
        with _writing(kept):
            if not kept.parent.exists():
                kept.parent.mkdir(parents=True)
                safe_write.write_file(kept.parent / ".gitignore", "*\n")
        if self._opened is None:
            self._opened = anvil.open(config=self._settings, progress=_Progress())
        assert self._opened.tree is not None
        source = site.generated_site(
            documents,
            self._opened.tree,
            unread=self._unread - self._shown.keys(),
            limit=self._settings.source.max_file_bytes,
        )
        at_hand = sorted(kept.parent.glob("*.db"))  # also what is kept for serving, or for building
        previous = [path for path in at_hand if path != kept] if at_hand else self._previous()
        return self._opened.index(source=source, previous=previous)

    def _documents(self, config: MkDocsConfig) -> list[Document]:
        choice = pages.Choice(self.config.include, self.config.exclude, self.config.rendered)
        expand = pages.expansion(config)
        found, made = [], []
        for path, (page, html) in self._shown.items():
            if not choice.wants(path, page.meta):
                continue
            read = self._read.of(path, html)
            if pages.is_bare(page, read):
                log.debug(f"{path} is not indexed: it was made by a plugin, and has no text but headings")
                continue
            text, rendered = None, choice.as_rendered(path)
            if not rendered:
                text = self._source(path, page, expand)
                rendered = choice.auto and rendering.lacks(f"{page.title}\n{text}", read)
            if rendered and (converted := self._as_markdown(path, html, by_name=text is None)) is not None:
                if text is not None:
                    made.append(path)
                text, rendered = converted, True
            else:
                text, rendered = text if text is not None else self._source(path, page, expand), False
            found.append(pages.document(page, read.headings, text, path in self._order, cleaned=not rendered))
        if made:
            log.info(f"Indexed as their HTML, which says more than their Markdown: {', '.join(sorted(made))}")
        return found

    def _as_markdown(self, path: str, html: str, by_name: bool) -> str | None:
        """A page's HTML as Markdown. Whatever a library makes of one page must not cost the site its index: it is
        told, and the page's Markdown taken; likewise where the library is missing for a page that nobody named."""
        try:
            return self._converted.of(path, html)
        except AnvilError as error:  # it is not installed
            if by_name:
                raise
            log.warning(f"{path} is indexed as Markdown, which lacks text of its HTML. {error}")
        except Exception as error:
            log.warning(f"{path} is indexed as Markdown, because its HTML cannot be converted: {error!r}")
        return None

    def _source(self, path: str, page: Page, expand: pages.Expand) -> str:
        """A page's Markdown, its snippets in place."""
        try:
            return pages.source_text(page, expand)
        except Exception as error:
            log.warning(f"{path} is indexed without its snippets, because they cannot be read again: {error!r}")
            return pages.source_text(page, str)

    def _previous(self) -> list[Path]:
        """The indexes that were named, as far as their vectors are of use."""
        assert self._opened is not None
        if not self.config.previous or not self._opened.provider.dimensions:
            return []
        from mkdocs_anvil import previous

        found, complaints = previous.usable(self.config.previous, self._folder, self._opened.provider.digest)
        for complaint in complaints:
            log.warning(complaint)
        return found

    def _write_llms(self, config: MkDocsConfig, documents: list[Document]) -> None:
        behind = len(self._order)
        read = sorted(documents, key=lambda each: (self._order.get(each.path, behind), each.path))
        entries = [pages.entry(self._shown[document.path][0], document) for document in read]
        root = (config.site_url or "").rstrip("/")
        taken = []
        made = llms.files(config.site_name, config.site_description or "", f"{root}/" if root else "", entries)
        for path, text in made.items():
            if self._unread and path in llms.WHOLE:  # it would lack what a dirty build passed over
                continue
            target = Path(config.site_dir, *path.split("/"))
            is_ours = target.exists() and self._llms_written.get(target) == target.stat().st_mtime_ns
            if target.exists() and not is_ours and target.stat().st_mtime > self._began - 1:
                taken.append(path)
                continue
            with _writing(target):
                target.parent.mkdir(parents=True, exist_ok=True)
                safe_write.write_file(target, text, replace=True, flush=False)
                self._llms_written[target] = target.stat().st_mtime_ns
        if taken:
            log.warning(
                f"llms_txt: {', '.join(taken)} was left as the documents or another plugin wrote it in this build. "
                "Set llms_txt to false, or take the other away."
            )

    def _put(self, kept: Path, target: Path) -> None:
        with _writing(target):
            target.parent.mkdir(parents=True, exist_ok=True)
            overwrite_guard.ensure_overwritable(target)
            fresh = target.with_name(target.name + ".new")
            safe_write.clear(fresh)
            shutil.copyfile(kept, fresh)
            safe_write.rename(fresh, target)
            manifest_file.write_manifest(target)

    def _close(self) -> None:
        if self._opened is not None:
            self._opened.close()
        self._opened = None

    # --- telling -------------------------------------------------------------------------------------------

    def _tell(self, report: BuildReport, target: Path) -> None:
        for sentence in report.reasons:
            log.info(sentence)
        for left_out in report.skipped:
            log.warning(f"{left_out.path} is not in the index: {left_out.reason}")
        for failed in report.failed:
            log.warning(f"{failed.path} has no vector: {failed.reason}")
        if report.nothing_embedded:
            self._complain(report.nothing_embedded_because)
        done = "unchanged" if report.outcome == "unchanged" else f"{counted(report.embedded, 'passage')} embedded"
        log.info(f"{counted(report.pages, 'page')}, {done}: {target}")

    def _complain(self, sentence: str) -> None:
        if self.config.on_error == "fail":
            raise PluginError(sentence)
        log.warning(sentence)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise BuildError(f"{error.filename or path} cannot be written ({error.strerror}).") from error


class _Progress:
    """Says now and then how far a build is that takes long."""

    def __init__(self) -> None:
        self._told = time.monotonic()

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if not done:
            self._told = now
        elif now - self._told > TELL:
            self._told = now
            log.info(f"{stage}: {done} of {total}")
