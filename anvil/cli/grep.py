"""``anvil grep``: its options, and the matching lines as grep prints them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

import click

from anvil.cli import options, output, pages
from anvil.cli.output import NO, OK
from anvil.requests import GrepRequest, OpenRequest
from anvil.search import grep
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.results import GrepMatch

ALL_MATCHES = 10**9
"""A limit that is no limit: no index has so many matching lines."""


@click.command("grep", epilog="Example: anvil grep -C 2 ANVIL_TOKEN guides")
@options.project
@options.in_site
@click.option("--regex", "-E", is_flag=True, help="PATTERN is a regular expression (RE2: no look-around).")
@click.option("--case-sensitive", "-s", is_flag=True, help="Distinguish upper and lower case.")
@click.option("--word", "-w", is_flag=True, help="Find whole words only.")
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
    word: bool,
    context: int,
    max_matches: int | None,
    only_paths: bool,
    as_json: bool,
    pattern: str,
    path: str | None,
) -> int:
    """Print the lines that contain PATTERN, as grep does, in all pages or those in PATH (a page, a folder or a glob).

    Without PATH, a page in several versions is searched in the newest that matches; '.' is the whole folder.

    The exit code is 0 if a line matches, 1 if none does, and 2 after an error. A PATTERN that begins with a dash needs
    -- before it.
    """
    matcher = grep.compile(GrepRequest(pattern, regex=regex, ignore_case=not case_sensitive, word=word))
    with options.opened(given) as opened:
        result = opened.grep(
            pattern,
            None if path is None else pages.glob(opened, path),
            regex=regex,
            ignore_case=not case_sensitive,
            word=word,
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
            for line in _page_lines(list(matches), page_path, lambda text: _highlight(text, matcher)):
                output.say(line)
        if result.next_offset is not None:
            left = result.total_matches - len(result.matches)
            output.warn(f"{counted(left, 'more matching line')}: raise --max-matches to print them.")
    for note in result.notes or ():
        output.warn(note)
    return OK if result.total_matches else NO


def _page_lines(matches: Sequence[GrepMatch], path: str, highlight: Callable[[str], str]) -> Iterator[str]:
    """The lines of a page as grep prints them: ``path:12:text``, ``path-13-text`` around it, ``--`` between groups.
    A line has no number if its line in the source file is not known."""
    lines: dict[int, tuple[str, str]] = {}  # number of a line -> the sign between its parts, and its text
    for count, match in enumerate(matches, 1):
        before, after = match.before or (), match.after or ()
        # an unknown line gets a number beyond all lines, far enough from that of the next one
        matching_line = match.line or count * ALL_MATCHES
        for number, text in enumerate((*before, match.text, *after), matching_line - len(before)):
            lines.setdefault(number, ("-", text))
        lines[matching_line] = (":", highlight(match.text))
    has_context, last = any(match.before or match.after for match in matches), 0
    for number, (sign, text) in sorted(lines.items()):
        if has_context and last and number > last + 1:
            yield "--"
        yield f"{path}{sign}{text}" if number >= ALL_MATCHES / 2 else f"{path}{sign}{number}{sign}{text}"
        last = number


def _highlight(text: str, matcher: grep.LineMatcher) -> str:
    parts, end = [], 0
    for start, stop in matcher.spans(text):
        parts += [text[end:start], output.style(text[start:stop], "yellow", "bold") if stop > start else ""]
        end = stop
    return "".join([*parts, text[end:]])
