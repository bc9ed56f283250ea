"""The pages of a site: what is known of its HTML files, which of them are pages, and the address, version, language
and metadata of each.

A file is left out by what it is, and by its text: if other pages have it, in a language to which they are not
translated, or several in one.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from anvil.formats import patterns
from anvil.index_file.table_rows import speaks
from anvil.settings.schema import SiteOptions
from anvil.sites import page_addresses
from anvil.sites.generators import FOR_PRINTING, GENERATORS, LIST_OF_NAMES, OF_THEME, SOURCE_CODE
from anvil.values import Skipped
from anvil.wording import first_of

MAX_PATHS_SHOWN = 3
"""Pages that a message names for each reason to leave some out."""
MAX_LISTING_WORDS = 30
"""Words outside of its links that a page of tags or a listing may have."""
MAX_SPECIAL_WORDS = 100
"""Words outside of its links that a search page may have, or the page for addresses that do not exist."""
# Pages that are left out by their paths: of these only the short ones, because documentation may be about searching.
# A site has a search page at its top, and in the folders of its languages and versions. Elsewhere it is about one.
_EDITION = r"(?:docs|[a-z]{2}(?:[-_][a-z]{2,4})?|v?\d[\w.-]*|latest|stable|dev|main|master|next|current)/"
_SHORT = (
    (re.compile(r"(?:.*/)?(?:404(?:/index)?|__404error)\.html?"), "it is the page for addresses that do not exist"),
    (re.compile(rf"(?:{_EDITION}){{0,2}}search(?:/index)?\.html?", re.IGNORECASE), "it is the search page"),
)
_SPECIAL = (
    (re.compile(r"(?:.*/)?print_page(?:/index)?\.html?"), FOR_PRINTING),
    (re.compile(r"(?:.*/)?(?:genindex(?:-\w+|/index)?|(?:py-)?modindex(?:/index)?)\.html?"), LIST_OF_NAMES),
    (  # of Javadoc
        re.compile(
            r"(?:.*/)?(?:index-files/index-\d+|index-all|all(?:classes|packages)(?:-\w+)?|class-use/.*|package-use|"
            r"(?:overview|package)-(?:tree|frame))\.html"
        ),
        LIST_OF_NAMES,
    ),
    (re.compile(r"(?:.*/)?page/\d+/index\.html"), "it is a list of other pages"),
    # of Sphinx, Doxygen and rustdoc
    (re.compile(r"(?:.*/)?(?:_modules/.*|[^/]+_8\w+_source\.html|src/.*\.rs\.html)"), SOURCE_CODE),
    (re.compile(r"(?:.*/)?(?:_static|_sources|_templates)/.*"), OF_THEME),
    (re.compile(r"(?:.*/)?build/[0-9a-f]{32}\.html"), "it is the output of code in another page"),  # of MyST
)
_OF_GENERATOR = {each.name: [(re.compile(pattern), reason) for pattern, reason in each.left_out] for each in GENERATORS}
"""Elsewhere such a page may be about a function or a class with this name."""
# Reasons that name another page, which are one for people
_LEADS_TO = re.compile(r"^(it leads to|its canonical address is|its text is that of) .*")
_LISTING = re.compile(
    r"(?:.*/)?(?:(?:tags?|categor(?:y|ies)|archives?|authors?|page)(?:/.*|\.html?)|"
    r"(?:toc|navigation|[^/]+-sidebar)\.html)"
)
"""Also the parts that pages of docfx, Dokka and dartdoc load: ``toc.html``, ``navigation.html`` and
``Lamp-class-sidebar.html``."""


READER_VERSION = 49
"""Raised when a page of HTML gives another Markdown or other facts than before: what is kept of it is read again then,
as it is when :class:`PageFacts` gets another field."""


class PageImage(NamedTuple):
    """An image of a page, whose text has its alternative text alone.

    ``start``: where that is in the Markdown of the page. ``alt``: it, as Markdown; empty for an image without one.
    ``markdown``: what takes its place where images are kept.
    """

    start: int
    alt: str
    markdown: str


class PageFacts(NamedTuple):
    """What the head and the content of a page say, by which it is decided whether it is indexed.

    ``canonical``, ``edit_url`` and ``refresh`` are addresses as the page has them, or None. ``robots``: what it tells
    search engines, each tag on a line, in lower case. ``shell``: scripts make its content, so its HTML has none.
    ``word_count``: words of the content, and ``own_words``: those outside of its links and headings. ``frames``: it is
    a set of frames. ``digest``: the SHA-256 (hex) of what is indexed of it. ``passages``: its text in short, by which
    copies are found. ``heading_digests``: its headings, as :func:`short_digest` gives them. ``problem``: why it cannot
    be read. ``version``: of the documentation, as Docusaurus names it. ``images``: in the order of the text.
    """

    title: str = ""
    language: str = ""
    generator: str = ""
    description: str = ""
    word_count: int = 0
    own_words: int = 0
    canonical: str | None = None
    edit_url: str | None = None
    refresh: str | None = None
    robots: str = ""
    shell: bool = False
    frames: bool = False
    digest: str = ""
    passages: str = ""
    heading_digests: str = ""
    problem: str | None = None
    version: str = ""
    images: tuple[PageImage, ...] = ()

    @classmethod
    def of_json(cls, values: Sequence[Any]) -> PageFacts:
        """The facts that were written as a list in JSON. Raises :class:`TypeError` or :class:`ValueError` for another
        list."""
        *others, listed = values
        images = tuple(PageImage(int(start), str(alt), str(markdown)) for start, alt, markdown in listed)
        return cls._make((*others, images))


class SitePage(NamedTuple):
    """A page of the index. ``file`` is the path of its HTML, ``address`` that in the site, ``url`` None if unknown."""

    file: str
    address: str
    url: str | None
    version: str | None
    language: str | None
    facts: PageFacts

    def metadata(self, aliases: Mapping[str, str] | None) -> dict[str, object]:
        """What the index has as its metadata. ``aliases``: second names of its sections."""
        optional = {
            "version": self.version,
            "language": self.language,
            "description": self.facts.description or None,
            "edit_url": self.facts.edit_url,
            "aliases": aliases,
        }
        return {"rendered": True, **{key: value for key, value in optional.items() if value is not None}}


class Pages(NamedTuple):
    """The pages of a site in order, and the HTML files that are not, each with a reason."""

    pages: tuple[SitePage, ...]
    left_out: tuple[Skipped, ...]


def choose(
    facts: Mapping[str, PageFacts],
    listed: Mapping[str, str] | None,
    options: SiteOptions,
    declared_versions: Sequence[str] = (),
) -> Pages:
    """The pages among the HTML files of a site. ``listed``: path -> address of those in the sitemap; None without a
    sitemap that names this site's pages."""
    canonical = {path: page.canonical for path, page in facts.items() if page.canonical and page.problem is None}
    # An address in the template of all pages is that of the site, and says of none of them that another replaces it.
    of_template = {
        address for address, count in Counter(canonical.values()).items() if count > max(2, len(canonical) / 2)
    }
    base = page_addresses.base_of(canonical)
    if 2 * sum(page_addresses.within(address, base) is None for address in canonical.values()) > len(canonical):
        base, of_template = "", set(canonical.values())  # an address that is joined wrongly, as by Paradox
    base = base or page_addresses.base_of(listed or {})
    components = {path.partition("/")[0] for path, page in facts.items() if page.generator == "antora"}
    stated = {path: page.version for path, page in facts.items() if page.version}
    folders = page_addresses.version_folders(facts, declared_versions, components)
    folders |= page_addresses.stated_folders(stated)
    keys = {page_addresses.key(path): path for path in sorted(facts, reverse=True)}  # of several, the first path
    open_generators = {page.generator for page in facts.values() if is_listable(page)}
    pages: list[SitePage] = []
    left_out: list[Skipped] = []
    taken: dict[str, SitePage] = {}
    for path in sorted(facts):
        page = facts[path]
        own_canonical = None if page.canonical in of_template else page.canonical
        address, moved = _address(path, own_canonical, listed, base, keys, folders)
        version = page_addresses.version_of(path, folders)
        language = page.language or None
        reason = (  # the first is what people read
            _special(path, page)
            or page.problem
            or _by_options(path, address, version, language, options)
            or _by_head(page, open_generators)
            or (f"its canonical address is {moved}" if moved is not None else None)
            or ("it is not in sitemap.xml" if listed is not None and path not in listed else None)
            or _by_text(path, page)
        )
        own = page_addresses.key(address)
        other = taken.get(own)
        # "a.html" and "a/" may be two pages, as a function and a class of one name are in Dokka's
        if reason is None and other and (other.address == address or _whole(other.facts) == _whole(page)):
            reason = f"{other.file} has the same address"
        if reason is not None:
            left_out.append(Skipped(path, reason))
            continue
        root = options.url.rstrip("/") + "/" if options.url else base
        pages.append(SitePage(path, address, page_addresses.joined(root, f"./{address}"), version, language, page))
        taken[own] = pages[-1]
    return Pages(tuple(pages), tuple(left_out))


