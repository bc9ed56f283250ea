"""Clients' own files: what is put in is found there, and all else stays, character for character."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.clients.known_clients import CLIENTS, McpClient
from anvil.clients.server_entries import (
    ClientFile,
    client_file,
    client_files,
    default_name,
    difference,
    entry,
    located,
    merged,
    present_clients,
    servers_in,
)
from anvil.errors import ConfigError

ZED, VSCODE = CLIENTS["zed"], CLIENTS["vscode"]
SUFFIXES = {"json": (".json", ".jsonc"), "toml": (".toml",), "yaml": (".yaml",)}
SERVER = {"command": "anvil", "args": ["serve", "--docs", "docs"]}


def put(text: str | None, client: McpClient, name: str, server: dict[str, Any]) -> str:
    return merged(text, ClientFile(client, client.scopes[0], Path("x")), name, server, Path("/project"))


SETTINGS = """\
// Zed settings
{
  "theme": "One Dark", // the dark one
  /* servers, "quoted" and { braced */
  "context_servers": {
    "other": {
      "command": "uvx",
      "args": ["x // no comment", "y,]"], // trailing
    },
  },
  "vim_mode": true, // last
}
"""


def test_comments_and_entries_stay() -> None:
    new = put(SETTINGS, ZED, "docs", SERVER)
    diff = difference(SETTINGS, new, "settings.json")
    assert [line for line in diff.splitlines()[2:] if line.startswith("-")] == []
    assert "".join(line[1:] for line in diff.splitlines(keepends=True) if line.startswith("+") and line[1] != "+") == (
        '    "docs": {\n      "command": "anvil",\n      "args": [\n        "serve",\n        "--docs",\n'
        '        "docs"\n      ]\n    }\n'
    )
    assert put(new, ZED, "docs", SERVER) == new


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, '{\n  "servers": {\n    "d": {}\n  }\n}\n'),
        ("", '{\n  "servers": {\n    "d": {}\n  }\n}\n'),
        ("{}", '{\n  "servers": {\n    "d": {}\n  }\n}'),
        ('{"a": 1}', '{"a": 1,\n  "servers": {\n    "d": {}\n  }\n}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"servers": {\n\t\t"d": {}\n\t}\n}\n'),
        ('{\r\n  "a": 1\r\n}\r\n', '{\r\n  "a": 1,\r\n  "servers": {\r\n    "d": {}\r\n  }\r\n}\r\n'),
        ('{\n  "a": 1 // one\n}\n', '{\n  "a": 1, // one\n  "servers": {\n    "d": {}\n  }\n}\n'),
        ('{\n    "servers": {}\n}', '{\n    "servers": {\n      "d": {}\n    }\n}'),
        ('\ufeff{"servers": {"d": {}}}', '\ufeff{"servers": {"d": {}}}'),
        ('{"servers": {"d": {} /* empty */,}}', '{"servers": {"d": {} /* empty */,}}'),
    ],
)
def test_where_it_is_put(old: str | None, new: str) -> None:
    assert put(old, VSCODE, "d", {}) == new


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a" 1}', '{"a": }', '{"a": 1} x', "{'a': 1}", '{"servers": []}', '{"a": [1 2]}', "{a: 1}"]
)
def test_what_is_not_understood_is_left_alone_with_the_text_to_paste(text: str) -> None:
    with pytest.raises(ConfigError, match=r'(?s)VS Code reads .*Put this in yourself.*"servers"'):
        put(text, VSCODE, "docs", SERVER)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=6) | st.just("servers"), values, max_size=4),
    st.sampled_from([None, 0, 2, "\t"]),
    st.booleans(),
)
def test_any_json_keeps_all_it_held(found: dict[str, object], indent: int | str | None, plain: bool) -> None:
    if not isinstance(found.get("servers", {}), dict):
        found.pop("servers")
    text = json.dumps(found, indent=indent, ensure_ascii=plain)
    servers = found.get("servers") or {}
    assert isinstance(servers, dict)
    expected = {**found, "servers": {**servers, "docs": SERVER}}
    if "docs" in servers:
        with pytest.raises(ConfigError, match="taken by another server"):
            put(text, VSCODE, "docs", SERVER)
        return
    new = put(text, VSCODE, "docs", SERVER)
    assert json.loads(new) == expected and servers_in(new, VSCODE) == expected["servers"]
    assert put(new, VSCODE, "docs", SERVER) == new


@pytest.mark.parametrize("text", ['{"a": "' + '\\"' * 50_000, "{/*" * 50_000])
def test_an_unclosed_string_or_comment_is_refused_in_linear_time(text: str) -> None:
    began = time.thread_time()
    with pytest.raises(ConfigError):
        put(text, VSCODE, "docs", SERVER)
    assert time.thread_time() - began < 2


COMMENTS = st.sampled_from(["", " ", "\n", '// a "comment", [\n', "/* } */", "\r\n\t"])


@given(st.lists(COMMENTS, min_size=9, max_size=9), st.booleans(), st.booleans())
def test_comments_and_commas_anywhere_stay(between: list[str], comma: bool, outer: bool) -> None:
    tokens = ["{", '"servers"', ":", "{", '"x//"', ":", '"/*"', "," if comma else "", "}", "," if outer else ""]
    text = "".join(token + gap for token, gap in zip(tokens, [*between, ""], strict=True)) + "}"
    new = put(text, VSCODE, "docs", SERVER)
    assert servers_in(new, VSCODE) == {"x//": "/*", "docs": SERVER}
    assert new.count("// a") == text.count("// a") and new.count("/*") == text.count("/*")


OURS = {"command": "anvil", "args": ["serve", "--docs", "old"], "env": {"ANVIL_TOKEN": "t"}}


def test_an_entry_of_ours_is_replaced_and_keeps_its_environment() -> None:
    new = put(json.dumps({"servers": {"d": OURS, "e": 2}}), VSCODE, "d", SERVER)
    assert json.loads(new) == {"servers": {"d": {**OURS, **SERVER}, "e": 2}}


@pytest.mark.parametrize("other", [{"command": "npx", "args": ["docs-server"]}, {"url": "https://x/mcp"}, {}, None, 3])
def test_an_entry_that_is_not_ours_is_never_replaced(other: object) -> None:
    with pytest.raises(ConfigError, match="'d' is taken by another server"):
        put(json.dumps({"servers": {"d": other}}), VSCODE, "d", SERVER)


def test_in_a_users_file_an_entry_of_another_project_is_not_ours(tmp_path: Path) -> None:
    one, two = tmp_path / "a/handbook", tmp_path / "b/handbook"
    for each in (one, two):
        (each / "docs").mkdir(parents=True)
    desktop = client_file(CLIENTS["claude-desktop"], one)
    name = default_name(desktop, one)
    assert name == default_name(desktop, two) == "handbook"
    assert default_name(client_file(CLIENTS["cursor"], one), one) == "docs"
    assert default_name(desktop, tmp_path / "_my_hand.book_") == "my-hand-book"
    first = merged(None, desktop, name, entry(desktop, one, {"--docs": one / "docs"}, name), one)
    with pytest.raises(ConfigError, match="taken by another server"):
        merged(first, desktop, name, entry(desktop, two, {"--docs": two / "docs"}, name), two)
    (one / "docs").rmdir()  # nothing is served any more
    new = merged(first, desktop, name, entry(desktop, two, {"--docs": two / "docs"}, name), two)
    assert str(two / "docs") in new and str(one / "docs") not in new


@pytest.mark.parametrize("scope", ["project", "user"])
@pytest.mark.parametrize("name", CLIENTS)
def test_an_entry_is_read_as_it_was_written(name: str, scope: str, tmp_path: Path) -> None:
    client, project = CLIENTS[name], tmp_path / "project"
    if scope not in client.scopes:
        pytest.skip("the client has no such file")
    file = client_file(client, project, scope)
    assert file.path.is_relative_to(project) == file.is_shared == (scope == "project")
    server = entry(file, project, {"--docs": project / "docs"}, "docs", ["anvil"])
    assert client.arguments == "" or server[client.arguments][:2] == ["serve", "--docs"]
    assert (str(tmp_path) in str(server)) == (scope == "user")
    text = merged(None, file, "docs", server, project)
    assert servers_in(text, client) == {"docs": server}
    assert merged(text, file, "docs", server, project) == text
    assert merged(text.replace("\n", "\r\n"), file, "other", server, project).count("\r\n") == merged(
        text, file, "other", server, project
    ).count("\n")


def test_a_scope_that_a_client_lacks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Devin Desktop"):
        client_file(CLIENTS["devin"], tmp_path, "project")


def test_the_file_that_exists_is_used(tmp_path: Path) -> None:
    assert client_file(CLIENTS["opencode"], tmp_path).path == tmp_path / "opencode.json"
    (tmp_path / "opencode.jsonc").write_text("{}")
    assert client_file(CLIENTS["opencode"], tmp_path).path == tmp_path / "opencode.jsonc"


def test_a_client_that_moved_its_file_keeps_the_old_one_until_it_has_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("HOME", "USERPROFILE", "APPDATA", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    shared = tmp_path / ".cline/data/settings/cline_mcp_settings.json"
    assert client_file(CLIENTS["cline"], tmp_path).path == shared
    old = located(CLIENTS["cline"].user[1], tmp_path, tmp_path, sys.platform, os.environ)
    for file in (old, shared):
        file.parent.mkdir(parents=True)
        file.write_text("{}")
        assert client_file(CLIENTS["cline"], tmp_path).path == file


def test_copilot_gets_the_file_of_claude_code_because_it_ignores_its_own_beside_it(tmp_path: Path) -> None:
    own = tmp_path / ".github/mcp.json"
    own.parent.mkdir()
    own.write_text("{}")
    assert client_file(CLIENTS["copilot-cli"], tmp_path).path == own
    (tmp_path / ".mcp.json").write_text("{}")
    assert client_file(CLIENTS["copilot-cli"], tmp_path).path == tmp_path / ".mcp.json"
    names = [name for name, file in client_files(tmp_path) if file.is_shared]
    assert names == ["claude-code"]  # 'anvil doctor' reports the file once


def test_claude_desktop_on_windows_reads_the_file_of_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(tmp_path))
    monkeypatch.setenv("APPDATA", str(tmp_path / "AppData/Roaming"))
    package = tmp_path / "AppData/Local/Packages/Claude_pzs8sxrjxfjjc/LocalCache/Roaming/Claude"
    assert client_file(CLIENTS["claude-desktop"], tmp_path).path.parent == package
    classic = tmp_path / "AppData/Roaming/Claude/claude_desktop_config.json"
    classic.parent.mkdir(parents=True)
    assert client_file(CLIENTS["claude-desktop"], tmp_path).path == classic, "the package is not installed"
    package.mkdir(parents=True)
    assert client_file(CLIENTS["claude-desktop"], tmp_path).path.parent == package
    classic.write_text("{}")
    assert client_file(CLIENTS["claude-desktop"], tmp_path).path == classic
    assert "claude-desktop" in present_clients(tmp_path)


def test_an_entry_stands_beside_the_servers_of_a_second_version_of_opencode(tmp_path: Path) -> None:
    """It reads both forms in one file: https://opencode.ai/docs/migrate-v1/"""
    file = client_file(CLIENTS["opencode"], tmp_path, "project")
    server = entry(file, tmp_path, {}, "docs", ["anvil"])
    text = '{"mcp": {"timeout": {"startup": 1}, "servers": {"other": {"type": "local", "command": ["x"]}}}}'
    after = json.loads(merged(text, file, "docs", server, tmp_path))
    assert after["mcp"].pop("docs") == server and after == json.loads(text)


