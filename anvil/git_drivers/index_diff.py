"""The difference between two indexes: pages and sections that were added, changed, moved or removed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredDocument
from anvil.search.moved_pages import moved_pages
from anvil.search.pages import page_text
from anvil.values import OPTIONAL
from anvil.wording import counted, full_heading

Kind = Literal["added", "changed", "moved", "removed"]
_SIGN: dict[Kind, str] = {"added": "+", "changed": "~", "moved": "~", "removed": "-"}


@dataclass(frozen=True, slots=True)
class SectionChange:
    """A section that differs. ``heading_path``: its breadcrumb."""

    kind: Kind
    heading_path: str


@dataclass(frozen=True, slots=True)
class PageChange:
    """A page that differs, with its sections that differ. ``old_path``: the former path of a moved page."""

    kind: Kind
    file_path: str
    sections: tuple[SectionChange, ...]
    old_path: str | None = field(default=None, metadata=OPTIONAL)
    title: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """The pages that differ, sorted by path, and the settings of the index that differ: (key, old, new)."""

    pages: tuple[PageChange, ...]
    settings: tuple[tuple[str, str, str], ...]


def difference(old: Reader, new: Reader) -> IndexDifference:
    """The differences in text, metadata and settings. Vectors and times are not compared."""
    old_meta, new_meta = old.meta(), new.meta()
    settings = tuple((key, old_meta[key], new_meta[key]) for key in SETTINGS if old_meta[key] != new_meta[key])
    old_pages = {document.file_path: document for document in old.documents()}
    new_pages = {document.file_path: document for document in new.documents()}
    moved = moved_pages(old, new)
    pages = []
    for path in sorted((old_pages.keys() | new_pages.keys()) - set(moved.values())):
        before, after = old_pages.get(moved.get(path, path)), new_pages.get(path)
        old_sections, new_sections = _sections(old, before), _sections(new, after)
        if path in moved:
            kind: Kind = "moved"
        elif before is None:
            kind = "added"
        elif after is None:
            kind = "removed"
        elif old_sections != new_sections or before.title != after.title or before.metadata != after.metadata:
            kind = "changed"
        else:
            continue
        page = after or before
        title = page.title if page else ""
        pages.append(PageChange(kind, path, _section_changes(old_sections, new_sections), moved.get(path), title))
    return IndexDifference(tuple(pages), settings)


def _sections(reader: Reader, document: StoredDocument | None) -> dict[str, str]:
    """Breadcrumb -> text of the sections of a page; empty without a page."""
    if document is None:
        return {}
    text = page_text(reader.page_chunks(document.id))
    return {section.heading_path: text[section.start : section.end] for section in reader.sections(document.id)}


def _section_changes(old: dict[str, str], new: dict[str, str]) -> tuple[SectionChange, ...]:
    changes = []
    for heading in [*new, *(heading for heading in old if heading not in new)]:
        if heading not in old:
            changes.append(SectionChange("added", heading))
        elif heading not in new:
            changes.append(SectionChange("removed", heading))
        elif old[heading] != new[heading]:
            changes.append(SectionChange("changed", heading))
    return tuple(changes)


def render(difference: IndexDifference) -> str:
    """The difference as lines: ``+`` added, ``~`` changed or moved, ``-`` removed."""
    lines = [f"~ {key}: {old} -> {new}" for key, old, new in difference.settings]
    for page in difference.pages:
        lines.append(f"{_SIGN[page.kind]} {page.file_path}" + (f" (was {page.old_path})" if page.old_path else ""))
        for section in page.sections:
            lines.append(f"    {_SIGN[section.kind]} {full_heading(page.title, section.heading_path)}")
    lines.append(f"{counted(len(difference.pages), 'page', 'differ')}.")
    return "\n".join(lines) + "\n"


def lines(reader: Reader) -> Iterator[str]:
    """An index as lines of text: the manifest, then each page and, indented, its sections."""
    meta, counts = reader.meta(), reader.counts()
    yield f"Anvil index, format {meta['format_version']}, built by {meta['anvil_version']}"
    if "shard" in meta:
        yield f"shard {meta['shard']}"
    yield ", ".join(f"{count} {name}" for name, count in counts.items())
    yield f"text and settings  {meta['digest'][:16]}"
    yield f"times and vectors  {meta['checksum'][:16]}"
    yield f"documents' folder  {_printable(meta['docs_root_path'])}"
    yield f"chunking  {_printable(meta['chunking'])}"
    model = [meta[f"embedding_{key}"] for key in ("provider", "model", "dimensions", "model_digest")]
    yield _printable(f"embedding  {' '.join(value[:16] if len(value) == 64 else value for value in model)}")
    for document in reader.documents():
        text = page_text(reader.page_chunks(document.id))
        yield ""
        yield _printable(f"{document.file_path}  {document.blob_id[:10]}  {document.title}")
        for section in reader.sections(document.id):
            body = text[section.start : section.end].encode("utf-8", "surrogatepass")
            heading = section.heading_path if section.heading_level else document.title
            yield _printable(f"    {hashlib.sha256(body).hexdigest()[:10]}  {heading}")


def _printable(line: str) -> str:
    """A line without control characters of terminals, which an untrusted index may have."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