def left_out(skipped: Sequence[Skipped]) -> list[str]:
    """What is left out of a site, for people: a line for each reason, with some paths."""
    paths: dict[str, list[str]] = {}
    for item in skipped:
        paths.setdefault(_LEADS_TO.sub(r"\1 another page", item.reason), []).append(item.path)
    by_number = sorted(paths.items(), key=lambda item: (-len(item[1]), item[0]))
    return [f"left out {first_of(named, MAX_PATHS_SHOWN)}: {reason}" for reason, named in by_number]


def _address(
    path: str,
    canonical: str | None,
    listed: Mapping[str, str] | None,
    base: str,
    keys: Mapping[str, str],
    folders: frozenset[str],
) -> tuple[str, str | None]:
    """A page's address within the site as the site writes it, and the address of the page that replaces it, if any."""
    own = page_addresses.key(path)
    moved: str | None = None
    is_of_version = any(f"{own}/".startswith(f"{folder}/") for folder in folders)
    for named in (canonical, (listed or {}).get(path)):
        inside = page_addresses.within(named, base) if named and base else None
        if inside is None:
            if named and base and named is canonical and page_addresses.split(named).netloc:
                moved = named
            continue
        if page_addresses.key(inside) == own:
            return inside, None
        # Pages of older versions name that of the newest as their canonical address; they are no copies of it.
        if named is canonical and page_addresses.key(inside) in keys and not is_of_version:
            moved = named
    return page_addresses.of_file(path), moved


