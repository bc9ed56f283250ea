"""The short form of the battery of live edits; ``benchmarks/batter_server.py`` is the long one."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest

from tests.support import mcp_servers
from tests.support.live_edits import LiveEdits


@pytest.mark.parametrize("seed", [1, 2])
def test_no_answer_is_stale_after_edits_renames_and_deletions(tmp_path: Path, seed: int) -> None:
    docs = tmp_path / "docs"
    edits = LiveEdits(docs, random.Random(seed))
    edits.begin()
    with mcp_servers.in_memory(docs, tmp_path / "index.db", "none") as speaker:

        def ask(tool: str, **arguments: Any) -> dict[str, Any] | None:
            result = speaker.call(tool, **arguments)
            return None if result.is_error else json.loads(result.content[0].text)

        edits.ask = ask
        edits.run(40)
    assert edits.failures == []
    assert min(edits.tried[kind] for kind in ("edit", "rename", "delete", "asked for search")) > 2
