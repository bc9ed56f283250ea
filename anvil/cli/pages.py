"""``anvil list`` and ``anvil show``; and how paths of pages that people type are found, and printed."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output
from anvil.errors import NotFound
from anvil.formats import patterns
from anvil.formats.characters import columns
from anvil.requests import OpenRequest
from anvil.search import pages
from anvil.system import safe_files
from anvil.values import ROOT, address, labelled
from anvil.wording import closest_note, closest_paths, counted, full_heading

if TYPE_CHECKING:
    from anvil.api import Anvil

LINE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?::\d{1,9})?")
"""A path with a line, or with a line and a column, as search and grep print it."""


@click.command("list", epilog="Example: anvil list guides")
@options.project
@options.in_site
@options.as_json
@click.argument("prefix", required=False)
def list_command(given: OpenRequest, as_json: bool, prefix: str | None) -> None:
    """List the pages, or those in the folder PREFIX, with their titles and sizes."""
    with options.opened(given) as opened:
        listing = opened.list_pages(None if prefix is None else folder(opened, prefix))
    if as_json:
        output.print_json(listing)
        return
    addresses = [address(page.file_path, page.collection, page.version) for page in listing.pages]
    width = max(map(columns, addresses), default=0)
    for page, label in zip(listing.pages, addresses, strict=True):
        title = full_heading(page.title, ROOT)  # in one line
        output.say(f"{label}{' ' * (width - columns(label))}  {page.total_chars:>7} characters  {title}")
    for note in listing.notes or ():
        output.warn(note)


@click.command("show", epilog="Example: anvil show guides/serve.md#freshness")
@options.project
@options.in_site
@click.option("--children", is_flag=True, help="With a heading: the sections below it too.")
@options.as_json
@click.argument("page", metavar="PAGE[#HEADING]")
def show_command(given: OpenRequest, children: bool, as_json: bool, page: str) -> None:
    """Print a page, or one section of it. HEADING is a breadcrumb ('Install > Linux'), its end, or an anchor ('linux').

    PAGE may also be a path with a line, as search prints it: 'docs/guides/serve.md:12' prints the section of line 12.
    With several collections, 'fastapi:tutorial/first.md' is a page of the collection fastapi.
    """
    from anvil.results import Page

    with options.opened(given) as project:
        opened, path, heading, line = place_in(project, page)
        if line and not heading:
            heading = section_at(opened, path, line)
        content = opened.get_section(path, heading, children) if heading else opened.get_page(path)
    if as_json:
        output.print_json(content)
        return
    text = pages.page_text(content.chunks) if isinstance(content, Page) else content.content
    output.say(text, nl=not text.endswith("\n"))
    if not isinstance(content, Page) and content.sections:
        output.warn("The text of this section is in the sections below it, which --children prints.")


# --- paths as people type them -----------------------------------------------------------------------------


def place_in(opened: Anvil, typed: str) -> tuple[Anvil, str, str, int]:
    """The index that has a page, and the page, heading and line as of :func:`place`.

    With several collections, ``COLLECTION:PAGE`` names one. Without a name, one collection must have such a page.
    Raises :class:`NotFound` if none has it, and if several have it; then it names these.
    """
    if not opened.is_several:
        return opened, *place(opened, typed)
    for member in opened.members:
        for name in (member.label, *([member.collection_name or ""] if opened.is_default(member) else [])):
            if typed.startswith(f"{name}:"):
                own = opened.alone(member)
                return own, *place(own, typed[len(name) + 1 :])
    places = []
    for member in opened.selected():
        with contextlib.suppress(NotFound):
            places.append((member, place(opened.alone(member), typed)))
    # a file by its path from the working folder goes first, then a page with the whole path, then the end of a path
    here = [(member, found) for member, found in places if (_below(member.docs_root, typed) or "").startswith(found[0])]
    places = here or [(member, found) for member, found in places if typed.startswith(found[0])] or places
    if len(places) == 1:
        member, place_there = places[0]
        return opened.alone(member), *place_there
    if places:
        addresses = [address(path, member.collection_name, member.version) for member, (path, _, _) in places]
        count = counted(len(places), "collection", "have")
        raise NotFound(f"{count} such a page. Name one of them: {', '.join(addresses)}.")
    page_addresses = [address(p.file_path, p.collection, p.version) for p in opened.list_pages().pages]
    raise NotFound(f"There is no page {typed}. 'anvil list' names the pages.{_closest(typed, page_addresses)}")


def place(opened: Anvil, typed: str) -> tuple[str, str, int]:
    """The page, heading and line of ``PAGE``, ``PAGE#HEADING`` or ``PAGE:LINE``; "" and 0 if they are not given.

    ``PAGE`` is a path in the docs folder, a path to it from the working folder, or the end of a path that only one
    page has. File names and headings may contain ``#``: the longest beginning that is a page counts.
    Raises :class:`NotFound`, with the closest pages.
    """
    paths = [page.file_path for page in opened.list_pages().pages]
    pages_by_path = frozenset(paths)
    splits = list(_splits(typed))
    # Whole paths go before ends of paths. Else `guide.md` would also mean `old/guide.md`, and be an error.
    for path, heading in splits:
        for form, line in _forms(opened, path):
            if form in pages_by_path:
                return form, heading, line
    for path, heading in reversed(splits):
        for form, line in _forms(opened, path):
            if len(matches := [page for page in paths if _ends_with(page, form)]) == 1:
                return matches[0], heading, line
    page = splits[-1][0]
    raise NotFound(f"There is no page {page}. 'anvil list' names the pages.{_closest(page, paths)}")


def section_at(opened: Anvil, page: str, line: int) -> str:
    """The breadcrumb of the section with a line of a page. For a line before all sections it is the first one. Raises
    :class:`NotFound` for a line after the end of the page."""
    sections = opened.outline(page).sections
    if not sections:
        raise NotFound(f"{page} is empty: it has no section at line {line}. Edit it, or show another page.")
    last_line = max(section.end_line or 0 for section in sections)
    if not last_line:
        raise NotFound(f"No line of {page} is known: it has no source file. Name a heading: {page}#HEADING.")
    if line > last_line:
        raise NotFound(
            f"{page} ends at line {last_line}: it has no line {line}. Search again, if the page was edited since."
        )
    before = [section for section in sections if section.start_line is not None and section.start_line <= line]
    return max(before, key=lambda section: section.start_line or 0, default=sections[0]).heading_path


def glob(opened: Anvil, typed: str) -> str:
    """A page, a folder or a glob over paths in the docs folder. It may also begin with the docs folder, as printed
    results do, and have a line: these are removed."""
    line = LINE.fullmatch(typed)
    texts = (typed, line["path"]) if line else (typed,)
    for member in opened.selected():
        paths = [page.file_path for page in opened.alone(member).list_pages().pages]
        forms = [form for text in texts for form in (text, _below(member.docs_root, text)) if form]
        form = next((form for form in forms if any(map(patterns.selects(form), paths))), typed)
        if form != typed:
            return form
    return typed


def folder(opened: Anvil, typed: str) -> str:
    """A folder in the form of :meth:`Anvil.list_pages`. Raises :class:`NotFound` if no page is in it."""
    for form in (typed, *(_below(member.docs_root, typed) for member in opened.selected())):
        if form is not None and opened.list_pages(form).pages:
            return form
    paths = [page.file_path for page in opened.list_pages().pages]
    folders = sorted({str(parent) for path in paths for parent in PurePosixPath(path).parents} - {"."})
    raise NotFound(f"There is no folder or page {typed}. 'anvil list' names the pages.{_closest(typed, folders)}")


def folders(opened: Anvil) -> dict[str | None, str]:
    """Label of a collection -> its folder, if it has one. If there is one index only, its key is None."""
    if not opened.is_several:
        return {None: str(opened.docs_root or "")}
    return {member.label: str(member.docs_root) for member in opened.members if member.docs_root}


def shown(folders: Mapping[str | None, str], path: str, collection: str | None, version: str | None) -> str:
    """The path of a page from the working folder, so that people can open it. If it is no file here, it is
    ``COLLECTION:PATH``. ``folders``: see :func:`folders`."""
    folder = folders.get(None if collection is None else labelled(collection, version))
    if folder is None:
        return address(path, collection, version)
    return safe_files.from_working_folder(os.path.join(folder, path))


def _splits(typed: str) -> Iterator[tuple[str, str]]:
    """Each way to split the text at a ``#`` into (page, heading), the longest page first."""
    end = len(typed)
    yield typed, ""
    while (end := typed.rfind("#", 0, end)) > 0:
        yield typed[:end], typed[end + 1 :]


