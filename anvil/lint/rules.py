"""The linter's rules: one function for each, which examines all pages and yields issues."""

from __future__ import annotations

import hashlib
import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from anvil.formats import patterns
from anvil.formats.version_names import is_version
from anvil.lint import linted_page
from anvil.lint.built_site import BuiltSite, Lookup
from anvil.lint.link_targets import LinkTarget, Site, anchors_of
from anvil.lint.linted_page import LintPage
from anvil.lint.settings import RULE_NAMES, LintOptions
from anvil.search.content_health import Pair
from anvil.text.headings import UNTITLED, slug
from anvil.text.references import Link
from anvil.values import MIN_DUPLICATE_CHARS, has_page_ending
from anvil.wording import closest_names, counted, shown

MAX_QUOTED_CHARS = 120
"""Characters of a quoted text in a message."""
MAX_PLACES = 3
"""Sections with the same text that a message names."""
MIN_ORPHANS = 10
"""If at least so many pages are orphans, and more than a third of all, another tool makes the site."""
MAX_CLOSE_ANCHORS = 2000
"""Anchors that are compared to find the closest one."""
MAX_EDITION_CHARS = 12
"""The longest name of a folder that may be a language or a version."""
_BLANK = re.compile(r"[\s\-*_=]*")
"""No text: white space, thematic breaks, or the line under a heading."""
_MAY_BE_EMPTY = re.compile(r":::|\{[{%]|<[A-Z]|^\W*unreleased\W*$", re.I)
"""A heading whose section a plugin or component fills, or the one of a changelog for the next release."""
_TEMPLATE_KEYS = frozenset({"template", "layout", "hero", "pageLayout"})
"""Front matter keys of pages that a template fills."""
_REDIRECT_KEYS = frozenset({"redirect", "redirect_to", "redirect_url", "redirectTo"})
"""Front matter keys of pages that only lead to others."""
_START_PAGES = frozenset({"index", "readme", "_index", "summary", "404", "home", "_sidebar", "_footer"})
"""Names of pages that need no link to them."""
_SHOWN_BY_GITHUB = frozenset({"license", "contributing", "code_of_conduct", "security", "support", "governance"})
"""Names of pages of a repository to which GitHub's own pages link."""
_FOUND_BY_NAME = frozenset({"agents", "claude", "gemini", "skill", "copilot-instructions", "changelog"})
"""Names of pages of a repository that agents and people look for."""
_LANGUAGE = re.compile(r"\.(?:[a-z]{2}(?:[-_][a-z]{2,4})?|[^\x00-\x7f]+)(?=\.[a-z]+$)", re.I)
"""The language in the name of a page, as ``.zh-CN`` and ``.中文``."""
_NUMBER = re.compile(r"_(?=\d+$)")
"""The sign before the number of a repeated anchor in Python-Markdown. GitHub has ``-``. Both occur in sites of MkDocs
that set a ``slugify`` function."""
_SIGNS_OF_GITBOOK = re.compile(r"usd|less-than-|-greater-than|\.")
"""The signs that anchors of GitBook have for $, <, > and the dot."""
_CONTRIBUTOR = "<sub><b>"
"""HTML in each line of the table of contributors that the all-contributors bot writes. Its links, such as
``#code-ada``, lead nowhere."""
_GENERATED_ANCHOR = re.compile(r"__|fn(?:ref\d*)?[:_-]|L\d+|top$|:~:|user-content-fn|/|!|\?")


class Issue(NamedTuple):
    """A problem at a line of a page's file. ``whole``: it concerns the whole page. ``seen``: it is certain, because the
    built site shows it."""

    path: str
    line: int
    message: str
    whole: bool = False
    seen: bool = False


class Use(NamedTuple):
    """A link of a page, its line in the page's file, and its target."""

    page: LintPage
    line: int
    link: Link
    target: LinkTarget


