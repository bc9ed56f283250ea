"""Answers of tools in Markdown, which a model reads with fewer characters than JSON, and limits on their characters.

A search result is a line ``path#anchor (lines 12-40) Title > Heading [0.82]``, the confidence last, and its text. If
the text is cut, the line says ``lines 12-18 of 10-40``, and ``…`` stands where text is left out. Results of a type that
has no form here are JSON.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial, singledispatch
from typing import TYPE_CHECKING, Any

from anvil.formats.data_formats import compact, plain
from anvil.results import GrepMatch, GrepResult, Hit, Page, PageList, PageSummary, Place, SearchResult, SectionText
from anvil.search.confidence import UNLIKELY
from anvil.server.toolset import Parameter, Tool, Toolset
from anvil.text.headings import under_heading
from anvil.values import SEPARATOR, address, at_line
from anvil.wording import counted, full_heading

if TYPE_CHECKING:
    from anvil.api import Anvil

MORE_IN_MARKDOWN = 1400
"""Characters of text that a reply of search_docs has more in Markdown than in JSON. It is shorter all the same, since
it has no field names, and agents ask again less often."""
MAX_TEXT_CHARS = 30_000
"""Characters of one answer of a tool that answers in parts (:attr:`Tool.in_parts`). One page of forty has more. Some
clients keep an answer of more than 25,000 tokens, or of 50,000 characters, from the model. In JSON the text is whole,
as clients that join the chunks expect."""
CUT = "…"
"""Stands where text is left out."""
NEAR = 0.75
"""Share of the best score from which on a result has its text. Other results have one line. Measured with 300 questions
(benchmarks/reply_recall.py), their texts were a fifth of a reply, and had .013 of the text that answers."""
_WORD = re.compile(r"[^\W_]+")
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n){2,}")


def in_markdown(toolset: Toolset) -> Toolset:
    """The toolset with answers in Markdown alone, which are limited in size even if a client sets no limit."""

    def bounded(tool: Tool) -> Tool:
        if tool.call is not None and tool.name == "search_docs":
            return replace(tool, call=partial(tool.call, more_chars=MORE_IN_MARKDOWN))
        if not tool.in_parts:
            return tool
        description = "A page or a part of it." if tool.name == "get_page" else tool.description
        offset = Parameter("offset", "", "integer", 0)  # an answer says "next_offset 29995" where there is more
        parameters = (*tool.parameters, offset)
        return replace(tool, description=description, parameters=parameters, call=partial(_read_part, tool.name))

    return replace(toolset, tools=tuple(map(bounded, toolset.tools)), render=render)


def _read_part(tool: str, opened: Anvil, arguments: dict[str, Any]) -> Any:
    return getattr(opened, tool)(**arguments, max_chars=MAX_TEXT_CHARS)


@singledispatch
def render(result: Any) -> str:
    """The text of a tool's answer, for its result."""
    return compact(plain(result, lean=True))


@render.register
def _(result: SearchResult) -> str:
    notes = "\n".join(result.freshness.notes)
    is_covered = (result.confidence or 0.0) >= UNLIKELY
    hits = rendered_hits(result.results, in_full=not is_covered) or ["Nothing found."]
    # if probably no result answers, the note that says so comes first
    return _joined([*hits, notes] if is_covered else [notes, *hits])


def rendered_hits(hits: Sequence[Hit], *, in_full: bool = False) -> list[str]:
    """The results of a search. Unless ``in_full``, results with less than :data:`NEAR` of the best score have only
    their line."""
    best = max((hit.score for hit in hits), default=0.0)
    # A cosine may be negative. A share of such a score means nothing, so all results have their text.
    return [rendered_hit(hit) if in_full or best <= 0 or hit.score >= NEAR * best else _line(hit) for hit in hits]


def rendered_hit(hit: Hit) -> str:
    """A result of a search, with the further sections of its page that match."""
    sections = hit.also or ()
    texts = (f"{_heading(section)}\n{_body(section.content)}" for section in sections if section.content)
    headings = ", ".join(_heading(section) for section in sections if not section.content)
    return "\n".join([_line(hit), _cut_text(hit), *texts, *([f"Also: {headings}"] if headings else [])])


