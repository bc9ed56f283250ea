"""Commits of public projects that changed code and documentation, or code alone; the data of ``impact.py``."""

from __future__ import annotations

import io
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

GOLD_COMMITS, CODE_COMMITS = 20, 14
"""Commits of a project that changed code and pages, and commits that changed code alone."""
NEWEST = 6
"""The sample is taken from this many times as many commits, the newest that fit."""
MOST_FILES, MOST_PAGES = 40, 8
"""Changes of more files, or of more pages, are moves and renames of all."""


Half = Literal["tune", "held out"]


@dataclass(frozen=True)
class Project:
    """A repository with code and documentation. ``docs``: folder of the pages. ``half``: whether weights may be
    fitted on it. ``is_sorted``: commits of routine are left out."""

    name: str
    docs: str
    half: Half
    is_sorted: bool = True


PROJECTS = (
    Project("uv", "docs", "tune"),
    Project("wezterm", "docs", "tune"),
    Project("traefik", "docs/content", "tune"),
    Project("trivy", "docs", "tune"),
    Project("vite", "docs", "tune"),
    Project("eslint", "docs/src", "tune"),
    Project("starlette", "docs", "tune"),
    Project("poetry", "docs", "tune"),
    Project("helix", "book/src", "held out"),
    Project("argo-cd", "docs", "held out"),
    Project("goreleaser", "www", "held out"),
    Project("prometheus", "docs", "held out"),
    Project("vitest", "docs", "held out"),
    Project("fastify", "docs", "held out"),
    Project("cibuildwheel", "docs", "held out"),
    Project("pydantic", "docs", "held out"),
)
_UNSORTED: dict[Half, dict[str, str]] = {
    "tune": {
        "apollo-client": "docs/source",
        "authelia": "docs/content",
        "CLI11": "book",
        "containerd": "docs",
        "eslint": "docs/src",
        "googletest": "docs",
        "httpx": "docs",
        "jekyll": "docs",
        "joplin": "readme",
        "jupyterhub": "docs/source",
        "kit": "documentation/docs",
        "mermaid": "packages/mermaid/src/docs",
        "mkdocs": "docs",
        "nuxt": "docs",
        "phoenix": "guides",
        "playwright": "docs/src",
        "poetry": "docs",
        "Polly": "docs",
        "pymdown-extensions": "docs/src",
        "rclone": "docs/content",
        "rules_python": "docs",
        "rustup": "doc/user-guide/src",
        "starlette": "docs",
        "traefik": "docs/content",
        "trivy": "docs",
        "typer": "docs",
        "uv": "docs",
        "vite": "docs",
        "vitepress": "docs",
    },
    "held out": {
        "Alamofire": "Documentation",
        "brew": "docs",
        "cibuildwheel": "docs",
        "commonmark": "docs",
        "composer": "doc",
        "DataFrames.jl": "docs/src",
        "electron": "docs",
        "fastapi": "docs/en/docs",
        "fastify": "docs",
        "goreleaser": "www",
        "helix": "book/src",
        "jest": "docs",
        "mdBook": "guide/src",
        "mitmproxy": "docs/src/content",
        "pdm": "docs",
        "prefect": "docs",
        "pydantic": "docs",
        "query": "docs",
        "redux-toolkit": "docs",
        "rspress": "website/docs",
        "rust-analyzer": "docs/book/src",
        "starlight": "docs/src/content/docs",
        "trpc": "www/docs",
        "vitest": "docs",
    },
}
UNSORTED = tuple(
    Project(name, docs, half, is_sorted=False)
    for half, projects in _UNSORTED.items()
    for name, docs in projects.items()
)
"""Projects whose commits are asked as they are. Those of :data:`PROJECTS` keep their half."""
UNSORTED_GOLD, UNSORTED_CODE, UNSORTED_HISTORY = 14, 20, 3000
"""Commits of such a project that changed code and pages, and code alone; drawn from this many of its history."""
CODE = re.compile(
    r"\.(py|pyi|rs|go|[cm]?tsx?|[cm]?jsx?|vue|c|h|hpp|cc|cpp|mm|java|kt|rb|lua|php|cs|swift|exs?|jl|bzl|svelte|astro|"
    r"scala)$"
)
NOT_CODE = re.compile(
    r"(^|/)(tests?|__tests__|testdata|fixtures?|playground|e2e|examples?|bench(marks?)?|spec|integration|scripts?|"
    r"\.github|ci|tools|hack|build)(/|$)|(_test\.go|\.(test|spec)\.\w+|(^|/)test_[^/]*\.py|tests?\.rs)$"
)
"""Tests, examples and what builds the project: a commit of these alone is left out."""
PAGE = re.compile(r"\.(md|mdx)$")
LOG_PAGE = re.compile(
    r"change(s|log)|release[-_]?notes|releases|history|whatsnew|/blog/|/(zh|ja|fr|de|es|pt|ru|ko)/", re.I
)
"""Pages that tell the project's history, and translations: neither questions nor answers."""
ROUTINE = re.compile(
    r"^(\w+\(deps[^)]*\)|docs?\b|chore\(release\)|release|bump|build\(deps|update dep|upgrade dep|"
    r"merge (remote|branch|tag|current|v\d)|i18n|translat|typo|fix typo|style\b|format|fmt|revert|version|prepare|"
    r"v?\d+\.\d+|lint|ci\b|auto-?update|sync)|^merge pull request .* from \S+/(release|dependabot|renovate)|"
    r"renovate|dependabot|cherry-?pick|\b(docs?|documentation|docstrings?|readme)\b|whitespace|spelling|rustfmt|"
    r"clippy|pre-commit|\bbump |update dependenc",
    re.I,
)
"""Subjects of commits of routine."""
RELEASE = re.compile(
    r"^(bump|release|chore\(release\)|v?\d+\.\d+|version|prepare|(chore|build|fix)\(deps|update dep|upgrade dep|"
    r"merge (remote|branch|tag|current|v\d)|i18n|translat|revert|back to)|renovate|dependabot|\bbump |changelog|"
    r"release notes|^merge pull request .* from \S+/(release|dependabot|renovate)",
    re.I,
)
"""Subjects of releases, updates of dependencies and translations."""
ABOUT_PAGES = re.compile(r"\b(docs?|documentation|docstrings?|readme|typos?|spelling|guide)\b", re.I)
"""Subjects that say that pages change, which nothing has to find out."""


