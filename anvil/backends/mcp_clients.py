"""Adding Anvil to the configuration files of MCP clients.

A file is changed as text, so comments, order and other entries stay the same. It can contain comments and trailing
commas, as these programs allow. No library for JSON with comments does this. A file that cannot be parsed, and an entry
that starts another server, are never changed.

To add a client, add a line to :data:`CLIENTS`.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anvil.backends import installation
from anvil.core import index_url
from anvil.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: its name, the key of its servers, and further values of an entry."""

    title: str
    key: str
    extra: Mapping[str, Any]
    file: Callable[[Path, Path, str, Mapping[str, str]], Path]
    """(project, home, ``sys.platform``, environment) -> path of its file."""
    project: str | None
    """The project's folder in its file, with a slash if needed; None for a user's file, which has absolute paths."""


def _claude_desktop(project: Path, home: Path, platform: str, environment: Mapping[str, str]) -> Path:
    if platform == "darwin":
        folder = home / "Library" / "Application Support"
    elif platform == "win32":
        folder = Path(environment.get("APPDATA") or home / "AppData" / "Roaming")
    else:
        folder = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return folder / "Claude" / "claude_desktop_config.json"


def _zed(project: Path, home: Path, platform: str, environment: Mapping[str, str]) -> Path:
    if platform == "win32":
        return Path(environment.get("APPDATA") or home / "AppData" / "Roaming") / "Zed" / "settings.json"
    config = home / ".config" if platform == "darwin" else Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    return config / "zed" / "settings.json"


def _in_project(*parts: str) -> Callable[[Path, Path, str, Mapping[str, str]], Path]:
    return lambda project, home, platform, environment: project.joinpath(*parts)


SERVER = "docs"
"""The default name of the server in a project's file."""
FOLDER = "${workspaceFolder}/"
"""Editors start servers in any folder, and replace this by the project's."""
PATHS = ("--docs", "--config", "--index", "--root")
"""Options of ``anvil serve`` that name something on disk."""

CLIENTS = {
    "claude-code": Client("Claude Code", "mcpServers", {}, _in_project(".mcp.json"), ""),
    "claude-desktop": Client("Claude Desktop", "mcpServers", {}, _claude_desktop, None),
    "cursor": Client("Cursor", "mcpServers", {}, _in_project(".cursor", "mcp.json"), FOLDER),
    "vscode": Client("VS Code", "servers", {"type": "stdio"}, _in_project(".vscode", "mcp.json"), FOLDER),
    # Older versions of Zed require the source; newer ones ignore it.
    "zed": Client("Zed", "context_servers", {"source": "custom"}, _zed, None),
}
"""Name on the command line -> program."""


def path_of(client: Client, project: Path) -> Path:
    """The client's file on this machine."""
    return client.file(project, Path.home(), sys.platform, os.environ)


# --- entries -----------------------------------------------------------------------------------------------


def default_name(client: Client, project: Path) -> str:
    """The name of a project's server: ``docs`` in the project's own file, the folder's name in one for all projects."""
    if client.project is not None:
        return SERVER
    return re.sub(r"[^A-Za-z0-9_-]+", "-", project.resolve().name).strip("-_")[:40] or SERVER


def entry(
    client: Client, project: Path, options: Mapping[str, Path | str], command: Sequence[str] | None = None
) -> dict[str, Any]:
    """The entry that starts ``anvil serve`` with ``options``: paths, and addresses as text.

    A project's own file names nothing outside the project if it can. A user's file has absolute paths, because a
    program that was not started from a shell has another search path. ``command``: the words that start ``anvil``.
    """
    words = [*(command or _command(client, project)), "serve"]
    for option, value in options.items():
        words += [option, _spelled(client, project, value) if isinstance(value, Path) else value]
    return {**client.extra, "command": words[0], "args": words[1:]}


def _spelled(client: Client, project: Path, path: Path) -> str:
    """A path in the form of the client."""
    if client.project is None:
        return str(path)
    return client.project + path.relative_to(project).as_posix() if path.is_relative_to(project) else path.as_posix()


