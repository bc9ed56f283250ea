"""Includes: text that a page includes from other files of its repository is inserted, as readers of the site see it.

The line that names a file stays, and the included lines follow it. They count as part of that line, so line numbers of
the source stay. The rest of the page is not changed. A function of the caller reads the files. Supported are:

- ``{* path ln[1:5] *}`` and ``{! path !}`` (FastAPI, mdx_include)
- ``--8<-- "path:section"`` (pymdownx)
- ``<<< @/path#region`` (VitePress)
- ``{{< readfile "path" >}}`` (Docsy)
- ``literalinclude`` (MyST)
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from anvil.formats.characters import backticks, is_unicode
from anvil.formats.data_formats import canonical, json_object
from anvil.formats.patterns import lazy_pattern
from anvil.text import front_matter
from anvil.values import has_page_ending

VERSION = "6"
"""Increase it if the same files give another text. Then pages with included files are read again."""
NOT_FOLLOWED = "+0{}"
"""The fingerprint of a page that may include files while ``source.includes`` is off. No other fingerprint is equal, so
the page is read again when it is switched on."""
MAX_FILE_BYTES = 200_000
"""A larger file is not included."""
MAX_PAGE_CHARACTERS = 400_000
"""The limit for the included text of one page."""
MAX_INCLUDES = 200
"""So many files are read for one page. A file that is named twice counts twice."""
MAX_UNREAD = 200
"""After so many names without a file that can be included, no further name of the page is looked up."""
MAX_INCLUDE_DEPTH = 2
"""An included Markdown file can include other files. These can include nothing."""
MAX_LINE_CHARACTERS = 400
"""Longer lines are not parsed."""
SNIPPET_FOLDERS = ("snippets", "includes", "src")
"""Folders for snippets, in the documents' folder and in the one above it."""
MAX_PARENT_FOLDERS = 4
"""So many folders above the documentation folder can be the start of a path."""

# Names of files with private keys. A page of a cloned repository must not make Anvil publish one.
_KEYS = lazy_pattern(r"^id_(?:rsa|dsa|ecdsa|ed25519)$|\.(?:pem|key|p12|pfx|jks|keystore|kdbx)$", re.IGNORECASE)
_MARKS = ("{*", "{!", "8<-", "<<<", "readfile", "literalinclude")
# For nearly all lines, this one search saves trying all patterns below.
_HINT = lazy_pattern(r"\{[*!]|8<-|<<<|readfile|literalinclude|```|~~~|:::")
_FENCE = lazy_pattern(r"[ \t>]*(`{3,}|~{3,}|:{3,})(.*)")
_VARIANT = lazy_pattern(r"([ \t]*)\{\*\s*(\S+)((?:\s+\w+\[[^\]\n]*\])*)\s*\*\}\s*")
_BRACED = lazy_pattern(r"([ \t]*)\{!>?\s*([^\s!\[\]]+)((?:\s*\[\w+:[^\]\n]*\]|\s+\w+\[[^\]\n]*\])*)\s*!\}\s*")
_SNIPPET = lazy_pattern(r"""([ \t]*)-+8<-+[ \t]+(?:"([^"\n]+)"|'([^'\n]+)')\s*""")
_BLOCK = lazy_pattern(r"([ \t]*)-+8<-+\s*")
_VITEPRESS = lazy_pattern(
    r"([ \t]*)<<<[ \t]+([^\s#{\[]+)(?:#([\w*-]+))?(?:[ \t]*\{[^}\n]*\})?(?:[ \t]*\[[^\]\n]*\])?\s*"
)
_READFILE = lazy_pattern(r"([ \t]*)\{\{[<%]\s*readfile\s([^\n]*?)/?[>%]\}\}\s*")
_MYST = lazy_pattern(r"\{literalinclude\}\s+(\S+)\s*")
_OPTION = lazy_pattern(r"[ \t]*:([\w-]+):[ \t]*(.*?)\s*")
_ARGUMENT = lazy_pattern(r"""(?:\b(\w+)\s*=\s*)?(?:"([^"]*)"|'([^']*)'|`([^`]*)`)""")
_LINES = lazy_pattern(r"\b(?:ln|lines)[:\[]\s*([\d:,\s-]+)\]?")
_SECTION_MARK = lazy_pattern(r"-+8<-+[ \t]+\[[ \t]*(start|end)[ \t]*:[ \t]*([\w-]+)[ \t]*\]")
_REGION = lazy_pattern(r"(?i)\s*(?:(?://|/\*|<!--|#|--|;|%|::|REM\b)\s*)?#?(?:pragma\s+)?(end)?region\b[ \t]*([\w*-]*)")
_ONLY_SPHINX = frozenset({"pyobject", "diff", "prepend", "append"})
"""Options of literalinclude that only Sphinx can apply. Others select lines by numbers or texts, or change the look."""


