"""The results that ``anvil search`` prints."""

from __future__ import annotations

from pathlib import Path

from tests.conftest import write
from tests.support.in_process import program


def test_an_address_cannot_forge_a_line(tmp_path: Path) -> None:
    site = '[site]\nurl = "https://docs.example.com/\\n::error::x/"\nrule = "github"\n'
    write(tmp_path, {"anvil.toml": site, "docs/a.md": "# Gulls\n\nThey swim.\n"})
    told = program("search", "gulls", "--provider", "none", cwd=tmp_path).stdout
    assert "https://docs.example.com/\\n::error::x/a.md#gulls" in told and "\n::error::" not in told
