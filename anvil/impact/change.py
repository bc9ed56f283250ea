"""The change that is examined: of the work tree, of what is staged, or a diff from a file or standard input; and which
of its files are code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from anvil.errors import ConfigError, SourceError
from anvil.formats.patterns import lazy_pattern
from anvil.git.repository import Repository
from anvil.system import safe_files
from anvil.values import PAGE_ENDINGS

MAX_DIFF_BYTES = 50_000_000
"""Bytes of a diff. The files after them are left out of a change in git; a longer file is refused."""
MAX_SUBJECTS = 3
"""Commits of a branch whose subjects make its title."""


@dataclass(frozen=True, slots=True)
class Change:
    """A unified diff, and what is known of it. ``title``: the subjects of its commits. ``before``: the commit that it
    starts from, None where that is not known. ``name``: for messages."""

    diff: str
    title: str
    before: str | None
    name: str


def from_text(place: str) -> Change:
    """The diff in a file; ``-``: from standard input. Raises :class:`ConfigError`."""
    if place == "-":
        data = sys.stdin.buffer.read(MAX_DIFF_BYTES + 1)
        if len(data) > MAX_DIFF_BYTES:
            raise ConfigError(f"The diff has more than {MAX_DIFF_BYTES:,} bytes. Leave generated files out of it.")
        return Change(data.decode("utf-8", "replace"), "", None, "the diff")
    try:
        data = safe_files.data(Path(place), MAX_DIFF_BYTES)
    except OSError as error:
        raise ConfigError(
            f"{place} cannot be read: {safe_files.reason(error)}. Name the file of a diff, '-' for standard input, or "
            "a commit with --base."
        ) from None
    return Change(data.decode("utf-8", "replace"), "", None, place)


def from_git(folder: Path, base: str | None, staged: bool) -> Change:
    """The change in the repository of a folder: of what is ``staged`` since HEAD, or of the work tree since the commit
    at which the branch left ``base``. Without ``base`` that is the remote's default branch, and without a remote HEAD.

    Raises :class:`SourceError` outside of a repository, and for an unknown commit.
    """
    repository = Repository.discover(folder)
    if repository is None:
        raise SourceError(f"{folder} is in no git repository. Give a diff: anvil impact CHANGE.diff")
    head = repository.head()
    if staged:
        return Change(repository.patch(head, staged=True, max_bytes=MAX_DIFF_BYTES), "", head, "what is staged")
    start = head
    if head is not None:
        other = repository.resolve(base) if base is not None else repository.default_branch()
        if other is not None:
            start = repository.merge_base(head, other)
            if start is None and base is not None:
                more = " This clone is shallow: run 'git fetch --unshallow'." if repository.is_shallow else ""
                raise SourceError(f"HEAD and {base} have no commit in common.{more}")
            start = start or head
    elif base is not None:
        raise SourceError(f"There is no commit in {repository.root} yet. Leave out --base.")
    title = ""
    if head is not None and start is not None and start != head:
        title = ". ".join(reversed(repository.subjects(head, start, MAX_SUBJECTS)))
    since = "the empty repository" if start is None else repository.short(start)
    diff = repository.patch(start, max_bytes=MAX_DIFF_BYTES)
    return Change(diff, title, start, f"the work tree since {since}")


FileKind = Literal["page", "code", "test", "other"]

PROSE_ENDINGS = (*PAGE_ENDINGS, ".rst", ".txt", ".adoc", ".html", ".ipynb")
"""Endings of files that are text for people. Outside of the documentation they are no code."""
_TEST = lazy_pattern(
    r"(?i)(?:^|/)(?:tests?|testing|testdata|test[-_]data|__tests__|specs?|fixtures?|snapshots?|__snapshots__|e2e|"
    r"benches|benchmarks?|mocks?|__mocks__|cypress)/|"
    r"(?:^|/)(?:test_[^/]*|conftest|[^/]*(?:[_.-](?:tests?|spec|bench)))\.\w+$|(?:Test|Tests|Spec)\.(?:java|kt|cs|scala)$"
)
_OTHER = lazy_pattern(
    r"(?i)(?:^|/)(?:node_modules|vendor|third[-_]?party|dist|\.git|\.github|\.circleci|\.gitlab|\.vscode|\.idea|\.changeset)/|"
    r"(?:^|/)(?:package-lock\.json|pnpm-lock\.yaml|yarn\.lock|[^/]*\.lock|go\.sum|[^/]*\.min\.(?:js|css)|[^/]*\.map|"
    r"[^/]*\.snap|\.gitignore|\.gitattributes|\.editorconfig|\.pre-commit-config\.yaml|license[^/]*|codeowners)$|"
    r"\.(?:png|jpe?g|gif|svg|ico|webp|woff2?|ttf|eot|pdf|zip|gz|xz|whl|so|dll|dylib|exe|bin|wasm|po|pot|mo|csv|tsv|parquet)$"
)


def file_kind(path: str, docs: str, is_page: bool) -> FileKind:
    """What a file is. ``path``: from the repository's root, POSIX. ``docs``: the documentation folder, ``""`` for the
    root itself. ``is_page``: whether the index takes such a file for a page."""
    inside = not docs or path.startswith(f"{docs}/")
    if is_page and inside:
        return "page"
    if _OTHER.search(path) or path.lower().endswith(PROSE_ENDINGS):
        return "other"
    return "test" if _TEST.search(path) else "code"
