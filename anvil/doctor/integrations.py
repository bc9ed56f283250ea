"""What starts Anvil in a project: MCP clients, pre-commit and MkDocs. Can they start it, and does it do what it should?

A build asks for the plugin that does not run, so the modules about clients are imported by their examination only.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import sys
from collections.abc import Iterator, Mapping
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
    """A finding for each entry of Anvil in a client's file, or one finding if there are none."""
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
    options = () if (project.base / CONFIG_NAME).is_file() else ("--docs",)
    return project.at(project.base, project.anvil("init", "--client", name, *more, options=options))


def _client_file(project: ExaminedProject, name: str, file: ClientFile) -> Iterator[Finding]:
    from anvil.clients.server_entries import default_name, is_ours, other_project, servers_in, start_problem

    client, shown = file.client, relative(file.path)
    scope = () if file.scope == client.scopes[0] else ("--scope", file.scope)
    try:
        data = safe_files.data(file.path)
        servers = servers_in(data.decode(), client)
    except (ConfigError, UnicodeDecodeError) as error:
        if not client.has_other_settings or b"anvil" in data:
            yield Finding("wrong", f"{shown} cannot be read: {error}. Correct it.")
        return
    except OSError as error:
        yield Finding("wrong", f"{shown} cannot be read ({error.strerror}).")
        return
    own = default_name(file, project.base)
    ours = {title: server for title, server in servers.items() if is_ours(client, server)}
    here = any(other_project(file, project.base, server) is None for server in ours.values())
    for title, server in ours.items():
        problem = start_problem(file, project.base, server)
        away = other_project(file, project.base, server)
        named = () if title == own else ("--name", title)
        if problem is not None:
            command = None if away is not None and away.exists() else _init(project, name, *scope, *named)
            if file.is_shared and problem.startswith("there is no program anvil on"):  # 'init' would write the same
                command = installation.install_tool()
            yield Finding("wrong", f"{client.title} cannot start {title!r} of {shown}: {problem}.", command)
        elif away is None:
            yield Finding("ok", f"{client.title} can start {title!r} of {shown}.")
        elif title == own and not here:
            text = f"{title!r} of {client.title} ({shown}) serves {away}, not this project. To add this project:"
            free_name = next(free for number in itertools.count(2) if (free := f"{own}-{number}") not in servers)
            yield Finding("note", text, _init(project, name, *scope, "--name", free_name))


HOOKS = ("anvil-check", "anvil-build", "anvil-lint", "anvil-impact", "anvil-test")
PRE_COMMIT = ".pre-commit-config.yaml"


def pre_commit(project: ExaminedProject) -> Iterator[Finding]:
    """The configured hooks of Anvil: whether commits run them."""
    from anvil.git.repository import Repository

    try:
        repository = Repository.discover(project.base)
    except GitError:  # a finding of "git"
        return
    file = repository.root / PRE_COMMIT if repository else None
    if repository is None or file is None or not file.is_file():
        return
    hooks = _hooks(read_yaml(file))
    ours = [name for name in HOOKS if any(name == configured for configured, _ in hooks)]
    if not ours:
        return
    if _is_set_up(repository):
        yield Finding("ok", f"Each commit runs {listed(ours)}.")
    else:
        text = f"{relative(file)} has {listed(ours)}, but pre-commit is not set up in this clone."
        yield Finding("wrong", text, _install_hooks(project, repository.root))


def _hooks(written: Any) -> list[tuple[str, str | None]]:
    """The hooks of Anvil in a configuration of pre-commit, and the index that the arguments of each name."""
    hooks = []
    for hook in (hook for repo in objects(written, "repos") for hook in objects(repo, "hooks")):
        if hook.get("id") in HOOKS:
            args = [str(word) for word in hook["args"]] if isinstance(hook.get("args"), list) else []
            words = [part for word in args for part in (word.split("=", 1) if word.startswith("--") else [word])]
            index = next((value for option, value in pairwise(words) if option == "--index"), None)
            hooks.append((str(hook["id"]), index))
    return hooks


def _is_set_up(repository: Repository) -> bool:
    """Whether git runs pre-commit before a commit."""
    elsewhere = repository.configured("core.hooksPath")
    folder = repository.root / Path(elsewhere).expanduser() if elsewhere else repository.common_dir / "hooks"
    hook = folder / "pre-commit"
    return hook.is_file() and "pre-commit" in safe_files.text(hook, errors="replace")


def named_indexes(root: Path) -> list[str]:
    """The indexes that the arguments of Anvil's hooks name, relative to ``root``, the repository."""
    try:
        hooks = _hooks(read_yaml(root / PRE_COMMIT))
    except ConfigError:  # none, or a finding of the doctor
        return []
    named = {index for _, index in hooks if index is not None and not os.path.isabs(index)}
    inside = (os.path.normpath(name).replace(os.sep, "/") for name in named)
    return sorted(path for path in inside if not path.startswith(".."))


def _install_hooks(project: ExaminedProject, root: Path) -> str:
    if shutil.which("pre-commit"):
        return project.at(root, "pre-commit install")
    run = installation.line([sys.executable, "-m", "pre_commit", "install"])
    return project.at(root, f"{installation.line(installation.install(['pre-commit']))} && {run}")


