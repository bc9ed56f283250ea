"""Pages among the HTML files of a site: the reasons to leave files out, addresses, versions, metadata, and copies."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from anvil.formats import patterns
from anvil.formats.version_names import VERSION_NUMBER, version_folders, version_of
from anvil.index_file.table_rows import is_in_language
from anvil.settings.schema import SiteOptions
from anvil.sites import page_addresses
from anvil.sites.generators import FOR_PRINTING, GENERATORS, LIST_OF_NAMES, OF_THEME, SOURCE_CODE
from anvil.values import Skipped
from anvil.wording import first_of

MAX_PATHS_SHOWN = 3
"""Left out pages that a message names for each reason."""
MAX_LISTING_WORDS = 30
"""Words outside of links and headings that a page of tags or a listing may have. A page with more is indexed."""
MAX_SPECIAL_WORDS = 100
"""Such words that a search page or the page for addresses that do not exist may have."""
# Left out by path if they are short, because documentation may be about searching. A site has its search page at the
# top, and in the folders of its languages and versions. Elsewhere a page with that name is about searching.
_EDITION = r"(?:docs|[a-z]{2}(?:[-_][a-z]{2,4})?|v?\d[\w.-]*|latest|stable|dev|main|master|next|current)/"
_SHORT = (
    (re.compile(r"(?:.*/)?(?:404(?:/index)?|__404error)\.html?"), "it is the page for addresses that do not exist"),
    (re.compile(rf"(?:{_EDITION}){{0,2}}search(?:/index)?\.html?", re.IGNORECASE), "it is the search page"),
)
_SPECIAL = (
    (re.compile(r"(?:.*/)?print_page(?:/index)?\.html?"), FOR_PRINTING),
    (re.compile(r"(?:.*/)?(?:genindex(?:-\w+|/index)?|(?:py-)?modindex(?:/index)?)\.html?"), LIST_OF_NAMES),
    (  # of Javadoc, pydoctor and nimdoc
        re.compile(
            r"(?:.*/)?(?:index-files/index-\d+|index-all|all(?:classes|packages)(?:-\w+)?|class-use/.*|package-use|"
            r"(?:overview|package)-(?:tree|frame)|(?:class|module|name)Index|undoccedSummary|all-documents|theindex)\.html"
        ),
        LIST_OF_NAMES,
    ),
    (re.compile(r"(?:.*/)?page/\d+/index\.html"), "it is a list of other pages"),
    # of Sphinx, Javadoc, Doxygen and rustdoc
    (re.compile(r"(?:.*/)?(?:(?:_modules|src-html)/.*|[^/]+_8\w+_source\.html|src/.*\.rs\.html)"), SOURCE_CODE),
    (re.compile(r"(?:.*/)?(?:_static|_sources|_templates)/.*"), OF_THEME),
    (re.compile(r"(?:.*/)?build/[0-9a-f]{32}\.html"), "it is the output of code in another page"),  # of MyST
)
_OF_GENERATOR = {each.name: [(re.compile(pattern), reason) for pattern, reason in each.left_out] for each in GENERATORS}
"""Generator -> patterns of its own. On sites of other generators such a page may be about a function or a class."""
# Reasons that name another page. A message counts them as one reason.
_LEADS_TO = re.compile(r"^(it leads to|its canonical address is|its (?:text|address) is that of) .*")
_LISTING = re.compile(
    r"(?:.*/)?(?:(?:tags?|categor(?:y|ies)|archives?|authors?|page)(?:/.*|\.html?)|"
    r"(?:toc|navigation|[^/]+-sidebar)\.html)"
)
"""Listings, and the parts that pages of docfx, Dokka and dartdoc load, such as ``toc.html``, ``navigation.html`` and
``Lamp-class-sidebar.html``."""


READER_VERSION = 54
"""Raise it when the same HTML gives other Markdown or facts than before. Cached pages are then read again. A new field
of :class:`PageFacts` has the same effect by itself."""


class PageImage(NamedTuple):
    """An image of a page. The indexed Markdown has only its alternative text.

    ``start``: the index of the alternative text in the Markdown. ``alt``: that text, as Markdown; may be empty.
    ``markdown``: the Markdown of the image, which replaces the alternative text in published Markdown.
    """

    start: int
    alt: str
    markdown: str


class PageFacts(NamedTuple):
    """Facts about an HTML file that decide whether and how it is indexed.

    - ``word_count``: words of the content. ``own_words``: words outside of its links and headings.
    - ``canonical``, ``edit_url``, ``refresh``: addresses as the page has them, or None.
    - ``robots``: the values of its tags for search engines in lower case, one on each line.
    - ``shell``: the HTML has no text, because scripts make it.
    - ``frames``: the page is a set of frames.
    - ``digest``: the SHA-256 (hex) of its indexed values.
    - ``passages``: digests and word counts of its passages, separated by spaces; the first is that of the whole text.
    - ``heading_digests``: the :func:`short_digest` of each heading, separated by spaces.
    - ``problem``: why the file cannot be read; None if it can.
    - ``version``: the version of the documentation that Docusaurus names.
    - ``selected``: ``site.content`` selects an element of it.
    - ``images``: the images in the order of the text.
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
    selected: bool = False
    images: tuple[PageImage, ...] = ()

    @classmethod
    def of_json(cls, values: Sequence[Any]) -> PageFacts:
        """The facts of a list from JSON. Raises :class:`TypeError` or :class:`ValueError` for another form."""
        *others, listed = values
        images = tuple(PageImage(int(start), str(alt), str(markdown)) for start, alt, markdown in listed)
        return cls._make((*others, images))


