"""The search page of a built site: its HTML and scripts, and ``search.json``, which they need besides the index file.

The scripts read only a few parts of the index. So ``search.json`` has the values that need the texts of all pages, such
as the words of links, and the weights and limits of the ranking, which are defined in :mod:`anvil.search`.
"""

from __future__ import annotations

import importlib.resources
import json
import os
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any
from urllib.parse import quote

from anvil.errors import ConfigError
from anvil.formats import characters, version_names
from anvil.index_file import connection, table_rows, verify
from anvil.index_file.reader import Reader
from anvil.requests import MAX_RESULTS, SearchRequest
from anvil.search import confidence, page_variants, page_weights, ranking, searcher
from anvil.search.candidates import MAX_PHRASE_ROWS, FileIndex
from anvil.search.page_variants import Versions
from anvil.system import safe_files
from anvil.text import query
from anvil.text.query import Stemmer

FOLDER, PAGE, DATA = "search", "index.html", "search.json"
"""The folder next to the index, and the page and the data in it."""
FILES = (PAGE, "search-box.js", "ranking.js", "index-file.js", "words.js", "excerpt.js")
"""The files of this package that are copied into the folder."""
RULES = {
    "STOP": sorted(query.STOP),
    "MIN_UNREAD": characters.MIN_UNREAD,
    "PART_WEIGHT": query.PART_WEIGHT,
    "PHRASE_WEIGHT": query.PHRASE_WEIGHT,
    "MAX_WORDS": query.MAX_WORDS,
    "MAX_QUERY_CHARACTERS": query.MAX_QUERY_CHARACTERS,
    "MAX_PHRASE_ROWS": MAX_PHRASE_ROWS,
    "MAX_POSTINGS": ranking.MAX_POSTINGS,
    "MAX_WHOLE": ranking.MAX_WHOLE,
    "CANDIDATES": ranking.CANDIDATES,
    "FIELD_WEIGHTS": ranking.FIELD_WEIGHTS,
    "K1": ranking.K1,
    "FEW_CHUNKS": ranking.FEW_CHUNKS,
    "B": ranking.B,
    "DERIVED_SHARE": ranking.DERIVED_SHARE,
    "MISSING_PAIR_SHARE": ranking.MISSING_PAIR_SHARE,
    "HEADING_WEIGHT": ranking.HEADING_WEIGHT,
    "LINK_WEIGHT": ranking.LINK_WEIGHT,
    "POPULAR_WEIGHT": ranking.POPULAR_WEIGHT,
    "HIGHEST_INEXACT": ranking.HIGHEST_INEXACT,
    "ABOUT_RECORDS": page_weights.ABOUT_RECORDS.pattern.removeprefix("(?i)"),
    "NEWER_SHARE": page_variants.NEWER_SHARE,
    "OTHER_SHARE": page_variants.OTHER_SHARE,
    "FIRST_SHARE": searcher.FIRST_SHARE,
    "MAX_NAMED_PAGES": searcher.MAX_NAMED_PAGES,
    "RESULTS": SearchRequest("default").top_k,
    "MAX_RESULTS": MAX_RESULTS,
    "CHUNK_BITS": table_rows.CHUNK_BITS,
    "UNLIKELY": confidence.UNLIKELY,
    "CONFIDENCE": {**asdict(confidence.fits_for("").words), "most_words": confidence.MAX_COUNTED_WORDS},
}
"""The weights and limits of the ranking. The scripts use the names of the Python modules."""


