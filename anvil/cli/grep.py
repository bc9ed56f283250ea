"""``anvil grep``: the lines that contain a text, as grep prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output, pages
from anvil.cli.output import NO, OK
from anvil.requests import OpenRequest
from anvil.search import grep
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.results import GrepMatch

ALL_MATCHES = 10**9
"""More matches than any index has."""


@click.command("grep", epilog="Example: anvil grep -C 2 ANVIL_TOKEN guides")
@options.project
@options.in_site
@click.option("--regex", "-E", is_flag=True, help="PATTERN is a regular expression (RE2: no look-around).")
@click.option("--case-sensitive", "-s", is_flag=True, help="Distinguish upper and lower case.")
@click.option("--context", "-C", type=click.IntRange(0), default=0, metavar="N", help="N lines around each match, too.")
@click.option("--max-matches", "-m", type=click.IntRange(1), metavar="N", help="Stop printing after N matching lines.")
@click.option("--files-with-matches", "-l", "only_paths", is_flag=True, help="Print only the paths of the pages.")
@options.as_json
@click.argument("pattern")
@click.argument("path", required=False)
def command(
    given: OpenRequest,
    regex: bool,
    case_sensitive: bool,
    context: int,
    max_matches: int | None,
    only_paths: bool,
    as_json: bool,
    pattern: str,
    path: str | None,
) -> int:
    """Print the lines that contain PATTERN, as grep does, in all pages or those in PATH (a page, a folder or a glob).

    The exit code is 0 if a line matches, 1 if none does, and 2 after an error. A PATTERN that begins with a dash needs
    -- before it.
    """
    matcher = grep.compile(pattern, regex=regex, ignore_case=not case_sensitive)
    with options.opened(given) as opened:
        result = opened.grep(
            pattern,
            None if path is None else pages.glob(opened, path),
            regex=regex,
            ignore_case=not case_sensitive,
            context=context,
            max_matches=max_matches or ALL_MATCHES,
            max_chars=None,
        )
        folders_here = pages.folders(opened)
    if as_json:
        output.print_json(result)
    else:
        by_page = groupby(result.matches, key=lambda match: (match.file_path, match.collection, match.version))
        for number, (page, matches) in enumerate(by_page):
            page_path = output.style(pages.shown(folders_here, *page), "cyan")
            if only_paths:
                output.say(page_path)
                continue
            if number and context:
                output.say("--")
            for line in _page_lines(list(matches), page_path, lambda text: _highlighted(text, matcher)):
                output.say(line)
        if result.next_offset is not None:
            left = result.total_matches - len(result.matches)
            output.warn(f"{counted(left, 'more matching line')}: raise --max-matches to print them.")
    for note in result.notes or ():
        output.warn(note)
    return OK if result.total_matches else NO


def _page_lines(matches: Sequence[GrepMatch], place: str, highlighted: Callable[[str], str]) -> Iterator[str]:
    """The lines of a page as grep prints them: ``path:12:text``, ``path-13-text`` around it, ``--`` between groups.
    Without numbers, where the line in the source file is not known."""
    shown: dict[int, tuple[str, str]] = {}  # line -> what separates it from its path, and its text
    for number, match in enumerate(matches, 1):
        before, after = match.before or (), match.after or ()
        at = match.line or number * ALL_MATCHES
        for line, text in enumerate((*before, match.text, *after), at - len(before)):
            shown.setdefault(line, ("-", text))
        shown[at] = (":", highlighted(match.text))
    has_context, last = any(match.before or match.after for match in matches), 0
    for line, (mark, text) in sorted(shown.items()):
        if has_context and last and line > last + 1:
            yield "--"
        yield f"{place}{mark}{text}" if line >= ALL_MATCHES / 2 else f"{place}{mark}{line}{mark}{text}"
        last = line


def _highlighted(text: str, matcher: grep.LineMatcher) -> str:
    parts, end = [], 0
    for start, stop in matcher.spans(text):
        parts += [text[end:start], output.style(text[start:stop], "yellow", "bold") if stop > start else ""]
        end = stop
    return "".join([*parts, text[end:]])