class IncludedFile(NamedTuple):
    """A file of the repository: its git blob id (empty if there is no file that may be read), and its text; None if the
    text cannot be included."""

    id: str
    text: str | None


class Look(NamedTuple):
    """Access to the files that pages include. ``root``: the documents' folder from the repository's root, or ``.``.
    ``file``: a function from a path (from the repository's root) to the file."""

    root: str
    file: Callable[[str], IncludedFile]


class MissingFile(NamedTuple):
    """A line that includes a missing file: its number in the source, the path in it, and the paths (from the
    repository's root) at which the file was looked for."""

    line: int
    path: str
    candidates: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Expanded:
    """A page with its included text.

    - ``inserted``: (source line, number of lines inserted after it), in order.
    - ``files``: path from the repository's root -> blob id, of all files that were looked for. The id of a missing file
      is empty: when it is added, the page must be read again.
    - ``missing``: lines for which there is no file that may be read.
    """

    text: str
    inserted: tuple[tuple[int, int], ...]
    files: Mapping[str, str]
    missing: tuple[MissingFile, ...] = ()


def is_private(path: str) -> bool:
    """Whether no page may show this file: keys, and hidden files and folders except ``.github``."""
    names = path.split("/")
    return any(name[:1] == "." and name != ".github" for name in names) or _KEYS.search(names[-1]) is not None


def may_include(text: str) -> bool:
    """Whether a page can include a file."""
    return any(mark in text for mark in _MARKS)  # ten times faster than a regular expression


def expand(text: str, page: str, look: Look) -> Expanded:
    """``text`` with its included text. ``page``: its path in the documents' folder."""

    def expanded_after(begin: int) -> Expanded:
        return _Expansion(page, look).body(text, begin)

    block = front_matter.end(text)
    expanded = expanded_after(block)
    if not block or not (expanded.files or expanded.missing or (whole := expanded_after(0)).files or whole.missing):
        return expanded  # nothing is included, whether the block is front matter or text: so PyYAML is not needed
    _, begin = front_matter.split(text)
    return expanded if begin == block else expanded_after(begin)


def fingerprint(files: Mapping[str, str]) -> str:
    """The fingerprint of included files for the index; empty if there are none."""
    return f"+{VERSION}{canonical(files)}" if files else ""


def files(fingerprint: str) -> dict[str, str] | None:
    """Path -> blob id, of the files in a fingerprint; None for another version, and for invalid paths.

    An index may come from elsewhere. The operating system refuses a path with NUL or half of a surrogate pair.
    """
    head = f"+{VERSION}"
    values = json_object(fingerprint[len(head) :]) if fingerprint.startswith(head + "{") else None
    is_valid = values is not None and all(
        isinstance(id_, str) and "\0" not in path and is_unicode(path) for path, id_ in values.items()
    )
    return values if is_valid else None


def source_line(line: int, inserted: Sequence[tuple[int, int]]) -> int:
    """The line of the source file for a line of the expanded text; both are 1-based."""
    shift = 0
    for after, count in inserted:
        if line <= after + shift:
            break
        if line <= after + shift + count:
            return after
        shift += count
    return line - shift


