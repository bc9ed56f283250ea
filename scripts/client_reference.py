"""The page of MCP clients, docs/reference/clients.md, from the table of the code."""

from __future__ import annotations

from anvil.clients.known_clients import CLIENTS, McpClient

HEAD = """\
# MCP clients

The programs that `anvil init --client NAME` sets up, and that `anvil doctor` examines. The guide
[Serve](../guides/serve.md#clients) says how. In paths, `~` is the home folder, `{xdg}` is `$XDG_CONFIG_HOME` or
`~/.config`, `{config}` is the same (on Windows `%APPDATA%`), and `{app}` is `{config}` (on macOS
`~/Library/Application Support`). The last columns have the key of the
servers in the file, and the page that documents the format. The pages were read in November 2026.

This page is generated from the code.

| name | program | the project's file | the user's file | key | format |
|---|---|---|---|---|---|
"""


def reference() -> str:
    """The text of the page."""
    return HEAD + "".join(f"{_row(name, client)}\n" for name, client in CLIENTS.items())


def _row(name: str, client: McpClient) -> str:
    user = _code(client.user)
    if client.user_on_windows:
        user += f"; on Windows {_code(client.user_on_windows)}"
    files = f"{_code(client.project)} | {user}"
    if client.settings:
        files = f"text to paste into: {client.settings.replace('|', '>')} | "
    read = f"[{client.format.upper()}]({client.documentation})"
    return f"| `{name}` | {client.title} | {files} | `{client.key}` | {read} |"


def _code(paths: tuple[str, ...]) -> str:
    return " or ".join(f"`{path}`" for path in paths)
