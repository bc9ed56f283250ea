"""The difference between two indexes: pages and sections that were added, changed, moved or removed; as text, too."""

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
    """A different section, by its breadcrumb."""

    kind: Kind
    heading_path: str


@dataclass(frozen=True, slots=True)
class PageChange:
    """A different page, with its different sections. ``old_path``: where it was, of one that moved."""

    kind: Kind
    file_path: str
    sections: tuple[SectionChange, ...]
    old_path: str | None = field(default=None, metadata=OPTIONAL)
    title: str = field(default="", compare=False)


@dataclass(frozen=True, slots=True)
class IndexDifference:
    """The different pages, sorted by path, and the different settings of the index: (key, old, new)."""

    pages: tuple[PageChange, ...]
    settings: tuple[tuple[str, str, str], ...]


def difference(old: Reader, new: Reader) -> IndexDifference:
    """How the text, metadata and settings of ``new`` differ from ``old``. Vectors and times are not compared."""
    before, after = old.meta(), new.meta()
    settings = tuple((k, before[k], after[k]) for k in SETTINGS if before[k] != after[k])
    olds = {document.file_path: document for document in old.documents()}
    news = {document.file_path: document for document in new.documents()}
    moved = moved_pages(old, new)
    pages = []
    for path in sorted((olds.keys() | news.keys()) - set(moved.values())):
        was, now = olds.get(moved.get(path, path)), news.get(path)
        left, right = _sections(old, was), _sections(new, now)
        if path in moved:
            kind: Kind = "moved"
        elif was is None:
            kind = "added"
        elif now is None:
            kind = "removed"
        elif left != right or was.title != now.title or was.metadata != now.metadata:
            kind = "changed"
        else:
            continue
        page = now or was
        title = page.title if page else ""
        pages.append(PageChange(kind, path, _changes(left, right), moved.get(path), title))
    return IndexDifference(tuple(pages), settings)


def _sections(reader: Reader, document: StoredDocument | None) -> dict[str, str]:
    if document is None:
        return {}
    text = page_text(reader.page_chunks(document.id))
    return {s.heading_path: text[s.start : s.end] for s in reader.sections(document.id)}


def _changes(left: dict[str, str], right: dict[str, str]) -> tuple[SectionChange, ...]:
    changes = []
    for heading in [*right, *(removed for removed in left if removed not in right)]:
        if heading not in left:
            changes.append(SectionChange("added", heading))
        elif heading not in right:
            changes.append(SectionChange("removed", heading))
        elif left[heading] != right[heading]:
            changes.append(SectionChange("changed", heading))
    return tuple(changes)


def rendered(difference: IndexDifference) -> str:
    """The difference as lines: ``+`` added, ``~`` changed or moved, ``-`` removed."""
    lines = [f"~ {key}: {old} -> {new}" for key, old, new in difference.settings]
    for page in difference.pages:
        lines.append(f"{_SIGN[page.kind]} {page.file_path}" + (f" (was {page.old_path})" if page.old_path else ""))
        for section in page.sections:
            lines.append(f"    {_SIGN[section.kind]} {full_heading(page.title, section.heading_path)}")
    lines.append(f"{counted(len(difference.pages), 'page', 'differ')}.")
    return "\n".join(lines) + "\n"


def lines(reader: Reader) -> Iterator[str]:
    """The lines: the manifest, then each page and, indented, its sections."""
    meta, counts = reader.meta(), reader.counts()
    yield f"Anvil index, format {meta['format_version']}, built by {meta['anvil_version']}"
    if "shard" in meta:
        yield f"shard {meta['shard']}"
    yield ", ".join(f"{count} {name}" for name, count in counts.items())
    yield f"text and settings  {meta['digest'][:16]}"
    yield f"times and vectors  {meta['checksum'][:16]}"
    yield f"documents' folder  {_plain(meta['docs_root_path'])}"
    yield f"chunking  {_plain(meta['chunking'])}"
    model = [meta[f"embedding_{key}"] for key in ("provider", "model", "dimensions", "model_digest")]
    yield _plain(f"embedding  {' '.join(value[:16] if len(value) == 64 else value for value in model)}")
    for document in reader.documents():
        text = page_text(reader.page_chunks(document.id))
        yield ""
        yield _plain(f"{document.file_path}  {document.blob_id[:10]}  {document.title}")
        for section in reader.sections(document.id):
            body = text[section.start : section.end].encode("utf-8", "surrogatepass")
            heading = section.heading_path if section.heading_level else document.title
            yield _plain(f"    {hashlib.sha256(body).hexdigest()[:10]}  {heading}")


def _plain(line: str) -> str:
    """A line without control characters for a terminal: the index may be untrusted."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in line)
