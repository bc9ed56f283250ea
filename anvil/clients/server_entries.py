"""``anvil init --client``: entries of the MCP server in the configuration files of clients, and links that add it.

A file is edited as text, so comments, order and other entries stay. A file that cannot be parsed is left alone, and so
is an entry that starts another server. The clients are listed in :mod:`anvil.clients.known_clients`.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

from anvil.cli import output
from anvil.clients import known_clients
from anvil.clients.file_editing import EDITORS
from anvil.clients.known_clients import CLIENTS, FORM, McpClient, Scope
from anvil.errors import ConfigError
from anvil.formats.data_formats import compact
from anvil.settings import index_url
from anvil.settings.configuration import nearest_config
from anvil.system import installation, safe_files
from anvil.wording import counted

SERVER = "docs"
"""The default name of the server in a project's file."""
PATHS = ("--docs", "-d", "--config", "-c", "--index", "--db", "--root")
"""Options of ``anvil serve`` whose value may be a path."""


class ClientFile(NamedTuple):
    """A client's file with entries of servers, for a project or for all projects of a user."""

    client: McpClient
    scope: Scope
    path: Path
    """The path of the file; ``.`` for a client without one."""

    @property
    def is_shared(self) -> bool:
        """Whether the file is in the project, so that its entries should work on other machines."""
        return self.scope == "project"


def client_file(client: McpClient, project: Path, scope: Scope | None = None) -> ClientFile:
    """The client's file on this machine. Without ``scope`` it is that of the preferred scope.

    Raises :class:`ConfigError` if the client has no file of this scope.
    """
    if client.settings:
        return ClientFile(client, client.settings_scope, Path())
    if scope is not None and scope not in client.scopes:
        raise ConfigError(f"{client.title} has no file for a {scope}. Leave out --scope.")
    scope = scope or client.scopes[0]
    paths = [_located(path, project) for path in _paths(client, scope)]
    existing = [path for path in paths if path.exists()] or [path for path in paths if path.parent.exists()] or paths
    return ClientFile(client, scope, existing[0])


def client_files(project: Path) -> Iterator[tuple[str, ClientFile]]:
    """(name of the first client that reads it, file) for each file that exists on this machine. Raises RuntimeError
    without a home folder."""
    files: dict[Path, tuple[str, ClientFile]] = {}
    for name, client in CLIENTS.items():
        for scope in client.scopes:
            file = client_file(client, project, scope)
            if file.path.is_file():
                files.setdefault(file.path, (name, file))
    yield from files.values()


def present_clients(project: Path) -> list[str]:
    """The names of clients that this project or this user has, by their signs."""
    return [name for name, client in CLIENTS.items() if any(_located(sign, project).exists() for sign in client.signs)]


def _paths(client: McpClient, scope: Scope) -> Sequence[str]:
    if scope == "project":
        return client.project
    return client.user_on_windows if client.user_on_windows and sys.platform == "win32" else client.user


def located(path: str, project: Path, home: Path, platform: str, environment: Mapping[str, str]) -> Path:
    """The path on a system for a path in :mod:`anvil.clients.known_clients`. ``platform``: see :data:`sys.platform`."""
    if path.startswith("~/"):
        return home / path[2:]
    base, _, below = path.partition("/")
    if base not in ("{app}", "{config}", "{xdg}"):
        return project / path
    if platform == "win32" and base != "{xdg}":
        folder = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    elif platform == "darwin" and base != "{xdg}":
        folder = home / "Library" / "Application Support" if base == "{app}" else home / ".config"
    else:
        folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return folder / below


def _located(path: str, project: Path) -> Path:
    return located(path, project, Path.home(), sys.platform, os.environ)


# --- entries -----------------------------------------------------------------------------------------------


def default_name(file: ClientFile, project: Path) -> str:
    """The name of a project's server: ``docs`` in a file of the project, the folder's name in a file of the user."""
    return SERVER if file.is_shared else folder_name(project)


def folder_name(project: Path) -> str:
    """The name of a project's folder, in characters that clients allow. Policies of Gemini CLI end a name at ``_``."""
    return re.sub(r"[^A-Za-z0-9-]+", "-", project.resolve().name).strip("-")[:40] or SERVER