def _special(path: str, page: PageFacts) -> str | None:
    short = _SHORT if page.own_words <= MAX_SPECIAL_WORDS else ()
    rules = (*_SPECIAL, *short, *_OF_GENERATOR.get(page.generator, ()))
    return next((reason for pattern, reason in rules if pattern.fullmatch(path)), None)


def _by_options(path: str, address: str, version: str | None, language: str | None, options: SiteOptions) -> str | None:
    def fits(globs: Sequence[str]) -> bool:
        return any(patterns.matches(pattern, path) or patterns.matches(pattern, address) for pattern in globs)

    if options.include and not fits(options.include):
        return "site.include does not name it"
    if fits(options.exclude):
        return "site.exclude names it"
    if options.versions and version is not None and version not in options.versions:
        return f"it is of version {version}"
    if options.languages and not any(speaks(language or "", wanted) for wanted in options.languages):
        return f"its language is {language or 'unknown'}"
    return None


def _by_head(page: PageFacts, open_generators: Collection[str]) -> str | None:
    """``open_generators``: those with pages for search engines. Where the generator of a page has none, ``noindex``
    tells nothing about it."""
    if page.refresh is not None:
        return f"it leads to {page.refresh}"
    if _is_noindex(page) and (page.generator in open_generators or (page.generator == "unknown" and open_generators)):
        return "its robots tag is noindex"
    if page.frames:
        return "it is a set of frames"
    return None


