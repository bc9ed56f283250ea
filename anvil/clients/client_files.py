"""Adding Anvil to the configuration files of MCP clients.

A file is changed as text, so comments, order and other entries stay. A file that cannot be parsed, and an entry
that starts another server, are never changed. The clients are listed in :mod:`anvil.clients.known_clients`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from anvil.clients import known_clients
from anvil.clients.file_formats import EDITORS
from anvil.clients.known_clients import CLIENTS, McpClient, Scope
from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.system import installation

SERVER = "docs"
"""The default name of the server in a project's file."""
PATHS = ("--docs", "--config", "--index", "--root")
"""Options of ``anvil serve`` that name something on disk."""


class ClientFile(NamedTuple):
    """The place of an entry: a client's file for a project, or for all projects of a user."""

    client: McpClient
    scope: Scope
    path: Path
    """``.`` for a client without a file."""

    @property
    def is_shared(self) -> bool:
        """Whether the file is the project's, so that the entry should work on other machines."""
        return self.scope == "project"


def client_file(client: McpClient, project: Path, scope: Scope | None = None) -> ClientFile:
    """The client's file on this machine. ``scope``: the preferred one if None.

    Raises :class:`ConfigError` for a scope that the client does not have.
    """
    if client.settings:
        return ClientFile(client, client.settings_scope, Path())
    if scope is not None and scope not in client.scopes:
        raise ConfigError(f"{client.title} has no file for a {scope}. Leave out --scope.")
    scope = scope or client.scopes[0]
    paths = [_located(path, project) for path in _paths(client, scope)]
    return ClientFile(client, scope, next((path for path in paths if path.exists()), paths[0]))


def client_files(project: Path) -> Iterator[tuple[str, ClientFile]]:
    """(name of the client, file) of all files that exist on this machine. Raises RuntimeError without a home folder."""
    for name, client in CLIENTS.items():
        for scope in client.scopes:
            file = client_file(client, project, scope)
            if file.path.is_file():
                yield name, file


def found(project: Path) -> list[str]:
    """The names of the clients that this project or this user has."""
    return [name for name, client in CLIENTS.items() if any(_located(sign, project).exists() for sign in client.signs)]


def _paths(client: McpClient, scope: Scope) -> Sequence[str]:
    if scope == "project":
        return client.project
    return (client.user_on_windows,) if client.user_on_windows and sys.platform == "win32" else client.user


def located(path: str, project: Path, home: Path, platform: str, environment: Mapping[str, str]) -> Path:
    """A path of a client on a system. ``platform``: as :data:`sys.platform`."""
    if path.startswith("~/"):
        return home / path[2:]
    base, _, rest = path.partition("/")
    if base not in ("{app}", "{config}", "{xdg}"):
        return project / path
    if platform == "win32" and base != "{xdg}":
        folder = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    elif platform == "darwin" and base != "{xdg}":
        folder = home / "Library" / "Application Support" if base == "{app}" else home / ".config"
    else:
        folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return folder / rest


def _located(path: str, project: Path) -> Path:
    return located(path, project, Path.home(), sys.platform, os.environ)


# --- entries -----------------------------------------------------------------------------------------------


def default_name(file: ClientFile, project: Path) -> str:
    """The name of a project's server: ``docs`` in the project's own file, the folder's name in one for all projects."""
    return SERVER if file.is_shared else folder_name(project)


def folder_name(project: Path) -> str:
    """The name of a project's folder, in the letters that clients allow."""
    return re.sub(r"[^A-Za-z0-9_-]+", "-", project.resolve().name).strip("-_")[:40] or SERVER


def entry(
    file: ClientFile,
    project: Path,
    options: Mapping[str, Path | str],
    name: str,
    command: Sequence[str] | None = None,
) -> dict[str, Any]:
    """The entry that starts ``anvil serve`` with ``options``: paths, and addresses as text.

    A project's own file names nothing outside the project if it can. A user's file has absolute paths, because a
    program that was not started from a shell has another search path. ``command``: the words that start ``anvil``.
    """
    words = [*(command or file.client.starter or _command(file, project)), "serve"]
    for option, value in options.items():
        words += [option, _spelled(file, project, value) if isinstance(value, Path) else value]
    return known_clients.entry(file.client, name, [*words, *known_clients.FORM])


def _spelled(file: ClientFile, project: Path, path: Path) -> str:
    """A path in the form of the client."""
    if not file.is_shared:
        return str(path)
    if not path.is_relative_to(project):
        return path.as_posix()
    return (file.client.folder + path.relative_to(project).as_posix()).removesuffix("/.")


def _command(file: ClientFile, project: Path) -> list[str]:
    """The command for ``anvil`` without an active virtual environment. A shared file gets no path of this machine."""
    words = installation.lasting(shared=file.is_shared)
    if not file.is_shared:
        return words
    if installation.outside_environments("anvil"):
        return ["anvil"]
    if Path(words[0]).is_relative_to(project):
        return [_spelled(file, project, Path(words[0])), *words[1:]]
    of_this_machine = Path(words[0]).is_absolute() or any("file://" in word for word in words)
    return ["anvil"] if of_this_machine else words


