"""The files of a bundle in memory: pages as Markdown, their links, notes on links and images, and the index.

Links of source files follow the rules of the site's generator, links of a built site those of a browser.
"""

from __future__ import annotations

import os
import posixpath
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import quote, unquote, urljoin

from anvil.bundle import agents_md
from anvil.bundle.agents_md import INDEX, PAGES, POINTER, BundledProject
from anvil.bundle.folder import Bundle, page_files
from anvil.documents import repository_files
from anvil.documents.document_source import DocumentSource, GivenDocuments
from anvil.documents.repository_files import FileTree
from anvil.errors import BuildError, ConfigError, SourceError
from anvil.formats import patterns
from anvil.git.objects import blob_id
from anvil.lint import generator_settings
from anvil.lint.link_targets import Site, SiteRules
from anvil.lint.linted_page import LintPage
from anvil.requests import BuildRequest
from anvil.settings.schema import Config, SiteOptions
from anvil.site_markdown import page_file, paths_and_links
from anvil.site_markdown.paths_and_links import SiteLinks, SitePlace
from anvil.sites import page_addresses
from anvil.sites.site_pages import PageImage
from anvil.system import safe_files
from anvil.text import front_matter, generator_urls, references
from anvil.text.references import Link
from anvil.values import UNKNOWN_TIME, Document, Progress, Skipped, silent
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.project_indexes import OpenedIndex
    from anvil.sites.site_folder import SiteFolder

MAX_INDEX_BYTES = 2_000_000_000
MAX_NAMED = 10
"""Pages that one note names."""
MIN_SHARE_NAMED = 0.05
"""The share of a bundle's bytes from which a folder is named as large."""
_PICTURES = frozenset(
    f".{ending}"
    for ending in "apng avif bmp gif ico jpeg jpg mov mp4 png svg webm webp".split()  # noqa: SIM905
)
_NO_REFERENCES = references.read("")


class BundledPage(NamedTuple):
    """A page in a bundle: the document without its text, and the path and text of its file."""

    document: Document
    file: str
    text: str

    @property
    def data(self) -> bytes:
        return self.text.encode("utf-8", "replace")


def collect(
    member: OpenedIndex,
    project: BundledProject,
    exclude: Collection[str] = (),
    with_index: bool = False,
    progress: Progress = silent,
) -> Bundle:
    """The bundle of a documentation. ``exclude``: globs of pages to leave out, by their paths in the documentation or
    in the bundle. ``with_index``: whether it has an index of its pages. Raises :class:`SourceError` without a page."""
    source = member.documents
    if source is None:
        raise SourceError(
            "There are no pages to bundle. Name the documentation folder with --docs, or a site with --site."
        )
    documents, notes = _documents(source, member.config, progress)
    names, name_notes = page_files(documents)
    files = {
        path: f"{PAGES}/{name}"
        for path, name in names.items()
        if not any(patterns.matches(glob, each) for glob in exclude for each in (path, f"{PAGES}/{name}"))
    }
    if not files:
        left = " --exclude leaves all out." if documents else ""
        raise SourceError(f"There is no page to bundle in the {source.name}.{left}")
    notes += _first(note for path, note in name_notes.items() if path in files)
    site = member.site_pages() if member.site_folder is not None else None
    links = _Links(_targets(member, documents), documents, files, site)
    pages = []
    for done, (path, file) in enumerate(files.items()):
        progress("writing pages", done, len(files))
        document = documents.pop(path)  # so that its text is not in memory twice
        page = page_file.page_of(document, file, images=links.images(path))
        text = page_file.render(page, links.of_page(path))
        pages.append(BundledPage(replace(document, text="", page=None, source=None), file, text))
    notes += links.notes()
    content = {page.file: page.data for page in pages}
    first = agents_md.start_page(content)
    published = member.config.site.url or next((page.document.url for page in pages if page.file == first), None)
    content[POINTER] = agents_md.text(project, [*content], published, with_index).encode()
    if with_index:
        content[INDEX] = _index(member, pages, project.version, source.commit(), progress)
    return Bundle(project, dict(sorted(content.items())), len(pages), tuple(notes))


