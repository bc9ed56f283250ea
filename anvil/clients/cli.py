"""``anvil init``."""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from anvil.cli import options, output
from anvil.cli.older_config import read_older_config
from anvil.clients import client_files
from anvil.clients.known_clients import CLIENTS, FORM, Scope
from anvil.errors import ConfigError
from anvil.formats.toml_values import quoted
from anvil.settings import index_url
from anvil.settings.files import CONFIG_NAME, index_file, load_config, nearest_config
from anvil.settings.layers import configure
from anvil.settings.schema import INDEX_FOLDER, Config
from anvil.system import installation, safe_read, safe_write
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.clients.client_files import ClientFile


ALL = "all"
"""Instead of a name: each client that this project or this user has."""


@dataclass(frozen=True)
class Setup:
    """The options of ``anvil init --client``."""

    docs: str | None = None
    name: str | None = None
    index: str | None = None
    command: str | None = None
    scope: Scope | None = None
    only_print: bool = False

    def write(self, chosen: str) -> None:
        """Put ``anvil serve`` into the file of a client, or of all. Raises :class:`ConfigError` if one failed."""
        if self.name is not None and not self.name.strip():
            raise ConfigError("--name is empty. Give the server a name, such as --name my-docs.")
        if chosen != ALL:
            self._set_up(chosen)
            return
        names = [
            name
            for name in client_files.found(self._project)
            if self.scope is None or self.scope in CLIENTS[name].scopes
        ]
        if not names:
            raise ConfigError("No MCP client was found in this project or for this user. Name one, such as codex.")
        failed = []
        for name in names:
            try:
                self._set_up(name)
            except ConfigError as error:
                output.warn(str(error))
                failed.append(CLIENTS[name].title)
        if failed:
            raise ConfigError(
                f"{counted(len(failed), 'client')} of {len(names)} could not be set up: {', '.join(failed)}."
            )

    def print_links(self) -> None:
        """Print links that add the server of a published index to a client."""
        if self.index is None or not index_url.is_remote(self.index):
            raise ConfigError(
                "--links needs the address of a published index, such as --index https://docs.example.org/."
            )
        name = self.name or client_files.folder_name(self._project)
        words = [*(self._words or ["uvx", installation.DISTRIBUTION]), "serve", "--index", _address(self.index), *FORM]
        for title, link in install_links(name, words).items():
            output.say(f"[Add to {title}]({link})")

    # --- one client --------------------------------------------------------------------------------------------

    @property
    def _config(self) -> Path | None:
        return nearest_config(Path.cwd()) if self.docs is None else None

    @property
    def _project(self) -> Path:
        return self._config.parent if self._config else Path.cwd()

    def _set_up(self, chosen: str) -> None:
        """Put ``anvil serve`` into a client's file, next to the entries that are there."""
        client, project = CLIENTS[chosen], self._project
        file = client_files.client_file(client, project, self.scope)
        name = self.name or client_files.default_name(file, project)
        server = client_files.entry(file, project, self._options, name, self._words)
        if client.settings:
            output.say(f"{client.title} has no file for this. Paste this into {client.settings}:", err=True)
            output.say(client_files.snippet(client, name, server), nl=False)
            return
        path = file.path
        inside = path.is_relative_to(project)
        if inside and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project)):
            raise ConfigError(f"{path} is a link to a place outside the project. Remove it, and try again.")
        shown = os.path.relpath(path) if inside else str(path)
        if path.exists() and not path.is_file():  # reading a pipe would wait for a writer
            raise ConfigError(f"{shown} is not a regular file. Remove it, and try again.")
        try:
            old = safe_read.data(path).decode("utf-8") if path.exists() else None
            new = client_files.merged(old, file, name, server, project)
            if new == old:
                output.say(f"{client.title} has the server already: {shown} is not changed.")
                return
            output.say(client_files.difference(old, new, Path(shown).as_posix()), nl=False)
            if self.only_print:
                return
            _replace(file, new)
        except UnicodeDecodeError as error:
            raise ConfigError(f"{shown} is not UTF-8 text. Save it as UTF-8, and try again.") from error
        except OSError as error:
            raise ConfigError(
                f"{shown} cannot be written ({error.strerror}). Add the lines that --print shows yourself."
            ) from error
        except ConfigError as error:
            taken = "is taken by another server" in str(error)
            again = f" Choose another name: {self._again(chosen, name)}" if taken else ""
            raise ConfigError(f"{shown}: {error}{again}") from error
        if needs := client_files.requirement_of(file, server):
            output.warn(needs)
        output.say(f"Wrote {shown}. Restart {client.title}, or let it reload its MCP servers.")

    @property
    def _options(self) -> dict[str, Path | str]:
        """The options of ``anvil serve`` that name this project."""
        options: dict[str, Path | str] = {}
        folder = Path(os.path.abspath(self.docs or "docs"))
        if self._config:
            options["--config"] = self._config.parent  # the folder: the file is not thereby trusted
        elif folder.is_dir():
            options["--docs"] = folder
        elif self.docs is not None or self.index is None:
            from anvil.documents.working_tree import missing_folder_advice

            raise ConfigError(f"There is no folder {self.docs or 'docs'}. {missing_folder_advice(folder)}")
        if self.index is not None:
            remote = index_url.is_remote(self.index)
            options["--index"] = _address(self.index) if remote else Path(os.path.abspath(self.index))
        return options

    @property
    def _words(self) -> list[str] | None:
        """The words of ``--command``. The path of an existing file is one word, spaces included."""
        if self.command is None:
            return None
        is_file = Path(self.command).is_file()
        words = [self.command] if is_file else shlex.split(self.command, posix=os.name != "nt")
        if not words:
            raise ConfigError(
                "--command is empty. Give the command that starts anvil, such as --command 'uvx anvil-docs'."
            )
        return words

    def _again(self, chosen: str, name: str) -> str:
        """The same command with another name for the server."""
        words = options.option_words(self, "docs", "index", "command", "scope")
        return installation.line(["anvil", "init", "--client", chosen, *words, "--name", f"{name}-2"])


