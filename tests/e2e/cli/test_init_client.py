"""``anvil init --client``: what it writes into the files of clients, and what it leaves alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from anvil.clients.known_clients import CLIENTS, command_of
from anvil.clients.server_entries import client_file, default_name, folder_name, servers_in
from tests.conftest import linked, write
from tests.support.in_process import complaint, program


@pytest.fixture
def project(docs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project, and an ``anvil`` on the PATH of every program."""
    bin = write(tmp_path_factory.mktemp("bin"), {"anvil": "#!/bin/sh\n", "anvil.exe": ""})
    for each in bin.iterdir():
        each.chmod(0o755)
    monkeypatch.setenv("PATH", str(bin), prepend=os.pathsep)
    return docs.parent


def entry_of(project: Path, name: str, title: str) -> dict[str, Any]:
    found: dict[str, Any] = servers_in(client_file(CLIENTS[name], project).path.read_text(), CLIENTS[name])[title]
    return found


@pytest.mark.parametrize("name", [name for name in CLIENTS if CLIENTS[name].scopes])
def test_it_is_shown_written_and_then_left_alone(project: Path, name: str) -> None:
    client, place = CLIENTS[name], client_file(CLIENTS[name], project)
    file = place.path
    shown = program("init", "--client", name, "--print", cwd=project).stdout
    assert client.key in shown and not file.exists()
    written = program("init", "--client", name, cwd=project).stdout
    assert written.startswith(shown) and client.title in written
    assert list(servers_in(file.read_text(), client)) == [default_name(place, project)]
    before = file.read_bytes()
    assert "is not changed" in program("init", "--client", name, cwd=project).stdout
    assert file.read_bytes() == before and not (project / "anvil.toml").exists()


def test_other_entries_and_comments_stay(project: Path) -> None:
    file = project / ".vscode/mcp.json"
    file.parent.mkdir()
    text = '{\n  // mine\n  "servers": {\n    "mine": { "command": "x" } // keep\n  }\n}\n'
    file.write_bytes(text.encode())
    file.chmod(0o600)
    link = project / "link.json"
    program("init", "--client", "vscode", "--docs", "docs", cwd=project)
    new = file.read_text()
    assert "// mine" in new and '"mine": { "command": "x" }, // keep\n    "docs": {' in new
    assert '"${workspaceFolder}/docs"' in new and not link.exists()
    assert file.stat().st_mode & 0o777 in (0o600, 0o666)


def test_a_link_stays_a_link(project: Path, tmp_path: Path) -> None:
    (tmp_path / "dotfiles.json").write_text("{}\n")
    try:
        (project / ".mcp.json").symlink_to(tmp_path / "dotfiles.json")
    except OSError:
        pytest.skip("links are not allowed here")
    program("init", "--client", "claude-code", cwd=project)
    assert (project / ".mcp.json").is_symlink() and "mcpServers" in (tmp_path / "dotfiles.json").read_text()