def ensure_apart(out: Path, member: OpenedIndex) -> None:
    """Raise :class:`ConfigError` if the pages of a bundle in ``out`` would be in its source folder, or around it."""
    pages = Path(os.path.realpath(out / PAGES))
    for folder in (member.folder, member.site_folder):
        read = Path(os.path.realpath(folder)) if folder is not None else None
        if read is not None and (pages.is_relative_to(read) or read.is_relative_to(pages)):
            raise ConfigError(
                f"The pages would be in {out / PAGES}, among the documentation that they are made from. Name another "
                "folder, such as dist."
            )


def largest(bundle: Bundle, max_size: int) -> tuple[str, ...]:
    """Lines that name the largest parts of a bundle: the index, folders and pages, largest first. Empty if the bundle
    has at most ``max_size`` bytes."""
    if bundle.size <= max_size:
        return ()
    lines = [f"{len(bundle.files[INDEX]):>12,}  {INDEX}: leave out --index"] if INDEX in bundle.files else []
    pages = {path: len(data) for path, data in bundle.files.items() if path.startswith(f"{PAGES}/")}
    folders: Counter[str] = Counter()
    for path, size in pages.items():
        if path.count("/") > 1:
            folders[f"{PAGES}/{path.split('/')[1]}/**"] += size
    rows = [(-size, folder) for folder, size in folders.items() if size > MIN_SHARE_NAMED * bundle.size]
    rows += sorted((-size, path) for path, size in pages.items())[:MAX_NAMED]
    lines += [f"{-size:>12,}  --exclude '{path}'" for size, path in sorted(rows)]
    return (*lines, f"{bundle.size - max_size:>12,}  bytes are too many")


def _first(notes: Iterable[str]) -> list[str]:
    """The first notes of one kind, and the number of the others."""
    listed = list(notes)
    more = len(listed) - MAX_NAMED
    return listed if more <= 1 else [*listed[:MAX_NAMED], f"The same is true of {more:,} further pages."]


def _documents(source: DocumentSource, config: Config, progress: Progress) -> tuple[dict[str, Document], list[str]]:
    """All pages by their paths, with their addresses and the times of their commits; and notes on pages that are left
    out or have invalid front matter."""
    scan = source.scan()
    skipped = list(scan.skipped) if source.name != "site" else []  # most skipped files of a site are not pages
    times = source.last_modified(sorted(scan.entries), {}, None) if source.commit() is not None else {}
    documents: dict[str, Document] = {}
    invalid: list[str] = []
    for done, path in enumerate(sorted(scan.entries)):
        progress("reading pages", done, len(scan.entries))
        document = source.read(path)
        if isinstance(document, Skipped):
            skipped.append(document)
            continue
        declared, start = front_matter.split(document.text)
        if not start and front_matter.end(document.text):
            invalid.append(f"{path} has front matter that is not valid. It is in the text of the page.")
        metadata = {**declared, **document.metadata}
        url = document.url or generator_urls.address(config.site, path, metadata)
        # Outside of git there is only the time of the file, which is another one in each copy of the folder.
        documents[path] = replace(document, url=url, last_modified=times.get(path, ""))
    return documents, [*_first(f"{item.path} is left out: {item.reason}." for item in skipped), *_first(invalid)]


