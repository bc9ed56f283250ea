"""What a changed file is, by its path: a page, code, tests, or a file that says nothing about documentation."""

from __future__ import annotations

import posixpath
from typing import Literal

from anvil.formats.lazy_pattern import lazy_pattern

FileKind = Literal["page", "code", "test", "other"]

PROSE_ENDINGS = (".md", ".mdx", ".markdown", ".rst", ".txt", ".adoc", ".html", ".ipynb")
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


def kind(path: str, docs: str, is_page: bool) -> FileKind:
    """What a file is. ``path``: from the repository's root, POSIX. ``docs``: the documentation folder, ``""`` for the
    root itself. ``is_page``: whether the index takes such a file for a page."""
    inside = not docs or path.startswith(f"{docs}/")
    if is_page and inside:
        return "page"
    if _OTHER.search(path) or path.lower().endswith(PROSE_ENDINGS):
        return "other"
    return "test" if _TEST.search(path) else "code"


def words_path(path: str) -> str:
    """A path without its ending and without folders that nearly each project has, for comparison by words."""
    stem = posixpath.splitext(path)[0]
    parts = [part for part in stem.split("/") if part.lower() not in _USUAL]
    return "/".join(parts)


_USUAL = frozenset(
    """
    src lib libs app apps pkg packages crates internal cmd main index mod init __init__ core common utils util helpers
    types impl java python go rust js ts com org io net
    """.split()  # noqa: SIM905 - a list of quoted words is not read
)