def entry(
    file: ClientFile, project: Path, options: Mapping[str, Path | str], name: str, command: Sequence[str] | None = None
) -> dict[str, Any]:
    """The entry that starts ``anvil serve`` with ``options``, whose values are paths, or addresses as text.

    A file of the project names nothing outside the project if that is possible. A file of the user has absolute paths,
    because a client that was not started from a shell has another PATH. ``command``: the words that start ``anvil``.
    """
    words = [*(command or file.client.starter or _command(file, project)), "serve"]
    for option, value in options.items():
        words += [option, _path_in_file(file, project, value) if isinstance(value, Path) else value]
    return known_clients.entry(file.client, name, [*words, *known_clients.FORM])


def _path_in_file(file: ClientFile, project: Path, path: Path) -> str:
    if not file.is_shared:
        return str(path)
    if not path.is_relative_to(project):
        return path.as_posix()
    return (file.client.folder + path.relative_to(project).as_posix()).removesuffix("/.")


def _command(file: ClientFile, project: Path) -> list[str]:
    """The command that starts ``anvil`` without an active environment. A shared file gets no path of this machine."""
    words = installation.lasting_command(shared=file.is_shared)
    if not file.is_shared:
        return words
    if installation.outside_environments("anvil"):
        return ["anvil"]
    if Path(words[0]).is_relative_to(project):
        return [_path_in_file(file, project, Path(words[0])), *words[1:]]
    is_local = Path(words[0]).is_absolute() or any("file://" in word for word in words)
    return ["anvil"] if is_local else words


def requirement_of(file: ClientFile, server: Mapping[str, Any]) -> str | None:
    """A sentence on what each machine needs for an entry in a shared file. None if it needs nothing, or if this machine
    has ``anvil`` on the PATH."""
    program = known_clients.command_of(file.client, server)[0] if file.is_shared else ""
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
    words = known_clients.command_of(client, server)
    names = {Path(word.replace("\\", "/")).stem for word in words[:1]} | set(words[1:])
    return bool(names & {"anvil", "anvil-docs"})


def paths_of(client: McpClient, server: Any) -> Iterator[tuple[str, str]]:
    """(option, value) for each argument of an entry that is a local path. The option of FOLDER is ``FOLDER``."""
    words = known_clients.command_of(client, server)[1:]
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if at and words[at - 1] == "serve" and not word.startswith("-"):
            yield "FOLDER", word
        if option in PATHS and (equals or at + 1 < len(words)):
            path_or_url = value if equals else words[at + 1]
            if not index_url.is_remote(path_or_url):
                yield option, path_or_url


def start_problem(file: ClientFile, project: Path, server: Mapping[str, Any]) -> str | None:
    """The reason why a client of the project cannot start the server of an entry; None if it can."""
    words = known_clients.command_of(file.client, server)
    command = words[0].replace(known_clients.FOLDER, f"{project}/") if words else ""
    if not command:
        return "it has no command"
    if os.sep in command and file.is_shared and "${" not in command:
        command = str(project / command)  # a client starts servers of a project's file in the project's folder
    if "${" not in command and installation.outside_environments(command) is None:
        if os.sep in command:
            return f"there is no program {command}"
        inside = ": it is in a virtual environment, which a client does not activate" if shutil.which(command) else ""
        return f"there is no program {command} on the PATH{inside}"
    for option, value in paths_of(file.client, server):
        if "${" in value.replace(known_clients.FOLDER, ""):
            continue
        path = project / value.replace(known_clients.FOLDER, "")
        if not file.is_shared and not Path(value).is_absolute():
            return f"{option} {value} is not an absolute path, and the folder that it starts from is not known"
        if not path.exists():
            return f"{option} names {path}, which does not exist"
    return None


def other_project(file: ClientFile, project: Path, server: Any) -> Path | None:
    """The first path outside this project that an entry in a user's file names; None if it serves this project."""
    if file.is_shared:
        return None
    here = Path(os.path.realpath(project))
    paths = [project / value for _, value in paths_of(file.client, server) if "${" not in value]
    return next((path for path in paths if not Path(os.path.realpath(path)).is_relative_to(here)), None)