@dataclass
class Documentation:
    """The input of the rules.

    ``site``: the pages and their links. ``similar``: pairs of sections with similar vectors. ``linked``: pages that
    files outside of the documentation link to. ``moved``: gives the new paths, by git's history, of paths that no
    longer exist. ``built``: the site that was made of the pages; None if it is not known.
    """

    site: Site
    options: LintOptions
    similar: Sequence[Pair] = ()
    linked: frozenset[str] = frozenset()
    moved: Callable[[Sequence[str]], Mapping[str, str]] = lambda paths: {}
    built: BuiltSite | None = None

    @cached_property
    def uses(self) -> tuple[Use, ...]:
        """The links of all pages, without those in included files."""
        uses = []
        for page in self.site.pages.values():
            targets: dict[tuple[str, str], LinkTarget] = {}
            for link in page.references.links:
                line = page.source_line(link.line)
                if line is not None and link.target:
                    written = link.kind, link.target
                    if written not in targets:
                        targets[written] = self.site.resolve(page, link)
                    uses.append(Use(page, line, link, targets[written]))
        return tuple(uses)

    def look_up(self, use: Use) -> Lookup | None:
        """The result of looking up a link in the built site. None if it does not show the link or is not known."""
        if self.built is None or use.target.kind == "external":
            return None
        return self.built.look_up(use.page.path, use.link)

    @cached_property
    def incoming(self) -> frozenset[str]:
        """The pages that have a link from another page or from a file outside of the documentation."""
        return self.linked | {
            page for use in self.uses for page in self.site.pages_behind(use.target) if page != use.page.path
        }

    @cached_property
    def examined(self) -> frozenset[str]:
        """The pages for which issues are reported: all that neither ``lint.ignore`` nor the site excludes."""
        ignored = [patterns.glob(pattern, ignore_case=True) for pattern in self.options.ignore]
        return frozenset(
            path
            for path in (*self.site.pages, *self.other_formats)
            if not any(glob.matches(path) for glob in ignored) and not self.site.is_excluded(path)
        )

    @cached_property
    def other_formats(self) -> tuple[str, ...]:
        """The pages of the built site whose source is not Markdown, such as reStructuredText."""
        files, built = self.site.files, self.built.pages if self.built else ()
        others = (path for path in built if files.kind(posixpath.join(files.docs, path)) == "file")
        return tuple(sorted(path for path in others if path not in self.site.pages))

    @cached_property
    def silences(self) -> dict[str, list[linted_page.Silence]]:
        """Page -> the ranges in which its comments silence rules."""
        return {path: linted_page.silences(page) for path, page in self.site.pages.items()}

    def is_silent(self, rule: str, issue: Issue) -> bool:
        """Whether a comment in the page silences an issue of a rule."""
        of_rule = (silence for silence in self.silences.get(issue.path, ()) if silence.rule == rule)
        return any(issue.whole or silence.first <= issue.line <= silence.last for silence in of_rule)

    @cached_property
    def unlinked(self) -> int:
        """The number of orphans in a report."""
        orphans = orphan_page(self)
        return sum(issue.path in self.examined and not self.is_silent("orphan-page", issue) for issue in orphans)

    @property
    def links_to_pages(self) -> tuple[int, int]:
        """Numbers of (broken links, links) to files of pages. With a built site none count as broken."""
        kinds = [
            use.target.kind
            for use in self.uses
            if use.target.kind in ("page", "missing")
            and (use.link.kind == "wiki" or has_page_ending(use.link.target.partition("#")[0]))
        ]
        return kinds.count("missing") if self.built is None else 0, len(kinds)

    @property
    def is_of_another_tool(self) -> bool:
        """Whether so many pages are orphans that an unknown tool must show them in a navigation."""
        rules = self.site.rules
        count = self.unlinked if rules.generator == "github" and not rules.wiki and self.built is None else 0
        return count >= MIN_ORPHANS and 3 * count > len(self.examined)


Rule = Callable[[Documentation], Iterator[Issue]]


# --- links ---------------------------------------------------------------------------------------------------------