@dataclass(slots=True)
class _Expansion:
    """The expansion of one page, with its limits."""

    page: str
    look: Look
    files: dict[str, str] = field(default_factory=dict)
    room: int = MAX_PAGE_CHARACTERS
    """The number of characters that may still be included."""
    left: int = MAX_INCLUDES
    """The number of files that may still be included."""
    missing: list[MissingFile] = field(default_factory=list)
    _absent: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    """(path in the page, candidates) of missing files that the current line of the page includes."""
    _unread: dict[str, tuple[str, ...] | None] = field(default_factory=dict)
    """Path in the page that gave no text -> candidates; None if there is a file, which cannot be included."""

    def body(self, text: str, begin: int) -> Expanded:
        """``text`` with the text that is included after the offset ``begin``."""
        head, body = text[:begin], text[begin:]
        before = head.count("\n")
        parts, inserted = self._lines(body.split("\n"), 0)
        missing = tuple(file._replace(line=before + file.line) for file in self.missing)
        return Expanded(head + "\n".join(parts), tuple((before + at, n) for at, n in inserted), self.files, missing)

    def _lines(self, lines: list[str], depth: int) -> tuple[list[str], list[tuple[int, int]]]:
        """The lines with their included lines, and (1-based line, number of lines inserted after it)."""
        out: list[str] = []
        inserted: list[tuple[int, int]] = []
        fence: tuple[str, str] | None = None  # its marks, and the text behind them
        opened = at = 0
        while at < len(lines):
            line = lines[at]
            out.append(line)
            at += 1
            if not self.left or not self.room or len(line) > MAX_LINE_CHARACTERS or not _HINT.search(line):
                continue
            bare = line.rstrip("\r")
            included: list[str] | None = None
            if match := _FENCE.match(bare):
                marks, info = match[1], match[2].strip()
                if fence is None:
                    fence, opened = (marks, info), at
                elif marks.startswith(fence[0]) and not info:
                    directive = _MYST.fullmatch(fence[1])
                    fence = None
                    if directive:
                        included = self._literal(directive[1], lines[opened : at - 1], bare[: match.start(1)])
            elif "8<-" in bare and _BLOCK.fullmatch(bare) and (end := _closing(lines, at)):
                indent = bare[: len(bare) - len(bare.lstrip())]
                included = []
                for included_line in lines[at:end]:
                    if included_line.strip() and not included_line.strip().startswith(";"):
                        included += self._snippet(included_line.strip(), indent, depth, fence is None) or []
                out += lines[at : end + 1]
                at = end + 1
            else:
                included = self._included(bare, depth, fence is None)
            if not depth:
                self.missing += (MissingFile(at, *absent) for absent in self._absent)
                self._absent.clear()
            if included:  # a fence and indents may take a little more than the room that is left
                self.room -= min(self.room, sum(map(len, included)) + len(included))
                end_of_line = "\r" if line.endswith("\r") else ""
                out += [included_line + end_of_line for included_line in included]
                inserted.append((at, len(included)))
        return out, inserted

    def _included(self, line: str, depth: int, prose: bool) -> list[str] | None:
        """The lines that a line includes. ``prose``: the line is not in a fence."""
        if prose and (match := _VARIANT.fullmatch(line)):
            lines = self._read(match[2], _line_selector(match[3]))
            return _fenced(lines, match[2], match[1])
        if match := _BRACED.fullmatch(line):
            return _indented(self._read(match[2], _line_selector(match[3])), match[1])
        if "8<-" in line and (match := _SNIPPET.fullmatch(line)):
            return self._snippet(match[2] or match[3], match[1], depth, prose)
        if prose and (match := _VITEPRESS.fullmatch(line)):
            region = match[3]
            lines = self._read(match[2], lambda file_lines: _region(file_lines, region) if region else file_lines)
            return _fenced(lines, match[2], match[1])
        if "readfile" in line and (match := _READFILE.fullmatch(line)):
            arguments = {key or "file": a or b or c for key, a, b, c in _ARGUMENT.findall(match[2])}
            if "file" not in arguments:
                return None
            lines = self._read(arguments["file"], list)
            if arguments.get("code") == "true":
                return _fenced(lines, f".{arguments['lang']}" if arguments.get("lang") else arguments["file"], match[1])
            return self._nested(lines, arguments["file"], match[1], depth, prose)
        return None

    def _snippet(self, reference: str, indent: str, depth: int, prose: bool) -> list[str] | None:
        path, _, part = reference.partition(":")
        if part.startswith("//"):
            return None  # an address
        lines = self._read(path, lambda file_lines: _section(file_lines, part))
        return self._nested(lines, path, indent, depth, prose)

    def _nested(self, lines: list[str] | None, path: str, indent: str, depth: int, prose: bool) -> list[str] | None:
        if lines and prose and depth + 1 < MAX_INCLUDE_DEPTH and has_page_ending(path):
            lines = self._lines(lines, depth + 1)[0]
            self._absent.clear()  # missing files of an included file are not reported for this page
        return _indented(lines, indent)

    def _literal(self, path: str, options: Sequence[str], indent: str) -> list[str] | None:
        options_by_name = {option[1]: option[2] for line in options if (option := _option(line))}
        if options_by_name.keys() & _ONLY_SPHINX:
            return None
        lines = self._read(path, lambda file_lines: _literal_lines(file_lines, options_by_name))
        language = options_by_name.get("language")
        return _fenced(lines, f".{language}" if language else path, indent)

    def _read(self, path: str, choose: Callable[[list[str]], list[str] | None]) -> list[str] | None:
        if not self.left:
            return None
        if path not in self._unread and len(self._unread) < MAX_UNREAD:
            lines = self._file_lines(path)
            if lines is not None:
                return choose(lines)
        if (candidates := self._unread.get(path)) is not None:
            self._absent.append((path, candidates))
        return None

    def _file_lines(self, path: str) -> list[str] | None:
        """The lines of a file; None if it cannot be. Cached: pages may name a missing file a thousand times."""
        candidates = tuple(self._candidates(path))
        self._unread[path] = candidates
        for candidate in candidates:
            file = self.look.file(candidate)
            self.files[candidate] = file.id
            if file.id:  # the first existing file counts, even if it cannot be included
                self.left -= 1
                if file.text is None or len(file.text) > self.room:
                    self._unread[path] = None
                    return None
                del self._unread[path]
                return [line.rstrip("\r") for line in file.text.removesuffix("\n").split("\n")]
        return None

    def _candidates(self, path: str) -> Iterator[str]:
        """The paths that an include may mean, from the repository's root, the likeliest first.

        A path may start from the folder above the documents, which is mostly that of the site, from folders above it,
        from the documents' folder, or from the folder of the page. This holds for ``./`` and ``../``, too. Last come
        the folders that sites of MkDocs usually have as ``base_path`` of snippets."""
        if len(path) > 500 or "\\" in path or "\0" in path or "://" in path or path.startswith("~"):
            return
        above = [self.look.root if self.look.root != "." else ""]
        while above[-1] and len(above) <= MAX_PARENT_FOLDERS:
            above.append(posixpath.dirname(above[-1]))
        own = posixpath.join(above[0], posixpath.dirname(self.page))
        if path.startswith(("@/", "/")):
            bases, path = above, path.lstrip("@").lstrip("/")
        else:
            bases = [*above[1:], above[0], own]
            if not path.startswith("."):
                bases += (posixpath.join(folder, name) for folder in above[:2] for name in SNIPPET_FOLDERS)
        for candidate in dict.fromkeys(posixpath.normpath(posixpath.join(base, path)) for base in bases):
            # A page does not include itself: its snippet may have its name.
            own_page = posixpath.join(above[0], self.page)
            inside = not candidate.startswith(("../", "/")) and candidate not in ("..", ".", own_page)
            if inside and not is_private(candidate):
                yield candidate


