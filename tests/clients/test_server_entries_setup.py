"""Links that add a server to a program."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

from anvil.clients.known_clients import CLIENTS
from anvil.clients.server_entries import install_links, paths_of
from tests.support.in_process import complaint, program

WORDS = ["uvx", "anvil-docs", "serve", "--index", "https://docs.example.org/?a=1&b=é"]


def test_each_program_gets_the_command_back() -> None:
    links = install_links("my docs", WORDS)
    server = {"command": WORDS[0], "args": WORDS[1:]}
    head, _, query = links["VS Code"].partition("?")
    assert head == "vscode:mcp/install"
    assert json.loads(unquote(query)) == {"name": "my docs", "type": "stdio", **server}
    for title, head in (
        ("Cursor", "cursor://anysphere.cursor-deeplink/mcp/install"),
        ("LM Studio", "lmstudio://add_mcp"),
    ):
        link = links[title]
        assert link.startswith(f"{head}?")
        values = parse_qs(urlsplit(link).query)
        assert values["name"] == ["my docs"] and json.loads(base64.b64decode(values["config"][0])) == server


def test_links_are_links_in_markdown() -> None:
    assert not any(set(link) & set(" ()<>\"'\n") for link in install_links("a (b)", WORDS).values())


def test_without_documentation_a_client_is_not_set_up(tmp_path: Path) -> None:
    assert "There is no folder docs" in complaint("init", "--client", "cursor", cwd=tmp_path)
    program("init", "--client", "cursor", "--index", "https://docs.example.org/index.db", cwd=tmp_path)
    message = complaint("init", "--client", "cursor", "--docs", "x", "--index", "https://a.example/i.db", cwd=tmp_path)
    assert "There is no folder x" in message


def test_paths_of_an_entry_are_known_by_their_options() -> None:
    def paths(*words: str) -> list[tuple[str, str]]:
        return list(paths_of(CLIENTS["cursor"], {"command": "anvil", "args": [*words]}))

    assert paths("serve", "--docs", "manual", "--index=i.db") == [("--docs", "manual"), ("--index", "i.db")]
    assert paths("serve", "manual", "--index", "https://a.example/i.db") == [("FOLDER", "manual")]