def _replaceable(file: ClientFile, project: Path, old: Any, server: Mapping[str, Any]) -> bool:
    """Whether the entry ``server`` may replace ``old``: that must start Anvil for this project or a missing folder."""
    if not is_ours(file.client, old):
        return False
    outside = other_project(file, project, old)
    if outside is None and not file.is_shared and not [*paths_of(file.client, old)]:
        # It serves a published index, and the project is not known. It is for this one if the arguments are the same.
        return known_clients.command_of(file.client, old)[1:] == known_clients.command_of(file.client, server)[1:]
    return outside is None or not outside.exists()


# --- files -------------------------------------------------------------------------------------------------


def snippet(client: McpClient, name: str, server: dict[str, Any]) -> str:
    """The text of a client's file with this entry alone."""
    return EDITORS[client.format].dumps(client.key, name, server)


def merged(text: str | None, file: ClientFile, name: str, server: dict[str, Any], project: Path) -> str:
    """The new text of a file with ``server`` under ``name``. It is the same text if the entry is in it already.

    ``text``: the text of the file, None without one. An entry of this name for this project is replaced. Its other
    keys, such as ``env``, are kept. Raises :class:`ConfigError` for another server's name or an invalid file.
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
                raise ConfigError(f"The name {name!r} is taken by another server. Choose another: --name {name}-2.")
            value = {**old, **server}
            if old == value:
                return text
        problem = "The file is in a form that Anvil does not change"
        new = editor.put(body, client.key, name, value)
        # The text was edited by positions. Its value must be the old one with this entry and no other change.
        if editor.loads(new) != {**table, client.key: {**servers, name: value}}:
            raise ValueError("another part of it would change")
    except (ValueError, RecursionError) as error:
        addition = snippet(client, name, server)
        raise ConfigError(f"{problem} ({_reason(error)}). Put this in yourself:\n{addition}") from error
    return text[: len(text) - len(body)] + new


def servers_in(text: str, client: McpClient) -> dict[str, Any]:
    """Name -> entry, of the servers in the text of a client's file. Raises :class:`ConfigError` if it is invalid."""
    body = text.removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        servers: dict[str, Any] = _table(body, client).get(client.key, {})
        return servers
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not what {client.title} reads: {_reason(error)}") from error


def difference(old: str | None, new: str, name: str) -> str:
    """A unified diff of the texts of the file ``name``; empty if they are the same."""
    before = name if old is not None else "/dev/null"
    lines = difflib.unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), before, name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _table(body: str, client: McpClient) -> dict[str, Any]:
    """The value of a file's text. Raises ValueError if it is not an object, or the value of the servers' key is not."""
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


# --- the command -----------------------------------------------------------------------------------------------------

ALL = "all"
"""In place of the name of a client: all clients that this project or this user has."""


