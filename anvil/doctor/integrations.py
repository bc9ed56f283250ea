"""Examinations of MCP clients, pre-commit and MkDocs, which start Anvil in a project; and a plugin that does not run.

Builds use :func:`unrun_plugin`, so the modules about clients are imported by their examination only.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from anvil.cli.output import relative
from anvil.doctor.examination import Examination, ExaminedProject, Finding, read_yaml
from anvil.errors import ConfigError, GitError
from anvil.formats.data_formats import objects
from anvil.settings.configuration import CONFIG_NAME
from anvil.system import installation, safe_files
from anvil.wording import listed

if TYPE_CHECKING:
    from anvil.clients.server_entries import ClientFile
    from anvil.git.repository import Repository


def clients(project: ExaminedProject) -> Iterator[Finding]:
    """Whether clients can start Anvil: a finding for each entry in a client's file, or one if there are no entries."""
    from anvil.clients.server_entries import client_files

    files: list[tuple[str, ClientFile]] = []
    with suppress(RuntimeError):  # there is no home folder
        files += client_files(project.base)
    findings = [finding for name, file in files for finding in _client_file(project, name, file)]
    yield from findings
    if not findings:
        text = "No MCP client of this project or user is set up for Anvil. To set up one, such as Claude Code:"
        yield Finding("ok", text, _init(project, "claude-code"))


def _init(project: ExaminedProject, name: str, *more: str) -> str:
    """The command that sets up a client."""
    options = () if (project.base / CONFIG_NAME).is_file() else ("docs",)
    return project.at(project.base, project.anvil("init", "--client", name, *more, options=options))


def _client_file(project: ExaminedProject, name: str, file: ClientFile) -> Iterator[Finding]:
    from anvil.clients.server_entries import default_name, is_ours, other_project, servers_in, start_problem

    client, shown = file.client, relative(file.path)
    scope = () if file.scope == client.scopes[0] else ("--scope", file.scope)
    try:
        data = safe_files.data(file.path)
        servers = servers_in(data.decode(), client)
    except (ConfigError, UnicodeDecodeError) as error:
        if b"anvil" in data:
            yield Finding("wrong", f"{shown} cannot be read: {error}. Correct it.")
        return
    except OSError as error:
        yield Finding("wrong", f"{shown} cannot be read ({error.strerror}). Change its permissions.")
        return
    own_name = default_name(file, project.base)
    ours = {title: server for title, server in servers.items() if is_ours(client, server)}
    serves_this_project = any(other_project(file, project.base, server) is None for server in ours.values())
    for title, server in ours.items():
        problem = start_problem(file, project.base, server)
        other = other_project(file, project.base, server)
        name_option = () if title == own_name else ("--name", title)
        if problem is not None:
            command = None if other is not None and other.exists() else _init(project, name, *scope, *name_option)
            if file.is_shared and problem.startswith("there is no program anvil on"):  # 'init' would write the same
                command = installation.install_tool()
            yield Finding("wrong", f"{client.title} cannot start {title!r} of {shown}: {problem}.", command)
        elif other is None:
            yield Finding("ok", f"{client.title} can start {title!r} of {shown}.")
        elif title == own_name and not serves_this_project:
            text = f"{title!r} of {client.title} ({shown}) serves {other}, not this project. To add this project:"
            free_name = next(free for number in itertools.count(2) if (free := f"{own_name}-{number}") not in servers)
            yield Finding("note", text, _init(project, name, *scope, "--name", free_name))


HOOKS = ("anvil-check", "anvil-build", "anvil-lint", "anvil-impact", "anvil-test")
PRE_COMMIT = ".pre-commit-config.yaml"


def pre_commit(project: ExaminedProject) -> Iterator[Finding]:
    """Whether commits run the hooks of Anvil that are configured."""
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(project.base)
    except GitError:  # the examination "git" reports it
        return
    file = repository.root / PRE_COMMIT if repository else None
    if repository is None or file is None or not file.is_file():
        return
    hooks = _hooks(read_yaml(file))
    configured_names = {name for name, _ in hooks}
    ours = [name for name in HOOKS if name in configured_names]
    if not ours:
        return
    if _is_set_up(repository):
        yield Finding("ok", f"Each commit runs {listed(ours)}.")
    else:
        text = f"{relative(file)} has {listed(ours)}, but pre-commit is not set up in this clone."
        yield Finding("wrong", text, _install_hooks(project, repository.root))


def _hooks(config: Any) -> list[tuple[str, str | None]]:
    """(name, index that its arguments name or None) for each hook of Anvil in a configuration of pre-commit."""
    hooks = []
    for hook in (hook for repo in objects(config, "repos") for hook in objects(repo, "hooks")):
        if hook.get("id") in HOOKS:
            args = [str(word) for word in hook["args"]] if isinstance(hook.get("args"), list) else []
            words = [part for word in args for part in (word.split("=", 1) if word.startswith("--") else [word])]
            index = next((value for option, value in pairwise(words) if option == "--index"), None)
            hooks.append((str(hook["id"]), index))
    return hooks


def _is_set_up(repository: Repository) -> bool:
    """Whether git runs pre-commit before a commit."""
    hooks_path = repository.configured("core.hooksPath")
    folder = repository.root / Path(hooks_path).expanduser() if hooks_path else repository.common_dir / "hooks"
    hook = folder / "pre-commit"
    return hook.is_file() and "pre-commit" in safe_files.text(hook, errors="replace")


def named_indexes(root: Path) -> list[str]:
    """The indexes that the arguments of Anvil's hooks name, relative to ``root``, the repository."""
    try:
        hooks = _hooks(read_yaml(root / PRE_COMMIT))
    except ConfigError:  # there is no file, or 'anvil doctor' reports it
        return []
    relative_names = {index for _, index in hooks if index is not None and not os.path.isabs(index)}
    paths = (os.path.normpath(name).replace(os.sep, "/") for name in relative_names)
    return sorted(path for path in paths if not path.startswith(".."))


