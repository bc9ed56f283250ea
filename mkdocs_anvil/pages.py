"""Pages of MkDocs as documents: which are indexed, as Markdown or as HTML, and the source of documents for a build."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from mkdocs.utils import is_markdown_file

from anvil.documents import document_source
from anvil.documents.document_source import BAD_NAME, DocumentSource, PageDecoder, SourceWrapper
from anvil.formats import patterns
from anvil.formats.characters import is_plain_name, plain_name
from anvil.formats.data_formats import canonical
from anvil.settings.schema import SourceOptions
from anvil.site_markdown.paths_and_links import SitePlace
from anvil.sites import html_tree, page_addresses
from anvil.sites.html_to_markdown import Converted, to_markdown
from anvil.sites.page_content import headings_of, whole_content, words, words_of
from anvil.text import front_matter
from anvil.text.section_places import Heading
from anvil.values import SEPARATOR, UNKNOWN_TIME, Document, KnownTimes, Scan, Skipped

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

Expand = Callable[[str], str]
AUTO = "auto"


def placed(page: Page, document: Document) -> SitePlace:
    """The place of a page in the site. If its text is that of its file, links are relative to the file."""
    html = page.file.dest_uri
    address = page_addresses.of_file(html)
    return SitePlace(html, address, page.file.src_uri if document.cleaned else address)


def above(page: Page) -> tuple[str, ...]:
    """The titles of the sections above a page in the navigation."""
    return tuple(str(each.title) for each in reversed(list(page.ancestors)))


class Choice:
    """Globs over the paths in ``docs_dir`` for the pages to index, and for those to index as HTML.

    Without ``include``, all pages match it. ``exclude`` has precedence. A page with ``search: {exclude: true}`` in its
    front matter (Material's key) is excluded too. ``auto`` in ``rendered`` stands for each page whose HTML has text
    that its Markdown lacks.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str], rendered: Sequence[str]) -> None:
        self._include, self._exclude = include or ("**",), exclude
        self._rendered, self.auto = [pattern for pattern in rendered if pattern != AUTO], AUTO in rendered

    def wants(self, path: str, meta: Mapping[str, Any]) -> bool:
        """Whether to index the page at ``path``."""
        search = meta.get("search")
        if isinstance(search, Mapping) and search.get("exclude") is True:
            return False
        return _fits(self._include, path) and not _fits(self._exclude, path)

    def as_rendered(self, path: str) -> bool:
        """Whether to index the page's HTML instead of its Markdown. A notebook, for example, has no Markdown."""
        return not is_markdown_file(path) or _fits(self._rendered, path)


def _fits(globs: Iterable[str], path: str) -> bool:
    return any(patterns.matches(pattern, path) for pattern in globs)


@dataclass(frozen=True)
class Fragment:
    """The HTML of a page's content, with all its headings in order and its words. Headings that begin no section of the
    Markdown are among them."""

    html: str
    headings: tuple[Heading, ...]
    words: tuple[str, ...]

    @cached_property
    def converted(self) -> Converted:
        """The HTML as Markdown. It is converted on first use, because few pages need it. Raises
        :class:`html_tree.Unreadable` if it would take long to parse."""
        return to_markdown(whole_content(self.html))


def read_fragment(html: str) -> Fragment:
    """Read the content of a page. If it would take long to parse, it has no headings and no words."""
    try:
        content = whole_content(html)
    except html_tree.Unreadable:
        return Fragment(html, (), ())
    return Fragment(html, headings_of(content), tuple(words_of(content)))


def is_bare(page: Page, content: Fragment) -> bool:
    """Whether a page was made by a plugin and has only headings, such as a blog's archive of a year."""
    headings = sum(len(words(heading.text)) for heading in content.headings)
    return bool(getattr(page.file, "generated_by", None)) and len(content.words) <= headings


MAX_MISSING_WORDS = 20
"""Words of a page's HTML that its Markdown may lack, such as labels, keys and additions of the theme."""
MAX_MISSING_SHARE = 0.1
"""The share of words that the Markdown of a long page may lack."""
_NO_LETTER = re.compile(r"[\W_]+")


def is_incomplete(text: str, content: Fragment) -> bool:
    """Whether a text lacks a heading of a page's HTML or many of its words, because a plugin generated them. ``text``:
    the title and the Markdown of the page."""
    text_words = set(words(text))
    missing_headings = [each.text for each in content.headings if not text_words.issuperset(words(each.text))]
    if missing_headings:
        letters = _NO_LETTER.sub("", text.casefold())  # without marks in words, as in "H~2~O"
        if any(_NO_LETTER.sub("", heading.casefold()) not in letters for heading in missing_headings):
            return True
    missing = sum(word not in text_words for word in content.words)
    return missing > max(MAX_MISSING_WORDS, MAX_MISSING_SHARE * len(content.words))


