"""The table of clients: where each format is published, and the command of an entry."""

from __future__ import annotations

import pytest

from anvil.clients.known_clients import CLIENTS, command_of, entry


@pytest.mark.parametrize("name", CLIENTS)
def test_each_format_is_documented_at_an_address(name: str) -> None:
    assert CLIENTS[name].documentation.startswith("https://")


@pytest.mark.parametrize("name", CLIENTS)
def test_the_command_of_an_entry(name: str) -> None:
    command = ["anvil", "serve", "--docs", "docs"]
    assert command_of(CLIENTS[name], entry(CLIENTS[name], "docs", command)) == command
    assert command_of(CLIENTS[name], None) == command_of(CLIENTS[name], {"url": "https://x"}) == []