class SitePage(NamedTuple):
    """A page of a site. ``file``: the path of its HTML. ``address``: its address within the site. ``url``: its absolute
    address; None if unknown."""

    file: str
    address: str
    url: str | None
    version: str | None
    language: str | None
    facts: PageFacts

    def metadata(self, aliases: Mapping[str, str] | None) -> dict[str, object]:
        """The page's metadata in the index. ``aliases``: second names of its sections."""
        optional = {
            "version": self.version,
            "language": self.language,
            "description": self.facts.description or None,
            "edit_url": self.facts.edit_url,
            "aliases": aliases,
        }
        return {"rendered": True, **{key: value for key, value in optional.items() if value is not None}}


class Pages(NamedTuple):
    """The pages of a site in order of their paths, and the other HTML files, each with a reason."""

    pages: tuple[SitePage, ...]
    left_out: tuple[Skipped, ...]


def choose(
    facts: Mapping[str, PageFacts],
    listed: Mapping[str, str] | None,
    options: SiteOptions,
    declared_versions: Sequence[str] = (),
) -> Pages:
    """The pages among the HTML files of a site. ``listed``: path -> address for the files in its sitemaps; None if no
    sitemap names the pages of this site. ``declared_versions``: names of version folders."""
    canonical = {path: page.canonical for path, page in facts.items() if page.canonical and page.problem is None}
    # A canonical address that most pages share is written by a template, and does not replace any of them.
    of_template = {
        address for address, count in Counter(canonical.values()).items() if count > max(2, len(canonical) / 2)
    }
    base = page_addresses.base_of(canonical)
    if 2 * sum(page_addresses.within(address, base) is None for address in canonical.values()) > len(canonical):
        base, of_template = "", set(canonical.values())  # most are joined wrongly, as by Paradox
    base = base or page_addresses.base_of(listed or {})
    stated = {path: page.version for path, page in facts.items() if page.version}
    folders = page_addresses.stated_folders(stated) | version_folders(facts)
    starts = {path.removesuffix("/index.html") for path in facts if path.count("/") == 1}
    folders |= {top for top in starts if top in declared_versions or VERSION_NUMBER.fullmatch(top)}
    keys = {page_addresses.key(path): path for path in sorted(facts, reverse=True)}  # the first path wins
    open_generators = {page.generator for page in facts.values() if is_listable(page)}
    pages: list[SitePage] = []
    left_out: list[Skipped] = []
    taken: dict[str, SitePage] = {}
    for path in sorted(facts):
        page = facts[path]
        own_canonical = None if page.canonical in of_template else page.canonical
        address, moved = _address(path, own_canonical, listed, base, keys, folders)
        version = version_of(path, folders)
        language = page.language or None
        reason = (  # the first that applies is reported
            _special(path, page)
            or page.problem
            or _by_options(path, address, version, language, options)
            or _by_head(page, open_generators)
            or (f"its canonical address is {moved}" if moved is not None else None)
            or ("it is not in sitemap.xml" if listed is not None and path not in listed else None)
            or _by_text(path, page)
        )
        own_key = page_addresses.key(address)
        other = taken.get(own_key)
        # "a.html" and "a/" may be different pages: in Dokka's sites a function and a class with the same name
        if reason is None and other and (other.address == address or _whole(other.facts) == _whole(page)):
            reason = f"its address is that of {other.file}"
        if reason is not None:
            left_out.append(Skipped(path, reason))
            continue
        root = options.url.rstrip("/") + "/" if options.url else base
        pages.append(SitePage(path, address, page_addresses.joined(root, f"./{address}"), version, language, page))
        taken[own_key] = pages[-1]
    return Pages(tuple(pages), tuple(left_out))