def _address(index: str) -> str:
    if index_url.spelled_without_secrets(index) != index:
        raise ConfigError("The address of --index holds a password, which would be written into the client's file.")
    return index


def _replace(file: ClientFile, text: str) -> None:
    """Write a file whole or not at all; a link to it stays a link."""
    target = Path(os.path.realpath(file.path))
    if target.exists() and not target.stat().st_mode & 0o222:
        raise PermissionError(None, "it is read-only")
    target.parent.mkdir(parents=True, exist_ok=True)
    safe_write.write_file(target, text)


def install_links(name: str, words: Sequence[str]) -> dict[str, str]:
    """Title of a program -> the link that adds the server ``name``. ``words``: the command that starts it."""
    server = {"command": words[0], "args": [*words[1:]]}
    config = base64.b64encode(_json(server).encode()).decode()
    query = f"name={quote(name, safe='')}&config={quote(config, safe='')}"
    return {
        "VS Code": f"vscode:mcp/install?{quote(_json({'name': name, 'type': 'stdio', **server}), safe='')}",
        "Cursor": f"cursor://anysphere.cursor-deeplink/mcp/install?{query}",
        "LM Studio": f"lmstudio://add_mcp?{query}",
    }


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


TEMPLATE = """\
# Anvil: the documentation index. The most used keys, with their defaults where commented out.
# All keys: https://anvil-docs.github.io/anvil/reference/configuration/
docs = {docs}
# index = {index}

[source]
# include = ["**/*.md", "**/*.mdx", "**/*.markdown"]
# exclude = []
# max_file_bytes = 5000000

[chunking]
# max_chunk_size = 6000
# min_chunk_size = 200
# merge_short_sections = true
# slugs = "github"        # or "mkdocs": how anchors are made from headings

[embedding]
# provider = "local"      # or "openai", "none"
# model = ""              # a folder, or a Hugging Face id, in place of the bundled model

[search]
# threshold = 0.0
"""


