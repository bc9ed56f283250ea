"""The hooks of Anvil that a project has in its pre-commit configuration."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.doctor import examined_project
from anvil.doctor.examined_project import ExaminedProject, Result
from anvil.errors import ConfigError, GitError, SourceError
from anvil.formats.data_formats import objects
from anvil.settings.schema import INDEX_FOLDER
from anvil.system import installation, safe_files

if TYPE_CHECKING:
    from anvil.git.tracked_file import TrackedIndex

NEED_TRACKED_INDEX = ("anvil-check", "anvil-build")
"""The hooks that compare or write an index in git."""
HOOKS = (*NEED_TRACKED_INDEX, "anvil-lint", "anvil-test")
PRE_COMMIT = ".pre-commit-config.yaml"


def examine(project: ExaminedProject) -> Iterator[Result]:
    """The configured hooks of Anvil: whether they run, and whether they can pass."""
    from anvil.git.repository import Repository
    from anvil.git.tracked_file import TrackedIndex

    try:
        repository = Repository.discover(project.base)
    except GitError:  # a finding of "git"
        return
    file = repository.root / PRE_COMMIT if repository else None
    if repository is None or file is None or not file.is_file():
        return
    try:
        written = examined_project.read(file)
    except ConfigError as error:
        yield Result("wrong", f"{project.shown(file)} {error}")
        return
    configured = [hook.get("id") for repo in objects(written, "repos") for hook in objects(repo, "hooks")]
    ours = [name for name in HOOKS if name in configured]
    if not ours:
        return
    is_installed = True
    elsewhere = repository.configured("core.hooksPath")
    folder = repository.root / Path(elsewhere).expanduser() if elsewhere else repository.common_dir / "hooks"
    hook = folder / "pre-commit"
    if not hook.is_file() or "pre-commit" not in safe_files.text(hook, errors="replace"):
        text = f"{project.shown(file)} has {' and '.join(ours)}, but pre-commit is not set up in this clone."
        yield Result("wrong", text, _install(project, repository.root))
        is_installed = False
    need_index = [name for name in ours if name in NEED_TRACKED_INDEX]
    running = Result("ok", f"{' and '.join(ours)} run before each commit.")
    if not need_index:
        if is_installed:
            yield running
        return
    if project.remote:
        text = f"{need_index[0]} needs an index in git, but the configured one is published elsewhere."
        yield Result("note", f"{text} Name a file for the hook: args: [--index, FILE].")
        return
    try:
        tracked = TrackedIndex(project.index, project.folder)
        ignored = tracked.ignored and tracked.repository.entry(tracked.path) is None
    except SourceError as error:
        yield Result("wrong", f"{need_index[0]} cannot pass: {error}")
        return
    if ignored:
        text = f"{need_index[0]} needs the index in git, but {tracked.path} is ignored."
        yield Result("wrong", text, _let_in(project, tracked))
    elif is_installed:
        yield running


def named_indexes(root: Path) -> list[str]:
    """The indexes that the arguments of Anvil's hooks name, relative to ``root``, the repository."""
    try:
        written = examined_project.read(root / PRE_COMMIT)
    except ConfigError:  # none, or a finding of the doctor
        return []
    hooks = [hook for repo in objects(written, "repos") for hook in objects(repo, "hooks") if hook.get("id") in HOOKS]
    named = set()
    for hook in hooks:
        words = [str(word) for word in hook.get("args") or ()] if isinstance(hook.get("args"), list) else []
        named |= {after for word, after in pairwise(words) if word == "--index"}
        named |= {word.removeprefix("--index=") for word in words if word.startswith("--index=")}
    inside = (os.path.normpath(name).replace(os.sep, "/") for name in named if not os.path.isabs(name))
    return sorted(path for path in inside if not path.startswith(".."))


def _let_in(project: ExaminedProject, tracked: TrackedIndex) -> str:
    """The commands that add the index to git. Outside of ``.anvil``: the command that shows which rule ignores it."""
    if project.index.parent.name != INDEX_FOLDER:
        return project.at(tracked.repository.root, installation.line(["git", "check-ignore", "-v", tracked.path]))
    docs = ["--docs", os.path.abspath(project.folder)] if "--docs" in dict(project.given) else []
    init = project.anvil("init", "--commit-index", *docs)
    if (
        "--config" in dict(project.given) and project.base != Path.cwd()
    ):  # a subshell: the next commands run in this folder
        init = f"({project.at(project.base, init)})"
    return f"{init} && {project.build()} && {installation.line(['git', 'add', project.shown(project.index.parent)])}"


def _install(project: ExaminedProject, root: Path) -> str:
    """The command that sets up pre-commit in this clone."""
    if shutil.which("pre-commit"):
        return project.at(root, "pre-commit install")
    run = installation.line([sys.executable, "-m", "pre_commit", "install"])
    if find_spec("pre_commit"):
        return project.at(root, run)
    return project.at(root, f"{installation.line(installation.install(['pre-commit']))} && {run}")