@dataclass(frozen=True)
class Commit:
    """A commit of the main line, or the merge of a pull request. ``files``: git's letter and path of each change.
    ``gold``: the pages that it changed and that were there before; none for a change of code alone."""

    id: str
    parent: str
    time: int
    title: str
    files: tuple[tuple[str, str], ...]
    gold: tuple[str, ...] = ()


def git(clone: Path, *arguments: str, given: bytes = b"") -> bytes:
    """What git writes. Raises CalledProcessError."""
    return subprocess.run(["git", "-C", str(clone), *arguments], input=given, capture_output=True, check=True).stdout


def history(clone: Path, most: int = 8000) -> Iterator[tuple[Commit, str]]:
    """The commits of the main line with their authors, newest first. A merge is compared with its first parent."""
    form = "%x01%H%x02%P%x02%ct%x02%an%x02%B%x03"
    command = ("log", "--first-parent", "-m", "--raw", "--no-renames", "--abbrev=12", f"-{most}", f"--format={form}")
    for part in git(clone, *command).decode("utf-8", "replace").split("\x01")[1:]:
        head, _, raw = part.partition("\x03")
        commit, parents, when, author, message = head.split("\x02", 4)
        if not parents:
            continue
        files = [line.split("\t", 1) for line in raw.splitlines() if line.startswith(":")]
        changes = tuple((meta.split()[-1][0], path) for meta, path in files)
        lines = [line for line in message.splitlines() if line.strip()] or [""]
        title = lines[0]
        if title.startswith("Merge pull request") and not ROUTINE.search(title):
            title = lines[min(1, len(lines) - 1)]
        yield Commit(commit, parents.split()[0], int(when), title, changes), author


