"""The filters of a search: by path, version and language of a page."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from anvil.formats import patterns
from anvil.index_file.reader import IndexReader
from anvil.index_file.table_rows import speaks
from anvil.requests import SearchRequest
from anvil.wording import closest_paths, shown


def filtered(index: IndexReader, request: SearchRequest) -> Collection[str] | None:
    """The paths of the pages that a search is about, besides its glob; None where only that decides. A version is what
    a page of a site names, or the folder at the top; the language ``en`` is ``en-GB`` too."""
    version, language = request.version, request.language
    if request.paths is not None or (version is None and language is None):
        return request.paths
    return frozenset(
        page.file_path
        for page in index.documents()
        if (version is None or version in (page.metadata.get("version"), page.file_path.partition("/")[0]))
        and (language is None or speaks(str(page.metadata.get("language") or ""), language))
    )


def notes_on_none(indexes: Iterable[IndexReader], request: SearchRequest) -> tuple[str, ...]:
    """Notes for a search that covered no page: which filter no page fits. Without a filter there are none."""
    file_filter = request.file_filter
    if file_filter:
        paths = [path for index in indexes for path in index.identities()]
        if not any(map(patterns.selects(file_filter), paths)):
            near = closest_paths(file_filter, paths)
            return (f"No page matches {shown(file_filter)}." + (f" Closest: {', '.join(near)}." if near else ""),)
    given = {"version": request.version, "language": request.language}
    named = " and ".join(f"the {key} {shown(value)}" for key, value in given.items() if value is not None)
    return (f"No page {'in the filter ' if file_filter else ''}has {named}.",) if named else ()
