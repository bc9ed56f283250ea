"""A run of the linter: all rules are applied to the pages of a folder, with their index, the site's rules and git."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from anvil.documents.document_source import DocumentSource
from anvil.documents.folder_advice import no_page
from anvil.documents.repository_files import FileTree
from anvil.errors import ConfigError, GitError
from anvil.git.repository import Repository
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredDocument
from anvil.lint import generator_settings, linted_page
from anvil.lint.built_site import BuiltSite
from anvil.lint.link_targets import Generator, Site
from anvil.lint.linted_page import LintPage, PageHeading
from anvil.lint.rules import RULES, Documentation
from anvil.lint.settings import LEVELS, RULE_NAMES, Level, LintOptions
from anvil.search import content_health
from anvil.search.content_health import Pair, Spot
from anvil.settings.schema import Config
from anvil.system import installation, safe_files
from anvil.text import front_matter, includes, markdown_sections, references
from anvil.values import MIN_DUPLICATE_CHARS, SEPARATOR, Document, Progress, Skipped, has_page_ending, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.sites.site_folder import SiteFolder

MAX_PAIRS = 200
"""Pairs of near duplicates in a report."""
MAX_NAMED_PAGES = 5
"""Unreadable pages that a report names. The others are counted."""
MAX_PAGE_BYTES = 50_000_000
"""The largest HTML file of a site whose links are read."""
MAX_FILES_AROUND = 50
"""Markdown files in folders above the documentation folder whose links are read."""
NO_INDEX = "near-duplicate compared equal text only: there is no index with vectors. Run '{build}'."
NO_VECTORS = "near-duplicate compared equal text only: the index has no vectors. Build it with an embedding provider."
STALE = "near-duplicate left out {pages}, new or changed since the index was built. Run '{build}'."
OTHER_TOOL = (
    "No page links to {orphans:,} of {pages}, so a tool that is not known here makes the site. If none does, set "
    "'rule = \"github\"' in the table [site] of anvil.toml."
)
INNER_SITE = "Most pages are those of a site in {folder}. To resolve links as its generator does, name this folder."
MIN_CHANGED_LINKS = 20
"""If at least so many links to pages are broken, and more than a quarter of all, the generator may change links."""
CHANGED_LINKS = (
    "{broken:,} of {links} to pages lead to no file: the tool that shows the pages may change links, or make a page "
    "when it is opened. What is found of links and anchors is a note."
)
MIN_WIKI_LINKS = 5
"""Links such as ``[[Page]]`` in a folder without configuration. If most of so many name a page, it is a wiki."""
LINK_RULES = frozenset({"broken-link", "broken-anchor", "orphan-page"})


@dataclass(frozen=True, slots=True)
class LintFinding:
    """A fault in a page. ``path``: the page, relative to the documentation folder. ``line``: the line in its source
    file, from 1. ``message``: one or two sentences."""

    rule: str
    level: Level
    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class LintReport:
    """The findings of a run, by path and line.

    ``pages``: the number of examined pages. ``suppressed``: the number of findings that comments in the pages silence.
    ``generator``: its rules were used to resolve links. ``folder``: the documentation folder from the repository's
    root, POSIX; ``""`` for the root itself. ``notes``: sentences on what could not be examined. ``looked_up``: links
    were looked up in a built site.
    """

    findings: tuple[LintFinding, ...]
    pages: int
    suppressed: int
    generator: Generator
    folder: str = ""
    notes: tuple[str, ...] = ()
    looked_up: bool = False

    def at_least(self, level: Level) -> tuple[LintFinding, ...]:
        """The findings of this level and higher ones."""
        lowest = LEVELS.index(level)
        return tuple(finding for finding in self.findings if LEVELS.index(finding.level) >= lowest)


def lint(
    source: DocumentSource,
    files: FileTree,
    config: Config,
    reader: Reader | None = None,
    repository: Repository | None = None,
    names: Sequence[str] | None = None,
    built: SiteFolder | None = None,
    progress: Progress = silent,
) -> LintReport:
    """Examine the pages of ``source`` by all rules, or by those in ``names``. Needs no model.

    ``files``: the files of the repository. ``reader``: the index of the pages, which has the headings and vectors of
    unchanged ones. ``repository``: tells the new paths of moved pages. ``built``: the site made of the pages, in which
    links are looked up. Raises :class:`ConfigError` for a rule that does not exist.
    """
    for name in names or ():
        if name not in RULE_NAMES:
            raise ConfigError(f"There is no rule {name!r}. {linted_page.closest(name)}")
    indexed = {} if reader is None else reader.blob_ids()
    scan = source.scan(indexed)
    fresh = {path for path, identity in scan.entries.items() if indexed.get(path) == identity}
    pages, unread = _pages(source, scan.entries, fresh, reader, progress)
    skipped = [*scan.skipped, *unread]
    site = Site(pages, generator_settings.site_rules(files, config.site, pages), files)
    if config.site.rule != "github" and site.rules.generator == "github":
        site = _as_wiki(site)
    notes = [f"{page.path} was not examined: {page.reason}." for page in skipped[:MAX_NAMED_PAGES]]
    if len(skipped) > MAX_NAMED_PAGES:
        notes.append(f"{counted(len(skipped) - MAX_NAMED_PAGES, 'further page', 'were')} not examined.")
    if not scan.entries and built is None:
        notes.append(no_page("the documentation folder", config.source.include))
    if site.rules.inner and built is None:
        notes.append(INNER_SITE.format(folder=posixpath.join(files.docs, site.rules.inner)))
    options = config.table(LintOptions)
    wants_similar = options.levels.near_duplicate != "off" and (names is None or "near-duplicate" in names)
    similar = _similar(reader, fresh, len(pages), notes) if wants_similar and pages else ()

    def moved(paths: Sequence[str]) -> Mapping[str, str]:
        try:
            return {} if repository is None else repository.successors(paths)
        except GitError:
            return {}

    looked_up = None
    if built is not None:
        looked_up = _built_site(built)
        notes += built.notes
    documentation = Documentation(site, options, similar, _linked_around(site), moved, looked_up)
    needs_links = names is None or not LINK_RULES.isdisjoint(names)
    if config.site.rule != "github" and needs_links and documentation.is_of_another_tool:
        pages_examined = counted(len(documentation.examined), "page")
        notes.append(OTHER_TOOL.format(orphans=documentation.unlinked, pages=pages_examined))
        documentation = replace(documentation, site=Site(pages, generator_settings.unknown(files), files))
    broken, links = documentation.links_to_pages if needs_links else (0, 0)
    rules_now = documentation.site.rules
    if (rules_now.generator == "unknown" or rules_now.wiki) and broken >= MIN_CHANGED_LINKS and 4 * broken > links:
        notes.append(CHANGED_LINKS.format(broken=broken, links=counted(links, "link")))
        changed = replace(rules_now, doubtful=frozenset({"broken-link", "broken-anchor"}))
        documentation = replace(documentation, site=Site(pages, changed, files))
    return _report(documentation, names, notes)


def _report(documentation: Documentation, names: Sequence[str] | None, notes: Sequence[str]) -> LintReport:
    """The report of rules that are on, or only ``names``, without issues silenced by comments or ``lint.ignore``."""
    options, site = documentation.options, documentation.site
    findings: set[LintFinding] = set()
    suppressed = 0
    for name, rule in RULES.items():
        level = getattr(options.levels, name.replace("-", "_"))
        if level == "off" or name in site.rules.silent or (names is not None and name not in names):
            continue
        for issue in rule(documentation):
            if issue.path not in documentation.examined:
                continue
            if documentation.is_silent(name, issue):
                suppressed += 1
                continue
            message = " ".join(issue.message.splitlines())  # a link may contain a line end, as %0A
            is_certain = issue.seen or name not in site.rules.doubtful
            findings.add(LintFinding(name, level if is_certain else "note", issue.path, issue.line, message))
    ordered = sorted(findings, key=lambda finding: (finding.path, finding.line, finding.rule, finding.message))
    return LintReport(
        tuple(ordered),
        len(site.pages) + len(documentation.other_formats),
        suppressed,
        site.rules.generator,
        site.files.docs,
        tuple(notes),
        looked_up=documentation.built is not None,
    )


def _as_wiki(site: Site) -> Site:
    """The site as a wiki, in which ``[[Page]]`` is a link, if most of these in the pages name a page; else the same."""
    wiki = Site(site.pages, generator_settings.wiki(site.rules), site.files)
    links = ((page, link) for page in site.pages.values() for link in page.references.links if link.kind == "wiki")
    is_page = [wiki.resolve(page, link).kind == "page" for page, link in links]
    return wiki if len(is_page) >= MIN_WIKI_LINKS and 2 * sum(is_page) > len(is_page) else site


def _pages(
    source: DocumentSource, paths: Collection[str], fresh: Collection[str], reader: Reader | None, progress: Progress
) -> tuple[dict[str, LintPage], list[Skipped]]:
    """(path -> page, files that cannot be read). ``fresh``: the pages that did not change since they were indexed."""
    stored = {} if reader is None else {document.file_path: document for document in reader.documents()}
    # Sections in an index of a site are those of the HTML and have no lines of the file. Only their anchors are used.
    is_of_site = reader is not None and reader.excluded_hashes() is not None
    pages: dict[str, LintPage] = {}
    skipped: list[Skipped] = []
    for done, path in enumerate(paths):
        progress("reading", done, len(paths))
        document = source.read(path)
        if isinstance(document, Skipped):
            skipped.append(document)
            continue
        row = stored.get(path) if path in fresh else None
        pages[path] = _page(document, None if is_of_site else row, reader)
        if row is not None and is_of_site and reader is not None:
            anchors = (section.anchor for section in reader.sections(row.id))
            pages[path].stored_anchors = frozenset(anchor for anchor in anchors if anchor)
    return pages, skipped


def _page(document: Document, row: StoredDocument | None, reader: Reader | None) -> LintPage:
    """The page of a document. ``row``: the document in the index, whose headings are used; else the text is parsed."""
    sections = () if row is None or reader is None or document.inserted else reader.sections(row.id)
    metadata: Mapping[str, object]
    if row is not None and sections and sections[0].start_line:
        first_line, metadata = sections[0].start_line, row.metadata
        text = document.text[front_matter.end(document.text) :] if first_line > 1 else document.text
    else:
        page = markdown_sections.parse(document.text)
        sections, metadata, first_line, text = page.sections, page.metadata, page.first_line, page.text
    content = references.read(text)
    headings = [
        PageHeading(content.not_blank(section.start_line - first_line + 1), section.heading_level, section.title)
        for section in sections
        if section.heading_level and section.start_line
    ]
    return LintPage(
        document.path,
        content,
        headings,
        metadata,
        first_line,
        document.inserted,
        tuple(file for file, blob in (includes.files(document.fingerprint) or {}).items() if blob),
        document.missing,
    )


def _similar(reader: Reader | None, fresh: set[str], pages: int, notes: list[str]) -> tuple[Pair, ...]:
    """Pairs of similar sections in ``fresh`` pages. Adds to ``notes`` what could not be compared."""
    vectors = None if reader is None else content_health.compared_vectors(reader)
    pairs = content_health.near_duplicates(vectors, MAX_PAIRS)
    build = installation.line([*installation.user_command(), "build"])
    if pairs is None:
        notes.append(NO_INDEX.format(build=build) if reader is None else NO_VECTORS)
        return ()
    if len(fresh) < pages:
        notes.append(STALE.format(pages=counted(pages - len(fresh), "page"), build=build))

    def is_compared(spot: Spot) -> bool:
        chars_below_heading = spot.chars - len(spot.heading_path.rpartition(SEPARATOR)[2])
        return spot.file_path in fresh and chars_below_heading >= MIN_DUPLICATE_CHARS

    return tuple(pair for pair in pairs if is_compared(pair.first) and is_compared(pair.second))


def _linked_around(site: Site) -> frozenset[str]:
    """The pages that Markdown files in folders above the documentation link to, such as a README."""
    files = site.files
    paths = [
        posixpath.join(folder, name)
        for folder in files.ancestors()[1:]
        for name, is_folder in sorted((files.names(folder) or {}).items())
        if not is_folder and has_page_ending(name)
    ]
    linked: set[str] = set()
    for path in paths[:MAX_FILES_AROUND]:
        text = files.read(path) or ""
        content = references.read(text[front_matter.split(text)[1] :])
        page = LintPage(posixpath.relpath(path, files.docs or "."), content, ())
        for link in content.links:
            linked.update(site.pages_behind(site.resolve(page, link)))
    return frozenset(linked)


def _built_site(site: SiteFolder) -> BuiltSite:
    """The pages of a site with their links. Raises :class:`SourceError` if the folder has no pages."""
    from anvil.sites import html_tree, reader_processes  # the HTML parser, needed for built sites only
    from anvil.sites.html_page import read_links

    site.scan()
    pages = {}
    for path in site.html_files():
        try:
            pages[path] = read_links(safe_files.data(site.folder / path, MAX_PAGE_BYTES), site.rules())
        except (OSError, html_tree.Unreadable):
            continue  # the site counts as if it did not have this file
    sources = {path: page.file for path, page in site.pages().items() if page.file in pages}
    has_file = functools.partial(reader_processes.is_inside, site.folder)
    return BuiltSite(pages, sources, has_file, urlsplit(site.url()).path or None)
