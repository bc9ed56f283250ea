"""The configuration files of programs that speak MCP: where each keeps its servers, and how one is put in.

A file that stands is changed as text, so that comments, order and other entries stay as they are. It may hold
comments and trailing commas, as these programs allow; what cannot be understood is left alone.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import shutil
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from anvil.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Client:
    """A program: its name for people, the key above its servers, and what an entry needs beside the command."""

    title: str
    key: str
    extra: Mapping[str, Any]
    file: Callable[[Path, Path, str, Mapping[str, str]], Path]
    """(project, home, ``sys.platform``, environment) -> its file."""
    project: str | None
    """What its file says for the project's folder, with a slash if it needs one; None: a file of the user's, with
    absolute paths."""


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
"""The name under which clients list the server that ``anvil init`` puts in."""
FOLDER = "${workspaceFolder}/"
"""The editors start a server in a folder of their own choice, and put the project's in here."""

CLIENTS = {
    "claude-code": Client("Claude Code", "mcpServers", {}, _in_project(".mcp.json"), ""),
    "claude-desktop": Client("Claude Desktop", "mcpServers", {}, _claude_desktop, None),
    "cursor": Client("Cursor", "mcpServers", {}, _in_project(".cursor", "mcp.json"), FOLDER),
    "vscode": Client("VS Code", "servers", {"type": "stdio"}, _in_project(".vscode", "mcp.json"), FOLDER),
    # Older versions of Zed want the source named; newer ones do not mind it.
    "zed": Client("Zed", "context_servers", {"source": "custom"}, _zed, None),
}
"""Name on the command line -> program."""


def path_of(client: Client, project: Path) -> Path:
    """The client's file on this machine."""
    return client.file(project, Path.home(), sys.platform, os.environ)


def entry(client: Client, project: Path, option: str, path: Path) -> dict[str, Any]:
    """What the client is told: ``anvil serve`` with an option that names a path.

    A file that is shared with a project holds nothing of one machine; in a user's own file all is absolute, because
    a program that was not started from a shell has another search path.
    """
    if client.project is None or not path.is_relative_to(project):
        named = path.as_posix() if client.project is not None else str(path)
    else:
        named = client.project + path.relative_to(project).as_posix()
    command = "anvil" if client.project is not None else shutil.which("anvil") or "anvil"
    return {**client.extra, "command": command, "args": ["serve", option, named]}


def merged(text: str | None, client: Client, name: str, server: Mapping[str, Any]) -> str:
    """The file's new text with ``server`` under ``name``, replacing one of that name; the same text when it is there.

    ``text``: what stands there, None when there is no file. Raises :class:`ConfigError` for what is not an object
    of JSON, with or without comments.
    """
    if text is None or not text.strip():
        return json.dumps({client.key: {name: server}}, indent=2) + "\n"
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    body = text[len(mark) :]
    try:
        found, servers = _parsed(body, client)
        if servers is None:
            body = found.put(client.key, {name: server})
        elif name in servers.values and _value(body, *servers.values[name]) == server:
            return text
        else:
            body = servers.put(name, server)
    except ValueError as error:
        pasted = json.dumps({client.key: {name: server}}, indent=2)
        raise ConfigError(
            f"The file is not what {client.title} reads ({error}). Put this in yourself:\n{pasted}"
        ) from error
    return mark + body


def listed(text: str, client: Client) -> dict[str, Any]:
    """The servers of a client's file, by name. Raises :class:`ConfigError` for what the client cannot read either."""
    body = text.removeprefix("\ufeff")
    if not body.strip():
        return {}
    try:
        servers = _parsed(body, client)[1]
        return {} if servers is None else {name: _value(body, *span) for name, span in servers.values.items()}
    except ValueError as error:
        raise ConfigError(f"it is not what {client.title} reads: {error}") from error


def _parsed(body: str, client: Client) -> tuple[_Object, _Object | None]:
    """The object that a file is, and the one of its servers. ValueError for anything else."""
    found = _Object(body, _skip(body, 0))
    if _skip(body, found.end) != len(body):
        raise ValueError("something follows the object")
    return found, _Object(body, found.values[client.key][0]) if client.key in found.values else None


def difference(old: str | None, new: str, name: str) -> str:
    """A unified diff of a file called ``name``; empty when nothing changes."""
    before = name if old is not None else "/dev/null"
    lines = difflib.unified_diff((old or "").splitlines(keepends=True), new.splitlines(keepends=True), before, name)
    return "".join(line if line.endswith("\n") else line + "\n" for line in lines)


