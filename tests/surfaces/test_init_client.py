"""``anvil init --client``: what it writes into the files of clients, and what it leaves alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anvil.clients import CLIENTS, path_of
from tests.conftest import linked, write
from tests.surfaces.inside import complaint, program


@pytest.fixture
def project(docs: Path) -> Path:
    return docs.parent


@pytest.mark.parametrize("name", CLIENTS)
def test_it_is_shown_written_and_then_left_alone(project: Path, name: str) -> None:
    client = CLIENTS[name]
    file = path_of(client, project)
    shown = program("init", "--client", name, "--print", cwd=project).stdout
    assert f'+  "{client.key}"' in shown and not file.exists()
    written = program("init", "--client", name, cwd=project).stdout
    assert written.startswith(shown) and client.title in written
    assert list(json.loads(file.read_text())[client.key]) == ["docs"]
    before = file.read_bytes()
    assert "left as it is" in program("init", "--client", name, cwd=project).stdout
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


@pytest.mark.parametrize("part", [".vscode/mcp.json", ".vscode", ".vscode/mcp.json.anvil-new"])
def test_a_link_out_of_the_project_is_not_followed(
    project: Path, tmp_path_factory: pytest.TempPathFactory, part: str
) -> None:
    away = write(tmp_path_factory.mktemp("away"), {"mcp.json": "{}\n"})
    linked(project / part, away if part == ".vscode" else away / "mcp.json")
    if part.endswith("new"):  # made anew anyway
        program("init", "--client", "vscode", cwd=project)
        assert "servers" in (project / ".vscode/mcp.json").read_text()
    else:
        assert "leads out of the project" in complaint("init", "--client", "vscode", cwd=project)
    assert (away / "mcp.json").read_text() == "{}\n" and [each.name for each in away.iterdir()] == ["mcp.json"]


def test_the_folder_of_a_configuration_is_named_instead_of_the_docs(project: Path) -> None:
    """Not the file: whoever runs this has not thereby said that its author may name servers and lift guards."""
    (project / "anvil.toml").write_text('docs = "docs"\n')
    program("init", "--client", "claude-code", cwd=project)
    found = json.loads((project / ".mcp.json").read_text())
    assert found["mcpServers"]["docs"] == {"command": "anvil", "args": ["serve", "--config", "."]}


@pytest.mark.parametrize("name", ["anvil.toml", "pyproject.toml"])
def test_a_configuration_is_found_where_every_command_finds_it(project: Path, name: str) -> None:
    (project / "docs").rename(project / "documentation")
    (project / ".git").mkdir()  # where the search for a configuration ends
    head = "" if name == "anvil.toml" else "[tool.anvil]\n"
    (project / name).write_text(f'{head}docs = "documentation"\n')
    program("init", "--client", "claude-code", cwd=project / "documentation")
    found = json.loads((project / ".mcp.json").read_text())
    assert found["mcpServers"]["docs"] == {"command": "anvil", "args": ["serve", "--config", "."]}


def test_what_cannot_be_merged_is_refused(project: Path) -> None:
    (project / ".mcp.json").write_text("{ broken")
    assert "Put this in yourself" in complaint("init", "--client", "claude-code", cwd=project)
    assert (project / ".mcp.json").read_text() == "{ broken"
    assert "no folder nowhere" in complaint("init", "--client", "zed", "--docs", "nowhere", cwd=project)
    assert "--client" in complaint("init", "--print", cwd=project)