def broken_link(documentation: Documentation) -> Iterator[Issue]:
    """Links and images whose page or file does not exist."""
    site = documentation.site
    missing: list[tuple[Use, str]] = []
    for use in documentation.uses:
        lookup = documentation.look_up(use)
        if lookup is not None and lookup.verdict == "no address":
            missing.append((use, lookup.reason))
        elif lookup is None and use.target.kind == "missing" and not site.may_be_built(use.target.file):
            missing.append((use, ""))
    moved = documentation.moved(sorted({use.target.file for use, _ in missing if use.target.file}))
    hints: dict[str, str] = {}
    for use, seen in missing:
        kind, file = "image" if use.link.kind in ("image", "html image") else "link", use.target.file
        if file not in hints:
            hints[file] = _where_now(file, site, moved)
        reason, hint = seen or use.target.reason, hints[file]
        message = f"Broken {kind} {_code(use.link.target)}: {reason}.{hint}"
        yield Issue(use.page.path, use.line, message, seen=bool(seen))
    for path, line, kind, target, reason in _shown_broken(documentation, "no address"):
        yield Issue(path, line, f"Broken {kind} {_code(target)}: {reason}.", seen=True)


def _shown_broken(documentation: Documentation, verdict: str) -> Iterator[tuple[str, int, str, str, str]]:
    """(page, line, "image" or "link", target, reason) of the broken links with a verdict of the built site, in pages
    that are not Markdown."""
    files = documentation.site.files
    for path in documentation.other_formats:
        source = files.read(posixpath.join(files.docs, path)) or ""
        for line, link, reason in documentation.built.broken(path, verdict, source) if documentation.built else ():
            yield path, line, "image" if link.is_image else "link", link.target, reason


def _where_now(file: str, site: Site, moved: Mapping[str, str]) -> str:
    """A hint where a missing page or file is now, by redirects, git's history, upper and lower case, or its name."""
    if not file:
        return ""
    path = site.shown(file)
    if path in site.rules.redirects:
        return f" It moved to {site.rules.redirects[path]}."
    if file in moved:
        return f" It moved to {site.shown(moved[file])}." if moved[file] else " It was removed."
    if other_case := site.files.other_case(file):
        return f" There is {site.shown(other_case)}: capital letters differ, which works on macOS and Windows only."
    name = posixpath.basename(file)
    same_name = site.named(name)
    if len(same_name) == 1 and posixpath.splitext(name)[0].lower() not in ("index", "readme", "_index"):
        return f" Did you mean {same_name[0]}?"
    return ""


def broken_anchor(documentation: Documentation) -> Iterator[Issue]:
    """Links to an anchor that their page does not have."""
    site = documentation.site
    styles = site.rules.slugs
    has_own_slugs = site.rules.generator == "mkdocs" and len(styles) > 1
    ignores_case = has_own_slugs or site.rules.generator in ("github", "unknown")
    pages_by_anchor: dict[str, list[str]] | None = None
    anchors_by_page: dict[str, frozenset[str] | None] = {}
    for use in documentation.uses:
        target, fragment = use.target, use.target.fragment
        if lookup := documentation.look_up(use):
            if lookup.verdict == "no anchor":
                written = use.link.target.partition("#")[2]
                yield Issue(use.page.path, use.line, f"{_code('#' + written)}: {lookup.reason}.", seen=True)
            continue
        if target.kind != "page" or not fragment or _GENERATED_ANCHOR.match(fragment):
            continue
        # In a part, a link that is only an anchor may lead to one of the page around it.
        is_part = use.page.is_part and site.rules.generator != "github"
        if use.link.target.startswith("#") and (site.rules.labels or is_part):
            continue
        if target.page not in anchors_by_page:
            anchors_by_page[target.page] = _anchors(site, site.pages[target.page])
        anchors = anchors_by_page[target.page]
        if anchors is None or fragment in anchors or _CONTRIBUTOR in use.page.references.line_text(use.link.line):
            continue
        lower = fragment.lower()
        if ignores_case and (_NUMBER.sub("-", lower) if has_own_slugs else lower) in anchors:
            continue
        # Anchors of an unknown generator may have those of the headings above in front, as SvelteKit's, or lack the
        # text of elements in the heading, as Composer's for "## name <small>(since 2.0)</small>".
        if site.rules.generator == "unknown" and (
            _SIGNS_OF_GITBOOK.sub("", fragment) in anchors
            or any(lower.endswith(f"-{anchor}") or anchor.startswith(f"{lower}-") for anchor in anchors)
        ):
            continue
        if site.rules.wiki and any(slug(fragment.rpartition("#")[2], style) in anchors for style in styles):
            continue  # Obsidian's "#Heading" and "#Heading#Heading below" have the texts of headings
        if pages_by_anchor is None:
            pages_by_anchor = {}
            for page in site.pages.values():
                for anchor in anchors_of(site, page):
                    pages_by_anchor.setdefault(anchor, []).append(page.path)
        if site.rules.labels and fragment in pages_by_anchor:
            continue  # MyST finds a label in any page, whatever page the link names
        where = "This page" if target.page == use.page.path else target.page
        hint = _hint_of_anchor(fragment, anchors, pages_by_anchor.get(fragment, []))
        yield Issue(use.page.path, use.line, f"{where} has no anchor {_code('#' + fragment)}.{hint}")
    for path, line, _, written, reason in _shown_broken(documentation, "no anchor"):
        yield Issue(path, line, f"{_code('#' + written.partition('#')[2])}: {reason}.", seen=True)