@pytest.mark.parametrize("part", [".vscode/mcp.json", ".vscode"])
def test_a_link_out_of_the_project_is_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, part: str
) -> None:
    away = write(tmp_path_factory.mktemp("away"), {"mcp.json": "{}\n"})
    linked(project / part, away if part == ".vscode" else away / "mcp.json")
    assert "is a link to a place outside the project" in complaint("init", "--client", "vscode", cwd=project)
    assert (away / "mcp.json").read_text() == "{}\n" and [each.name for each in away.iterdir()] == ["mcp.json"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_refused_and_not_waited_for(project: Path) -> None:
    os.mkfifo(project / ".mcp.json")
    assert ".mcp.json is not a regular file" in complaint("init", "--client", "claude-code", cwd=project)
    os.mkfifo(project / "mcp.config.json")
    assert "mcp.config.json cannot be read: it is not a regular file" in complaint("context", "ingest", cwd=project)


def test_the_folder_of_a_configuration_is_named_instead_of_the_docs(project: Path) -> None:
    """Not the file: whoever runs this has not thereby said that its author may name servers and lift guards."""
    (project / "anvil.toml").write_text('docs = "docs"\n')
    program("init", "--client", "claude-code", cwd=project)
    found = json.loads((project / ".mcp.json").read_text())
    assert found["mcpServers"]["docs"] == {"command": "anvil", "args": ["serve", "--config", ".", "--text", "markdown"]}
    program("init", "--client", "cursor", cwd=project)
    assert entry_of(project, "cursor", "docs")["args"] == [
        "serve",
        "--config",
        "${workspaceFolder}",
        "--text",
        "markdown",
    ]


@pytest.mark.parametrize("name", ["anvil.toml", "pyproject.toml"])
def test_a_configuration_is_found_where_every_command_finds_it(project: Path, name: str) -> None:
    (project / "docs").rename(project / "documentation")
    (project / ".git").mkdir()  # where the search for a configuration ends
    head = "" if name == "anvil.toml" else "[tool.anvil]\n"
    (project / name).write_text(f'{head}docs = "documentation"\n')
    program("init", "--client", "claude-code", cwd=project / "documentation")
    found = json.loads((project / ".mcp.json").read_text())
    assert found["mcpServers"]["docs"] == {"command": "anvil", "args": ["serve", "--config", ".", "--text", "markdown"]}


def test_what_cannot_be_merged_is_refused(project: Path) -> None:
    (project / ".mcp.json").write_text("{ broken")
    assert "Put this in yourself" in complaint("init", "--client", "claude-code", cwd=project)
    assert (project / ".mcp.json").read_text() == "{ broken"
    assert "no folder nowhere" in complaint("init", "--client", "zed", "--docs", "nowhere", cwd=project)
    assert "--client" in complaint("init", "--print", cwd=project)


def test_a_server_of_the_same_name_is_left_alone_and_the_way_out_works(project: Path) -> None:
    other = {"mcpServers": {"docs": {"command": "npx", "args": ["their-docs"]}}}
    file = write(project, {".mcp.json": json.dumps(other)}) / ".mcp.json"
    told = complaint("init", "--client", "claude-code", cwd=project)
    assert "'docs' is taken by another server" in told and json.loads(file.read_text()) == other
    assert told.endswith("Choose another: --name docs-2.")
    program("init", "--client", "claude-code", "--name", "docs-2", cwd=project)
    servers = json.loads(file.read_text())["mcpServers"]
    assert servers["docs"] == other["mcpServers"]["docs"] and servers["docs-2"]["args"] == [
        "serve",
        "--docs",
        "docs",
        "--text",
        "markdown",
    ]


@pytest.mark.parametrize("name", ["claude-desktop", "zed"])
def test_two_projects_in_a_users_file_keep_apart(
    project: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    second = write(tmp_path_factory.mktemp("second"), {"docs/a.md": "# A\n"})
    twin = write(tmp_path_factory.mktemp("twin") / second.name, {"docs/a.md": "# A\n"})
    for each in (project, second):
        program("init", "--client", name, cwd=each)
    assert (
        str(project / "docs")
        in entry_of(project, name, default_name(client_file(CLIENTS[name], project), project))["args"]
    )
    assert str(second / "docs") in entry_of(second, name, folder_name(second))["args"]
    assert f"--name {second.name}-2" in complaint("init", "--client", name, cwd=twin)
    program("init", "--client", name, "--name", "twin", cwd=twin)
    assert str(twin / "docs") in entry_of(twin, name, "twin")["args"]


def test_name_index_and_command_are_written(project: Path) -> None:
    asked = ("init", "--client", "vscode", "--name", "api", "--index", "docs.db", "--command", "uvx anvil-docs")
    program(*asked, cwd=project)
    found = entry_of(project, "vscode", "api")
    folder = "${workspaceFolder}"
    assert found["command"] == "uvx"
    named = ["--docs", f"{folder}/docs", "--index", f"{folder}/docs.db"]
    assert found["args"] == ["anvil-docs", "serve", *named, "--text", "markdown"]
    program("init", "--client", "claude-code", "--index", "https://docs.example.org/", cwd=project)
    assert entry_of(project, "claude-code", "docs")["args"][-4:-2] == ["--index", "https://docs.example.org/"]
    secret = complaint("init", "--client", "claude-code", "--index", "https://u:pw@docs.example.org/", cwd=project)
    assert "password" in secret and "pw@" not in secret
    assert "--name" in complaint("init", "--name", "x", cwd=project)
    assert "empty" in complaint("init", "--client", "cursor", "--command", " ", cwd=project)
    assert "empty" in complaint("init", "--client", "cursor", "--name", " ", cwd=project)


@pytest.mark.skipif(os.name == "nt", reason="a program of the shell stands in")
def test_a_file_that_is_committed_has_no_path_of_this_machine(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An active environment puts ``anvil`` on this shell's PATH only."""
    inside = write(project / ".venv", {"pyvenv.cfg": "", "bin/anvil": "#!/bin/sh\n"}) / "bin/anvil"
    inside.chmod(0o755)
    monkeypatch.setenv("PATH", f"{inside.parent}{os.pathsep}/usr/bin")
    monkeypatch.setattr(sys, "argv", [str(inside)])
    done = program("init", "--client", "claude-code", cwd=project)
    assert entry_of(project, "claude-code", "docs")["command"] == ".venv/bin/anvil"
    assert "need an environment with Anvil at that place" in done.stderr
    program("init", "--client", "cursor", cwd=project)
    assert entry_of(project, "cursor", "docs")["command"] == "${workspaceFolder}/.venv/bin/anvil"
    elsewhere = write(project.parent / "elsewhere", {"pyvenv.cfg": "", "bin/anvil": "#!/bin/sh\n"}) / "bin/anvil"
    elsewhere.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(elsewhere)])
    done = program("init", "--client", "codex", cwd=project)
    assert entry_of(project, "codex", "docs")["command"] == "anvil" and "uv tool install" in done.stderr
    assert "Codex reads the file of a project that you trust." in done.stdout
    program("init", "--client", "claude-code", "--scope", "project", "--command", str(elsewhere), cwd=project)
    assert entry_of(project, "claude-code", "docs")["command"] == str(elsewhere)


# --- several clients, scopes, formats -------------------------------------------------------------------------


def test_each_client_that_is_named_gets_the_server(project: Path) -> None:
    program("init", "--client", "cursor", "--client", "codex", cwd=project)
    program("init", "--client", "vscode", "--client", "all", cwd=project)
    assert all(command_of(CLIENTS[name], entry_of(project, name, "docs")) for name in ("cursor", "codex", "vscode"))


def test_all_clients_of_the_project_and_the_user(project: Path) -> None:
    assert "No MCP client was found" in complaint("init", "--client", "all", cwd=project)
    for folder in (".cursor", ".codex", ".roo"):
        (project / folder).mkdir()
    (Path.home() / ".lmstudio").mkdir()
    (project / ".cursor/mcp.json").write_text("{ broken")
    told = program("init", "--client", "all", cwd=project, code=2).stderr
    assert "1 client of 4 could not be set up: Cursor." in told and "Put this in yourself" in told
    assert (project / ".cursor/mcp.json").read_text() == "{ broken"
    for name, title in (("codex", "docs"), ("roo-code", "docs"), ("lm-studio", folder_name(project))):
        assert command_of(CLIENTS[name], entry_of(project, name, title))[1] == "serve"
    (project / ".cursor/mcp.json").unlink()
    done = program("init", "--client", "all", cwd=project).stdout
    assert done.count("has the server already") == 3 and "Wrote .cursor" in done


def test_what_all_new_entries_need_is_said_once(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    for folder in (".cursor", ".codex", ".roo"):
        (project / folder).mkdir()
    done = program("init", "--client", "all", "--command", "anvil", cwd=project)
    assert done.stdout.count("Wrote ") == 3 and done.stderr.count("The entry starts 'anvil' from the PATH") == 1


def test_the_file_for_all_projects_of_a_user(project: Path) -> None:
    assert "trust" not in program("init", "--client", "codex", "--scope", "user", cwd=project).stdout
    text = (Path.home() / ".codex/config.toml").read_text()
    assert f"[mcp_servers.{folder_name(project)}]" in text and not (project / ".codex").exists()
    assert str(project / "docs") in servers_in(text, CLIENTS["codex"])[folder_name(project)]["args"]
    assert "has no file for a project" in complaint("init", "--client", "zed", "--scope", "project", cwd=project)
    assert "--scope goes with --client" in complaint("init", "--scope", "user", cwd=project)


def test_toml_and_yaml_keep_their_comments(project: Path) -> None:
    codex = write(project, {".codex/config.toml": "# mine\n[mcp_servers.other] # keep\ncommand = 'x'\n"})
    goose = write(Path.home(), {"goose/config.yaml": "# mine\nextensions:\n  other: # keep\n    enabled: no\n"})
    for name, file in (("codex", codex / ".codex/config.toml"), ("goose", goose / "goose/config.yaml")):
        before = file.read_text()
        diff = program("init", "--client", name, cwd=project).stdout
        assert [line for line in diff.splitlines()[2:] if line.startswith("-")] == []
        assert "# mine" in file.read_text() and "# keep" in file.read_text() and file.read_text() != before
        file.write_text("a = [ : }")
        assert "Put this in yourself" in complaint("init", "--client", name, cwd=project)
        assert file.read_text() == "a = [ : }"


def test_a_read_only_file_stays(project: Path) -> None:
    file = write(project, {".mcp.json": "{}"}) / ".mcp.json"
    file.chmod(0o444)
    told = program("init", "--client", "claude-code", cwd=project, code=2)
    assert "it is read-only" in told.stderr and '+    "docs": {' in told.stdout
    assert file.read_text() == "{}"


def test_a_client_without_a_file_gets_text_to_paste(project: Path) -> None:
    printed = program("init", "--client", "jetbrains", cwd=project)
    assert json.loads(printed.stdout)["mcpServers"][folder_name(project)]["args"][-3] == str(project / "docs")
    assert "Settings | Tools" in printed.stderr
    agent = json.loads(program("init", "--client", "copilot-agent", cwd=project).stdout)["mcpServers"]["docs"]
    assert agent["command"] == "pipx" and agent["args"][-4:-2] == ["--docs", "docs"] and agent["tools"] == ["*"]


def test_links_for_a_web_page(project: Path) -> None:
    printed = program("init", "--links", "--index", "https://docs.example.org/", cwd=project).stdout
    assert [line.partition("]")[0] for line in printed.splitlines()] == [
        "[Add to VS Code",
        "[Add to Cursor",
        "[Add to LM Studio",
    ]
    assert "published index" in complaint("init", "--links", cwd=project)
    assert "password" in complaint("init", "--links", "--index", "https://u:pw@docs.example.org/", cwd=project)


@pytest.mark.skipif(os.name == "nt", reason="Windows needs variables of its own to start a program")
def test_a_desktop_client_can_start_the_entry_with_an_empty_path(project: Path) -> None:
    program("init", "--client", "lm-studio", "--command", f"{sys.executable} -m anvil", cwd=project)
    program("init", "--client", "devin", cwd=project)
    command = command_of(CLIENTS["devin"], entry_of(project, "devin", folder_name(project)))
    assert os.path.isabs(command[0])
    started = command_of(CLIENTS["lm-studio"], entry_of(project, "lm-studio", folder_name(project)))
    request = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
    }
    done = subprocess.run(
        started,
        input=json.dumps(request) + "\n",
        env={"PATH": "", "HOME": str(Path.home())},
        cwd="/",
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert json.loads(done.stdout.splitlines()[0])["result"]["serverInfo"]["name"]