def fitting(
    clone: Path, project: Project, routine: re.Pattern[str] = ROUTINE, most: int = 8000
) -> tuple[list[Commit], list[Commit]]:
    """The commits that changed code and pages, and those that changed code alone, newest first. ``routine``: subjects
    that are left out. ``most``: commits of the history."""
    both: list[Commit] = []
    code_alone: list[Commit] = []
    for commit, author in history(clone, most):
        if routine.search(commit.title) or "bot" in author.lower() or len(commit.files) > MOST_FILES:
            continue
        inside = [(status, path) for status, path in commit.files if path.startswith(f"{project.docs}/")]
        pages = [(status, path) for status, path in inside if PAGE.search(path) and not LOG_PAGE.search(path)]
        gold = tuple(path.removeprefix(f"{project.docs}/") for status, path in pages if status == "M")
        if not any(is_code(path, project) for _, path in commit.files):
            continue
        if gold and len(pages) <= MOST_PAGES:
            both.append(replace(commit, gold=gold))
        elif not inside and not any(PAGE.search(path) and not LOG_PAGE.search(path) for _, path in commit.files):
            code_alone.append(commit)
    return both, code_alone


def sample(clone: Path, project: Project) -> list[Commit]:
    """The commits that are asked, oldest first."""
    if project.is_sorted:
        return _drawn(*fitting(clone, project), GOLD_COMMITS, CODE_COMMITS)
    commits = fitting(clone, project, RELEASE, UNSORTED_HISTORY)
    drawn = _drawn(*commits, UNSORTED_GOLD, UNSORTED_CODE)
    return [commit for commit in drawn if not ABOUT_PAGES.search(commit.title)]


def _drawn(both: list[Commit], code_alone: list[Commit], gold: int, code: int) -> list[Commit]:
    """The newest that changed code and pages, and of these the ones with the lowest names, which are as good as drawn;
    and those of code alone from the same time."""
    both = both[: NEWEST * gold]
    code_alone = [commit for commit in code_alone if commit.time >= both[-1].time]
    drawn = sorted(both, key=lambda commit: commit.id)[:gold]
    drawn += sorted(code_alone, key=lambda commit: commit.id)[:code]
    return sorted(drawn, key=lambda commit: (commit.time, commit.id))


def is_code(path: str, project: Project) -> bool:
    """Whether a file is code that users of the project run."""
    return not path.startswith(f"{project.docs}/") and bool(CODE.search(path)) and not NOT_CODE.search(path)


def code_part(clone: Path, project: Project, commit: Commit) -> str:
    """The diff of a commit without its documentation."""
    without = (f":(exclude){project.docs}", *(f":(exclude,glob)**/*.{kind}" for kind in ("md", "mdx", "rst")))
    without += tuple(f":(exclude,glob)**/{name}" for name in ("CHANGES*", "*.lock", "*-lock.*", "go.sum"))
    return git(clone, "diff", "-M", commit.parent, commit.id, "--", ".", *without).decode("utf-8", "replace")


def write_pages(clone: Path, project: Project, revision: str, folder: Path) -> Path:
    """Write the pages as they were at a revision, and nothing else; the folder."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    listed = git(clone, "ls-tree", "-r", "-z", f"{revision}:{project.docs}").decode("utf-8", "replace")
    entries = [line.partition("\t") for line in listed.split("\0") if line.startswith("100")]
    files = [(meta.split()[2], path) for meta, _, path in entries]
    pages = [(blob, path) for blob, path in files if PAGE.search(path) and not LOG_PAGE.search(f"/{path}")]
    asked = "".join(f"{blob}\n" for blob, _ in pages).encode()
    answer = io.BytesIO(git(clone, "cat-file", "--batch", given=asked))
    for _, path in pages:
        size = int(answer.readline().split()[2])
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(answer.read(size))
        answer.read(1)
    return folder