def _option(line: str) -> re.Match[str] | None:
    return _OPTION.fullmatch(line.rstrip("\r")) if len(line) <= MAX_LINE_CHARACTERS else None


def _closing(lines: Sequence[str], start: int) -> int | None:
    """The index of the line that ends a snippet block; None if it has no end. ``start``: its first line."""
    for at in range(start, min(start + MAX_INCLUDES, len(lines))):
        if len(lines[at]) <= MAX_LINE_CHARACTERS and _BLOCK.fullmatch(lines[at]):
            return at
    return None


def _fenced(lines: list[str] | None, path: str, indent: str) -> list[str] | None:
    """Code in a fence that is longer than all fences in the code. The language is the ending of ``path``."""
    if not lines:
        return None
    marks = backticks("\n".join(lines), 3)
    # For splitext, ".py" would be a name without an ending, such as ".bashrc".
    language = posixpath.splitext("x" + path if path.startswith(".") else path)[1][1:]
    return _indented([marks + language, *lines, marks], indent)


def _indented(lines: list[str] | None, indent: str) -> list[str] | None:
    return [indent + line if line else line for line in lines] if lines else None


def _line_selector(options: str) -> Callable[[list[str]], list[str] | None]:
    """A function that selects the lines of ``ln[1:5,9]`` or ``[ln:1-5,9]``; without these, all lines."""
    match = _LINES.search(options)
    return (lambda lines: _ranges(lines, match[1])) if match else list


