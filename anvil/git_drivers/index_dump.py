"""An index as short text, for ``git diff`` and ``git show``, which compare it line by line.

Pages and sections are listed with a hash of their text, so that a line differs when the text does. Line numbers and
times are left out: an edit at the top of a page would change all lines after it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from anvil.index_file.reader import Reader
from anvil.search.pages import page_text


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