def _anchors(site: Site, page: LintPage) -> frozenset[str] | None:
    """The anchors of a page; None if only a build of the site knows them."""
    if page.missing_includes or _is_dynamic(site, page):
        return None
    return anchors_of(site, page)


def _hint_of_anchor(fragment: str, anchors: frozenset[str], pages: Sequence[str]) -> str:
    if len(pages) == 1:
        return f" {pages[0]} has it."
    if fragment.lower() in anchors:
        return f" There is {_code('#' + fragment.lower())}: capital letters differ."
    near = closest_names(fragment[:200], sorted(anchors)[:MAX_CLOSE_ANCHORS], cutoff=0.7)
    return f" Did you mean {_code('#' + near[0])}?" if near else ""


def broken_include(documentation: Documentation) -> Iterator[Issue]:
    """Lines that include a file which does not exist."""
    site = documentation.site
    folders = site.rules.snippets
    if folders is None:
        return
    for page in site.pages.values():
        for line, path, candidates in page.missing_includes:
            in_folders = [posixpath.normpath(posixpath.join(folder, path)) for folder in folders]
            if not any(site.files.kind(file) or site.may_be_built(file) for file in (*candidates, *in_folders)):
                yield Issue(page.path, line, f"The included file {_code(path)} does not exist.")


def undefined_reference(documentation: Documentation) -> Iterator[Issue]:
    """Reference links whose label the page does not define."""
    for page in documentation.site.pages.values():
        if not page.references.undefined or _is_dynamic(documentation.site, page):
            continue
        for at, label in page.references.undefined:
            # A definition directly below a paragraph. It counts in Python-Markdown only; elsewhere it is text.
            definition = rf"^[ \t>]*\[{re.escape(label)}\]:[ \t]*\S"
            is_mkdocs = documentation.site.rules.generator == "mkdocs"
            if is_mkdocs and re.search(definition, page.references.prose, re.M | re.I):
                continue
            if documentation.built is not None and not documentation.built.shows_label(page.path, label):
                continue
            yield from _at(page, at, f"The link label {_code(f'[{label}]')} is not defined in this page.")


def _is_dynamic(site: Site, page: LintPage) -> bool:
    """Whether only a build of the site knows the text of a page."""
    return site.rules.dynamic is not None and site.rules.dynamic.search(page.references.text) is not None


