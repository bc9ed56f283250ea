"""Patterns: globs over POSIX paths, patterns of git, and regular expressions that are compiled at first use.

In a glob, ``*``, ``?`` and ``[a-z]`` match within a folder, ``**`` as a whole segment matches any number of folders,
and ``{a,b}`` matches either. An invalid pattern matches nothing.

A client may send any pattern, so a glob must not stall a server. Its regular expression does not backtrack: as in the
standard library's ``fnmatch``, a wildcard keeps the shortest text that fits, and only the last wildcard is tried again.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from typing import Any, cast


class _LazyPattern:
    """A regular expression that is compiled at the first use of each of its methods, which is then kept."""

    def __init__(self, pattern: str, flags: int) -> None:
        self.pattern, self.flags = pattern, flags

    def __getattr__(self, name: str) -> Any:
        value = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, value)
        return value


def lazy_pattern(pattern: str, flags: int = 0) -> re.Pattern[str]:
    """A pattern that is compiled at first use. Call its methods, because functions of ``re`` do not accept it."""
    return cast("re.Pattern[str]", _LazyPattern(pattern, int(flags)))


SHA256 = lazy_pattern("[0-9a-f]{64}")
"""A SHA-256 in hex."""
OBJECT_ID = lazy_pattern("[0-9a-f]{40}(?:[0-9a-f]{24})?")
"""The id of a git commit or blob, by SHA-1 or SHA-256."""

_MAX_PATTERN_CHARACTERS = 1024
_MAX_ALTERNATIVES = 256
_STARS = lazy_pattern(r"\*{2,}")
_MEMBER = r"(?:\\.|[^\]\\])"
_TOKEN = lazy_pattern(rf"\\.|\[(?:[!^]|(?![!^]))(?:\]|{_MEMBER}){_MEMBER}*\]|\*+|.", re.DOTALL)
_CLASS = lazy_pattern(r"(?:(?<=\[)|(?<=\[[!^])|(?<=:\]))\[:(\w+):\]")
_CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": " \t-\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}
_WILDCARD = lazy_pattern(r"[*?\[\\]")
_RANGE = lazy_pattern(r"(\\.|.)(?:-(\\.|.))?", re.DOTALL)


def bounded(pattern: str) -> str:
    """The pattern, cut shortly after the length limit of valid ones, so that caches by pattern stay small."""
    return pattern[: _MAX_PATTERN_CHARACTERS + 1]


def glob(pattern: str, *, ignore_case: bool = False) -> Glob:
    """The glob for a pattern, from a cache. If the pattern is invalid, it matches no path.

    A leading ``/`` or ``./`` is ignored. A trailing ``/`` means all files below the folder.
    """
    return _compiled(bounded(pattern), ignore_case)


@lru_cache(maxsize=512)
def _compiled(pattern: str, ignore_case: bool) -> Glob:
    return Glob(pattern, ignore_case=ignore_case)


def matches(pattern: str, path: str) -> bool:
    """Whether the pattern matches the whole ``path`` (POSIX, relative). Case-sensitive."""
    return glob(pattern).matches(path)


def selects(pattern: str) -> Callable[[str], bool]:
    """A function that tells whether a path belongs to ``pattern``: a page, a folder with or without a slash, or a glob.
    All paths belong to ``""``. Letters with marks may be composed or not."""
    composed = unicodedata.normalize("NFC", bounded(pattern))
    folder = "/".join(part for part in composed.split("/") if part not in ("", "."))
    folder_glob, inside = glob(composed), f"{folder}/"

    def is_selected(path: str) -> bool:
        path = path if path.isascii() else unicodedata.normalize("NFC", path)
        return not folder or path.startswith(inside) or path == folder or folder_glob.matches(path)

    return is_selected


def wildmatch(pattern: str, numbers: Iterator[int]) -> str:
    """The regular expression for a pattern of git, a glob without braces, with classes such as ``[[:digit:]]``.

    It matches nothing if the pattern is invalid. ``numbers``: new numbers for the names of groups.
    """
    # As in git, the text before the first wildcard is compared by itself. So in "a**/b" the stars match any folders.
    begin = wildcard.start() if (wildcard := _WILDCARD.search(pattern)) else len(pattern)
    tokens = _TOKEN.findall(_CLASS.sub(lambda name: _CLASSES.get(name[1], name[0]), pattern[begin:]))
    if len(pattern) > _MAX_PATTERN_CHARACTERS or "[" in tokens or "\\" in tokens:
        return "(?!)"
    return re.escape(pattern[:begin]) + _expression(tokens, numbers)


class Glob:
    """A compiled glob."""

    __slots__ = ("_expression", "_ignore_case")

    def __init__(self, pattern: str, *, ignore_case: bool = False) -> None:
        self._ignore_case = ignore_case
        self._expression: re.Pattern[str] | None = None
        tokens = _TOKEN.findall(pattern.lower() if ignore_case else pattern)
        if not 0 < len(pattern) <= _MAX_PATTERN_CHARACTERS or "[" in tokens or "\\" in tokens:
            return
        numbers = itertools.count()
        try:
            alternatives = [_expression(alternative, numbers) for alternative in _expand(tokens)]
            self._expression = re.compile("|".join(alternatives))
        except ValueError:  # braces that are not closed, or too many
            return

    def matches(self, path: str) -> bool:
        text = path.lower() if self._ignore_case else path
        return self._expression is not None and self._expression.fullmatch(text) is not None


def _expand(tokens: list[str]) -> list[list[str]]:
    """The patterns without braces for a pattern. Raises :class:`ValueError` for open braces, or too many patterns."""
    done: list[list[str]] = []
    waiting = [tokens]
    while waiting:
        pattern = waiting.pop()
        if "{" not in pattern:
            done.append(pattern)
        else:
            begin = pattern.index("{")
            *cuts, end = _cuts(pattern, begin)
            choices = [pattern[first + 1 : last] for first, last in itertools.pairwise([begin, *cuts, end])]
            waiting += [pattern[:begin] + choice + pattern[end + 1 :] for choice in reversed(choices)]
        if len(done) + len(waiting) > _MAX_ALTERNATIVES:
            raise ValueError("too many alternatives")
    return done


def _cuts(tokens: Sequence[str], begin: int) -> Iterator[int]:
    """The positions of the commas between the braces that open at ``begin``, and of the closing brace."""
    depth = 0
    for position in range(begin, len(tokens)):
        depth += (tokens[position] == "{") - (tokens[position] == "}")
        if depth == 0 or (depth == 1 and tokens[position] == ","):
            yield position
        if depth == 0:
            return
    raise ValueError("a { is never closed")


def _expression(tokens: list[str], numbers: Iterator[int]) -> str:
    """The regular expression for a pattern without braces. ``numbers``: new numbers for the names of groups."""
    while tokens[:1] == ["/"] or tokens[:2] == [".", "/"]:
        tokens = tokens[1:]
    segments: list[list[str]] = [[]]
    for token in tokens:
        if token in ("/", r"\/"):
            segments.append([])
        else:
            segments[-1].append(token)
    names = [_STARS.sub("**", "".join(segment)) for segment in segments]
    if len(names) > 1 and not names[-1]:
        names[-1] = "**"
    between_folders = [""]
    for name, segment in zip(names[:-1], segments, strict=False):
        if name == "**":
            between_folders.append("")
        else:
            between_folders[-1] += _segment(segment, numbers) + "/"
    last = "(?s:.*)" if names[-1] == "**" else _segment(segments[-1], numbers)
    return _joined(between_folders, "(?:[^/]*/)*", numbers) + last


def _segment(tokens: list[str], numbers: Iterator[int]) -> str:
    between_stars = [""]
    for token in tokens:
        if token[0] == "*":
            between_stars.append("")
        else:
            between_stars[-1] += _character(token)
    return _joined(between_stars, "[^/]*", numbers)


def _joined(parts: Sequence[str], wildcard: str, numbers: Iterator[int]) -> str:
    """The parts with a wildcard between them. All but the last wildcard are in a lookahead, whose text is then
    repeated: a lookahead is not tried again, so there is no backtracking."""
    joined = parts[0]
    for part in parts[1:-1]:
        name = f"g{next(numbers)}"
        joined += f"(?=(?P<{name}>{wildcard}?{part}))(?P={name})"
    return joined if len(parts) == 1 else f"{joined}{wildcard}{parts[-1]}"


def _character(token: str) -> str:
    if token == "?":
        return "[^/]"
    if token[0] != "[":
        return re.escape(token[-1])
    negated = token[1] in "!^"
    ranges = _RANGE.findall(token[1 + negated : -1])
    # As in git, the first character of a range is a member even if the range runs backwards.
    members = "".join(
        re.escape(low[-1]) + (f"-{re.escape(high[-1])}" if high[-1:] > low[-1] else "") for low, high in ranges
    )
    return f"(?!/)[{'^' * negated}{members}]"