def document(page: Page, headings: tuple[Heading, ...], text: str, in_nav: bool, cleaned: bool) -> Document:
    """The document of a page. ``headings``: the headings of its HTML. ``text``: its Markdown. ``cleaned``: text that
    readers do not see is not searched."""
    title = str(page.title)
    # the text of the page's file; empty for a page that a plugin made
    source = "" if getattr(page.file, "generated_by", None) else _content(page)
    edit = {"edit_url": page.edit_url} if page.edit_url else {}
    return Document(
        path=page.file.src_uri,
        blob_id="",
        text=text,
        size=0,
        title=title,
        url=page.canonical_url,
        nav_path=SEPARATOR.join([*above(page), title]) if in_nav else None,
        metadata={**front_matter.plain(page.meta), **edit, "rendered": True},
        headings=headings,
        cleaned=cleaned,
        source=None if source == text else source,
    )


def _content(page: Page) -> str:
    """The content of a page's file; empty if the file cannot be read as text or does not exist."""
    try:
        return page.file.content_string
    except (OSError, ValueError):
        return ""


def source_text(page: Page, expand: Expand) -> str:
    """The Markdown of a page after all plugins, behind its file's front matter, so that line numbers are the file's."""
    text = expand(page.markdown or "")
    source = _content(page) if page.meta else ""
    if not source.startswith("---"):
        return text
    _, begin = front_matter.split(source)
    # MkDocs drops the blank lines after the front matter
    blank_lines = len(source[begin:]) - len(source[begin:].lstrip("\n"))
    return source[: begin + blank_lines] + text if begin else text


def expansion(config: MkDocsConfig) -> Expand:
    """A function that inserts snippets of other files into a text, as the site's Markdown extensions do.

    Plugins get the Markdown before these extensions run, so their preprocessors are run here. Text that ``auto_append``
    adds to each page, such as a glossary, is left out.
    """
    names = [name for name in _EXPANDING if name in config.markdown_extensions]
    if not names:
        return lambda text: text
    from markdown import Markdown

    configs = {name: dict(config.mdx_configs.get(name, {})) for name in names}
    for extension_config in configs.values():
        extension_config.pop("auto_append", None)
    markdown = Markdown(extensions=names, extension_configs=configs)
    steps = [markdown.preprocessors[_EXPANDING[name]] for name in names]

    def expand(text: str) -> str:
        lines = text.split("\n")
        for step in steps:
            lines = step.run(lines)
        return "\n".join(lines)

    return expand


_EXPANDING = {"pymdownx.snippets": "snippet", "markdown_include.include": "include"}
"""Extension -> the name of its preprocessor."""


# --- a source of documents -------------------------------------------------------------------------------------------


class PagesSource(SourceWrapper):
    """The pages of a site as a source of documents.

    ``pages``: the documents, without blob ids and times, which come from ``tree``, the documentation folder. A page
    that is not in the tree (generated, ignored by git, a symlink) has no source file and is never stale. ``unread``:
    paths of pages that MkDocs did not build this time; an index keeps them. ``limit``: the size of the longest text in
    bytes; longer ones are skipped.
    """

    name = "site"
    excluded_hashes: frozenset[str] = frozenset()

    def __init__(
        self, pages: Iterable[Document], tree: DocumentSource, *, unread: Collection[str] = (), limit: int = 5_000_000
    ) -> None:
        super().__init__(tree)
        self._unread = frozenset(unread)
        self._pages: dict[str, Document] = {}
        self._skipped: list[Skipped] = []
        blobs = self._files = tree.scan().entries
        decoder = PageDecoder(SourceOptions(max_file_bytes=limit))
        for page in sorted(pages, key=lambda page: page.path):
            data = page.text.encode("utf-8", "surrogatepass")
            reason = decoder.refusal(data) if is_plain_name(page.path) else BAD_NAME
            if reason:
                self._skipped.append(Skipped(plain_name(page.path), reason))
                continue
            blob, included = document_source.parts(blobs.get(page.path, ""))
            values = [page.text, page.title, page.url, page.nav_path, page.metadata, page.headings]
            fingerprint = hashlib.sha256(canonical(values).encode("utf-8", "surrogatepass")).hexdigest() + included
            self._pages[page.path] = replace(page, blob_id=blob, size=len(data), fingerprint=fingerprint)
        self.excluded_hashes = self._hashes_of_excluded(frozenset())

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        entries = {path: document_source.identity(page.blob_id, page.fingerprint) for path, page in self._pages.items()}
        unread = {path: blob for path, blob in (indexed or {}).items() if path in self._unread}
        self.excluded_hashes = self._hashes_of_excluded(unread.keys())
        entries |= unread
        return Scan(dict(sorted(entries.items())), tuple(self._skipped))

    def _hashes_of_excluded(self, unread: Collection[str]) -> frozenset[str]:
        """The hashed paths of files that are neither pages nor unread."""
        return frozenset(
            document_source.hash_path(path) for path in self._files if path not in self._pages and path not in unread
        )

    def read(self, path: str) -> Document | Skipped:
        if path not in self._pages:
            return Skipped(path, "not a page of the site")
        return self._pages[path]

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        """The times of the source files. A page without one has the time of the newest page with one."""
        with_file = [path for path in paths if path in self._files]
        times = super().last_modified(with_file, known, since)
        newest = max(times.values(), default=UNKNOWN_TIME)
        return {path: times.get(path, newest) for path in paths}