def _targets(member: OpenedIndex, documents: Mapping[str, Document]) -> SourceTargets | SiteTargets:
    if member.site_folder is not None:
        site = member.site_pages()
        places = {path: paths_and_links.place_of(page) for path, page in site.pages().items()}
        return SiteTargets(places, site.url(), (document.text for document in documents.values()))
    assert member.folder is not None and member.tree is not None
    files = repository_files.of(member.tree, member.folder, repository_files.repository_of(member.folder))
    pages = {
        path: LintPage(path, _NO_REFERENCES, (), {**front_matter.split(document.text)[0], **document.metadata})
        for path, document in documents.items()
    }
    options = member.config.site
    return SourceTargets(Site(pages, generator_settings.site_rules(files, options), files), options)


class _Links:
    """Replaces the targets of links for the files of a bundle, and counts links and images that are lost."""

    def __init__(
        self,
        targets: SourceTargets | SiteTargets,
        documents: Mapping[str, Document],
        files: Mapping[str, str],
        site: SiteFolder | None,
    ) -> None:
        self._targets = targets
        self._site = site
        self._urls = {path: document.url for path, document in documents.items()}
        self._files = files
        self._pictures: set[str] = set()
        self._dropped: set[str] = set()
        self._dead: set[str] = set()

    def of_page(self, path: str) -> Callable[[str], str | None]:
        """A function from the target of a link in the page at ``path`` to the target in its file; None means that only
        the text of the link stays."""
        folder = posixpath.dirname(self._files[path])

        def link(target: str) -> str | None:
            page, url = self._targets.destination(path, target)
            _, mark, fragment = target.partition("#")
            if page is not None and page in self._files:
                relative = posixpath.relpath(self._files[page], folder)
                within_page = page == path and bool(mark)  # then the fragment alone is the target
                return f"{'' if within_page else quote(relative, safe=_PLAIN)}{mark}{fragment}"
            if page is not None and (page_url := self._urls[page]) is not None:
                url = f"{page_url}{mark}{fragment}"
            if posixpath.splitext(target.partition("#")[0].partition("?")[0])[1].lower() not in _PICTURES:
                if url is None:
                    self._dead.add(f"{path} {target}")
            elif url != target and not target.startswith("//"):
                (self._pictures if url else self._dropped).add(f"{path} {target}")
            return url

        return link

    def images(self, path: str) -> Sequence[PageImage]:
        """The images of the page of a site; none if the address of the site is unknown, because they are there."""
        images = self._site.pages()[path].facts.images if self._site is not None else ()
        if self._site is None or self._site.url():
            return images
        self._dropped.update(f"{path} {image.markdown}" for image in images)
        return ()

    def notes(self) -> list[str]:
        """Notes on links that lead nowhere, and on images."""
        notes = []
        if count := len(self._dead):
            why = "" if self._targets.url else " Give --site-url for the addresses of those that the site has."
            notes.append(f"{counted(count, 'link', 'lead')} to nothing that is here or published: the text stays.{why}")
        if count := len(self._pictures):
            notes.append(f"{counted(count, 'image', 'are')} not copied. Links to the site are in their place.")
        if count := len(self._dropped):
            no_url = "and nothing says where the site is: the alternative text stays. Give --site-url."
            reason = "because the site has none at these paths: the alternative text stays."
            notes.append(f"{counted(count, 'image', 'are')} not copied, {reason if self._targets.url else no_url}")
        return notes


_PLAIN = "".join(map(chr, range(33, 127))).translate({ord(character): None for character in "%#?"})
"""Characters of a path that are not quoted in a link: ASCII without the three that have a meaning in a URL."""


def _index(
    member: OpenedIndex, pages: Sequence[BundledPage], version: str | None, commit: str | None, progress: Progress
) -> bytes:
    """An index of the pages, whose results lead to their files in the bundle. Raises :class:`BuildError`."""
    from anvil.build import builder

    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        path = Path(folder, INDEX)
        request = BuildRequest(version=version, progress=progress)
        documents = [
            Document(
                page.file,
                blob_id(page.data),
                page.text,
                len(page.data),
                page.document.last_modified or UNKNOWN_TIME,
                url=page.document.url,
                # former names of the page, which are not in the front matter of its file
                metadata={key: value for key, value in page.document.metadata.items() if key == "aliases"},
                headings=page.document.headings,
            )
            for page in pages
        ]
        source = GivenDocuments("bundle", documents, commit=commit)
        report = builder.build(source, path, member.provider, member.chunking, request)
        if report.nothing_embedded:
            raise BuildError(report.nothing_embedded_because)
        return safe_files.data(path, MAX_INDEX_BYTES)