def is_listable(page: PageFacts) -> bool:
    """Whether a page has text and is for search engines."""
    return page.word_count > 0 and page.refresh is None and page.problem is None and not _is_noindex(page)


def _is_noindex(page: PageFacts) -> bool:
    return any("noindex" in said or said == "none" for said in page.robots.split("\n"))


def _by_text(path: str, page: PageFacts) -> str | None:
    if page.shell:
        return "its HTML has no text: scripts make it in the browser"
    if not page.word_count:
        return "it has no text"
    if _LISTING.fullmatch(path) and page.own_words <= MAX_LISTING_WORDS:
        return "it is a list of other pages"
    return None


MIN_PAGE_WORDS = 20
"""A shorter page is no copy: two pages may say the same in a sentence."""
MIN_SHARE = 0.9
"""The share of a page's words that other pages must have."""
DIGEST_CHARACTERS = 12
"""Of each passage in :attr:`PageFacts.passages`, in front of its number of words."""


def repeated(pages: Sequence[SitePage], sources: Mapping[str, str]) -> list[Skipped]:
    """The copies among the pages of a site, each with a reason. ``sources``: path of a page's HTML -> its source.

    Of several pages with one text, the one with a source stays, else the one with the shortest path. Versions of the
    documentation are kept apart. A page with a source is a copy only of several others. A page that has passages of
    others and is none of them is a page of its own, such as that of another function with the same example.
    """
    copies: list[Skipped] = []
    holders: dict[tuple[str | None, str], SitePage] = {}

    def order(page: SitePage) -> tuple[int, bool, bool, int, str]:
        no_source = page.file not in sources
        return (
            _words_in(_whole(page.facts)),
            no_source,
            _LISTING.fullmatch(page.file) is not None,
            len(page.file),
            page.file,
        )

    # The shortest text first: a page that has the texts of several others is the copy, and not these.
    for page in sorted(pages, key=order):
        whole, *passages = page.facts.passages.split(" ")
        covered = 0
        others: dict[str, SitePage] = {}
        for passage in passages:
            holder = holders.get((page.version, passage))
            if holder is not None:
                covered += _words_in(passage)
                others[holder.file] = holder
        size = _words_in(whole)
        needed = 2 if page.file in sources else 1
        is_covered = size >= MIN_PAGE_WORDS and covered >= MIN_SHARE * size and len(others) >= needed
        if is_covered and _is_copy(page, tuple(others.values())):
            copies.append(Skipped(page.file, f"its text is that of {first_of(sorted(others), 3)}"))
            continue
        for passage in passages:
            holders.setdefault((page.version, passage), page)
    return copies


def short_digest(text: str) -> str:
    """A text in short, by which it is compared."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


def _whole(page: PageFacts) -> str:
    """All text of a page in short."""
    return page.passages.partition(" ")[0]


def _words_in(passage: str) -> int:
    return int(passage[DIGEST_CHARACTERS:] or 0)


def _is_copy(page: SitePage, others: Sequence[SitePage]) -> bool:
    """Whether a page whose passages are in ``others`` is one of them (in whole, or as one is not translated), or lists
    them. Two of one title may be classes of two packages. A translation, which may be in part, has no shorter path than
    its original."""
    headings = page.facts.heading_digests.split(" ")
    return any(
        _whole(page.facts) == _whole(other.facts)
        or page.language != other.language
        or (page.facts.title != other.facts.title and short_digest(other.facts.title) in headings)
        for other in others
        if page.language == other.language or len(page.file) >= len(other.file)
    )
