"""The programs that speak MCP: whether what their files say of Anvil still works."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from anvil import addresses, program
from anvil.clients import CLIENTS, FOLDER, SERVER, Client, listed, path_of
from anvil.configfile import CONFIG_NAME
from anvil.doctor.place import Place
from anvil.errors import ConfigError
from anvil.findings import Finding

PATHS = ("--docs", "--config", "--index", "--root")
"""Options of ``anvil serve`` that name something on disk."""


def examine(place: Place) -> Iterator[Finding]:
    """Each client whose file is there; one finding when none knows of Anvil."""
    told = 0
    for name, client in CLIENTS.items():
        try:
            file = path_of(client, place.project)
        except RuntimeError:  # no home: no files of the user's
            continue
        if not file.is_file():
            continue
        found = list(_file(place, name, client, file))
        told += len(found)
        yield from found
    if not told:
        text = "No client of this project or user has Anvil in its file. To tell one of it, such as Claude Code:"
        yield Finding("clients", "ok", text, _init(place, "claude-code"))


def _init(place: Place, name: str) -> str:
    """The command that puts the server into a client's file."""
    options = () if (place.project / CONFIG_NAME).is_file() else ("--docs",)
    return place.at(place.project, place.anvil("init", "--client", name, options=options))


def _file(place: Place, name: str, client: Client, file: Path) -> Iterator[Finding]:
    shown = place.shown(file)
    try:
        servers = listed(file.read_text("utf-8"), client)
    except (ConfigError, UnicodeDecodeError) as error:
        text = f"{shown} cannot be read: {error}. Correct it; or put it aside and begin anew:"
        yield Finding("clients", "wrong", text, f"{_aside(place, file)} && {_init(place, name)}")
        return
    except OSError as error:
        yield Finding("clients", "wrong", f"{shown} cannot be read ({error.strerror}).")
        return
    for title, server in servers.items():
        if not isinstance(server, Mapping) or not _is_ours(server):
            continue
        wrong = _wrong(place, client, server)
        mend = _init(place, name) if title == SERVER else None
        if wrong is not None:
            yield Finding("clients", "wrong", f"{client.title} cannot start {title!r} of {shown}: {wrong}.", mend)
        elif (other := _elsewhere(place, client, server)) is not None:
            text = f"{client.title} has {title!r} answer from {other}, not from here ({shown})."
            yield Finding("clients", "note", text, mend)
        else:
            yield Finding("clients", "ok", f"{client.title} can start {title!r} of {shown}.")


def _aside(place: Place, file: Path) -> str:
    shown = place.shown(file)
    return program.line(["move" if os.name == "nt" else "mv", shown, f"{shown}.broken"])


def _words(server: Mapping[str, Any]) -> list[str]:
    arguments = server.get("args", [])
    given = arguments if isinstance(arguments, list) else []
    return [each for each in (server.get("command"), *given) if isinstance(each, str)]


def _is_ours(server: Mapping[str, Any]) -> bool:
    """Whether an entry starts Anvil: as a program, as a module, or through a program that fetches it."""
    words = _words(server)
    names = {Path(word.replace("\\", "/")).stem for word in words[:1]} | set(words[1:])
    return bool(names & {"anvil", "anvil-docs"})


def _wrong(place: Place, client: Client, server: Mapping[str, Any]) -> str | None:
    """Why an entry cannot be started; None when it can."""
    command = str(server["command"]).replace(FOLDER, f"{place.project}/") if server.get("command") else ""
    if not command:
        return "it has no command"
    if "${" not in command and shutil.which(command) is None:
        return f"there is no program {command}" + (" on the PATH" if os.sep not in command else "")
    for option, value in _paths(server):
        if "${" in value.replace(FOLDER, ""):
            continue
        path = _path(place, value)
        if client.project is None and not Path(value).is_absolute():
            return f"{option} {value} is no absolute path, and where it starts from is not known"
        if not path.exists():
            return f"{option} names {path}, which is not there"
    return None


def _elsewhere(place: Place, client: Client, server: Mapping[str, Any]) -> Path | None:
    """The other place that a user's own file has the server answer from; None for this project."""
    if client.project is not None:
        return None
    paths = [_path(place, value) for option, value in _paths(server) if "${" not in value]
    here = Path(os.path.realpath(place.project))
    away = (path for path in paths if not Path(os.path.realpath(path)).is_relative_to(here))
    return next(away, None)


def _paths(server: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(option, value) of the arguments that name something on disk."""
    words = _words(server)[1:]
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in PATHS and (equals or at + 1 < len(words)):
            named = value if equals else words[at + 1]
            if not addresses.is_remote(named):
                yield option, named


def _path(place: Place, value: str) -> Path:
    return place.project / value.replace(FOLDER, "")