def _line(hit: Hit) -> str:
    """The line of a result: address, lines, heading and confidence."""
    section = hit.metadata
    page = address(section.file_path, hit.collection, hit.version)
    confidence = "" if hit.confidence is None else f" [{hit.confidence:.2f}]"
    lines = _lines(section.start_line, section.end_line)
    if hit.lines is not None:
        lines = f"{_lines(*hit.lines)[:-1]} of {section.start_line}-{section.end_line})"
    anchor = f"#{hit.anchor}" if hit.anchor else ""
    return f"{page}{anchor}{lines} {full_heading(hit.title, section.heading_path)}{confidence}"


def _cut_text(hit: Hit) -> str:
    """The text of a result, with :data:`CUT` before and after it where lines of its section are left out."""
    start, end, body = hit.metadata.start_line, hit.metadata.end_line, _body(hit.content)
    if hit.lines is None or start is None or end is None:
        return body
    first, last = hit.lines
    if first > start + 2:  # more is left out than the heading and a blank line
        body = f"{CUT}\n{body}"
    return f"{body}\n{CUT}" if last < end - 1 else body  # a blank line at the end does not count


def _heading(place: Place) -> str:
    """The anchor, lines and heading of a further section."""
    # The text before the first heading of a page has no anchor. Its breadcrumb is its address.
    head = f"#{place.anchor or place.heading_path}{_lines(place.start_line, place.end_line)}"
    name = place.heading_path.rpartition(SEPARATOR)[2]
    if place.anchor and "-".join(_WORD.findall(name.lower())) != "-".join(_WORD.findall(place.anchor)):
        head = f"{head} {name}"  # not needed for most, whose anchor has the words of the heading
    return head


def _lines(first: int | None, last: int | None) -> str:
    if first is None or last is None:
        return ""
    return f" (line {first})" if first == last else f" (lines {first}-{last})"


def _body(content: str) -> str:
    """A text without its heading, which the line above it names, and with one blank line in place of several."""
    return _BLANK_LINES.sub("\n\n", under_heading(content)).lstrip("\r\n").rstrip()


@render.register
def _(result: Page) -> str:
    page = address(result.file_path, result.collection, result.version)
    shown = "".join(chunk.content for chunk in result.chunks)
    head = f"{page} {result.title} ({counted(result.total_chars, 'character')})"
    return _joined([head, shown, *_next(result.next_offset)])


def _next(offset: int | None) -> list[str]:
    """The line that says how to read on; none at the end of a text."""
    return [] if offset is None else [f"next_offset {offset}"]


@render.register
def _(result: SectionText) -> str:
    section = result.metadata
    page = address(section.file_path, result.collection, result.version)
    lines = _lines(section.start_line, section.end_line)
    head = f"{page}{lines} {full_heading(result.title, section.heading_path)}"
    below = ", ".join(_heading(Place(child.heading_path, child.anchor, None, None)) for child in result.sections)
    sections = [f"Its sections: {below}"] if below else []
    return _joined([head, result.content, *sections, *_next(result.next_offset)])


@render.register
def _(result: GrepResult) -> str:
    total = f"{counted(result.total_matches, 'line')} in {counted(result.total_pages, 'page')}"
    matches = "\n".join(map(_match, result.matches))
    return _joined([matches, _counts(total, result.next_offset), *(result.notes or ())])


def _match(match: GrepMatch) -> str:
    page = address(match.file_path, match.collection, match.version)
    line = f"{at_line(page, match.line)}: {match.text} [{match.heading_path}]"
    before, after = ([f"  {text}" for text in texts or ()] for texts in (match.before, match.after))
    return "\n".join([*before, line, *after])


@render.register
def _(result: PageList) -> str:
    pages = "\n".join(map(_summary, result.pages))
    return _joined([pages, _counts(counted(result.total_pages, "page"), result.next_offset), *(result.notes or ())])


def _summary(page: PageSummary) -> str:
    headings = "; ".join(page.headings)
    return f"{address(page.file_path, page.collection, page.version)} | {page.title} | {headings}".rstrip(" |")


def _counts(total: str, next_offset: int | None) -> str:
    return total if next_offset is None else f"{total}; next_offset {next_offset}"


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part.strip("\r\n") for part in parts if part.strip())
