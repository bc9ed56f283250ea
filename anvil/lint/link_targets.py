"""The targets of a page's links, by the rules of the generator of the site.

A target that only a build of the site can tell (templates, generated pages, other sites) is "unknown", and no finding.
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
from anvil.values import PAGE_ENDINGS

Generator = Literal["mkdocs", "docusaurus", "vitepress", "github", "unknown"]
GENERATORS: Mapping[Generator, str] = {
    "mkdocs": "MkDocs",
    "docusaurus": "Docusaurus",
    "vitepress": "VitePress",
    "github": "GitHub",
    "unknown": "a generator whose links are not known: only links to files were examined",
}
"""Name of a generator -> what reports call it."""
MAX_TARGET_CHARS = 1000
"""A longer link is not examined."""
_BASE = "https://site.invalid/"
_INDEX_FILES = ("/index", "/README", "/_index")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//")
_TEMPLATE = re.compile(r"[{}<>$\\`|]|%%|\[\[")
_BLOCK_ID = re.compile(r"\^[\w-]+(?=[ \t]*$)", re.M)
"""The name of a paragraph or list item in Obsidian, at its end."""
_MYST_LABEL = re.compile(r"^[ \t]*(?::(?:name|label):[ \t]*(\S+)|\((\S+)\)=)[ \t]*$", re.M)
"""The name of a directive or of a place in MyST. Its anchor has ``-`` for other characters."""
_ADDRESSES_UNKNOWN = frozenset({"docusaurus", "unknown"})
"""Generators that give pages addresses that only a built site tells: routes, categories, sections, taxonomies."""


@dataclass(frozen=True)
class SiteRules:
    """How a generator makes a site of the documentation folder.

    ``rule``: how addresses follow from paths; None where the generator is not known. ``slugs``: the styles of anchors
    that its headings may have. ``content``: the folder from the repository's root whose pages begin at
    ``published_at``, the site's address or only its path, empty if unknown. ``starts``: folders from the root at which
    a link to a file without ``./`` may also begin. ``assets``: folders from the root whose files the site has at its
    top. ``strict_absolute``: whether links that begin with ``/`` lead into the content and nowhere else. ``generates``:
    whether pages may exist that no file holds. ``dynamic``: matches the text of a page whose anchors only a build
    knows. ``nav``: whether the navigation shows the page at a path from the root; None where it shows all, or that is
    unknown. ``redirects``: former page -> new page. ``snippets``: folders from the root for included files; None where
    no extension includes files. ``excluded``: globs of pages, from the content, that the site leaves out. ``filled``:
    pages, from the content, that the generator fills. ``wiki``: whether ``[[Page]]`` is a link. ``by_name``: whether a
    link to a page's file names it in any folder. ``labels``: whether a link that is an anchor alone may name a target
    of any page, or an object that only a build knows, as in MyST. ``beside``: whether a link to a page's file becomes
    one to HTML that need not come from this content: a redirect, or a page of another book beside this one. ``inner``:
    the folder of a site that has most pages, from the documentation folder; ``""`` without one. ``silent``: rules that
    do not apply to this site. ``doubtful``: rules whose findings only a build of the site can confirm, so they are
    notes.
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
    """The target of a link. ``page``: the path of a page of the documentation, for the kind ``page``.

    ``missing``: it does not exist; ``reason`` says what was expected where, and ``file`` is the path from the root at
    which a file was expected, if the link names one. ``unknown``: only a build of the site can tell; of a folder that
    GitHub lists, ``file`` is its path.
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
    """The pages of a documentation folder, by path and by address, and the links between them."""

    def __init__(self, pages: Mapping[str, LintPage], rules: SiteRules, files: FileTree) -> None:
        self.pages = pages
        self.rules = rules
        self.files = files
        self.base = re.sub(r"^https?://[^/]+", "", rules.published_at).strip("/")  # the path of the site on its host
        self.addresses: dict[str, str] = {}
        self._own: dict[str, str] = {}
        self._by_name: dict[str, list[str]] = {}
        self._page_files: dict[str, LinkTarget | None] = {}
        for path, page in pages.items():
            self._by_name.setdefault(posixpath.basename(path).casefold(), []).append(path)
            address = self._address(path, page)
            if address is not None:
                self._own[path] = address
                self.addresses.setdefault(self._canonical(address), path)

    def _address(self, path: str, page: LintPage) -> str | None:
        """The path of a page below the site's top, without leading slash; None where the site has no such page."""
        if self.rules.rule is None:
            return None
        inside = _inside(posixpath.join(self.files.docs, path), self.rules.content)
        if inside is None:
            return None
        address = generator_urls.address(SiteOptions(_BASE, self.rules.rule), inside, page.metadata)
        return None if address is None else unquote(address.removeprefix(_BASE))

    def _canonical(self, address: str) -> str:
        """One spelling of an address: without slashes at its ends, ``index`` and ``.html``."""
        bare = address.strip("/").removesuffix(".html")
        return "" if bare == "index" else bare.removesuffix("/index")

    def is_excluded(self, path: str) -> bool:
        """Whether the site leaves the page out."""
        inside = _inside(posixpath.join(self.files.docs, path), self.rules.content)
        return inside is not None and any(patterns.matches(pattern, inside) for pattern in self.rules.excluded)

    def named(self, name: str) -> list[str]:
        """The pages whose file has this name, with or without its ending, in upper or lower case."""
        spelled = (f"{name}{ending}".casefold() for ending in ("", *PAGE_ENDINGS))
        return [path for each in spelled for path in self._by_name.get(each, ())]

    def may_be_built(self, file: str) -> bool:
        """Whether git ignores a path inside the repository, or the page that it names: the build may make that."""
        return bool(file) and not file.startswith("../") and any(map(self.files.is_ignored, (file, *_page_names(file))))

    def shown(self, file: str) -> str:
        """A path from the root as people read it: from the documentation folder."""
        return posixpath.relpath(file, self.files.docs or ".")

    # --- links -----------------------------------------------------------------------------------------------------

    def resolve(self, page: LintPage, link: Link) -> LinkTarget:
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
        """The page or file at a normal path from the root; None for nothing and for folders."""
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
        """The page whose file is at ``file`` but for its ending, or that is the index of the folder ``file``."""
        if file not in self._page_files:
            candidates = (self._at(posixpath.normpath(name), "") for name in _page_names(file))
            self._page_files[file] = next((target for target in candidates if target is not None), None)
        target = self._page_files[file]
        return target._replace(fragment=fragment) if target is not None and target.kind == "page" else target

    def _absolute(self, path: str, fragment: str) -> LinkTarget:
        """A link that begins with ``/``; ``path`` without it."""
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
            is_gone = path.endswith(PAGE_ENDINGS) and self.files.is_repository and self.files.kind(file) is None
            reason = f"there is no {self.shown(file)} in the repository"
            return LinkTarget("missing", "", fragment, reason, file) if is_gone else UNKNOWN
        if rules.strict_absolute or within_base:
            return LinkTarget("missing", "", fragment, reason, file)
        return UNKNOWN

    def _relative(self, page: LintPage, path: str, fragment: str, link: Link) -> LinkTarget:
        rules = self.rules
        own = posixpath.dirname(posixpath.join(self.files.docs, page.path))
        file = posixpath.normpath(join(own, path))
        if path.startswith("@site/"):
            site = posixpath.dirname(rules.assets[0]) if rules.generator == "docusaurus" and rules.assets else None
            kind = None if site is None else self.files.kind(posixpath.normpath(join(site, path[6:])))
            return FILE if kind or site is None else LinkTarget("missing", "", fragment, f"there is no {path}")
        if path.startswith(("@", "~")):
            return UNKNOWN  # an alias of a bundler
        starts = () if path.startswith(("./", "../")) else self.rules.starts
        files = [file, *(posixpath.normpath(join(start, path)) for start in starts)]
        at = None if path.endswith("/") else [self._at(each, fragment) for each in files]
        target = next(filter(None, at or ()), None)
        if target is not None:
            if target.kind != "file" or not self._is_outside(file) or rules.generator not in ("mkdocs", "vitepress"):
                return target
            if rules.generates or link.kind in ("html link", "html image"):
                return UNKNOWN
            reason = f"{self.shown(file)} is outside of the documentation folder, so the site does not have it"
            return LinkTarget("missing", "", fragment, reason)
        if not path.lower().endswith(PAGE_ENDINGS) and (target := self._by_address(page, path, file, fragment)):
            return target
        is_page = rules.wiki or path.lower().endswith(PAGE_ENDINGS)
        if rules.by_name and is_page and (named := self.named(posixpath.basename(path.rstrip("/")))):
            return LinkTarget("page", named[0], fragment) if len(named) == 1 else UNKNOWN
        absence = self._absence(path, file, link)
        if absence is None:
            is_listed = rules.generator == "github" and self.files.kind(file) == "folder"
            return UNKNOWN._replace(file=file) if is_listed else UNKNOWN
        return LinkTarget("missing", "", fragment, absence, file)

    def pages_behind(self, target: LinkTarget) -> Collection[str]:
        """The pages that a link shows: its page, or those that GitHub lists for a folder without a README."""
        if target.kind != "unknown" or not target.file:
            return [target.page] if target.kind == "page" else []
        folder = _inside(target.file, self.files.docs)
        inside = [path for path in self.pages if posixpath.dirname(path) == folder]
        return [] if any(posixpath.basename(path).lower().startswith("readme.") for path in inside) else inside

    def _absence(self, path: str, file: str, link: Link) -> str | None:
        """What a relative link names that is not there; None where the site may have it all the same."""
        rules = self.rules
        if file.startswith("../") or file == "..":
            return None  # out of the repository
        if rules.wiki and rules.by_name and posixpath.splitext(path)[1] and not path.lower().endswith(PAGE_ENDINGS):
            return None  # an attachment, which may be in any folder
        if rules.beside and (self._is_outside(file) or _inside(file, rules.content) in rules.redirects):
            return None
        if rules.redirects and _inside(file, self.files.docs) in rules.redirects:
            return f"there is no {self.shown(file)}"
        if rules.generates or self.files.kind(file) == "folder":
            return None
        if path.lower().endswith(PAGE_ENDINGS):
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
        if self.rules.generator != "github" and (address := self._own.get(page.path)) is not None:
            # A host may add a final slash, or take it away. VitePress' links do not expect that.
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
        """Whether a relative link may lead to a page that only a generator makes: there is one without its ending, so
        another tool than GitHub makes the site; or a dynamic route is beside it, such as VitePress' ``[name].md``."""
        is_of_tool = self.rules.generator == "github" and self._as_page_file(file, "") is not None
        return is_of_tool or any(name.startswith("[") for name in self.files.names(posixpath.dirname(file)) or ())

    def _wiki(self, page: LintPage, written: str) -> LinkTarget:
        """``[[Page]]`` and ``[[Page#Heading]]``: a page by its path or its name, blanks as ``-`` or ``_`` too."""
        name, *headings = written.split("#")
        name, fragment = name.strip().rstrip("\\"), headings[-1] if headings else ""  # "Page#Heading#Heading below"
        if not name:
            return LinkTarget("page", page.path, fragment)
        own = posixpath.dirname(page.path)
        for spelled in (name, name.replace(" ", "-"), name.replace(" ", "_")):
            for start in (own, ""):
                file = posixpath.normpath(join(self.files.docs, join(start, spelled.lstrip("/"))))
                if target := self._at(file, fragment) or self._as_page_file(file, fragment):
                    return target
            if pages := self.named(posixpath.basename(spelled)):
                return LinkTarget("page", pages[0], fragment) if len(pages) == 1 else UNKNOWN
        if posixpath.splitext(name)[1] and not name.lower().endswith(PAGE_ENDINGS):
            return UNKNOWN  # an attachment, which may be in any folder
        if self.rules.generates:
            return UNKNOWN
        return LinkTarget("missing", "", fragment, f"no page is named {name!r}")