def orphan_page(documentation: Documentation) -> Iterator[Issue]:
    """Pages that no page links to and no navigation shows."""
    site = documentation.site
    if documentation.built is None and site.rules.nav is None and site.rules.generator != "github":
        return
    included = {file for page in site.pages.values() for file in page.included}
    shown_by_name = _SHOWN_BY_GITHUB | _FOUND_BY_NAME if site.rules.generator == "github" else frozenset[str]()
    for path, page in site.pages.items():
        name = posixpath.splitext(_LANGUAGE.sub("", posixpath.basename(path)))[0].lower()
        if name[:1] in "_." or name in _START_PAGES | shown_by_name:
            continue
        if any(page.metadata.get(key) is True for key in ("draft", "unlisted", "orphan", "hidden")):
            continue
        if page.metadata.keys() & _REDIRECT_KEYS or str(page.metadata.get("template")).startswith("redirect"):
            continue
        if documentation.built is not None:
            if path in documentation.built.unlinked:
                yield Issue(path, 1, "No other page of the site links to this page.", whole=True, seen=True)
            continue
        if path in documentation.incoming or posixpath.join(site.files.docs, path) in included:
            continue
        if site.rules.nav is not None and site.rules.nav(posixpath.join(site.files.docs, path)):
            continue
        in_navigation = "" if site.rules.nav is None else ", and the navigation does not show it"
        yield Issue(path, 1, f"No page links to this page{in_navigation}.", whole=True)


# --- sections ------------------------------------------------------------------------------------------------------


def near_duplicate(documentation: Documentation) -> Iterator[Issue]:
    """Sections of different pages that say the same, or whose vectors are near."""
    site = documentation.site
    for pair in documentation.similar:
        first, second = pair.first, pair.second
        path, other = first.file_path, second.file_path
        if _are_editions(path, other) or site.is_excluded(other) or _files(site, path) & _files(site, other):
            continue
        if _is_dynamic(site, site.pages[path]) and _is_dynamic(site, site.pages[other]):
            continue  # the texts may differ after the build
        about = f"{_code(first.heading_path)} says nearly the same as {_code(second.heading_path)}"
        where = f"at {other}:{second.line or 1} (similarity {pair.similarity:.2f})"
        yield Issue(path, first.line or 1, f"{about} {where}.")
    bodies: dict[bytes, list[tuple[LintPage, int, str]]] = {}
    for page in documentation.site.pages.values():
        for index, (at, _, title) in enumerate(page.headings):
            body = " ".join(page.references.lines(at + 1, page.end(index)).split())
            if len(body) >= MIN_DUPLICATE_CHARS and page.source_line(at) is not None:
                digest = hashlib.sha256(body.encode("utf-8", "surrogatepass")).digest()
                bodies.setdefault(digest, []).append((page, at, title))
    for (page, at, title), *places in bodies.values():
        others = [
            f"{_code(other_title)} at {other.path}:{other.source_line(line)}"
            for other, line, other_title in places
            if other is not page and not _are_editions(page.path, other.path)
        ]
        if others:
            more = f" and {counted(len(others) - MAX_PLACES, 'more section')}" if len(others) > MAX_PLACES else ""
            named = ", ".join(others[:MAX_PLACES])
            yield Issue(page.path, page.source_line(at) or 1, f"{_code(title)} says the same as {named}{more}.")


def _files(site: Site, path: str) -> set[str]:
    """The files that the text of a page comes from. Text that two pages include is not repeated."""
    # Also the path itself: without a configuration, snippets are relative to the documentation folder.
    return {posixpath.join(site.files.docs, path), path, *site.pages[path].included}


def _are_editions(first: str, second: str) -> bool:
    """Whether two paths are a page in two languages or versions: only their first folders, folders of versions or the
    languages in their names differ, such as ``README.zh-CN.md``."""
    if _LANGUAGE.sub("", first) == _LANGUAGE.sub("", second):
        return True
    left, right = ([part for part in path.split("/") if not is_version(part)] for path in (first, second))
    shorter, longer = sorted((left, right), key=len)
    is_in_editions = max(len(left[0]), len(right[0])) <= MAX_EDITION_CHARS
    return left == right or longer[1:] == shorter or (len(left) > 1 and left[1:] == right[1:] and is_in_editions)


