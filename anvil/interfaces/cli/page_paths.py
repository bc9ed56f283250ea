"""Paths of pages as people type them: from the docs folder, as search prints them, with a line, or only their end."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from anvil.core import globs
from anvil.errors import NotFound
from anvil.services.search import pages

if TYPE_CHECKING:
    from anvil.api import Anvil

LINE = re.compile(r"(?P<path>.+?):(?P<line>\d{1,9})(?::\d{1,9})?")
"""A path with a line, or with a line and a column."""


def place(opened: Anvil, typed: str) -> tuple[str, str, int]:
    """The page, heading and line that ``PAGE``, ``PAGE#HEADING`` or ``PAGE:LINE`` mean; "" and 0 for none.

    A page is named by its path in the docs folder, by a path that leads there, or by the end of its path where only
    one page has it. Names of files may hold a ``#``, and so may headings: the longest beginning that is a page counts.
    Raises :class:`NotFound`, naming the closest pages.
    """
    known = [page.file_path for page in opened.list_pages().pages]
    there = frozenset(known)
    parted = list(_parted(typed))
    for path, heading in parted:
        for form, line in _forms(opened, path):
            if form in there:
                return form, heading, line
    for path, heading in reversed(parted):
        for form, line in _forms(opened, path):
            if len(found := [each for each in known if _ends_with(each, form)]) == 1:
                return found[0], heading, line
    raise NotFound(f"There is no page {parted[-1][0]}. 'anvil list' names the pages.{_closest(parted[-1][0], known)}")


def section(opened: Anvil, page: str, line: int) -> str:
    """The breadcrumb of the section in which a line of a page is; the first one for a line before all of them."""
    sections = opened.outline(page).sections
    if not sections:
        raise NotFound(f"{page} has no section at line {line}, for it is empty. Edit it, or show another page.")
    return next((each for each in reversed(sections) if each.start_line <= line), sections[0]).heading_path


def glob(opened: Anvil, typed: str) -> str:
    """A glob over paths in the docs folder; one that begins with that folder, as paths in results do, is made so."""
    line = LINE.fullmatch(typed)
    forms = [form for text in [typed, *([line["path"]] if line else [])] for form in (text, _below(opened, text))]
    known = [page.file_path for page in opened.list_pages().pages]
    return next((form for form in forms if form and any(globs.matches(form, path) for path in known)), typed)


def folder(opened: Anvil, typed: str) -> str:
    """The folder of pages that is meant, as :meth:`Anvil.list_pages` takes it. Raises :class:`NotFound` for none."""
    for form in (typed, _below(opened, typed)):
        if form is not None and opened.list_pages(form).pages:
            return form
    known = [page.file_path for page in opened.list_pages().pages]
    folders = sorted({str(parent) for path in known for parent in PurePosixPath(path).parents} - {"."})
    raise NotFound(f"There is no folder or page {typed}. 'anvil list' names the pages.{_closest(typed, folders)}")


def unmatched(opened: Anvil, glob: str) -> str | None:
    """A sentence when no page matches a glob, with the closest pages; None when one does."""
    known = [page.file_path for page in opened.list_pages().pages]
    if any(globs.matches(glob, path) for path in known):
        return None
    return f"No page matches {glob}. 'anvil list' names the pages.{_closest(glob, known)}"


def _parted(typed: str) -> Iterator[tuple[str, str]]:
    """(page, heading), the longest page first."""
    end = len(typed)
    yield typed, ""
    while (end := typed.rfind("#", 0, end)) > 0:
        yield typed[:end], typed[end + 1 :]


def _forms(opened: Anvil, path: str) -> Iterator[tuple[str, int]]:
    """What a path may stand for, with the line that it names."""
    line = LINE.fullmatch(path)
    for text, number in [(path, 0), *([(line["path"], int(line["line"]))] if line else [])]:
        yield text, number
        with contextlib.suppress(NotFound):  # it leads out of the docs folder, seen from there
            yield pages.normalize_path(text.replace(os.sep, "/"), opened.docs_root), number
        if (below := _below(opened, text)) is not None:
            yield below, number


def _below(opened: Anvil, typed: str) -> str | None:
    """A path from the working folder as one from the docs folder; None when it does not lead there."""
    if opened.docs_root is None or "\0" in typed:
        return None
    whole = os.path.abspath(typed)
    for root in (opened.docs_root.absolute(), opened.docs_root.resolve()):
        root = Path(os.path.abspath(root))
        if Path(whole).is_relative_to(root) and Path(whole) != root:
            return Path(whole).relative_to(root).as_posix()
    return None


def _ends_with(path: str, typed: str) -> bool:
    """Whether a page's path, with its ending or without, is or ends with what was typed."""
    if not typed:
        return False
    bare = path.rpartition(".")[0] or path
    return any(each == typed or each.endswith(f"/{typed}") for each in (path, bare))


def _closest(typed: str, known: list[str]) -> str:
    import difflib

    name = PurePosixPath(typed).name
    alike = [path for path in known if PurePosixPath(path).name == name or _ends_with(path, typed)]
    near = [*alike, *difflib.get_close_matches(typed, known, n=3, cutoff=0.5)]
    return f" Closest: {', '.join(list(dict.fromkeys(near))[:3])}." if near else ""