@click.command("init", epilog="Example: anvil init --docs docs --no-commit-index")
@options.docs
@click.option(
    "--commit-index/--no-commit-index", default=None, help="Whether the index goes into git. Without it, init asks."
)
@click.option("--yes", "-y", is_flag=True, help="Ask nothing: without --commit-index, the index stays out of git.")
@click.option(
    "--client",
    type=click.Choice([*CLIENTS, ALL]),
    metavar="NAME",
    help=f"Instead: add the MCP server to the configuration file of a program: {', '.join(CLIENTS)}; "
    f"{ALL}: each that this project or this user has.",
)
@click.option(
    "--scope",
    type=click.Choice(["project", "user"]),
    help="With --client: the project's file, or the user's file for all projects (default: the project's, if the "
    "client has one).",
)
@click.option("--print", "only_print", is_flag=True, help="With --client: show the change, write nothing.")
@click.option(
    "--name",
    "title",
    help="With --client: the server's name in that file (default: docs; in a file of the user, the project's name).",
)
@click.option(
    "--index", "served", metavar="FILE", help="With --client and --links: the index to serve, a file or an address."
)
@click.option(
    "--command",
    "started",
    metavar="WORDS",
    help="With --client and --links: the command that starts anvil, such as 'uvx anvil-docs'.",
)
@click.option(
    "--links",
    is_flag=True,
    help="Instead: print links for a web page, 'Add to VS Code' and others, that add the server of a published index.",
)
def command(
    docs: str | None,
    commit_index: bool | None,
    yes: bool,
    client: str | None,
    scope: Scope | None,
    only_print: bool,
    title: str | None,
    served: str | None,
    started: str | None,
    links: bool,
) -> None:
    """Write anvil.toml, and the line that keeps the index in or out of git. Or set up an MCP client."""
    setup = Setup(docs, title, served, started, scope, only_print)
    if client is not None:
        setup.write(client)
        return
    if links:
        setup.print_links()
        return
    for option, given in (
        ("--print", only_print),
        ("--scope", scope),
        ("--name", title),
        ("--index", served),
        ("--command", started),
    ):
        if given:
            raise ConfigError(f"{option} goes with --client. Name a client, such as --client cursor.")
    older = read_older_config(docs) if nearest_config(Path.cwd()) is None else None
    docs = docs or (older.docs if older else None)
    config, base, config_file = _project(docs)
    folder = base / config.docs
    if not folder.is_dir():
        from anvil.documents.working_tree import missing_folder_advice

        raise ConfigError(f"There is no folder {docs or config.docs}. {missing_folder_advice(folder)}")
    if index_url.is_remote(config.index or ""):
        raise ConfigError("'index' names a published index, which does not go into git. There is nothing to set up.")
    if commit_index is None:
        commit_index = False if yes else _ask_to_commit()
    index = Path(os.path.abspath(index_file(config, base)))
    root = base if index.is_relative_to(base) else index.parent
    name = index.relative_to(root).as_posix()
    if config_file is None and os.path.lexists(CONFIG_NAME):
        config_file = Path(CONFIG_NAME)  # a broken link
    if config_file is not None:
        output.say(f"{output.relative(config_file)} exists already and is not changed.")
    else:
        text = TEMPLATE.format(docs=quoted(Path(docs or config.docs).as_posix()), index=quoted(name))
        for key, value in older.values.items() if older else ():
            text = re.sub(rf"^# {key} = [^ \n]+", f"{key} = {json.dumps(value)}", text, flags=re.MULTILINE)
        _write(Path(CONFIG_NAME), text)
        output.say(f"Wrote {CONFIG_NAME}{f' from {older.file}' if older else ''}.")
        if older and older.unused_keys:
            output.say(
                f"Not taken from {older.file}: {', '.join(older.unused_keys)}. The guide 'Moving to Anvil' says why."
            )
    ignore_file = (
        index.parent / ".gitignore" if index.parent.name == INDEX_FOLDER else None
    )  # a folder that only Anvil writes to
    ignored = f"{Path(name).parent.as_posix()}/" if ignore_file else name
    if ignore_file:
        safe_write.ensure_inside_parent(ignore_file.parent)
        ignore_lines = f"*\n!.gitignore\n!{index.name}\n" if commit_index else "*\n"  # scratch files stay out
        _write(ignore_file, ignore_lines)
    build = "" if index.is_file() else "anvil build, then "
    if commit_index:
        _add_line(root / ".gitattributes", f"{name} binary")
        _drop_line(root / ".gitignore", ignored)
        added = output.relative(index.parent if ignore_file else index)
        output.say(f"Next: {build}git add {added}, then anvil git install.")
    else:
        _add_line(root / ".gitignore", ignored)
        _drop_line(root / ".gitattributes", f"{name} binary")
        output.say(f"Next: {build}anvil search.")


def _ask_to_commit() -> bool:
    try:
        return click.confirm("Commit the index to git? (no: each machine or CI builds its own)", default=False)
    except click.Abort:
        if sys.stdin is not None and sys.stdin.isatty():
            raise
    output.say()
    raise ConfigError("There is no terminal to ask on. Give --commit-index or --no-commit-index.")


def _project(docs: str | None) -> tuple[Config, Path, Path | None]:
    """The configuration for the working folder, the folder that its paths are relative to, and its file or None.

    If ``docs`` is given and a configuration in a parent folder has another documentation folder, the working folder
    is a project of its own.
    """
    here = Path.cwd()
    config_file = nearest_config(here)
    if config_file is not None and docs is not None and config_file.parent != here:
        parent_config, base = load_config(config_file)
        if (base / parent_config.docs).resolve() != Path(docs).resolve():
            return configure({}, os.environ, {"docs": docs}), here, None
    return *load_config(config_file, {"docs": docs}), config_file


def _text(path: Path) -> str:
    """The text of a file, empty without one. Raises :class:`ConfigError`."""
    try:
        return safe_read.text(path) if path.is_file() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {safe_read.reason(error)}. Correct it, and try again.") from None


def _write(path: Path, text: str) -> None:
    """Write a file and its folder. Raises :class:`ConfigError`."""
    try:
        path.parent.mkdir(exist_ok=True)
        safe_write.write_file(path, text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}. Check its place and permissions.") from None


def _add_line(path: Path, line: str) -> None:
    text = _text(path)
    if line in text.splitlines():
        return
    _write(path, text + ("\n" if text and not text.endswith("\n") else "") + line + "\n")
    output.say(f"Added '{line}' to {output.relative(path)}.")


def _drop_line(path: Path, line: str) -> None:
    if line in (lines := _text(path).splitlines()):
        _write(path, "".join(f"{other}\n" for other in lines if other != line))
        output.say(f"Removed '{line}' from {output.relative(path)}.")