def publish(index: Path, site: Path, addresses: Mapping[str, str]) -> Path:
    """Write the search page next to the index of a site, and return its path. Unchanged files are not written.

    ``addresses``: path of a page in the index -> its address in the site. Raises :class:`ConfigError` if the index is
    not in the site, :class:`ArtifactError` if it cannot be read, and :class:`BuildError`.
    """
    if not index.absolute().is_relative_to(site.absolute()):
        raise ConfigError(
            f"The search page reads the index from the site, and {index} is not in {site}. Build it there: leave out "
            "--index and the key index."
        )
    folder = index.parent / FOLDER
    with verify.open_checked(index) as reader:
        data = search_data(reader, addresses)
    data["index"]["file"] = f"../{quote(index.name)}"
    data["site"] = f"{quote(Path(os.path.relpath(site, folder)).as_posix())}/"
    scripts = importlib.resources.files("anvil.search_page") / "files"
    files = {name: (scripts / name).read_bytes() for name in FILES}
    files[DATA] = json.dumps(data, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode(errors="replace")
    with safe_files.writing(folder):
        safe_files.ensure_inside_parent(folder)
        folder.mkdir(exist_ok=True)
        for name, content in files.items():
            safe_files.update_file(folder / name, content, flush=False)
    return folder / PAGE


def search_data(reader: Reader, addresses: Mapping[str, str]) -> dict[str, Any]:
    """The content of ``search.json``, without the address of the index file and of the site."""
    index, versions = FileIndex(reader), page_variants.of_index(reader)
    sha256, size = connection.sha256(reader.connection)
    data = {
        "index": {
            "sha256": sha256,
            "size": size,
            "format": table_rows.FORMAT_VERSION,
            "page_size": reader.page_size(),
            "roots": reader.root_pages(),
        },
        "rules": RULES,
        "links": index.links is not None,
        "pages": list(_pages(reader, index, addresses, versions)),
    }
    further = {"versions": _versions(versions), "translations": _translations(reader)}
    return data | {key: value for key, value in further.items() if value}


def _translations(reader: Reader) -> list[list[int]]:
    """The ids of the translations of each page that has some."""
    originals: dict[str, list[int]] = defaultdict(list)
    for id_, path in sorted(version_names.translations(reader.paths()).items()):
        originals[path].append(id_)
    return list(originals.values())


def _versions(versions: Versions) -> dict[str, Any]:
    """What the scripts need to choose one version of each page; empty if no page has several.

    - ``around``: the names of all versions of a documentation or component, the newest first.
    - ``families``: for each page that has versions, their names, the newest first, and the number in ``around``.
    - ``spellings``: a version in a question -> its name.
    """
    if not versions.pages:
        return {}
    around = list(dict.fromkeys(versions.around.values()))
    families = [(names, around.index(versions.around[family])) for family, names in versions.families.items()]
    return {"around": around, "families": families, "spellings": page_variants.names_by_spelling(versions)}


def _pages(
    reader: Reader, index: FileIndex, addresses: Mapping[str, str], versions: Versions
) -> Iterator[dict[str, Any]]:
    """The values of each page, in order of the paths. Keys without a value are left out.

    ``family``: the number in ``families`` of :func:`_versions`.
    """
    links, factors = index.links, index.page_factors
    family_numbers = {family: number for number, family in enumerate(versions.families)}
    for document in reader.documents():
        id_, version = document.id, versions.pages.get(document.id)
        texts = reader.searched_text(reader.chunk_rows(id_))
        page = {
            "id": id_,
            "path": document.file_path,
            "name": query.bare(document.title) or None,
            "address": addresses.get(document.file_path),
            "popularity": (links.popularity(id_) or None) if links else None,
            "words": " ".join(sorted(links.words(id_, index.stem.heading_counts))) or None if links else None,
            "factor": factors.usual.get(id_),
            "record_factor": factors.about_records.get(id_),
            "title_parts": derived_tokens(document.title, index.stem) or None,
            "heading_parts": {
                str(row % (1 << table_rows.CHUNK_BITS)): parts
                for row, text in sorted(texts.items())
                if (parts := derived_tokens(text.heading_path, index.stem))
            }
            or None,
            "family": family_numbers[version.family] if version else None,
            "version": version.version if version else None,
            "chunks": len(texts) if version else None,
        }
        yield {key: value for key, value in page.items() if value is not None}


def derived_tokens(text: str, stem: Stemmer) -> str:
    """The tokens of the derived terms that the ranking counts as words of a title or breadcrumb. The keyword index has
    them only of the text."""
    return " ".join(stem(" ".join(query.heading_terms(text))))
