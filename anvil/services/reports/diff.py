"""Two indexes side by side: which pages and sections were added, changed or removed, as values and as text."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from anvil.backends.store.reader import Reader
from anvil.backends.store.rows import StoredDocument
from anvil.backends.store.writer import SETTINGS
from anvil.core.pluralize import counted, full_heading
from anvil.services.search.pages import page_text

Kind = Literal["added", "changed", "removed"]
_SIGN: dict[Kind, str] = {"added": "+", "changed": "~", "removed": "-"}


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that differs, by its breadcrumb."""

    kind: Kind
    heading_path: str


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that differs, with its sections that do."""

    kind: Kind
    file_path: str
    sections: tuple[SectionChange, ...]
    title: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class Difference:
    """Pages that differ, sorted by path, and settings of the index that do: (key, old, new)."""

    pages: tuple[PageChange, ...]
    settings: tuple[tuple[str, str, str], ...]


def difference(old: Reader, new: Reader) -> Difference:
    """How ``new`` differs from ``old`` in what it says; vectors and times aside."""
    before, after = old.meta(), new.meta()
    settings = tuple((k, before[k], after[k]) for k in SETTINGS if before[k] != after[k])
    olds = {document.file_path: document for document in old.documents()}
    news = {document.file_path: document for document in new.documents()}
    pages = []
    for path in sorted(olds.keys() | news.keys()):
        left = _sections(old, olds.get(path))
        right = _sections(new, news.get(path))
        if path not in olds:
            pages.append(PageChange("added", path, _changes(left, right), news[path].title))
        elif path not in news:
            pages.append(PageChange("removed", path, _changes(left, right), olds[path].title))
        elif left != right or olds[path].title != news[path].title or olds[path].metadata != news[path].metadata:
            pages.append(PageChange("changed", path, _changes(left, right), news[path].title))
    return Difference(tuple(pages), settings)


def _sections(reader: Reader, document: StoredDocument | None) -> dict[str, str]:
    if document is None:
        return {}
    text = page_text(reader.page_chunks(document.id))
    return {s.heading_path: text[s.start : s.end] for s in reader.sections(document.id)}


def _changes(left: dict[str, str], right: dict[str, str]) -> tuple[SectionChange, ...]:
    found = []
    for heading in [*right, *(each for each in left if each not in right)]:
        if heading not in left:
            found.append(SectionChange("added", heading))
        elif heading not in right:
            found.append(SectionChange("removed", heading))
        elif left[heading] != right[heading]:
            found.append(SectionChange("changed", heading))
    return tuple(found)


def rendered(found: Difference) -> str:
    """The difference as lines: ``+`` added, ``~`` changed, ``-`` removed."""
    lines = [f"~ {key}: {old} -> {new}" for key, old, new in found.settings]
    for page in found.pages:
        lines.append(f"{_SIGN[page.kind]} {page.file_path}")
        lines += [f"    {_SIGN[each.kind]} {full_heading(page.title, each.heading_path)}" for each in page.sections]
    lines.append(f"{counted(len(found.pages), 'page', 'differ')}.")
    return "\n".join(lines) + "\n"
