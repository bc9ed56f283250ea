"""``anvil git``: drivers with which git shows and merges an index; ``anvil diff`` and ``anvil merge``."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from anvil import registry
from anvil.cli import options, output
from anvil.cli.output import ERROR, NO, OK
from anvil.cli.program import SuggestingGroup
from anvil.errors import ConfigError
from anvil.git.ignore_rules import literal
from anvil.requests import OpenRequest
from anvil.system import safe_files
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.git.repository import Repository
    from anvil.settings.schema import Config


@click.group("git", cls=SuggestingGroup, epilog="Example: anvil git install --index docs.anvil.db")
def command() -> None:
    """Let git show the index as text in diffs, and merge it: 'anvil git install'."""


@command.command("install", epilog="Example: anvil git install --index docs.anvil.db")
@options.given(options.docs, options.index, options.config)
def install(given: OpenRequest) -> None:
    """Name the drivers of the index in .gitattributes, and define them in this clone. Commit .gitattributes."""
    repository, lines = _repository_and_lines(given, installs=True)
    file = repository.root / ATTRIBUTES_FILE
    for line in lines:
        if safe_files.set_line(file, line, present=True):
            output.say(f"Added '{line}' to {ATTRIBUTES_FILE}. Commit it: other clones need the line too.")
        else:
            output.say(f"{ATTRIBUTES_FILE} has the line for {line.split()[0]} already.")
    repository.configure(drivers(_program()))
    output.say(output.in_commands("Defined the drivers in this clone. In each other clone, run: anvil git install"))


@command.command("uninstall", epilog="Example: anvil git uninstall --index docs.anvil.db")
@options.given(options.docs, options.index, options.config)
def uninstall(given: OpenRequest) -> None:
    """Remove the line and the drivers that 'anvil git install' added."""
    repository, lines = _repository_and_lines(given, installs=False)
    file = repository.root / ATTRIBUTES_FILE
    for line in lines:
        if safe_files.set_line(file, line, present=False):
            output.say(f"Removed '{line}' from {ATTRIBUTES_FILE}.")
    repository.configure(dict.fromkeys(drivers("")))
    output.say("Removed the drivers from this clone.")


@command.command("textconv", hidden=True)
@click.argument("file")
def textconv(file: str) -> None:
    """Print an index as text. Git calls this for diffs."""
    from anvil.errors import ArtifactError
    from anvil.git_drivers import index_diff
    from anvil.index_file import verify

    try:
        with verify.open_checked(Path(file)) as reader:
            output.say("\n".join(index_diff.lines(reader)))
    except ArtifactError as error:  # the error is printed as the text, since a failure would end 'git log -p'
        output.say(str(error).replace(file, "This file"))


@command.command("merge-driver", hidden=True)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("path")
def merge_driver(base: str, ours: str, theirs: str, path: str) -> int:
    """Write the merged index to OURS. Git calls this in the root of the work tree."""
    from anvil.errors import AnvilError
    from anvil.git_drivers import merge
    from anvil.settings.configuration import load_config

    build = f"anvil build --staged --index {_shell_path(path)} && git add {_shell_path(path)}"
    try:
        repository = _repository()
        ancestor = Path(base) if os.path.getsize(base) else None
        config = load_config()[0]
        with output.progress() as progress:
            report, conflicts = merge.reconcile(
                ancestor, Path(ours), Path(theirs), repository, partial(_provider, config), config.source, progress
            )
    except AnvilError as error:
        output.warn(f"{path} could not be merged: {error} Then run: {build}")
        return ERROR
    output.warn(
        f"merged {path}: {counted(report.pages, 'page')}; {counted(report.embedded, 'passage')} embedded, "
        f"{report.reused} reused."
    )
    for skipped in report.skipped:
        output.warn(f"skipped {skipped.path}: {skipped.reason}")
    if conflicts:
        output.warn(f"the index has one side of {', '.join(conflicts)}. Resolve the conflict, then run: {build}")
    return OK


@command.command("merge-agents", hidden=True)
@click.argument("base")
@click.argument("ours")
@click.argument("theirs")
@click.argument("path")
def merge_agents(base: str, ours: str, theirs: str, path: str) -> int:
    """Merge a file with the pointer of 'anvil agents' into OURS, with our pointer and the merged text around it.

    Git calls this before the pages are merged, so the pointer must be written again after the merge.
    """
    from anvil.agents import marked_block
    from anvil.errors import AnvilError

    try:
        repository = _repository()
        own, *others = (Path(file).read_bytes().decode("utf-8") for file in (ours, base, theirs))
        ancestor, other = (marked_block.with_blocks_of(text, own, path) for text in others)
        merged, is_clean = repository.merge_texts(ancestor, own, other, path)
    except (AnvilError, UnicodeDecodeError) as error:
        output.warn(
            f"{path} could not be merged: {error} Edit it, then run: anvil agents && git add {_shell_path(path)}"
        )
        return ERROR
    Path(ours).write_bytes(merged.encode())
    if other != own:
        output.warn(
            f"{path} has the pointer of one side. After the merge run: anvil agents && git add {_shell_path(path)}"
        )
    return OK if is_clean else NO


def _shell_path(path: str) -> str:
    """A path from the root of the work tree as a word of a command in the folder in which the user called git.

    Git calls a driver in the root, and names the user's folder in ``GIT_PREFIX``.
    """
    return shlex.quote(Path(os.path.relpath(path, os.environ.get("GIT_PREFIX") or ".")).as_posix())


def _repository() -> Repository:
    from anvil.errors import SourceError
    from anvil.git.repository import Repository

    repository = Repository.discover(Path.cwd())
    if repository is None:
        raise SourceError(f"{Path.cwd()} is not in a git repository.")
    return repository


def _provider(config: Config, meta: Mapping[str, str]) -> EmbeddingProvider:
    """The provider that made an index, with the settings of the configuration if these are for the same provider."""
    from dataclasses import replace

    from anvil.embedding.provider import create_cached_provider
    from anvil.settings.schema import EmbeddingSettings

    name, settings = meta["embedding_provider"], config.embedding
    if settings.provider != name:
        settings = replace(EmbeddingSettings(), provider=name)
    return create_cached_provider(name, settings)


def _repository_and_lines(given: OpenRequest, *, installs: bool) -> tuple[Repository, list[str]]:
    """The repository of the index, and the lines for indexes and for files with the pointer of ``anvil agents``. A
    warning says if git ignores an index for which drivers are installed.

    Without ``--index``, and if the configured index is not in git, they are for the indexes that a hook names or that
    git tracks.
    """
    from anvil.agents.agent_files import AgentFiles
    from anvil.index_file import publish

    with options.open_index(given) as opened:
        tracked = options.tracked_index(opened)
        agent_files = AgentFiles.around(opened)
        pointer_files = [] if agent_files is None else agent_files.with_pointer()
    repository, paths = tracked.repository, [tracked.path]
    if given.index is None and repository.entry(tracked.path) is None:
        in_hooks = registry.part("indexes that hooks name")(repository.root)
        databases = [path for path in repository.staging.folder(".") if path.endswith(".db")]
        in_git = (path for path in databases if publish.is_index(repository.root / path))
        if others := sorted({*in_hooks, *in_git}):
            paths = others
        elif installs and tracked.ignored:
            output.warn(f"The drivers do nothing for {tracked.path} yet. {tracked.adding()}")
    for path in paths:
        if "\n" in path:
            raise ConfigError(f"{path!r} cannot be named in {ATTRIBUTES_FILE}. Choose another place with --index.")
    lines = [*map(attribute_line, paths), *(attribute_line(path, AGENTS_DRIVER) for path in pointer_files)]
    return repository, lines


def _program() -> str:
    """The path of this ``anvil`` for the shell that git runs. ``anvil`` may not be on the PATH of an editor's git."""
    from anvil.system import installation

    program = installation.script() or installation.on_path() or Path("anvil")
    return shlex.quote(program.as_posix())