def _command(client: Client, project: Path) -> list[str]:
    """The command for ``anvil`` without an active virtual environment."""
    if client.project is not None and installation.outside_environments("anvil"):
        return ["anvil"]
    words = installation.lasting(shared=client.project is not None)
    inside = client.project and Path(words[0]).is_relative_to(project)
    return [_spelled(client, project, Path(words[0])), *words[1:]] if inside else words


def is_ours(server: Any) -> bool:
    """Whether an entry starts Anvil: as a program, as a module, or through uvx."""
    words = _words(server)
    names = {Path(word.replace("\\", "/")).stem for word in words[:1]} | set(words[1:])
    return bool(names & {"anvil", "anvil-docs"})


def paths_of(server: Any) -> Iterator[tuple[str, str]]:
    """(option, value) of an entry's arguments that are local paths."""
    words = _words(server)[1:]
    for at, word in enumerate(words):
        option, equals, value = word.partition("=")
        if option in PATHS and (equals or at + 1 < len(words)):
            named = value if equals else words[at + 1]
            if not index_url.is_remote(named):
                yield option, named


def other_project(client: Client, project: Path, server: Any) -> Path | None:
    """The path of another project that an entry in a user's file serves; None for this project."""
    if client.project is not None:
        return None
    here = Path(os.path.realpath(project))
    paths = [project / value for _, value in paths_of(server) if "${" not in value]
    return next((path for path in paths if not Path(os.path.realpath(path)).is_relative_to(here)), None)


def _words(server: Any) -> list[str]:
    if not isinstance(server, Mapping):
        return []
    arguments = server.get("args", [])
    words = [server.get("command"), *(arguments if isinstance(arguments, list) else [])]
    return [word for word in words if isinstance(word, str)]


def _replaceable(client: Client, project: Path, old: Any, server: Mapping[str, Any]) -> bool:
    """Whether ``server`` can replace ``old``, which starts Anvil for this project or for a missing folder."""
    if not is_ours(old):
        return False
    away = other_project(client, project, old)
    if away is None and client.project is None and not [*paths_of(old)]:
        return _words(old)[1:] == _words(server)[1:]  # a published index: compare the arguments
    return away is None or not away.exists()


# --- files -------------------------------------------------------------------------------------------------


def merged(text: str | None, client: Client, name: str, server: Mapping[str, Any], project: Path) -> str:
    """The file's new text with ``server`` under ``name``; the same text when it has it already.

    ``text``: the file's text, None without a file. An entry of ``name`` for this project is replaced; its other keys,
    such as ``env``, are kept. Raises :class:`ConfigError` when the name is another server's, and for invalid JSON.
    """
    if text is None or not text.strip("\ufeff \t\r\n"):
        return json.dumps({client.key: {name: server}}, indent=2) + "\n"
    body = text.removeprefix("\ufeff")
    try:
        servers = _servers(body, client)
        entry = dict(server)
        if servers is not None and name in servers:
            old = servers[name]
            if old == server:
                return text
            if not _replaceable(client, project, old, server):
                raise ConfigError(f"The name {name!r} is taken by another server, which is left as it is.")
            entry = {**old, **server}
            if old == entry:
                return text
        start = _start(body)
        if servers is None:
            new = _put(body, start, client.key, {name: entry})
        else:
            new = _put(body, _members(_plain(body), start)[0][client.key][1], name, entry)
        if _servers(new, client) != {**(servers or {}), name: entry}:
            raise ValueError("its commas or comments are not those of JSON")
    except (ValueError, RecursionError) as error:
        pasted = json.dumps({client.key: {name: server}}, indent=2)
        raise ConfigError(
            f"The file is not what {client.title} reads ({_reason(error)}). Put this in yourself:\n{pasted}"
        ) from error
    return text[: len(text) - len(body)] + new