# --- where links lead ------------------------------------------------------------------------------------------------


class PageOrAddress(NamedTuple):
    """The destination of a link: the path of a page of the documentation, or a URL. Both are None if it is unknown."""

    page: str | None = None
    url: str | None = None


class SourceTargets:
    """The links in a documentation folder. ``site``: its pages and the rules of its generator.

    The configuration of the generator may be elsewhere. So a link that these rules do not resolve is resolved as most
    generators do it: with and without the ending of a page, from the page and from the top.
    """

    def __init__(self, site: Site, options: SiteOptions) -> None:
        self._site = site
        # only the pages, no other files
        tree = FileTree("", repository_files.folders_of(site.pages).get, lambda path: None)
        self._lenient = Site(site.pages, SiteRules("vitepress", "vitepress"), tree)
        self.url = options.url.rstrip("/") + "/" if options.url else None

    def destination(self, path: str, target: str) -> PageOrAddress:
        """The destination of the link ``target`` in the page at ``path``."""
        page, link = self._site.pages[path], Link(0, target, "link", None)
        resolved = self._site.resolve(page, link)
        if resolved.kind not in ("page", "file", "external"):
            lenient = self._lenient.resolve(page, link)
            resolved = lenient if lenient.kind == "page" else resolved
        if resolved.kind == "page":
            return PageOrAddress(page=resolved.page)
        if resolved.kind == "external" or target.startswith("#"):
            return PageOrAddress(url=target)
        if self.url is None:
            return PageOrAddress()
        if target.startswith("/"):
            base, inside = self._site.base, target[1:]
            if _is_in(inside, base):
                return PageOrAddress(url=urljoin(self.url, inside[len(base) :].lstrip("/")))
            # the link leads to a part of the site beside the documentation
            return PageOrAddress(url=urljoin(self.url.removesuffix(f"{base}/"), inside))
        docs, content = self._site.files.docs, self._site.rules.content
        file = posixpath.normpath(posixpath.join(docs, posixpath.dirname(path), unquote(target.partition("#")[0])))
        if resolved.kind != "file" or not _is_in(file, content):
            return PageOrAddress()
        return PageOrAddress(url=urljoin(self.url, quote(file[len(content) :].lstrip("/"), safe=generator_urls.SAFE)))


class SiteTargets:
    """The links in a built site. ``places``: path of a page -> its place in the site. ``url``: the address of the site;
    empty if it is unknown. Then the path of the site is guessed by the links in ``texts``."""

    def __init__(self, places: Mapping[str, SitePlace], url: str, texts: Iterable[str]) -> None:
        self._places = places
        self._paths = {place.html: path for path, place in places.items()}
        self.url = url
        base_path = "/" if url else paths_and_links.base_path(texts, places.values())
        self._links = SiteLinks(places.values(), url, base_path)

    def destination(self, path: str, target: str) -> PageOrAddress:
        """As :meth:`SourceTargets.destination`."""
        base = self._places[path].base
        inside, html = self._links.destination(target, base)
        if html is not None:
            return PageOrAddress(page=self._paths[html])
        if inside is None and (not target.startswith("/") or (target.startswith("//") and not self.url)):
            return PageOrAddress(url=target)
        return PageOrAddress(url=page_addresses.joined(self.url + base, target) if self.url else None)


def _is_in(path: str, folder: str) -> bool:
    return (bool(folder) and f"{path}/".startswith(f"{folder}/")) or (not folder and not path.startswith("../"))
