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


@dataclass(frozen=True)
class Project:
    """A repository with code and documentation. ``docs``: folder of the pages. ``half``: whether weights may be
    fitted on it."""

    name: str
    docs: str
    half: Literal["tune", "held out"]


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
CODE = re.compile(r"\.(py|pyi|rs|go|[cm]?tsx?|[cm]?jsx?|vue|c|h|cc|cpp|java|kt|rb|lua)$")
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


def fitting(clone: Path, project: Project) -> tuple[list[Commit], list[Commit]]:
    """The commits that changed code and pages, and those that changed code alone, newest first."""
    both: list[Commit] = []
    code_alone: list[Commit] = []
    for commit, author in history(clone):
        if ROUTINE.search(commit.title) or "bot" in author.lower() or len(commit.files) > MOST_FILES:
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
    """The commits that are asked, oldest first: of those that fit, the newest, and of these the ones with the lowest
    names, which are as good as drawn."""
    both, code_alone = fitting(clone, project)
    both = both[: NEWEST * GOLD_COMMITS]
    code_alone = [commit for commit in code_alone if commit.time >= both[-1].time]
    drawn = sorted(both, key=lambda commit: commit.id)[:GOLD_COMMITS]
    drawn += sorted(code_alone, key=lambda commit: commit.id)[:CODE_COMMITS]
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
