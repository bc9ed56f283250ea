"""The tools over pages, where they are not those of the index: what their replies leave out for agents."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anvil
from anvil.server.docs_toolset import TOOLSET
from anvil.server.protocol import Answers
from anvil.server.toolset import RunningToolset
from tests.conftest import write


def test_twenty_updated_and_removed_pages_are_named_and_the_others_counted(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {f"p{number:02}.md": f"# Page {number}\n\nOld.\n" for number in range(30)})
    with anvil.open(docs, tmp_path / "i.db", "none") as opened:
        opened.index()

    def freshness(changed: int, removed: Sequence[int] = ()) -> Any:
        """The freshness that a new server reports, after pages have changed since the build and some were deleted."""
        write(docs, {f"p{number:02}.md": f"# Page {number}\n\nNew.\n" for number in range(changed)})
        for number in removed:
            (docs / f"p{number:02}.md").unlink()
        with anvil.open(docs, tmp_path / "i.db", "none") as opened:
            answers = Answers([RunningToolset.of(TOOLSET, opened)])
            call = {"name": "search_docs", "arguments": {"query": "page"}}
            return answers.answer("tools/call", call)["structuredContent"]["freshness"]

    few, many = freshness(20), freshness(30)
    note = "30 pages were updated for this answer."
    assert few["refreshed"] == many["refreshed"] == [f"p{number:02}.md" for number in range(20)]
    assert note in many["notes"] and not any("updated" in each for each in few.get("notes", ()))

    deleted = freshness(2, removed=range(2, 29))
    assert deleted["refreshed"] == ["p00.md", "p01.md", "p29.md"], "p29 was changed before"
    assert deleted["removed"] == [f"p{number:02}.md" for number in range(2, 22)]
    assert "27 pages were removed since the index was built." in deleted["notes"] and "removed" not in many