def is_inside(target: str) -> bool:
    """Whether a link may lead to a page or file of the documentation, as far as its text tells."""
    return 0 < len(target) <= MAX_TARGET_CHARS and not _SCHEME.match(target)


def _page_names(file: str) -> Iterator[str]:
    """The files that a page may have whose path, but for its ending, is ``file``."""
    bare = file.removesuffix(".html").rstrip("/")
    return (f"{bare}{inside}{ending}" for ending in PAGE_ENDINGS for inside in ("", *_INDEX_FILES))


def _inside(file: str, folder: str) -> str | None:
    """A path from the root as one from a folder; None for what is elsewhere."""
    if not folder:
        return file
    return file[len(folder) + 1 :] if file.startswith(f"{folder}/") else None


def join(folder: str, path: str) -> str:
    """A path in a folder; ``""`` for the root."""
    return f"{folder}/{path}" if folder else path


def anchors_of(site: Site, page: LintPage) -> frozenset[str]:
    """The anchors of a page in the styles of the site."""
    anchors = frozenset(anchor for style in site.rules.slugs for anchor in page.anchors(style))
    if site.rules.wiki:
        anchors |= frozenset(_BLOCK_ID.findall(page.references.text))
    if site.rules.labels:
        labels = [(label[1] or label[2]).lower() for label in _MYST_LABEL.finditer(page.references.text)]
        anchors |= {*labels, *(re.sub(r"[^a-z0-9]+", "-", label) for label in labels)}
    return anchors
