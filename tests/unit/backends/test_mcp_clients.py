"""Clients' own files: what is put in is found there, and all else stays, character for character."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.backends.mcp_clients import CLIENTS, Client, default_name, difference, entry, listed, merged
from anvil.errors import ConfigError

ZED = CLIENTS["zed"]
SERVER = {"command": "anvil", "args": ["serve", "--docs", "docs"]}


def put(text: str | None, client: Client, name: str, server: dict[str, Any]) -> str:
    return merged(text, client, name, server, Path("/project"))


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
    assert put(old, CLIENTS["vscode"], "d", {}) == new


@pytest.mark.parametrize(
    "text", ["[]", "{", '{"a" 1}', '{"a": }', '{"a": 1} x', "{'a': 1}", '{"servers": []}', '{"a": [1 2]}', "{a: 1}"]
)
def test_what_is_not_understood_is_left_alone_with_the_text_to_paste(text: str) -> None:
    with pytest.raises(ConfigError, match=r'(?s)VS Code reads .*Put this in yourself.*"servers"'):
        put(text, CLIENTS["vscode"], "docs", SERVER)


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
            put(text, CLIENTS["vscode"], "docs", SERVER)
        return
    new = put(text, CLIENTS["vscode"], "docs", SERVER)
    assert json.loads(new) == expected and listed(new, CLIENTS["vscode"]) == expected["servers"]
    assert put(new, CLIENTS["vscode"], "docs", SERVER) == new


COMMENTS = st.sampled_from(["", " ", "\n", '// a "comment", [\n', "/* } */", "\r\n\t"])


@given(st.lists(COMMENTS, min_size=9, max_size=9), st.booleans(), st.booleans())
def test_comments_and_commas_anywhere_stay(between: list[str], comma: bool, outer: bool) -> None:
    tokens = ["{", '"servers"', ":", "{", '"x//"', ":", '"/*"', "," if comma else "", "}", "," if outer else ""]
    text = "".join(token + gap for token, gap in zip(tokens, [*between, ""], strict=True)) + "}"
    new = put(text, CLIENTS["vscode"], "docs", SERVER)
    assert listed(new, CLIENTS["vscode"]) == {"x//": "/*", "docs": SERVER}
    assert new.count("// a") == text.count("// a") and new.count("/*") == text.count("/*")


OURS = {"command": "anvil", "args": ["serve", "--docs", "old"], "env": {"ANVIL_TOKEN": "t"}}


def test_an_entry_of_ours_is_replaced_and_keeps_its_environment() -> None:
    new = put(json.dumps({"servers": {"d": OURS, "e": 2}}), CLIENTS["vscode"], "d", SERVER)
    assert json.loads(new) == {"servers": {"d": {**OURS, **SERVER}, "e": 2}}


@pytest.mark.parametrize("other", [{"command": "npx", "args": ["docs-server"]}, {"url": "https://x/mcp"}, {}, None, 3])
def test_an_entry_that_is_not_ours_is_never_replaced(other: object) -> None:
    with pytest.raises(ConfigError, match="'d' is taken by another server"):
        put(json.dumps({"servers": {"d": other}}), CLIENTS["vscode"], "d", SERVER)


def test_in_a_users_file_an_entry_of_another_project_is_not_ours(tmp_path: Path) -> None:
    desktop, one, two = CLIENTS["claude-desktop"], tmp_path / "a/handbook", tmp_path / "b/handbook"
    for each in (one, two):
        (each / "docs").mkdir(parents=True)
    name = default_name(desktop, one)
    assert name == default_name(desktop, two) == "handbook" and default_name(CLIENTS["cursor"], one) == "docs"
    first = merged(None, desktop, name, entry(desktop, one, {"--docs": one / "docs"}), one)
    with pytest.raises(ConfigError, match="taken by another server"):
        merged(first, desktop, name, entry(desktop, two, {"--docs": two / "docs"}), two)
    (one / "docs").rmdir()  # nothing is served any more
    new = merged(first, desktop, name, entry(desktop, two, {"--docs": two / "docs"}), two)
    assert str(two / "docs") in new and str(one / "docs") not in new


@pytest.mark.parametrize("name", CLIENTS)
@pytest.mark.parametrize("platform", ["linux", "darwin", "win32"])
def test_each_client_has_a_file_on_each_system(name: str, platform: str, tmp_path: Path) -> None:
    client, project = CLIENTS[name], tmp_path / "project"
    file = client.file(project, tmp_path, platform, {"APPDATA": str(tmp_path / "roaming")})
    assert file.is_relative_to(tmp_path) and file.suffix == ".json"
    assert file.is_relative_to(project) == (client.project is not None)
    server = entry(client, project, {"--docs": project / "docs"}, ["anvil"])
    assert server["args"][:2] == ["serve", "--docs"]
    assert (str(tmp_path) in server["args"][2]) == (client.project is None)
    assert json.loads(put(None, client, "docs", server)) == {client.key: {"docs": server}}