def repeated_heading(documentation: Documentation) -> Iterator[Issue]:
    """Headings that a page has more than once, so that their anchors have numbers."""
    style = documentation.site.rules.slugs[0]
    for page in documentation.site.pages.values():
        titles: dict[str, list[tuple[int, str]]] = {}
        for at, _, title in page.headings:
            if title != UNTITLED and not page.own_id(at):
                titles.setdefault(slug(title, style), []).append((at, title))
        for anchor, places in titles.items():
            if anchor and len(places) > 1:
                (first, _), (second, title) = places[:2]
                first_line = page.source_line(first)
                joint = "_" if style == "mkdocs" else "-"
                above = f" (the first is at line {first_line})" if first_line is not None else ""
                message = f"{counted(len(places), 'heading')} of this page have the anchor of {_code(title)}{above}. "
                message += f"This one gets {_code(f'#{anchor}{joint}1')}, which changes with headings above it."
                yield from _at(page, second, message)


def empty_section(documentation: Documentation) -> Iterator[Issue]:
    """Headings without text under them, before the next heading of the same level or a higher one."""
    for page in documentation.site.pages.values():
        if page.path in documentation.site.rules.filled or page.metadata.keys() & _TEMPLATE_KEYS:
            continue
        for index, heading in enumerate(page.headings):
            if index + 1 < len(page.headings) and page.headings[index + 1].level > heading.level:
                continue
            body = page.references.lines(heading.line + 1, page.end(index))
            if _BLANK.fullmatch(body) and not _MAY_BE_EMPTY.search(page.references.line_text(heading.line)):
                title = "" if heading.title == UNTITLED else heading.title
                yield from _at(page, heading.line, f"The section {_code(title)} is empty.")


def long_page(documentation: Documentation) -> Iterator[Issue]:
    """Pages of more characters than can be read at once."""
    limit = documentation.options.max_page_chars
    for page in documentation.site.pages.values():
        size = len(page.references.text)
        if size > limit:
            message = f"The page has {size:,} characters; the limit is {limit:,}. Split it."
            yield Issue(page.path, 1, message, whole=True)


# --- Markdown ------------------------------------------------------------------------------------------------------


def unclosed_fence(documentation: Documentation) -> Iterator[Issue]:
    """Fenced code that is not closed."""
    for page in documentation.site.pages.values():
        for fence in page.references.fences:
            if not fence.closed and "</" not in fence.info and "`" not in fence.info:  # else it ends code in HTML or JS
                message = "The code that begins here is not closed: the rest of the page is code."
                yield from _at(page, fence.line, message)


def fence_without_language(documentation: Documentation) -> Iterator[Issue]:
    """Fenced code without a language."""
    for page in documentation.site.pages.values():
        for fence in page.references.fences:
            if not fence.info:
                yield from _at(page, fence.line, "The code has no language. Use 'text' where none fits.")


def image_without_alt(documentation: Documentation) -> Iterator[Issue]:
    """Images without alternative text; ``alt=""`` in HTML means that the image needs none."""
    for page in documentation.site.pages.values():
        for link in page.references.links:
            has_no_text = link.kind == "image" and not (link.text or "").strip()
            if has_no_text or (link.kind == "html image" and link.text is None):
                name = f" {_code(link.target)}" if link.target else ""
                yield from _at(page, link.line, f"The image{name} has no alternative text.")


def unknown_suppression(documentation: Documentation) -> Iterator[Issue]:
    """Comments to the linter with a rule or an action that does not exist."""
    for page in documentation.site.pages.values():
        for at, message in linted_page.invalid_directives(page):
            yield from _at(page, at, message)


def _at(page: LintPage, line: int, message: str) -> Iterator[Issue]:
    """An issue at a line of a page's text; none if the line is in an included file."""
    source = page.source_line(line)
    if source is not None:
        yield Issue(page.path, source, message)


def _code(text: str) -> str:
    return f"'{shown(text, MAX_QUOTED_CHARS)}'"


RULES: dict[str, Rule] = {name: globals()[name.replace("-", "_")] for name in RULE_NAMES}
"""Name -> rule, in the order of the documentation. The function has the name of its key in ``lint.levels``."""