@click.command("diff", epilog="Example: anvil diff old.anvil.db new.anvil.db")
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@options.as_json
def diff_command(a: str, b: str, as_json: bool) -> int:
    """Compare two index files: list the pages, sections and settings that differ. Exit code 0: none, 1: some."""
    from anvil.git_drivers import index_diff
    from anvil.index_file import verify
    from anvil.settings import index_url

    first, second = (Path(index_url.file(name)) for name in (a, b))
    with verify.open_foreign(first) as old, verify.open_foreign(second) as new:
        difference = index_diff.difference(old, new)
    if as_json:
        output.print_json(difference)
    else:
        output.say(index_diff.render(difference), nl=False)
    return NO if difference.pages or difference.settings else OK


# --- lines of .gitattributes, and git's configuration of the drivers in them -----------------------------------------

ATTRIBUTES_FILE = ".gitattributes"
DRIVERS, AGENTS_DRIVER = "-text diff=anvil merge=anvil", "merge=anvil-agents"
"""The attributes of an index, and of a file with the pointer of ``anvil agents``. With ``-text``, git does not convert
line endings."""


def attribute_line(path: str, attributes: str = DRIVERS) -> str:
    """The line of ``.gitattributes`` for a file, by default an index. ``path``: POSIX, from the repository's root."""
    return f"/{literal(path).replace(' ', '[[:space:]]')} {attributes}"


def drivers(program: str) -> dict[str, str]:
    """Git's configuration of the drivers. ``program`` is a shell command; ``%`` is doubled where git expands it."""
    return {
        "diff.anvil.textconv": f"{program} git textconv",
        "diff.anvil.cachetextconv": "true",
        "diff.anvil.binary": "true",
        "diff.anvil.xfuncname": "^[^ ].*",
        "merge.anvil.name": "the index of the merged pages",
        "merge.anvil.driver": f"{program.replace('%', '%%')} git merge-driver %O %A %B %P",
        "merge.anvil-agents.name": "the text around the pointer to the documentation",
        "merge.anvil-agents.driver": f"{program.replace('%', '%%')} git merge-agents %O %A %B %P",
    }
