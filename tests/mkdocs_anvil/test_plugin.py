"""Lines that the plugin logs have no control characters, whatever a page is called."""

from __future__ import annotations

import pytest

from mkdocs_anvil import plugin


def test_control_characters_of_names_are_replaced(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        plugin.log.warning("%s is not indexed", "a\x1b[2J\r\nb\x9b.md")
    assert [entry.getMessage() for entry in caplog.records] == ["mkdocs_anvil: a\ufffd[2J\n  b\ufffd.md is not indexed"]