def _install_hooks(project: ExaminedProject, root: Path) -> str:
    if shutil.which("pre-commit"):
        return project.at(root, "pre-commit install")
    run = installation.line([sys.executable, "-m", "pre_commit", "install"])
    return project.at(root, f"{installation.line(installation.install(['pre-commit']))} && {run}")


def mkdocs(project: ExaminedProject) -> Iterator[Finding]:
    """Whether the MkDocs plugin runs, if the configuration of MkDocs names it."""
    file = _mkdocs_config(project.folder)
    if file is None:
        return
    config = read_yaml(file)
    if not has_plugin(config):
        return
    unrun = unrun_plugin(project.folder)
    if unrun is not None:
        yield Finding("wrong", unrun.text, project.at(unrun.config.parent, unrun.command))
        return
    is_missing = find_spec("mkdocs") is None
    if is_missing:
        text = f"{relative(file)} names the plugin, but mkdocs is not installed here."
        yield Finding("note", text, installation.install_extras("mkdocs"))
    folder = file.parent / str(config.get("docs_dir") or "docs")
    if folder.resolve() != project.folder.resolve():
        pages, configured = relative(folder), relative(project.folder)
        text = f"The site is built from {pages}, but the configuration names {configured}. Set both to the same folder."
        yield Finding("note", text)
    elif not is_missing:
        yield Finding("ok", f"{relative(file)} names the plugin, and it can run.")


EXAMINATIONS: dict[str, Examination] = {"clients": clients, "pre-commit": pre_commit, "mkdocs": mkdocs}


# --- a plugin that does not run --------------------------------------------------------------------------------------

MKDOCS_CONFIGS = ("mkdocs.yml", "mkdocs.yaml")
ZENSICAL_CONFIG = "zensical.toml"
MAX_BUILD_FILE_BYTES = 200_000
"""Larger files are not searched for the commands of a build."""
_BUILD_FILES = (
    "pyproject.toml",
    "tox.ini",
    "noxfile.py",
    "Makefile",
    "justfile",
    "package.json",
    ".readthedocs.yml",
    ".readthedocs.yaml",
    ".gitlab-ci.yml",
    "netlify.toml",
    ".github/workflows/*.yml",
    ".github/workflows/*.yaml",
)
"""Files that may have the command that builds a site."""
_ZENSICAL_RUN = re.compile(r"(?<![\w./-])zensical\s+(?:build|serve)\b")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_SITE_BUILD = re.compile(r"\banvil(?:-docs)?\b.*\s--site\b|anvil-docs/anvil@[\s\S]*?\n\s+site:")


class UnrunPlugin(NamedTuple):
    """A plugin that does not run: the configuration that names it, the evidence that Zensical builds the site, and the
    command that builds the site and the index."""

    config: Path
    evidence: str
    command: str

    @property
    def text(self) -> str:
        """The problem and its solution, in sentences."""
        return (
            f"{self.config.name} has the plugin 'anvil', but Zensical builds this site ({self.evidence}) and does not "
            "run the plugin, so no index is built with the site. Remove the plugin, and build the index after the site."
        )


def unrun_plugin(docs: Path) -> UnrunPlugin | None:
    """The MkDocs plugin of the project of a documentation folder, if it does not run.

    None without the plugin, without evidence that Zensical builds the site, and if a build of the index after the site
    is configured.
    """
    file = _mkdocs_config(docs)
    try:
        config = {} if file is None else read_yaml(file)
    except ConfigError:  # `anvil doctor` reports it
        return None
    if file is None or not has_plugin(config):
        return None
    folder = file.parent
    texts = dict(_build_files(folder))
    running_file = next((path for path, text in texts.items() if _ZENSICAL_RUN.search(text)), None)
    has_config = (folder / ZENSICAL_CONFIG).is_file()
    if any(map(_SITE_BUILD.search, texts.values())) or not (has_config or running_file):
        return None
    evidence = f"there is {ZENSICAL_CONFIG}" if has_config else f"{running_file} runs it"
    site = str(config.get("site_dir") or "site")
    sources = os.path.relpath(docs, folder).replace(os.sep, "/")
    command = f"zensical build && anvil build --site {site} --docs {sources}"
    return UnrunPlugin(file, evidence, command)


def has_plugin(config: Any) -> bool:
    """Whether a configuration of MkDocs names Anvil's plugin."""
    plugins = config.get("plugins") if isinstance(config, dict) else None
    names = [name for plugin in plugins or () for name in (plugin if isinstance(plugin, dict) else [plugin])]
    return "anvil" in names


def _mkdocs_config(docs: Path) -> Path | None:
    """The nearest configuration of MkDocs in this folder or above it, up to the root of the repository."""
    start = Path(os.path.abspath(docs))
    for folder in (start, *start.parents):
        for name in MKDOCS_CONFIGS:
            if (folder / name).is_file():
                return folder / name
        if (folder / ".git").exists():
            return None
    return None


def _build_files(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, text without comments) for each of :data:`_BUILD_FILES` in a folder and at the root of the repository."""
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    for base in dict.fromkeys((folder, root)):
        for pattern in _BUILD_FILES:
            for file in sorted(base.glob(pattern)):
                try:
                    text = safe_files.text(file, MAX_BUILD_FILE_BYTES, "replace")
                except OSError:  # such as a broken link
                    continue
                lines = (_COMMENT.sub("", line) for line in text.splitlines())
                yield file.relative_to(base).as_posix(), "\n".join(lines)
