"""The change that is examined: its diff, from git or a file, its changed files and lines, and which files are code."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

from anvil.errors import ConfigError, SourceError
from anvil.formats.patterns import lazy_pattern
from anvil.git.repository import Repository
from anvil.system import safe_files
from anvil.values import MAX_PATH_CHARS, PAGE_ENDINGS

MAX_DIFF_BYTES = 50_000_000
"""Limit of a diff, and of the code in which removed definitions are looked up. A larger diff in a file is refused. Of a
larger change in git, the last files are left out."""
MAX_SUBJECTS = 3
"""Commits whose subjects make the title of a branch."""


@dataclass(frozen=True, slots=True)
class Change:
    """A unified diff. ``title``: the subjects of its commits. ``before``: the commit that it starts from, if known.
    ``name``: a description for messages."""

    diff: str
    title: str
    before: str | None
    name: str


def from_file(name: str) -> Change:
    """The diff in a file, or with ``-`` from standard input.

    Raises :class:`ConfigError` if it cannot be read or is too large.
    """
    if name == "-":
        data = sys.stdin.buffer.read(MAX_DIFF_BYTES + 1)
        if len(data) > MAX_DIFF_BYTES:
            raise ConfigError(f"The diff has more than {MAX_DIFF_BYTES:,} bytes. Leave generated files out of it.")
        return Change(data.decode("utf-8", "replace"), "", None, "the diff")
    try:
        data = safe_files.data(Path(name), MAX_DIFF_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{name} cannot be read: {safe_files.reason(error)}. Name the file of a diff, '-' for standard input, or "
            "a commit with --base."
        ) from None
    return Change(data.decode("utf-8", "replace"), "", None, name)


def from_git(folder: Path, base: str | None, staged: bool) -> Change:
    """The change in the repository of a folder.

    - With ``staged``: the staged change since HEAD.
    - Otherwise: the change of the work tree since the commit at which the branch left ``base``. ``base`` is by default
      the remote's default branch, and without one HEAD.

    Raises :class:`SourceError` if there is no repository, no such commit, or no common commit.
    """
    repository = Repository.discover(folder)
    if repository is None:
        bare = next((parent for parent in (folder, *folder.parents) if (parent / "HEAD").is_file()), None)
        if bare is not None and (bare / "objects").is_dir():
            raise SourceError(f"{bare} is a bare repository: it has no files to compare. Clone it, and run this there.")
        raise SourceError(f"{folder} is in no git repository. Give a diff: anvil impact CHANGE.diff")
    head = repository.head()
    if staged:
        return Change(repository.patch(head, staged=True, max_bytes=MAX_DIFF_BYTES), "", head, "what is staged")
    start, note = head, ""
    if head is not None:
        other = repository.resolve(base) if base is not None else repository.default_branch()
        start = repository.merge_base(head, other) if other is not None else None
        if start is None and base is not None:
            advice = " This clone is shallow: run 'git fetch --unshallow'." if repository.is_shallow else ""
            raise SourceError(f"HEAD and {base} have no commit in common.{advice}")
        if start is None:
            start, note = head, " (HEAD, as it shares no known commit with a remote; --base names another commit)"
    elif base is not None:
        raise SourceError(f"There is no commit in {repository.root} yet. Leave out --base.")
    title = ""
    if head is not None and start is not None and start != head:
        title = ". ".join(reversed(repository.subjects(head, start, MAX_SUBJECTS)))
    since = "the empty repository" if start is None else repository.short(start)
    diff = repository.patch(start, max_bytes=MAX_DIFF_BYTES)
    return Change(diff, title, start, f"the work tree since {since}{note}")


FileKind = Literal["page", "code", "test", "other"]

PROSE_ENDINGS = (*PAGE_ENDINGS, ".rst", ".txt", ".adoc", ".html", ".ipynb")
"""Endings of texts for people. Such files are not code, wherever they are."""
_TEST = lazy_pattern(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|test[-_]data|__tests__|specs?|fixtures?|snapshots?|__snapshots__|e2e|"
    r"benches|benchmarks?|mocks?|__mocks__|cypress|[^/]*[._-](?:unit|integration)?tests?|[^/]*(?-i:[a-z]Tests))/|"
    r"(?:^|/)(?:test_[^/]*|conftest|[^/]*(?:[_.-](?:tests?|spec|bench)))\.\w+$|(?:Test|Tests|Spec)\.(?:java|kt|cs|scala)$"
)
_OTHER = lazy_pattern(
    r"(?i)(?:^|/)(?:node_modules|vendor|third[-_]?party|dist|\.[^/]+)/|"
    r"(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|yarn\.lock|[^/]*\.lock|go\.sum|[^/]*\.min\.(?:js|css)|[^/]*\.map|"
    r"[^/]*\.snap|\.git(?:ignore|attributes|modules)|\.mailmap|\.git-blame-ignore-revs|\.editorconfig|"
    r"\.pre-commit-config\.yaml|anvil(?:-tests)?\.toml|license[^/]*|codeowners)$|"
    r"\.(?:png|jpe?g|gif|svg|ico|webp|bmp|avif|woff2?|ttf|eot|pdf|pptx?|docx?|xlsx?|mp[34]|webm|zip|gz|tgz|xz|bz2|jar|whl|"
    r"so|dll|dylib|exe|bin|wasm|po|pot|mo|csv|tsv|parquet|db|sqlite3?)$"
)
_ASSET = lazy_pattern(
    r"(?i)/(?:assets|_?static|public|stylesheets|javascripts|overrides|_templates)/|\.(?:css|scss|json|ya?ml|toml)$"
)
"""Files in the documentation folder for the layout of the site, and its data."""


def file_kind(path: str, docs: str, is_page: bool) -> FileKind:
    """The kind of a file. ``path`` and ``docs``, the documentation folder, are relative to the repository's root.

    ``docs`` is ``""`` for the root itself. ``is_page``: whether the index takes such a file for a page.
    """
    in_docs = not docs or path.startswith(f"{docs}/")
    if is_page and in_docs:
        return "page"
    is_asset = in_docs and docs and _ASSET.search(path, len(docs))
    if is_asset or _OTHER.search(path) or path.lower().endswith(PROSE_ENDINGS):
        return "other"
    return "test" if _TEST.search(path) else "code"


MAX_FILE_LINES = 5_000
"""Added and removed lines that are kept of a file. A file with more is generated, or moved as a whole."""
MAX_LINES = 60_000
"""Added and removed lines that are kept of a whole diff."""
MAX_LINE_CHARS = 1_000
"""Characters that are kept of a line. Longer lines are data."""
MAX_HEAD_CHARS = 8_000
"""Characters of a patch in which the subject of its commit is looked for."""


class Line(NamedTuple):
    """A line of a file. ``number`` is 1-based, in the new file or, for a removed line, in the old file."""

    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Hunk:
    """Neighbouring changes of a file. ``header``: the text after the second ``@@``, such as the name of the function.
    ``context``: unchanged lines, numbered as in the new file."""

    header: str
    added: tuple[Line, ...]
    removed: tuple[Line, ...]
    context: tuple[Line, ...]


@dataclass(slots=True)
class FileChange:
    """The change of one file, filled while the diff is read.

    ``path`` and ``old_path`` are POSIX, from the root of the diff, and equal unless the file is renamed. ``submodule``:
    whether it is the commit of another repository. ``cut``: whether the file has more lines than are kept.
    """

    path: str
    old_path: str
    hunks: list[Hunk] = field(default_factory=list)
    submodule: bool = False
    cut: bool = False

    @property
    def added(self) -> tuple[Line, ...]:
        """All added lines, with their numbers in the new file."""
        return tuple(line for hunk in self.hunks for line in hunk.added)

    @property
    def removed(self) -> tuple[Line, ...]:
        """All removed lines, with their numbers in the old file."""
        return tuple(line for hunk in self.hunks for line in hunk.removed)


_GIT = re.compile(r"diff --git (.*)")
_MOVE = re.compile(r"(?:rename|copy) (from|to) (.*)")
_SUBMODULE = re.compile(r"(?:index \S+|new file mode|deleted file mode) 160000")
"""The mode that git gives to submodules."""
# "@@ -1,2 +3,4 @@ function"
_HUNK = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? \+(\d{1,9})(?:,(\d{1,9}))? @@ ?(.{0,400})")
# in paths that git quotes
_ESCAPE = re.compile(rb"\\([0-7]{3}|.)")
_ESCAPES = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
# "a/" and "b/"; "i/", "w/", "c/" and "o/" with diff.mnemonicPrefix; "1/" and "2/" with --no-index
_PREFIX = re.compile(r"(?:[abciwo12])/")
_NULL = "/dev/null"
_COLOR = re.compile(r"\x1b\[[0-9;]*[mK]")


def parse_diff(text: str) -> tuple[FileChange, ...]:
    """The changed files, in the order of the diff; none for an empty text. Colors of git are ignored.

    Raises :class:`ConfigError` if the text is not empty and has no change in it.
    """
    text = _COLOR.sub("", text)
    files = [
        file for file in _changed_files(text) if file.path and max(len(file.path), len(file.old_path)) <= MAX_PATH_CHARS
    ]
    if not files and text.strip():
        first = next(line for line in text.splitlines() if line.strip())
        advice = "Give the output of 'git diff'."
        if first.startswith(("commit ", "From ")):
            advice = "Of a merge, give the output of 'git show -m --first-parent'."
        raise ConfigError(
            f"This is not a diff: no line begins with 'diff --git' or '---'. It begins with {first[:80]!r}. {advice}"
        )
    return tuple(files)


def diff_title(text: str) -> str:
    """The subject of the commit that ``git show`` and ``git format-patch`` print above the diff; ``""`` without one."""
    head = _COLOR.sub("", text[:MAX_HEAD_CHARS]).replace("\r\n", "\n").partition("\ndiff --git ")[0]
    if head.startswith(("diff ", "--- ")):
        return ""
    if (mail := _SUBJECT.search(head)) is not None:
        return " ".join(_PATCH_MARK.sub("", mail[1]).split())
    if head.startswith("commit "):
        return next((line.strip() for line in head.splitlines() if line.startswith("    ") and line.strip()), "")
    return ""


_SUBJECT = re.compile(r"^Subject: (.*(?:\n .*)*)", re.M)
_PATCH_MARK = re.compile(r"^\[PATCH[^\]]*\]\s*")


def _changed_files(text: str) -> Iterator[FileChange]:
    lines = text.replace("\r\n", "\n").split("\n")
    at, lines_left, file_lines_left = 0, MAX_LINES, MAX_FILE_LINES
    file: FileChange | None = None
    while at < len(lines):
        line, is_path_pair = lines[at], _is_path_pair(lines, at)
        git = _GIT.match(line)
        # "---" and "+++" belong to the "diff --git" above them, unless that file has hunks already.
        if git is not None or (is_path_pair and (file is None or file.hunks)):
            if file is not None:
                yield file
            file, file_lines_left = FileChange("", ""), MAX_FILE_LINES
        if file is None:
            pass
        elif git is not None:
            # Two equal paths can be split at their middle. Of a renamed file, the lines below name the paths.
            half = len(git[1]) // 2
            has_middle = git[1][half : half + 1] == " "
            file.old_path, file.path = _paths(git[1][:half], git[1][half + 1 :]) if has_middle else ("", "")
        elif is_path_pair:
            file.old_path, file.path = _paths(line[4:], lines[at + 1][4:])
        elif (move := _MOVE.match(line)) is not None:
            setattr(file, "old_path" if move[1] == "from" else "path", _path(move[2]))
        elif _SUBMODULE.fullmatch(line):
            file.submodule = True
        elif (header := _HUNK.match(line)) is not None:
            at, hunk = _read_hunk(lines, at + 1, header, min(file_lines_left, lines_left))
            file.hunks.append(hunk)
            size = len(hunk.added) + len(hunk.removed)
            lines_left, file_lines_left = lines_left - size, file_lines_left - size
            file.cut |= min(lines_left, file_lines_left) <= 0
            continue
        at += 1
    if file is not None:
        yield file


def _is_path_pair(lines: list[str], at: int) -> bool:
    """Whether this line and the next name the paths of a file.

    A removed line whose text begins with "--" begins with "---", too. So the two lines after it decide.
    """
    first, *rest = lines[at : at + 3]
    return (
        first.startswith("--- ") and len(rest) == 2 and rest[0].startswith("+++ ") and _HUNK.match(rest[1]) is not None
    )


def _read_hunk(lines: list[str], at: int, header: re.Match[str], max_lines: int) -> tuple[int, Hunk]:
    """Read the hunk whose first line is ``lines[at]``. Returns the number of the line after it, and the hunk.

    Of the added and removed lines, ``max_lines`` are kept.
    """
    old, new = int(header[1]), int(header[3])
    old_left = int(header[2]) if header[2] is not None else 1
    new_left = int(header[4]) if header[4] is not None else 1
    added: list[Line] = []
    removed: list[Line] = []
    context: list[Line] = []
    while at < len(lines) and (new_left > 0 or old_left > 0):
        mark, text = lines[at][:1], lines[at][1 : 1 + MAX_LINE_CHARS]
        if mark == "\\":  # no newline at end of file
            at += 1
            continue
        if mark.strip("+- ") or (not mark and at == len(lines) - 1):
            break  # the diff was cut
        has_room = len(added) + len(removed) < max_lines
        if mark == "-":
            if has_room:
                removed.append(Line(old, text))
            old, old_left = old + 1, old_left - 1
        elif mark == "+":
            if has_room:
                added.append(Line(new, text))
            new, new_left = new + 1, new_left - 1
        else:
            context.append(Line(new, text))
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1
        at += 1
    return at, Hunk(header[5].strip(), tuple(added), tuple(removed), tuple(context))


def _paths(old: str, new: str) -> tuple[str, str]:
    """The old and the new path, without git's prefixes if both have one.

    A file that was added or removed has one path, which is returned twice.
    """
    paths = [path for path in (_path(old), _path(new)) if path != _NULL]
    if all(_PREFIX.match(path) for path in paths):
        paths = [path[2:] for path in paths]
    return (paths[0], paths[-1]) if paths else ("", "")


def _path(text: str) -> str:
    """The path in a line of the header, without quotes and time."""
    text = text.split("\t")[0].strip()
    return _unquote(text[1:-1]) if len(text) > 1 and text[0] == text[-1] == '"' else text


def _unquote(text: str) -> str:
    """A path that git quoted as a string of C: it does so for bytes that are not ASCII."""

    def byte(match: re.Match[bytes]) -> bytes:
        return bytes([int(match[1], 8) & 255]) if len(match[1]) == 3 else _ESCAPES.get(match[1], match[1])

    return _ESCAPE.sub(byte, text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")
