"""MCP clients: whether the entries of Anvil in their files can be started."""

from __future__ import annotations

import itertools
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from anvil.clients.client_files import ClientFile, client_files, default_name, is_ours, listed, other_project, paths_of
from anvil.clients.known_clients import FOLDER, words
from anvil.doctor.examined_project import ExaminedProject, Result
from anvil.errors import ConfigError
from anvil.settings.files import CONFIG_NAME
from anvil.system import installation, safe_files


def examine(project: ExaminedProject) -> Iterator[Result]:
    """A finding for each entry of Anvil in a client's file, or one finding if there are none."""
    count = 0
    for name, file in _existing(project):
        for finding in _file(project, name, file):
            count += 1
            yield finding
    if not count:
        text = "No MCP client of this project or user is set up for Anvil. To set up one, such as Claude Code:"
        yield Result("ok", text, _init(project, "claude-code"))


def _existing(project: ExaminedProject) -> Iterator[tuple[str, ClientFile]]:
    with suppress(RuntimeError):  # there is no home folder
        yield from client_files(project.base)


def _init(project: ExaminedProject, name: str, *more: str) -> str:
    """The command that puts the server into a client's file."""
    options = () if (project.base / CONFIG_NAME).is_file() else ("--docs",)
    return project.at(project.base, project.anvil("init", "--client", name, *more, options=options))


def _file(project: ExaminedProject, name: str, file: ClientFile) -> Iterator[Result]:
    client, shown = file.client, project.shown(file.path)
    scope = () if file.scope == client.scopes[0] else ("--scope", file.scope)
    try:
        data = safe_files.data(file.path)
        servers = listed(data.decode(), client)
    except (ConfigError, UnicodeDecodeError) as error:
        text = f"{shown} cannot be read: {error}. Correct it"
        if not client.has_other_settings:
            renewal = f"{_aside(project, file.path)} && {_init(project, name, *scope)}"
            yield Result("wrong", f"{text}, or move it away and write a new one:", renewal)
        elif b"anvil" in data:
            yield Result("wrong", f"{text}.")
        return
    except OSError as error:
        yield Result("wrong", f"{shown} cannot be read ({error.strerror}).")
        return
    own = default_name(file, project.base)
    ours = {title: server for title, server in servers.items() if is_ours(client, server)}
    here = any(other_project(file, project.base, server) is None for server in ours.values())
    for title, server in ours.items():
        problem = _problem(project, file, server)
        away = other_project(file, project.base, server)
        named = () if title == own else ("--name", title)
        if problem is not None:
            command = None if away is not None and away.exists() else _init(project, name, *scope, *named)
            if file.is_shared and problem.startswith("there is no program anvil on"):  # 'init' would write the same
                command = installation.install_tool()
            yield Result("wrong", f"{client.title} cannot start {title!r} of {shown}: {problem}.", command)
        elif away is None:
            yield Result("ok", f"{client.title} can start {title!r} of {shown}.")
        elif title == own and not here:
            text = f"{title!r} of {client.title} ({shown}) serves {away}, not this project. To add this project:"
            free_name = next(free for number in itertools.count(2) if (free := f"{own}-{number}") not in servers)
            yield Result("note", text, _init(project, name, *scope, "--name", free_name))


def _aside(project: ExaminedProject, file: Path) -> str:
    shown = project.shown(file)
    return installation.line(["move" if os.name == "nt" else "mv", shown, f"{shown}.broken"])


def _problem(project: ExaminedProject, file: ClientFile, server: Mapping[str, Any]) -> str | None:
    """Why an entry cannot be started; None when it can."""
    started = words(file.client, server)
    command = started[0].replace(FOLDER, f"{project.base}/") if started else ""
    if not command:
        return "it has no command"
    if os.sep in command and file.is_shared and "${" not in command:
        command = str(project.base / command)  # a client starts the servers of a project in its folder
    if "${" not in command and installation.outside_environments(command) is None:
        if os.sep in command:
            return f"there is no program {command}"
        inside = ": it is in a virtual environment, which a client does not activate" if shutil.which(command) else ""
        return f"there is no program {command} on the PATH{inside}"
    for option, value in paths_of(file.client, server):
        if "${" in value.replace(FOLDER, ""):
            continue
        path = project.base / value.replace(FOLDER, "")
        if not file.is_shared and not Path(value).is_absolute():
            return f"{option} {value} is not an absolute path, and the folder that it starts from is not known"
        if not path.exists():
            return f"{option} names {path}, which does not exist"
    return None
