"""YAML files: an entry is added or changed, and everything else stays."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.clients.file_editing import EDITORS
from anvil.clients.known_clients import CLIENTS
from anvil.clients.server_entries import ClientFile, merged
from anvil.errors import ConfigError

loads, dumps, put = EDITORS["yaml"]

KEY = "extensions"
ENTRY = {"name": "docs", "type": "stdio", "cmd": "anvil", "args": ["serve", "--docs", "a: b"]}
CONFIG = """\
# Goose
GOOSE_MODE: "smart" # mode
extensions: # all of them
    # the first
    developer:
        enabled: true
        note: |
            docs:
              x

    # ours
    docs:
        cmd: old
        args: [a]   # the end
    # after
    memory: {enabled: true}
# last
other: 1
"""
WRITTEN = """\
    docs:
      name: docs
      type: stdio
      cmd: anvil
      args:
      - serve
      - --docs
      - 'a: b'
"""


def test_an_entry_is_changed_in_its_place() -> None:
    new = put(CONFIG, KEY, "docs", ENTRY)
    old = "    docs:\n        cmd: old\n        args: [a]   # the end\n"
    assert new == CONFIG.replace(old, WRITTEN)
    assert loads(new) == {**loads(CONFIG), KEY: {**loads(CONFIG)[KEY], "docs": ENTRY}}


def test_a_new_entry_goes_before_the_others() -> None:
    new = put(CONFIG, KEY, "new", ENTRY)
    assert new == CONFIG.replace("    developer:", WRITTEN.replace("docs:\n", "new:\n", 1) + "    developer:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "extensions:\n  d:\n    a: 1\n"),
        ("a: 1", "a: 1\nextensions:\n  d:\n    a: 1\n"),
        ("a: 1\r\n", "a: 1\r\nextensions:\r\n  d:\r\n    a: 1\r\n"),
        ("extensions:\n", "extensions:\n  d:\n    a: 1\n"),
        ("extensions: {}  # none\nb: 1\n", "extensions:  # none\n  d:\n    a: 1\nb: 1\n"),
        ("extensions: ~", "extensions:\n  d:\n    a: 1\n"),
        ("extensions:\n  d:\n    x: |\n      t\n\n# c\n", "extensions:\n  d:\n    a: 1\n\n# c\n"),
        ("extensions:\n  d:\n  e: 1\n", "extensions:\n  d:\n    a: 1\n  e: 1\n"),
    ],
)
def test_where_it_is_put(text: str, expected: str) -> None:
    assert put(text, KEY, "d", {"a": 1}) == expected


@pytest.mark.parametrize("text", ["extensions: {a: 1}\n", "{extensions: {}}", "extensions: &x {a: 1}\n", "a: ["])
def test_what_is_not_understood_is_refused(text: str) -> None:
    file = ClientFile(CLIENTS["goose"], "user", Path())
    with pytest.raises(ConfigError, match="Put this in yourself"):
        merged(text, file, "d", {"a": 1}, Path())


printable = st.characters(exclude_categories=["Cs", "Cc"])


@given(st.text(printable, min_size=1, max_size=8), st.lists(st.text(printable), max_size=3))
def test_any_text_is_read_as_it_was_written(name: str, values: list[str]) -> None:
    entry = {"cmd": name, "args": values}
    assert loads(dumps(KEY, name, entry)) == {KEY: {name: entry}}
    assert loads(put(CONFIG, KEY, name, entry)) == {**loads(CONFIG), KEY: {**loads(CONFIG)[KEY], name: entry}}