def _ranges(lines: list[str], ranges: str) -> list[str] | None:
    """The lines of ranges such as ``1:5``, ``1-5``, ``3:``, ``:3`` or ``7``, with commas; 1-based, inclusive."""
    chosen: list[str] = []
    for part in ranges.split(","):
        first, dash, last = re.sub(r"\s", "", part).replace("-", ":").partition(":")
        if not (first or last) or not (first + last).isdecimal() or max(len(first), len(last)) > 9:
            return None  # Python raises an error for a number of thousands of digits
        begin = int(first or 1)
        chosen += lines[max(begin - 1, 0) : int(last) if last else len(lines) if dash else begin]
    return chosen


def _section(lines: list[str], part: str) -> list[str] | None:
    """The lines of a part in pymdownx's ``file:part``, which is a range of lines or a section between marks."""
    if part and re.fullmatch(r"[\d:,]+", part):
        return _ranges(lines, part)
    chosen: list[str] = []
    is_inside = is_found = not part
    for line in lines:
        mark = _SECTION_MARK.search(line) if "8<-" in line and len(line) <= MAX_LINE_CHARACTERS else None
        if mark is None:
            if is_inside:
                chosen.append(line)
        elif part and mark[2] == part:
            is_inside = mark[1] == "start"
            is_found = True
    return chosen if is_found else None


def _region(lines: list[str], name: str) -> list[str] | None:
    """The lines between ``#region name`` and its ``#endregion``, without their common indent."""
    chosen: list[str] = []
    depth = 0
    for line in lines:
        mark = _REGION.match(line) if len(line) <= MAX_LINE_CHARACTERS and "region" in line.lower() else None
        if mark is None:
            if depth:
                chosen.append(line)
        elif mark[1]:
            if depth and (mark[2] == name or (not mark[2] and depth == 1)):
                common = min((len(line) - len(line.lstrip()) for line in chosen if line.strip()), default=0)
                return [line[common:] for line in chosen]
            depth -= 1 if depth else 0
        elif depth or mark[2] == name:
            depth += 1
    return None


def _literal_lines(lines: list[str], options: Mapping[str, str]) -> list[str] | None:
    """The lines that Sphinx's ``literalinclude`` selects."""
    if "lines" in options:
        chosen = _ranges(lines, options["lines"])
        if chosen is None:
            return None
        lines = chosen
    for key in ("end-line", "start-line"):  # the end first, because cutting the start would move it
        if key in options:
            if not options[key].isdecimal() or len(options[key]) > 9:
                return None
            lines = lines[: int(options[key])] if key == "end-line" else lines[int(options[key]) :]
    for key in ("start-after", "start-at", "end-before", "end-at"):  # the end is searched after the start
        if options.get(key):
            at = next((n for n, line in enumerate(lines) if options[key] in line), None)
            if at is None:
                return None
            begins = key.startswith("start")
            at += key in ("start-after", "end-at")
            lines = lines[at:] if begins else lines[:at]
    return lines
