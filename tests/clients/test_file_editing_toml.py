"""TOML files: an entry is added or changed, and everything else stays."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.clients.file_editing import EDITORS

loads, dumps, put = EDITORS["toml"]

KEY = "mcp_servers"
ENTRY = {"command": "anvil", "args": ["serve", "--docs", "docs"]}
CONFIG = """\
# Codex
model = "o4" # the model

[mcp_servers.other] # mine
command = "npx"
args = [
  "-y", # yes
  "[mcp_servers.docs]",
]

[mcp_servers.docs]
# it is old
command = "anvil" # here
args = ["serve", "--docs", "old # folder"] # there
startup_timeout_sec = 20

[mcp_servers.docs.env]
TOKEN = '''
[mcp_servers.docs]
'''

[[profiles]]
name = "x"
"""


def test_an_entry_is_changed_in_its_place() -> None:
    new = put(CONFIG, KEY, "docs", ENTRY)
    start, _, rest = CONFIG.partition("# it is old\n")
    _, _, rest = rest.partition("startup_timeout_sec = 20\n")
    own = 'command = "anvil"\nargs = ["serve", "--docs", "docs"]\nstartup_timeout_sec = 20\n'
    assert new == start + own + rest


def test_missing_keys_are_added_to_the_table() -> None:
    new = put(CONFIG, KEY, "docs", {**ENTRY, "enabled": True})
    assert "startup_timeout_sec = 20\nenabled = true\n\n[mcp_servers.docs.env]" in new
    assert put("[mcp_servers.docs]", KEY, "docs", {"command": "a"}) == '[mcp_servers.docs]\ncommand = "a"\n'


@pytest.mark.parametrize("text", ["", "a = 1", "a = 1\n", "a = 1\r\n", CONFIG.replace("docs", "x"), "# only\n"])
def test_a_new_entry_goes_to_the_end(text: str) -> None:
    new = put(text, KEY, "docs", ENTRY)
    assert new.startswith(text) and loads(new)[KEY]["docs"] == ENTRY
    assert "\r\n" not in text or new.count("\r\n") == new.count("\n")


def test_comments_before_the_next_table_stay() -> None:
    text = '[ "mcp_servers" . docs ] # ours\nargs = [\n"a",\n]\n\n# of other\n[other]\r\nx = 1\n'
    new = put(text, KEY, "docs", {"args": ["b"]})
    assert new == '[ "mcp_servers" . docs ] # ours\nargs = ["b"]\r\n\n# of other\n[other]\r\nx = 1\n'


@pytest.mark.parametrize(
    "text",
    ['mcp_servers = { docs = { command = "x" } }', '[mcp_servers]\ndocs.command = "x"\n', "mcp_servers.docs.a = 1"],
)
def test_another_spelling_of_the_entry_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not in a table"):
        put(text, KEY, "docs", ENTRY)


@pytest.mark.parametrize("text", ["a = ", "[x", "a = 1\na = 2"])
def test_invalid_files_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        put(text, KEY, "docs", ENTRY)


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)


@given(names, st.lists(st.text(st.characters(exclude_categories=["Cs"])), max_size=3), st.booleans())
def test_any_text_is_read_as_it_was_written(name: str, values: list[str], flag: bool) -> None:
    entry = {"command": name, "args": values, "enabled": flag, "timeout": 3}
    assert loads(dumps(KEY, name, entry)) == {KEY: {name: entry}}
    changed = put(put(CONFIG, KEY, name, entry), KEY, name, {"command": "x"})
    assert loads(changed)[KEY][name] == {**(loads(CONFIG)[KEY].get(name, {})), **entry, "command": "x"}


def test_a_table_with_many_comments_takes_linear_time() -> None:
    began = time.thread_time()
    comments = "# note\n" * 20_000
    changed = put(f"[mcp_servers.docs]\n{comments}x = 1\n{comments}[next]\n", KEY, "docs", ENTRY)
    assert changed.endswith(f"]\n{comments}[next]\n")
    assert time.thread_time() - began < 2