def mkdocs(project: ExaminedProject) -> Iterator[Finding]:
    """The plugin, where MkDocs' configuration names it."""
    file = _mkdocs_config(project.folder)
    if file is None:
        return
    written = read_yaml(file)
    if not has_plugin(written):
        return
    unrun = unrun_plugin(project.folder)
    if unrun is not None:
        yield Finding("wrong", unrun.text, project.at(unrun.config.parent, unrun.command))
        return
    missing = find_spec("mkdocs") is None
    if missing:
        text = f"{relative(file)} names the plugin, but mkdocs is not installed here."
        yield Finding("note", text, installation.install_extras("mkdocs"))
    folder = file.parent / str(written.get("docs_dir") or "docs")
    if folder.resolve() != project.folder.resolve():
        site, named = relative(folder), relative(project.folder)
        text = f"The site is built from {site}, but the configuration names {named}. Set both to the same folder."
        yield Finding("note", text)
    elif not missing:
        yield Finding("ok", f"{relative(file)} names the plugin, and it can run.")


EXAMINATIONS: dict[str, Examination] = {"clients": clients, "pre-commit": pre_commit, "mkdocs": mkdocs}


# --- a plugin that does not run --------------------------------------------------------------------------------------

MKDOCS_CONFIGS = ("mkdocs.yml", "mkdocs.yaml")
ZENSICAL_CONFIG = "zensical.toml"
MAX_BUILD_FILE_BYTES = 200_000
"""Files of builds that are larger are not read."""
_BUILD_FILES = (
    "requirements*.txt",
    "requirements/*.txt",
    "docs/requirements*.txt",
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
"""Files that say how a site is built."""
_NAMED = re.compile(r"(?<![\w./-])zensical(?![\w/-])")
_RUN = re.compile(r"(?<![\w./-])zensical\s+(?:build|serve)\b")
_MKDOCS_RUN = re.compile(r"(?<![\w./-])(?:mkdocs\s+(?:build|gh-deploy)|mike\s+deploy)\b")
_COMMENT = re.compile(r"(?:^|\s)#.*")
_SITE_BUILD = re.compile(r"\banvil(?:-docs)?\b.*\s--site\b|anvil-docs/anvil@[\s\S]*?\n\s+site:")


class UnrunPlugin(NamedTuple):
    """A plugin that does not run: the configuration that names it, what shows that Zensical builds the site, and the
    command that does both builds."""

    config: Path
    evidence: str
    command: str

    @property
    def text(self) -> str:
        """What is wrong, and what to do."""
        return (
            f"{self.config.name} has the plugin 'anvil', but Zensical builds this site ({self.evidence}) and does not "
            "run the plugin: the site has no index. Remove the plugin, and build the index after the site."
        )


def unrun_plugin(docs: Path) -> UnrunPlugin | None:
    """The plugin that does not run, of the project that a documentation folder belongs to.

    None where there is no such plugin, where nothing shows that Zensical builds the site, where MkDocs still does, and
    where a build of the index after the site is configured.
    """
    config = _mkdocs_config(docs)
    try:
        written = {} if config is None else read_yaml(config)
    except ConfigError:  # `anvil doctor` reports it
        return None
    if config is None or not has_plugin(written):
        return None
    folder = config.parent
    texts = dict(_build_files(folder))
    evidence = None if any(map(_SITE_BUILD.search, texts.values())) else _evidence(folder, texts)
    if evidence is None:
        return None
    site = str(written.get("site_dir") or "site")
    sources = os.path.relpath(docs, folder).replace(os.sep, "/")
    command = f"zensical build && anvil build --site {site} --docs {sources}"
    return UnrunPlugin(config, evidence, command)


def has_plugin(written: Any) -> bool:
    """Whether a configuration of MkDocs names Anvil's plugin."""
    plugins = written.get("plugins") if isinstance(written, dict) else None
    names = [name for plugin in plugins or () for name in (plugin if isinstance(plugin, dict) else [plugin])]
    return "anvil" in names


def _mkdocs_config(docs: Path) -> Path | None:
    """The nearest configuration of MkDocs, not above the repository's root."""
    start = Path(os.path.abspath(docs))
    for folder in (start, *start.parents):
        for name in MKDOCS_CONFIGS:
            if (folder / name).is_file():
                return folder / name
        if (folder / ".git").exists():
            return None
    return None


def _build_files(folder: Path) -> Iterator[tuple[str, str]]:
    """(path, text without comments) of the files that say how a site is built: in its folder, and at the root of the
    repository."""
    root = next((above for above in (folder, *folder.parents) if (above / ".git").exists()), folder)
    for base in dict.fromkeys((folder, root)):
        for pattern in _BUILD_FILES:
            for file in sorted(base.glob(pattern)):
                try:
                    text = safe_files.text(file, MAX_BUILD_FILE_BYTES, "replace")
                except OSError:  # such as a broken link: it shows nothing
                    continue
                lines = (_COMMENT.sub("", line) for line in text.splitlines())
                yield file.relative_to(base).as_posix(), "\n".join(lines)


def _evidence(folder: Path, texts: Mapping[str, str]) -> str | None:
    """What shows that Zensical builds the site of a folder."""
    if (folder / ZENSICAL_CONFIG).is_file():
        return f"there is {ZENSICAL_CONFIG}"
    if any(map(_MKDOCS_RUN.search, texts.values())) and not any(map(_RUN.search, texts.values())):
        return None  # the package is there to be tried, or for tests
    named = next((path for path, text in texts.items() if _NAMED.search(text)), None)
    if named is not None:
        return f"{named} names it"
    if find_spec("zensical") is not None and find_spec("mkdocs") is None:
        return "it is installed here, and MkDocs is not"
    return None
