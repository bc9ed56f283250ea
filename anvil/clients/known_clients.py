"""The MCP clients that Anvil sets up: the file in which each keeps its servers, and the form of an entry.

To add a client, add an entry to :data:`CLIENTS`. Paths begin with ``~/`` (the home folder), ``{xdg}/`` (the folder of
configuration files by the XDG specification: ``~/.config``), ``{config}/`` (the same, on Windows ``%APPDATA%``) or
``{app}/`` (as ``{config}/``, on macOS ``~/Library/Application Support``). Other paths are relative to the project.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

FOLDER = "${workspaceFolder}/"
"""Editors replace this by the folder of the project. They start servers in any folder, so relative paths fail."""

FORM = ("--text", "markdown")
"""The last arguments of each entry. A model reads an answer in Markdown with fewer characters."""

Format = Literal["json", "toml", "yaml"]
Scope = Literal["project", "user"]


@dataclass(frozen=True, slots=True, kw_only=True)
class McpClient:
    """A program that starts MCP servers."""

    title: str
    documentation: str
    """The address of the page that describes the format."""
    project: tuple[str, ...] = ()
    """Paths of its file in a project, which can be committed. A new file is put into the first folder that exists."""
    user: tuple[str, ...] = ()
    """Paths of its file for all projects of a user, likewise."""
    user_on_windows: tuple[str, ...] = ()
    """The paths of that file on Windows, if they differ."""
    settings: str = ""
    """The place to paste an entry, for a client without such a file."""
    settings_scope: Scope = "user"
    """Whether an entry that is pasted there is for the project on any machine, or for this user."""
    starter: tuple[str, ...] = ()
    """The command that starts Anvil, for a client that runs on another machine."""
    format: Format = "json"
    key: str = "mcpServers"
    """The key of the servers in the file."""
    command: str = "command"
    arguments: str = "args"
    """The key of the arguments. If it is ``""``, they are in the list ``command``."""
    name: str = ""
    """The key that repeats the server's name. If it is ``""``, there is none."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Further values of an entry."""
    folder: str = ""
    """The prefix of paths of the project in the project's file."""
    condition: str = ""
    """A sentence on what else is needed, so that the client reads a project's file."""
    signs: tuple[str, ...] = ()
    """Files and folders that show that a project or a user has this client."""

    @property
    def scopes(self) -> tuple[Scope, ...]:
        """The scopes for which it has a file, the preferred one first."""
        return (*(("project",) if self.project else ()), *(("user",) if self.user else ()))


_GLOBAL_STORAGE = "{app}/Code/User/globalStorage"
_CLAUDE_PACKAGE = "~/AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
_COPILOT = {"type": "stdio", "tools": ["*"]}

CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(
        title="Claude Code",
        documentation="https://code.claude.com/docs/en/mcp",
        project=(".mcp.json",),
        signs=(".mcp.json", ".claude", "CLAUDE.md", "~/.claude"),
    ),
    "claude-desktop": McpClient(
        title="Claude Desktop",
        documentation="https://modelcontextprotocol.io/docs/develop/connect-local-servers",
        user=("{app}/Claude/claude_desktop_config.json",),
        # since February 2026 it is installed as a package, which reads only a copy of its own
        user_on_windows=(f"{_CLAUDE_PACKAGE}/claude_desktop_config.json", "{app}/Claude/claude_desktop_config.json"),
        signs=("{app}/Claude", _CLAUDE_PACKAGE),
    ),
    "cursor": McpClient(
        title="Cursor",
        documentation="https://cursor.com/docs/mcp",
        project=(".cursor/mcp.json",),
        user=("~/.cursor/mcp.json",),
        folder=FOLDER,
        signs=(".cursor", "~/.cursor"),
    ),
    "vscode": McpClient(
        title="VS Code",
        documentation="https://code.visualstudio.com/docs/agents/reference/mcp-configuration",
        project=(".vscode/mcp.json",),
        user=("{app}/Code/User/mcp.json",),
        key="servers",
        extra={"type": "stdio"},
        folder=FOLDER,
        signs=(".vscode", "{app}/Code"),
    ),
    "zed": McpClient(
        title="Zed",
        documentation="https://zed.dev/docs/ai/mcp",
        user=("{config}/zed/settings.json",),
        key="context_servers",
        extra={"source": "custom"},  # older versions require it, newer ones ignore it
        signs=("{config}/zed", ".zed"),
    ),
    "codex": McpClient(
        title="Codex",
        documentation="https://developers.openai.com/codex/mcp",
        project=(".codex/config.toml",),
        user=("~/.codex/config.toml",),
        format="toml",
        key="mcp_servers",
        condition="Codex reads the file of a project that you trust.",
        signs=(".codex", "~/.codex"),
    ),
    "gemini-cli": McpClient(
        title="Gemini CLI",
        documentation="https://github.com/google-gemini/gemini-cli/blob/main/docs/tools/mcp-server.md",
        project=(".gemini/settings.json",),
        user=("~/.gemini/settings.json",),
        signs=(".gemini", "GEMINI.md", "~/.gemini"),
    ),
    "antigravity": McpClient(
        title="Antigravity",  # the editor and the CLI, which replaces Gemini CLI for personal accounts
        documentation="https://antigravity.google/docs/mcp",
        user=("~/.gemini/config/mcp_config.json",),
        signs=("~/.gemini/config", "~/.gemini/antigravity", "~/.gemini/antigravity-cli", "~/.antigravity"),
    ),
    "qwen-code": McpClient(
        title="Qwen Code",
        documentation="https://qwenlm.github.io/qwen-code-docs/en/users/features/mcp/",
        project=(".qwen/settings.json",),
        user=("~/.qwen/settings.json",),
        signs=(".qwen", "QWEN.md", "~/.qwen"),
    ),
    "opencode": McpClient(
        title="opencode",
        # Version 2 has servers in "mcp.servers". The form that is written here is that of version 1, which version 2
        # also reads: https://opencode.ai/docs/migrate-v1/
        documentation="https://opencode.ai/docs/mcp-servers/",
        project=("opencode.json", "opencode.jsonc"),
        user=("{xdg}/opencode/opencode.json", "{xdg}/opencode/opencode.jsonc"),
        key="mcp",
        arguments="",
        extra={"type": "local", "enabled": True},
        signs=("opencode.json", "opencode.jsonc", ".opencode", "{xdg}/opencode"),
    ),
    "kilo": McpClient(
        title="Kilo Code",
        documentation="https://kilo.ai/docs/automate/mcp/using-in-kilo-code",
        project=("kilo.json", "kilo.jsonc", ".kilo/kilo.json", ".kilo/kilo.jsonc"),
        user=("{xdg}/kilo/kilo.json", "{xdg}/kilo/kilo.jsonc"),
        key="mcp",
        arguments="",
        extra={"type": "local", "enabled": True},
        signs=("kilo.json", "kilo.jsonc", ".kilo", ".kilocode", "{xdg}/kilo"),
    ),
    "amp": McpClient(
        title="Amp",
        documentation="https://ampcode.com/manual#mcp",
        project=(".amp/settings.json",),
        user=("{xdg}/amp/settings.json",),
        key="amp.mcpServers",
        condition="Amp starts a project's server after `amp mcp approve`.",
        signs=(".amp", "{xdg}/amp"),
    ),
    "droid": McpClient(
        title="Droid",
        documentation="https://docs.factory.ai/cli/configuration/mcp",
        project=(".factory/mcp.json",),
        user=("~/.factory/mcp.json",),
        extra={"type": "stdio"},
        signs=(".factory", "~/.factory"),
    ),
    "kiro": McpClient(
        title="Kiro",
        documentation="https://kiro.dev/docs/mcp/configuration",
        user=("~/.kiro/settings/mcp.json",),  # some versions start the servers of a project's file in another folder
        signs=(".kiro", "~/.kiro"),
    ),
    "warp": McpClient(
        title="Warp",
        documentation="https://docs.warp.dev/agents/capabilities/mcp/",
        user=("~/.warp/.mcp.json",),  # those of a project's file are started by hand after each start of Warp
        signs=(".warp", "~/.warp"),
    ),
    "devin": McpClient(
        title="Devin Desktop (until June 2026 Windsurf) or CLI",
        documentation="https://docs.devin.ai/cli/extensibility/mcp/configuration",
        user=("{config}/devin/mcp_config.json",),
        signs=(".devin", ".windsurf", "{config}/devin", "~/.codeium/windsurf"),
    ),
    "cline": McpClient(
        title="Cline",  # the extension of VS Code and the CLI share the first file, older extensions have the second
        documentation="https://docs.cline.bot/mcp/mcp-overview",
        user=(
            "~/.cline/data/settings/cline_mcp_settings.json",
            f"{_GLOBAL_STORAGE}/saoudrizwan.claude-dev/settings/cline_mcp_settings.json",
        ),
        signs=("~/.cline", f"{_GLOBAL_STORAGE}/saoudrizwan.claude-dev"),
    ),
    "roo-code": McpClient(
        title="Roo Code or Zoo Code",  # Roo Code ended in May 2026; Zoo Code continues it
        documentation="https://docs.roocode.com/features/mcp/using-mcp-in-roo",
        project=(".roo/mcp.json", ".zoo/mcp.json"),
        user=(
            f"{_GLOBAL_STORAGE}/zoocodeorganization.zoo-code/settings/mcp_settings.json",
            f"{_GLOBAL_STORAGE}/rooveterinaryinc.roo-cline/settings/mcp_settings.json",
        ),
        signs=(
            ".roo",
            ".roomodes",
            ".zoo",
            f"{_GLOBAL_STORAGE}/zoocodeorganization.zoo-code",
            f"{_GLOBAL_STORAGE}/rooveterinaryinc.roo-cline",
        ),
    ),
    "continue": McpClient(
        title="Continue",
        documentation="https://docs.continue.dev/customize/deep-dives/mcp",
        project=(".continue/mcpServers/mcp.json",),  # it reads this form as well as its own YAML
        signs=(".continue", "~/.continue"),
    ),
    "junie": McpClient(
        title="Junie",
        documentation="https://junie.jetbrains.com/docs/junie-cli-mcp-configuration.html",
        user=("~/.junie/mcp/mcp.json",),  # its file in a project needs absolute paths, so it works on one machine
        signs=(".junie", "~/.junie"),
    ),
    "jetbrains": McpClient(
        title="JetBrains AI Assistant",
        documentation="https://www.jetbrains.com/help/ai-assistant/mcp.html",
        settings="Settings | Tools | AI Assistant | Model Context Protocol (MCP) | Add, as JSON",
    ),
    "copilot-cli": McpClient(
        title="GitHub Copilot CLI",
        documentation="https://docs.github.com/en/copilot/how-tos/copilot-cli/customize-copilot/add-mcp-servers",
        project=(".mcp.json", ".github/mcp.json"),  # it ignores the second if the first exists
        user=("~/.copilot/mcp-config.json",),
        extra=_COPILOT,
        signs=(".github/mcp.json", "~/.copilot"),
    ),
    "copilot-agent": McpClient(
        title="GitHub Copilot cloud agent",
        documentation="https://docs.github.com/en/copilot/how-tos/copilot-on-github/customize-copilot/configure-mcp-servers",
        settings="the repository's settings on github.com: Copilot, Cloud agent, MCP configuration",
        settings_scope="project",
        starter=("pipx", "run", "anvil-docs"),  # GitHub's machines have pipx
        extra=_COPILOT,
    ),
    "goose": McpClient(
        title="Goose",
        documentation="https://goose-docs.ai/docs/guides/config-files",
        user=("{xdg}/goose/config.yaml",),
        user_on_windows=("{config}/Block/goose/config/config.yaml",),
        format="yaml",
        key="extensions",
        command="cmd",
        name="name",
        extra={"type": "stdio", "enabled": True, "timeout": 300},
        signs=("{xdg}/goose", "{config}/Block/goose", ".goosehints"),
    ),
    "lm-studio": McpClient(
        title="LM Studio",
        documentation="https://lmstudio.ai/docs/app/mcp",
        user=("~/.lmstudio/mcp.json",),
        signs=("~/.lmstudio",),
    ),
}
"""Name on the command line -> program."""


def entry(client: McpClient, name: str, command: list[str]) -> dict[str, Any]:
    """The entry of a server with this name, which a command starts."""
    started = (
        {client.command: command[0], client.arguments: command[1:]}
        if client.arguments
        else {client.command: [*command]}
    )
    return {**({client.name: name} if client.name else {}), **client.extra, **started}


def command_of(client: McpClient, server: Any) -> list[str]:
    """The command of an entry with its arguments. Values that are not text are left out."""
    values = [server.get(key) for key in (client.command, client.arguments)] if isinstance(server, Mapping) else []
    lists = [value if isinstance(value, list) else [value] for value in values]
    return [word for words in lists for word in words if isinstance(word, str)]