def left_out(skipped: Sequence[Skipped]) -> list[str]:
    """A line for each reason why files are left out of a site, with some of their paths."""
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
    """(address of a page within the site, canonical address of another page that replaces it or None). The address is
    spelled as the page or the sitemap spells it."""
    own_key = page_addresses.key(path)
    moved: str | None = None
    is_of_version = any(f"{own_key}/".startswith(f"{folder}/") for folder in folders)
    for address in (canonical, (listed or {}).get(path)):
        inside = page_addresses.within(address, base) if address and base else None
        if inside is None:
            if address and base and address is canonical and page_addresses.split(address).netloc:
                moved = address
            continue
        if page_addresses.key(inside) == own_key:
            return inside, None
        # The canonical address in a page of an older version is that of the newest version, and the page is no copy.
        if address is canonical and page_addresses.key(inside) in keys and not is_of_version:
            moved = address
    return page_addresses.of_file(path), moved


def _special(path: str, page: PageFacts) -> str | None:
    """Why a file is left out by its path."""
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
    if options.languages and not any(is_in_language(language or "", wanted) for wanted in options.languages):
        return f"its language is {language or 'unknown'}"
    return None


def _by_head(page: PageFacts, open_generators: Collection[str]) -> str | None:
    """Why a file is left out by the head of its HTML.

    ``open_generators``: generators with pages that search engines may index. Where all pages of a generator say
    ``noindex``, for example in a preview, it says nothing about a single page.
    """
    if page.refresh is not None:
        return f"it leads to {page.refresh}"
    if _is_noindex(page) and (page.generator in open_generators or (page.generator == "unknown" and open_generators)):
        return "its robots tag is noindex"
    if page.frames:
        return "it is a set of frames"
    return None


def is_listable(page: PageFacts) -> bool:
    """Whether a page has text and search engines may index it."""
    return page.word_count > 0 and page.refresh is None and page.problem is None and not _is_noindex(page)


def _is_noindex(page: PageFacts) -> bool:
    return any("noindex" in tag or tag == "none" for tag in page.robots.split("\n"))


def _by_text(path: str, page: PageFacts) -> str | None:
    """Why a file is left out by its text."""
    if page.shell:
        return "its HTML has no text: scripts make it in the browser"
    if not page.word_count:
        return "it has no text"
    if _LISTING.fullmatch(path) and page.own_words <= MAX_LISTING_WORDS:
        return "it is a list of other pages"
    return None


MIN_PAGE_WORDS = 20
"""Words from which a page can be a copy. Two different pages may consist of the same sentence."""
MIN_SHARE = 0.9
"""The share of a copy's words that must be in passages of other pages."""
DIGEST_CHARACTERS = 12
"""Characters of the digest of a passage in :attr:`PageFacts.passages`. The number of words follows."""


def find_copies(pages: Sequence[SitePage], sources: Mapping[str, str]) -> list[Skipped]:
    """The copies among the pages of a site, each with a reason. ``sources``: path of a page's HTML -> its source.

    - Of several pages with the same text, the one with a source stays, else the one with the shortest path.
    - Pages of different versions of the documentation are never compared.
    - A page with a source is a copy only if its text is that of at least two others.
    - A page whose passages are in other pages need not be a copy (:func:`_is_copy`): it may describe another function
      with the same example.
    """
    copies: list[Skipped] = []
    holders: dict[tuple[str | None, str], SitePage] = {}
    """(version, passage) -> the page that keeps it."""

    def order(page: SitePage) -> tuple[int, bool, bool, int, str]:
        is_listing = _LISTING.fullmatch(page.file) is not None
        return _words_in(_whole(page.facts)), page.file not in sources, is_listing, len(page.file), page.file

    # The shortest text first, so that a page with the texts of several others is the copy.
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
    """The first characters of the SHA-256 (hex) of a text, to compare texts."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:DIGEST_CHARACTERS]


def _whole(page: PageFacts) -> str:
    """The passage that is the whole text of a page."""
    return page.passages.partition(" ")[0]


def _words_in(passage: str) -> int:
    return int(passage[DIGEST_CHARACTERS:] or 0)


def _is_copy(page: SitePage, others: Sequence[SitePage]) -> bool:
    """Whether a page whose passages are in ``others`` is a copy: it has the same text as one, is in another
    language but not translated, or contains the other page under a heading with its title.

    Two pages with the same title may be classes of two packages. A page in another language is a copy only if its path
    is not shorter.
    """
    headings = page.facts.heading_digests.split(" ")
    return any(
        _whole(page.facts) == _whole(other.facts)
        or page.language != other.language
        or (page.facts.title != other.facts.title and short_digest(other.facts.title) in headings)
        for other in others
        if page.language == other.language or len(page.file) >= len(other.file)
    )