def listed(text: str, client: Client) -> dict[str, Any]:
    """Name -> server of a client's file. Raises :class:`ConfigError` for a file that the client cannot read either."""
    body = text.removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        return _servers(body, client) or {}
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it is not what {client.title} reads: {_reason(error)}") from error


def difference(old: str | None, new: str, name: str) -> str:
    """A unified diff of the file ``name``; empty without a change."""
    before = name if old is not None else "/dev/null"
    lines = difflib.unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), before, name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


def _servers(body: str, client: Client) -> dict[str, Any] | None:
    """The servers of a file's text; None without their key. Raises ValueError for values that are not objects."""
    table = json.loads(_plain(body))
    servers = table.get(client.key) if isinstance(table, dict) else table
    if isinstance(servers, dict) or (isinstance(table, dict) and client.key not in table):
        return servers
    raise ValueError(f"{client.key if isinstance(table, dict) else 'the file'} is not an object")


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"line {error.lineno}: {error.msg}"
    return "it is nested too deeply" if isinstance(error, RecursionError) else str(error)


# --- JSON with comments, as text ---------------------------------------------------------------------------

_COMMENT = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_LAST_COMMA = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', re.DOTALL)
_SPACE = re.compile(r"[ \t\r\n]*")


def _blanked(pattern: re.Pattern[str], text: str) -> str:
    """``text`` with spaces for matches of ``pattern`` outside of strings, so that positions do not change."""
    return pattern.sub(lambda match: match[1] or re.sub(r"[^\r\n]", " ", match[0]), text)


def _plain(text: str) -> str:
    """``text`` without comments and trailing commas, with the same positions."""
    return _blanked(_LAST_COMMA, _blanked(_COMMENT, text))


def _skip(plain: str, at: int) -> int:
    """The position after white space."""
    match = _SPACE.match(plain, at)
    return match.end() if match else at


def _start(body: str) -> int:
    """The position of the outermost object."""
    return _skip(_plain(body), 0)


def _members(plain: str, start: int) -> tuple[dict[str, tuple[int, int, int]], int]:
    """Key -> (start of the key, start and end of the value) of the object at ``start``; the position of its ``}``."""
    decode = json.JSONDecoder().raw_decode
    members: dict[str, tuple[int, int, int]] = {}
    at = _skip(plain, start + 1)
    while plain[at] != "}":
        begin = at
        key, at = decode(plain, at)
        value = _skip(plain, _skip(plain, at) + 1)
        end = decode(plain, value)[1]
        members[key] = begin, value, end
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return members, at


def _put(text: str, start: int, key: str, value: Any) -> str:
    """The text with ``value`` under ``key`` of the object at ``start``."""
    members, brace = _members(_plain(text), start)
    newline = "\r\n" if "\r\n" in text else "\n"
    outer = re.match(r"[ \t]*", text[text.rfind("\n", 0, start) + 1 :])[0]  # type: ignore[index]
    inner = outer + ("\t" if "\n\t" in text else "  ")
    first = min((begin for begin, _, _ in members.values()), default=start)
    before = text[text.rfind("\n", 0, first) + 1 : first]
    if before and not before.strip() and "\n" in text[start:first]:
        inner = before
    written = json.dumps(value, indent=inner.removeprefix(outer) or "  ").replace("\n", newline + inner)
    if key in members:
        _, begin, end = members[key]
        return text[:begin] + written + text[end:]
    last = max((end for _, _, end in members.values()), default=start + 1)
    comma = _blanked(_COMMENT, text).find(",", last, brace)
    at, missing = (comma + 1, "") if comma >= 0 else (last, "," if members else "")
    added = f"{newline}{inner}{json.dumps(key)}: {written}"
    if not text[at:brace].strip(" \t"):  # the brace is on the same line
        return f"{text[:at]}{missing}{added}{newline}{outer}{text[brace:]}"
    rest = re.match(r"[ \t]*(?://[^\n\r]*)?", text[at:])[0]  # type: ignore[index]  # the comment on that line
    return f"{text[:at]}{missing}{rest}{added}{text[at + len(rest) :]}"
