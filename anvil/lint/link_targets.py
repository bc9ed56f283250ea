"""Targets of a page's links: pages and files of the documentation, by the rules of the site's generator.

The target is "unknown", and never a finding, if only a build of the site can tell it: templates, generated pages.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal, NamedTuple
from urllib.parse import unquote, urljoin

from anvil.documents.repository_files import FileTree
from anvil.formats import patterns
from anvil.lint.linted_page import LintPage
from anvil.settings.schema import Rule, SiteOptions, Slugs
from anvil.text import generator_urls
from anvil.text.references import Link
from anvil.values import PAGE_ENDINGS, has_page_ending

Generator = Literal["mkdocs", "docusaurus", "vitepress", "github", "unknown"]
GENERATORS: Mapping[Generator, str] = {
    "mkdocs": "MkDocs",
    "docusaurus": "Docusaurus",
    "vitepress": "VitePress",
    "github": "GitHub",
    "unknown": "a generator whose links are not known: only links to files were examined",
}
"""Generator -> its name in reports."""
MAX_TARGET_CHARS = 1000
"""The longest link that is examined."""
_BASE = "https://site.invalid/"
_INDEX_FILES = ("/index", "/README", "/_index")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_TEMPLATE = re.compile(r"[{}<>$\\`|]|%%|\[\[")
_BLOCK_ID = re.compile(r"\^[\w-]+(?=[ \t]*$)", re.M)
"""The id at the end of a paragraph or list item in Obsidian."""
_MYST_LABEL = re.compile(r"^[ \t]*(?::(?:name|label):[ \t]*(\S+)|\((\S+)\)=)[ \t]*$", re.M)
"""The label of a directive or of a position in MyST. Its anchor has ``-`` for all but letters and digits."""
_ADDRESSES_UNKNOWN = frozenset({"docusaurus", "unknown"})
"""Generators with addresses that only a built site tells: routes, categories, sections, taxonomies."""


@dataclass(frozen=True)
class SiteRules:
    """How a generator makes a site of the documentation folder. Paths of folders are relative to the repository's root.

    - ``rule``: how addresses follow from paths; None if the generator is not known.
    - ``slugs``: the styles of anchors that headings may have.
    - ``content``: the folder with the pages. ``published_at``: its address or path; empty if unknown.
    - ``starts``: further folders to which a link without ``./`` may be relative.
    - ``assets``: folders whose files are at the top of the site.
    - ``strict_absolute``: links that begin with ``/`` always lead into the content.
    - ``generates``: the site may have pages without a file.
    - ``dynamic``: a pattern that matches in a page whose anchors only a build knows.
    - ``nav``: whether the navigation shows the page at a path; None if it shows all pages or is not known.
    - ``redirects``: former page -> new page.
    - ``snippets``: the folders of included files; None if no extension includes files.
    - ``excluded``: globs, relative to the content, of pages that the site leaves out.
    - ``filled``: pages, relative to the content, whose text the generator makes.
    - ``wiki``: ``[[Page]]`` is a link.
    - ``by_name``: a link to the file of a page leads to the page with this name in any folder.
    - ``labels``: a link that is only an anchor may lead to a label in any page, or to an object that only a build
      knows, as in MyST.
    - ``beside``: a link to the file of a page may lead to HTML from elsewhere: a redirect, or a page of another book
      beside this one.
    - ``inner``: the folder of a site with most of the pages, relative to the documentation folder; ``""`` without one.
    - ``silent``: lint rules that do not apply to this site.
    - ``doubtful``: lint rules whose findings only a build can confirm, so they are notes.
    """

    generator: Generator = "github"
    rule: Rule | None = "github"
    slugs: tuple[Slugs, ...] = ("github",)
    content: str = ""
    published_at: str = ""
    starts: tuple[str, ...] = ()
    assets: tuple[str, ...] = ()
    strict_absolute: bool = False
    generates: bool = False
    dynamic: re.Pattern[str] | None = None
    nav: Callable[[str], bool] | None = None
    redirects: Mapping[str, str] = field(default_factory=dict)
    snippets: tuple[str, ...] | None = None
    excluded: tuple[str, ...] = ()
    filled: frozenset[str] = frozenset()
    wiki: bool = False
    by_name: bool = False
    labels: bool = False
    beside: bool = False
    inner: str = ""
    silent: frozenset[str] = frozenset()
    doubtful: frozenset[str] = frozenset()


class LinkTarget(NamedTuple):
    """The target of a link.

    ``page``: the path of the page, for the kind ``page``. ``reason``: what is missing, for the kind ``missing``.
    ``file``: the path from the repository's root of the missing file, or a folder that GitHub lists (kind ``unknown``).
    """

    kind: Literal["page", "file", "external", "unknown", "missing"]
    page: str = ""
    fragment: str = ""
    reason: str = ""
    file: str = ""


UNKNOWN = LinkTarget("unknown")
EXTERNAL = LinkTarget("external")
FILE = LinkTarget("file")


class Site:
    """The pages of a documentation folder by path, address and name, and the targets of their links."""

    def __init__(self, pages: Mapping[str, LintPage], rules: SiteRules, files: FileTree) -> None:
        self.pages = pages
        self.rules = rules
        self.files = files
        self.base = re.sub(r"^https?://[^/]+", "", rules.published_at).strip("/")
        """The path of the site on its host."""
        self.addresses: dict[str, str] = {}
        """Canonical address -> path of a page."""
        self._address_of: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        self._page_files: dict[str, LinkTarget | None] = {}
        for path, page in pages.items():
            self._by_name.setdefault(posixpath.basename(path).casefold(), []).append(path)
            address = self._address(path, page)
            if address is not None:
                self._address_of[path] = address
                self.addresses.setdefault(self._canonical(address), path)

    def _address(self, path: str, page: LintPage) -> str | None:
        """The page's address in the site, without leading slash; None without the page, or for an unknown generator."""
        if self.rules.rule is None:
            return None
        inside = _inside(posixpath.join(self.files.docs, path), self.rules.content)
        if inside is None:
            return None
        address = generator_urls.address(SiteOptions(_BASE, self.rules.rule), inside, page.metadata)
        return None if address is None else unquote(address.removeprefix(_BASE))

    def _canonical(self, address: str) -> str:
        """The spelling of an address without slashes at its ends, ``index`` and ``.html``."""
        stem = address.strip("/").removesuffix(".html")
        return "" if stem == "index" else stem.removesuffix("/index")

    def is_excluded(self, path: str) -> bool:
        """Whether the site leaves the page out."""
        inside = _inside(posixpath.join(self.files.docs, path), self.rules.content)
        return inside is not None and any(patterns.matches(pattern, inside) for pattern in self.rules.excluded)

    def named(self, name: str) -> list[str]:
        """The pages whose file has this name, with or without its ending. Upper and lower case are equal."""
        spellings = (f"{name}{ending}".casefold() for ending in ("", *PAGE_ENDINGS))
        return [path for spelling in spellings for path in self._by_name.get(spelling, ())]

    def may_be_built(self, file: str) -> bool:
        """Whether git ignores a file of the repository or the page that it names. A build may make such a file."""
        return bool(file) and not file.startswith("../") and any(map(self.files.is_ignored, (file, *_page_names(file))))

    def shown(self, file: str) -> str:
        """A path relative to the documentation folder, for messages."""
        return posixpath.relpath(file, self.files.docs or ".")

    # --- links -----------------------------------------------------------------------------------------------------

    def resolve(self, page: LintPage, link: Link) -> LinkTarget:
        """The target of a link in a page."""
        if link.kind == "wiki":
            return self._wiki(page, link.target) if self.rules.wiki else UNKNOWN
        written = link.target
        if not written or len(written) > MAX_TARGET_CHARS:
            return UNKNOWN
        if _SCHEME.match(written):
            return EXTERNAL
        if _TEMPLATE.search(written) or not written.isprintable():
            return UNKNOWN
        path, _, fragment = written.partition("#")
        path, fragment = unquote(path.partition("?")[0]), unquote(fragment)
        if "\0" in path or "\ufffd" in path:
            return UNKNOWN
        if not path:
            return LinkTarget("page", page.path, fragment)
        if path.startswith("/"):
            return self._absolute(path.lstrip("/"), fragment)
        return self._relative(page, path, fragment, link)

    def _at(self, file: str, fragment: str) -> LinkTarget | None:
        """The page or file at a normalized path from the root; None if there is neither."""
        inside = _inside(file, self.files.docs)
        if inside is not None and inside in self.pages:
            return LinkTarget("page", inside, fragment)
        return FILE if self.files.kind(file) == "file" else None

    def _at_address(self, address: str, fragment: str) -> LinkTarget | None:
        path = self.addresses.get(self._canonical(address))
        return None if path is None else LinkTarget("page", path, fragment)

    def _asset(self, path: str) -> LinkTarget | None:
        return next((FILE for folder in self.rules.assets if self.files.kind(join(folder, path)) is not None), None)

    def _as_page_file(self, file: str, fragment: str) -> LinkTarget | None:
        """The page whose path without ending is ``file``, or the index page of the folder ``file``."""
        if file not in self._page_files:
            has_index = self.files.kind(posixpath.normpath(file.removesuffix(".html"))) == "folder"
            candidates = (self._at(posixpath.normpath(name), "") for name in _page_names(file, has_index))
            self._page_files[file] = next((target for target in candidates if target is not None), None)
        target = self._page_files[file]
        return target._replace(fragment=fragment) if target is not None and target.kind == "page" else target

    def _absolute(self, path: str, fragment: str) -> LinkTarget:
        """The target of a link that begins with ``/``. ``path``: the link without it."""
        rules = self.rules
        within_base = bool(self.base) and f"{path}/".startswith(f"{self.base}/")
        inside = path[len(self.base) :].lstrip("/") if within_base else path
        for candidate in dict.fromkeys((inside, path)):
            file = posixpath.normpath(join(rules.content, candidate))
            target = self._at_address(candidate, fragment) or self._asset(candidate) or self._at(file, fragment)
            if target := target or self._as_page_file(file, fragment):
                return target
        if rules.generates or rules.generator in _ADDRESSES_UNKNOWN:
            return UNKNOWN
        file = posixpath.normpath(join(rules.content, inside))
        reason = f"the site has no page or file /{path}"
        if rules.generator == "github":
            is_gone = has_page_ending(path) and self.files.is_repository and self.files.kind(file) is None
            reason = f"there is no {self.shown(file)} in the repository"
            return LinkTarget("missing", "", fragment, reason, file) if is_gone else UNKNOWN
        if rules.strict_absolute or within_base:
            return LinkTarget("missing", "", fragment, reason, file)
        return UNKNOWN

    def _relative(self, page: LintPage, path: str, fragment: str, link: Link) -> LinkTarget:
        """The target of a link without ``/`` at its begin."""
        rules = self.rules
        folder = posixpath.dirname(posixpath.join(self.files.docs, page.path))
        file = posixpath.normpath(join(folder, path))
        if path.startswith("@site/"):
            site = posixpath.dirname(rules.assets[0]) if rules.generator == "docusaurus" and rules.assets else None
            kind = None if site is None else self.files.kind(posixpath.normpath(join(site, path[6:])))
            return FILE if kind or site is None else LinkTarget("missing", "", fragment, f"there is no {path}")
        if path.startswith(("@", "~")):
            return UNKNOWN  # an alias of a bundler
        starts = () if path.startswith(("./", "../")) else rules.starts
        candidates = [] if path.endswith("/") else [file, *(posixpath.normpath(join(start, path)) for start in starts)]
        target = next(filter(None, (self._at(candidate, fragment) for candidate in candidates)), None)
        if target is not None:
            if target.kind != "file" or not self._is_outside(file) or rules.generator not in ("mkdocs", "vitepress"):
                return target
            if rules.generates or link.kind in ("html link", "html image"):
                return UNKNOWN
            reason = f"{self.shown(file)} is outside of the documentation folder, so the site does not have it"
            return LinkTarget("missing", "", fragment, reason)
        if not has_page_ending(path) and (target := self._by_address(page, path, file, fragment)):
            return target
        is_page = rules.wiki or has_page_ending(path)
        if rules.by_name and is_page and (named := self.named(posixpath.basename(path.rstrip("/")))):
            return LinkTarget("page", named[0], fragment) if len(named) == 1 else UNKNOWN
        # In a part, Quarto's links are relative to the page around it.
        absence = None if page.is_part and rules.generator == "unknown" else self._absence(path, file, link)
        if absence is None:
            is_listed = rules.generator == "github" and self.files.kind(file) == "folder"
            return UNKNOWN._replace(file=file) if is_listed else UNKNOWN
        return LinkTarget("missing", "", fragment, absence, file)

    def pages_behind(self, target: LinkTarget) -> Collection[str]:
        """The pages that a link leads to: one page, or all that GitHub lists for a folder without a README."""
        if target.kind != "unknown" or not target.file:
            return [target.page] if target.kind == "page" else []
        folder = _inside(target.file, self.files.docs)
        inside = [path for path in self.pages if posixpath.dirname(path) == folder]
        return [] if any(posixpath.basename(path).lower().startswith("readme.") for path in inside) else inside

    def _absence(self, path: str, file: str, link: Link) -> str | None:
        """The reason why the target of a relative link is missing; None if the site may have it."""
        rules = self.rules
        if file.startswith("../") or file == "..":
            return None  # outside of the repository
        if rules.wiki and rules.by_name and posixpath.splitext(path)[1] and not has_page_ending(path):
            return None  # an attachment, which may be in any folder
        if rules.beside and (self._is_outside(file) or _inside(file, rules.content) in rules.redirects):
            return None
        if rules.redirects and _inside(file, self.files.docs) in rules.redirects:
            return f"there is no {self.shown(file)}"
        if rules.generates or self.files.kind(file) == "folder":
            return None
        if has_page_ending(path):
            return f"there is no file {self.shown(file)}"
        if rules.generator == "unknown" or self._is_unknowable(file):
            return None
        if link.kind in ("image", "html image") or (posixpath.splitext(path)[1] and not path.endswith("/")):
            return f"there is no file {self.shown(file)}"
        return None if rules.generator in _ADDRESSES_UNKNOWN else f"there is no page or file {self.shown(file)}"

    def _is_outside(self, file: str) -> bool:
        return _inside(file, self.rules.content) is None and _inside(file, self.files.docs) is None

    def _by_address(self, page: LintPage, path: str, file: str, fragment: str) -> LinkTarget | None:
        """The target of a link without a page's ending: by addresses, as in a browser, or by file names."""
        if self.rules.generator != "github" and (address := self._address_of.get(page.path)) is not None:
            # A host may add or remove the final slash. Links of VitePress do not expect that.
            others = {address.rstrip("/"), address.rstrip("/") + "/"} if self.rules.generator != "vitepress" else set()
            for form in sorted({address, *others}):
                joined = unquote(urljoin(_BASE + form, path)).removeprefix(_BASE).partition("#")[0]
                if target := self._at_address(joined, fragment):
                    return target
                content = posixpath.normpath(join(self.rules.content, joined))
                if target := self._at(content, fragment) or self._asset(joined):
                    return target
        is_by_name = self.rules.wiki or self.rules.generator in ("docusaurus", "vitepress", "unknown")
        return self._as_page_file(file, fragment) if is_by_name else None

    def _is_unknowable(self, file: str) -> bool:
        """Whether a relative link may lead to a page that only a generator makes.

        A page without its ending means that another tool than GitHub makes the site. A file such as ``[name].md`` is a
        dynamic route of VitePress, which makes pages beside it.
        """
        is_of_tool = self.rules.generator == "github" and self._as_page_file(file, "") is not None
        return is_of_tool or any(name.startswith("[") for name in self.files.names(posixpath.dirname(file)) or ())

    def _wiki(self, page: LintPage, written: str) -> LinkTarget:
        """The target of ``[[Page]]`` or ``[[Page#Heading]]``: a page by path or name, with ``-``, ``_`` for spaces."""
        name, *headings = written.split("#")
        name, fragment = name.strip(), headings[-1] if headings else ""  # "Page#Heading#Heading below"
        if not name:
            return LinkTarget("page", page.path, fragment)
        # Logseq's page "a/b" is in the file "a___b.md".
        spellings = name, name.replace(" ", "-"), name.replace(" ", "_"), name.replace("/", "___")
        for spelling in dict.fromkeys(spellings):
            for start in (posixpath.dirname(page.path), ""):
                file = posixpath.normpath(join(self.files.docs, join(start, spelling.lstrip("/"))))
                if target := self._at(file, fragment) or self._as_page_file(file, fragment):
                    return target
            if pages := self.named(posixpath.basename(spelling)):
                return LinkTarget("page", pages[0], fragment) if len(pages) == 1 else UNKNOWN
        if posixpath.splitext(name)[1] and not has_page_ending(name):
            return UNKNOWN  # an attachment, which may be in any folder
        if self.rules.generates:
            return UNKNOWN
        return LinkTarget("missing", "", fragment, f"no page is named {name!r}")