def requirement_of(file: ClientFile, server: Mapping[str, Any]) -> str | None:
    """What an entry in a shared file needs on each machine, in a sentence; None if this machine has it on the PATH."""
    program = known_clients.words(file.client, server)[0] if file.is_shared else ""
    if program == "anvil" and not installation.outside_environments("anvil"):
        return (
            "The entry starts 'anvil' from the PATH, because the file is for all who open this project, and here it is "
            f"not on the PATH outside of a virtual environment. To have it there: {installation.install_tool()}. Or "
            "give another command with --command."
        )
    if program.startswith((file.client.folder or ".", ".")) and program.endswith(("anvil", "anvil.exe")):
        shown = program.removeprefix(file.client.folder)
        return f"The entry starts {shown}: all who open this project need an environment with Anvil at that place."
    return None


def is_ours(client: McpClient, server: Any) -> bool:
    """Whether an entry starts Anvil: as a program, as a module, or through uvx."""
    words = known_clients.words(client, server)
    names = {Path(word.replace("\\", "/")).stem for word in words[:1]} | set(words[1:])
    return bool(names & {"anvil", "anvil-docs"})


def paths_of(client: McpClient, server: Any) -> Iterator[tuple[str, str]]:
    """(option, value) of an entry's arguments that are local paths."""
    words = known_clients.words(client, server)[1:]
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in PATHS and (equals or at + 1 < len(words)):
            named = value if equals else words[at + 1]
            if not index_url.is_remote(named):
                yield option, named


def other_project(file: ClientFile, project: Path, server: Any) -> Path | None:
    """The path of another project that an entry in a user's file serves; None for this project."""
    if file.is_shared:
        return None
    here = Path(os.path.realpath(project))
    paths = [project / value for _, value in paths_of(file.client, server) if "${" not in value]
    return next((path for path in paths if not Path(os.path.realpath(path)).is_relative_to(here)), None)


def _replaceable(file: ClientFile, project: Path, old: Any, server: Mapping[str, Any]) -> bool:
    """Whether ``server`` can replace ``old``, which starts Anvil for this project or for a missing folder."""
    if not is_ours(file.client, old):
        return False
    away = other_project(file, project, old)
    if away is None and not file.is_shared and not [*paths_of(file.client, old)]:
        # a published index: compare the arguments
        return known_clients.words(file.client, old)[1:] == known_clients.words(file.client, server)[1:]
    return away is None or not away.exists()


# --- files -------------------------------------------------------------------------------------------------


def snippet(client: McpClient, name: str, server: dict[str, Any]) -> str:
    """The text of a file with this entry alone."""
    return EDITORS[client.format].dumps(client.key, name, server)


def merged(text: str | None, file: ClientFile, name: str, server: dict[str, Any], project: Path) -> str:
    """The file's new text with ``server`` under ``name``; the same text when it has it already.

    ``text``: the file's text, None without a file. An entry of ``name`` for this project is replaced; its other keys,
    such as ``env``, are kept. Raises :class:`ConfigError` when the name is another server's, and for an invalid file.
    """
    client, editor = file.client, EDITORS[file.client.format]
    if text is None or not text.strip("\ufeff \t\r\n"):
        return snippet(client, name, server)
    body = text.removeprefix("\ufeff")
    problem = f"The file is not what {client.title} reads"
    try:
        table = _table(body, client)
        servers = table.get(client.key, {})
        value = server
        if name in servers:
            old = servers[name]
            if old == server:
                return text
            if not _replaceable(file, project, old, server):
                raise ConfigError(f"The name {name!r} is taken by another server, which is left as it is.")
            value = {**old, **server}
            if old == value:
                return text
        problem = "The file is in a form that Anvil does not change"
        new = editor.put(body, client.key, name, value)
        if editor.loads(new) != {**table, client.key: {**servers, name: value}}:
            raise ValueError("another part of it would change")
    except (ValueError, RecursionError) as error:
        pasted = snippet(client, name, server)
        raise ConfigError(f"{problem} ({_reason(error)}). Put this in yourself:\n{pasted}") from error
    return text[: len(text) - len(body)] + new


def listed(text: str, client: McpClient) -> dict[str, Any]:
    """Name -> server of a client's file. Raises :class:`ConfigError` for a file that the client cannot read either."""
    body = text.removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        servers: dict[str, Any] = _table(body, client).get(client.key, {})
        return servers
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not what {client.title} reads: {_reason(error)}") from error


def difference(old: str | None, new: str, name: str) -> str:
    """A unified diff of the file ``name``; empty without a change."""
    before = name if old is not None else "/dev/null"
    lines = difflib.unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), before, name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _table(body: str, client: McpClient) -> dict[str, Any]:
    """The value of a file's text. Raises ValueError if it, or the value of the servers' key, is not an object."""
    table = EDITORS[client.format].loads(body)
    if not isinstance(table, dict):
        raise ValueError("the file is not an object")
    if table.get(client.key, {}) is None and client.format == "yaml":  # a key without entries yet
        del table[client.key]
    if not isinstance(table.get(client.key, {}), dict):
        raise ValueError(f"{client.key} is not an object")
    return table


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