# --- JSON with comments, as text ---------------------------------------------------------------------------

_SPACE = re.compile(r"(?:[ \t\r\n]+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\\x00-\x1f]|\\.)*"')
_PLAIN = re.compile(r"[^\s,\]}/\"\[{:]+")


def _skip(text: str, at: int) -> int:
    """Past white space and comments."""
    found = _SPACE.match(text, at)
    assert found is not None
    return found.end()


def _end(text: str, at: int) -> int:
    """Where the value that begins at ``at`` ends. ValueError when there is none."""
    if text[at : at + 1] == "{":
        return _Object(text, at).end
    if text[at : at + 1] == "[":
        at = _skip(text, at + 1)
        while text[at : at + 1] != "]":
            at = _skip(text, _end(text, at))
            if text[at : at + 1] == ",":
                at = _skip(text, at + 1)
            elif text[at : at + 1] != "]":
                raise ValueError(_where(text, at, "a comma or ]"))
        return at + 1
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise ValueError(_where(text, at, "a value"))
    json.loads(found[0])
    return found.end()


def _where(text: str, at: int, wanted: str) -> str:
    return f"line {text.count(chr(10), 0, at) + 1}: {wanted} was expected"


def _value(text: str, start: int, end: int) -> Any:
    """A value without its comments and trailing commas."""
    parts = re.split(r'("(?:[^"\\]|\\.)*")', text[start:end])
    for place in range(0, len(parts), 2):
        parts[place] = re.sub(r"//[^\n]*|/\*.*?\*/", "", parts[place], flags=re.DOTALL)
    plain = "".join(parts)
    return json.loads(re.sub(r'("(?:[^"\\]|\\.)*")|,(?=\s*[\]}])', lambda m: m[1] or "", plain))


class _Object:
    """An object in a text: the spans of its values by key, and where a further one goes."""

    def __init__(self, text: str, at: int) -> None:
        if text[at : at + 1] != "{":
            raise ValueError(_where(text, at, "an object"))
        self.text, self.start = text, at
        self.values: dict[str, tuple[int, int]] = {}
        self._last, self._comma = at + 1, True
        at = _skip(text, at + 1)
        while text[at : at + 1] != "}":
            key = _STRING.match(text, at)
            if key is None:
                raise ValueError(_where(text, at, "a key"))
            at = _skip(text, key.end())
            if text[at : at + 1] != ":":
                raise ValueError(_where(text, at, "a colon"))
            at = _skip(text, at + 1)
            end = _end(text, at)
            self.values[json.loads(key[0])] = (at, end)
            self._last, self._comma = end, False
            at = _skip(text, end)
            if text[at : at + 1] == ",":
                self._last, self._comma = at + 1, True
                at = _skip(text, at + 1)
            elif text[at : at + 1] != "}":
                raise ValueError(_where(text, at, "a comma or }"))
        self.end = at + 1

    def put(self, key: str, value: Any) -> str:
        """The text with the value under a key, the rest as it is."""
        line = "\r\n" if "\r\n" in self.text else "\n"
        inner = self._indent()
        step = inner.removeprefix(self._outer()) or "  "
        written = json.dumps(value, indent=step).replace("\n", line + inner)
        if key in self.values:
            start, end = self.values[key]
            return self.text[:start] + written + self.text[end:]
        head = "" if self._comma else ","
        added = f"{head}{line}{inner}{json.dumps(key)}: {written}"
        if not self.text[self._last : self.end - 1].strip(" \t"):  # the brace is on the same line
            added += line + self._outer()
            return self.text[: self._last] + added + self.text[self.end - 1 :]
        # A comment at the end of the last entry's line stays with it.
        rest = re.compile(r"[ \t]*(?://[^\n\r]*)?").match(self.text, self._last)
        assert rest is not None
        return self.text[: self._last] + head + rest[0] + added.removeprefix(",") + self.text[rest.end() :]

    def _outer(self) -> str:
        """What stands before the line on which the object begins."""
        begin = self.text.rfind("\n", 0, self.start) + 1
        found = re.compile(r"[ \t]*").match(self.text, begin)
        return found[0] if found else ""

    def _indent(self) -> str:
        """What stands before its entries: as the first one has it, else one step more than its own line."""
        for start, _ in self.values.values():
            key = self.text.rfind("\n", 0, start) + 1
            found = re.compile(r"[ \t]+(?=\")").match(self.text, key)
            if key > self.start and found:
                return found[0]
            break
        return self._outer() + ("\t" if "\n\t" in self.text else "  ")
