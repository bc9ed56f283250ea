"""The Markdown of a site from its index: ``anvil build --site FOLDER --markdown``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.index_file.rows import StoredDocument
from anvil.markdown import llms, site_files, twins
from anvil.markdown.page_file import page_of
from anvil.markdown.site_files import MarkdownReport, PlacedPage
from anvil.markdown.twins import SiteLinks, TwinLinks
from anvil.search.pages import page_text
from anvil.sites.page_choice import SitePage
from anvil.sites.site_folder import SiteFolder
from anvil.values import Document, Progress, silent


def publish(
    index: Path,
    site: SiteFolder,
    name: str,
    *,
    version: str | None = None,
    link_html: bool = False,
    mcp_url: str | None = None,
    progress: Progress = silent,
) -> MarkdownReport:
    """Write the pages of the index of a site into its folder.

    ``site``: as it was read for this index. ``name``: of the project. ``version``: of pages without one of their own.
    Raises :class:`ArtifactError` for the index, and :class:`BuildError`.
    """
    if not site.pages():
        site.scan()
    with verify.open_checked(index) as reader:
        pages = site.pages()
        stored = sorted(
            (document for document in reader.documents() if document.file_path in pages),
            key=lambda document: _order(pages[document.file_path]),
        )
        places = {document.file_path: twins.place_of(pages[document.file_path]) for document in stored}
        layout = twins.lay_out(places.values())
        url = site.url()
        first = next((document for document in stored if places[document.file_path].address == ""), None)
        summary = first.metadata.get("description") if first is not None else None
        version = version or reader.meta().get("version")
        of_site = _descriptions_of_the_site(document for document in stored if document is not first)
        base_path = "/"
        if not url:
            base_path = twins.base_path((text for _, text in _texts(reader, stored)), places.values())

        def placed_pages() -> Iterator[PlacedPage]:
            for document, text in _texts(reader, stored):
                place = places[document.file_path]
                for path in layout.files[place.html][:1]:
                    images = pages[document.file_path].facts.images
                    yield PlacedPage(place, page_of(_document(document, text, version, of_site), path, images=images))

        return site_files.write(
            site.folder,
            llms.PublishedSite(name, summary if isinstance(summary, str) else "", url, mcp_url),
            placed_pages(),
            TwinLinks(layout, SiteLinks(places.values(), url, base_path)),
            link_html=link_html,
            progress=progress,
        )


def _order(page: SitePage) -> list[tuple[bool, str]]:
    """Pages by their paths, the first page of a folder before the others, files before folders."""
    *folders, name = page.file.split("/")
    return [*((True, folder) for folder in folders), (False, "" if name.startswith("index.") else name)]


def _texts(reader: Reader, stored: list[StoredDocument]) -> Iterator[tuple[StoredDocument, str]]:
    chunks = reader.chunks_of_pages(document.id for document in stored)
    return ((document, page_text(own)) for document, own in zip(stored, chunks, strict=True))


def _descriptions_of_the_site(stored: Iterable[StoredDocument]) -> frozenset[object]:
    """Descriptions that generators put into each page without one of its own."""
    counts = Counter(str(document.metadata.get("description")) for document in stored)
    return frozenset(description for description, count in counts.items() if count > 1)


def _document(stored: StoredDocument, text: str, version: str | None, of_site: Collection[object]) -> Document:
    """The page as a document, without a description of ``of_site``. ``version``: of all pages without one of their
    own."""
    metadata = {"version": version, **stored.metadata}
    if metadata.get("description") in of_site:
        del metadata["description"]
    return Document(
        stored.file_path,
        stored.blob_id,
        text,
        stored.size,
        stored.last_modified,
        title=stored.title,
        url=stored.url,
        metadata=metadata,
    )