def is_inside(target: str) -> bool:
    """Whether a link may lead to a page or file of the documentation: it is no address and not too long."""
    return 0 < len(target) <= MAX_TARGET_CHARS and not _SCHEME.match(target)


def _page_names(file: str, has_index: bool = True) -> Iterator[str]:
    """The paths that the file of a page may have if its path without ending is ``file``. ``has_index``: it may be a
    folder with an index page."""
    stem = file.removesuffix(".html").rstrip("/")
    return (f"{stem}{inside}{ending}" for ending in PAGE_ENDINGS for inside in ("", *_INDEX_FILES * has_index))


def _inside(file: str, folder: str) -> str | None:
    """The path relative to a folder of a path from the root; None if it is not in the folder."""
    if not folder:
        return file
    return file[len(folder) + 1 :] if file.startswith(f"{folder}/") else None


def join(folder: str, path: str) -> str:
    """The path of ``path`` in a folder, which is ``""`` for the root."""
    return f"{folder}/{path}" if folder else path


def anchors_of(site: Site, page: LintPage) -> frozenset[str]:
    """The anchors of a page, in all styles that the site's rules name."""
    styles: tuple[Slugs, ...] = ("pandoc",) if page.path.lower().endswith((".qmd", ".rmd")) else ()
    anchors = frozenset(anchor for style in (*site.rules.slugs, *styles) for anchor in page.anchors(style))
    if site.rules.wiki:
        anchors |= frozenset(_BLOCK_ID.findall(page.references.text))
    if site.rules.labels:
        labels = [(label[1] or label[2]).lower() for label in _MYST_LABEL.finditer(page.references.text)]
        anchors |= {*labels, *(re.sub(r"[^a-z0-9]+", "-", label) for label in labels)}
    return anchors