def _forms(opened: Anvil, path: str) -> Iterator[tuple[str, int]]:
    """(path in the docs folder, line or 0) for each meaning that the text may have."""
    line = LINE.fullmatch(path)
    for text, number in [(path, 0), *([(line["path"], int(line["line"]))] if line else [])]:
        yield text, number
        with contextlib.suppress(NotFound):  # raised for a path that leads out of the docs folder
            yield pages.normalize_path(text.replace(os.sep, "/"), opened.docs_root), number
        if (below := _below(opened.docs_root, text)) is not None:
            yield below, number


def _below(docs_root: Path | None, typed: str) -> str | None:
    """The path from the docs folder, for a path from the working folder; None if it is outside the docs folder."""
    if docs_root is None or "\0" in typed:
        return None
    absolute = os.path.abspath(typed)
    for root in (docs_root.absolute(), docs_root.resolve()):
        root = Path(os.path.abspath(root))
        if Path(absolute).is_relative_to(root):
            return Path(absolute).relative_to(root).as_posix()
    return None


def _ends_with(path: str, typed: str) -> bool:
    """Whether the path of a page, with or without its suffix, is the text or ends with it."""
    if not typed:
        return False
    bare = path.rpartition(".")[0] or path
    return any(name == typed or name.endswith(f"/{typed}") for name in (path, bare))


def _closest(typed: str, paths: list[str]) -> str:
    """A sentence with the closest paths, to be added to a message; "" without any."""
    return closest_note(closest_paths(typed, paths, [path for path in paths if _ends_with(path, typed)]))