@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
@pytest.mark.parametrize("name", CLIENTS)
def test_each_client_has_a_file_on_each_system_or_settings(name: str, platform: str, tmp_path: Path) -> None:
    client, project = CLIENTS[name], tmp_path / "project"
    paths = [*client.project, *client.user, *client.user_on_windows]
    assert bool(paths) != bool(client.settings) and bool(client.signs) != bool(client.settings)
    for path in paths:
        file = located(path, project, tmp_path, platform, {"APPDATA": str(tmp_path / "roaming")})
        assert file.is_relative_to(tmp_path) and "{" not in str(file) and "~" not in str(file)
        assert file.suffix in SUFFIXES[client.format]
        assert file.is_relative_to(project) == (path in client.project)


@pytest.mark.parametrize(
    ("platform", "path", "expected"),
    [
        ("linux", "{app}/Claude/x.json", ".config/Claude/x.json"),
        ("darwin", "{app}/Claude/x.json", "Library/Application Support/Claude/x.json"),
        ("darwin", "{config}/zed/x.json", ".config/zed/x.json"),
        ("win32", "{config}/zed/x.json", "AppData/Roaming/zed/x.json"),
        ("linux", "~/.codex/x.toml", ".codex/x.toml"),
        ("win32", "{xdg}/opencode/x.json", ".config/opencode/x.json"),
        ("darwin", "{xdg}/opencode/x.json", ".config/opencode/x.json"),
    ],
)
def test_where_files_are(platform: str, path: str, expected: str) -> None:
    assert located(path, Path("project"), Path("home"), platform, {}) == Path("home", expected)
