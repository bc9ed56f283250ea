"""``anvil init --client``: the MCP server in the configuration files of clients, and links that add it."""

from __future__ import annotations

import base64
import json
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from anvil.cli import options, output
from anvil.clients import client_files
from anvil.clients.known_clients import CLIENTS, FORM, Scope
from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.settings.files import nearest_config
from anvil.system import installation, safe_files
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
            old = safe_files.data(path).decode("utf-8") if path.exists() else None
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
    safe_files.write_file(target, text)


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