@dataclass(frozen=True)
class Setup:
    """The options of ``anvil init --client`` and ``--links``."""

    docs: str | None = None
    name: str | None = None
    index: str | None = None
    command: str | None = None
    scope: Scope | None = None
    only_print: bool = False

    def write(self, chosen: Sequence[str]) -> None:
        """Put ``anvil serve`` into the files of the clients, or of all. Raises :class:`ConfigError` if one fails."""
        if self.name is not None and not self.name.strip():
            raise ConfigError("--name is empty. Give the server a name, such as --name my-docs.")
        present = present_clients(self._project) if ALL in chosen else ()
        suitable = (name for name in present if self.scope in (None, *CLIENTS[name].scopes))
        names = [name for name in dict.fromkeys([*chosen, *suitable]) if name != ALL]
        if not names:
            raise ConfigError("No MCP client was found in this project or for this user. Name one, such as codex.")
        failed, requirements = [], []
        for name in names:
            try:
                requirements.append(self._set_up(name))
            except ConfigError as error:
                if len(names) == 1:
                    raise
                output.warn(str(error))
                failed.append(CLIENTS[name].title)
        for requirement in dict.fromkeys(filter(None, requirements)):  # once, since most clients have the same
            output.warn(requirement)
        if failed:
            raise ConfigError(
                f"{counted(len(failed), 'client')} of {len(names)} could not be set up: {', '.join(failed)}."
            )

    def print_links(self) -> None:
        """Print links that add the server of a published index to a client. Raises :class:`ConfigError` without one."""
        if self.index is None or not index_url.is_remote(self.index):
            raise ConfigError(
                "--links needs the address of a published index, such as --index https://docs.example.org/."
            )
        name = self.name or folder_name(self._project)
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

    def _set_up(self, chosen: str) -> str | None:
        """Put ``anvil serve`` into a client's file, beside the other entries. Returns what the new entry needs on each
        machine, see :func:`requirement_of`."""
        client, project = CLIENTS[chosen], self._project
        file = client_file(client, project, self.scope)
        name = self.name or default_name(file, project)
        server = entry(file, project, self._options, name, self._words)
        if client.settings:
            output.say(f"{client.title} has no file for this. Paste this into {client.settings}:", err=True)
            output.say(snippet(client, name, server), nl=False)
            return None
        path = file.path
        inside = path.is_relative_to(project)
        if inside and not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project)):
            raise ConfigError(f"{path} is a link to a place outside the project. Remove it, and try again.")
        shown = os.path.relpath(path) if inside else str(path)
        if path.exists() and not path.is_file():  # reading a pipe would wait for a writer
            raise ConfigError(f"{shown} is not a regular file. Remove it, and try again.")
        try:
            old = safe_files.data(path).decode("utf-8") if path.exists() else None
            new = merged(old, file, name, server, project)
            if new == old:
                output.say(f"{client.title} has the server already: {shown} is not changed.")
                return None
            output.say(difference(old, new, Path(shown).as_posix()), nl=False)
            if self.only_print:
                return None
            _replace(file, new)
        except UnicodeDecodeError as error:
            raise ConfigError(f"{shown} is not UTF-8 text. Save it as UTF-8, and try again.") from error
        except OSError as error:
            raise ConfigError(
                f"{shown} cannot be written ({error.strerror}). Add the lines that --print shows yourself."
            ) from error
        except ConfigError as error:
            raise ConfigError(f"{shown}: {error}") from error
        condition = f" {client.condition}" if client.condition and file.is_shared else ""
        output.say(f"Wrote {shown}. Restart {client.title}, or let it reload its MCP servers.{condition}")
        return requirement_of(file, server)

    @property
    def _options(self) -> dict[str, Path | str]:
        """The options of ``anvil serve`` that name this project."""
        options: dict[str, Path | str] = {}
        folder = Path(os.path.abspath(self.docs or "docs"))
        if self._config:
            # the folder: a file that is named itself is trusted more than one that is found
            options["--config"] = self._config.parent
        elif folder.is_dir():
            options["--docs"] = folder
        elif self.docs is not None or self.index is None:
            from anvil.documents.folder_advice import no_folder

            raise ConfigError(no_folder(folder, self.docs or "docs"))
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


def _address(index: str) -> str:
    """The address of a published index. Raises :class:`ConfigError` if it has a password."""
    if index_url.spelled_without_secrets(index) != index:
        raise ConfigError("The address of --index holds a password, which would be written into the client's file.")
    return index


def _replace(file: ClientFile, text: str) -> None:
    """Write a file completely or not at all. A link to the file stays a link."""
    target = Path(os.path.realpath(file.path))
    if target.exists() and not target.stat().st_mode & 0o222:
        raise PermissionError(None, "it is read-only")
    target.parent.mkdir(parents=True, exist_ok=True)
    safe_files.write_file(target, text)


def install_links(name: str, words: Sequence[str]) -> dict[str, str]:
    """Title of a client -> the link that adds the server ``name``. ``words``: the command that starts the server."""
    server = {"command": words[0], "args": [*words[1:]]}
    config = base64.b64encode(compact(server).encode()).decode()
    query = f"name={quote(name, safe='')}&config={quote(config, safe='')}"
    return {
        "VS Code": f"vscode:mcp/install?{quote(compact({'name': name, 'type': 'stdio', **server}), safe='')}",
        "Cursor": f"cursor://anysphere.cursor-deeplink/mcp/install?{query}",
        "LM Studio": f"lmstudio://add_mcp?{query}",
    }
