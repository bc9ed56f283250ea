"""What the status says of the artifact behind the answers."""

from __future__ import annotations

from pathlib import Path

import anvil
from tests.conftest import write
from tests.support.repositories import commit, isolated, run

__all__ = ["isolated"]  # a fixture


def test_the_status_tells_how_far_the_artifact_is_behind(docs: Path) -> None:
    run(docs, "init", "-q", "-b", "main")
    first = commit(docs, "docs", at=1_700_000_000)
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
        artifact = opened.get_status().index.artifact
        assert artifact and (artifact.commit, artifact.distance, artifact.note) == (first, 0, None)
        write(docs, {"index.md": "# Edited\n"})
        commit(docs, "edit", at=1_700_000_001)
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.distance == 1
        assert artifact.note == "1 page is newer than in this index, and refreshed: index.md."
        run(docs, "checkout", "-q", "--orphan", "other")
        commit(docs, "no ancestor of it", at=1_700_000_002)
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.distance is None


def test_the_status_names_the_scripts_that_the_model_reads(docs: Path) -> None:
    with anvil.open(docs, docs.parent / "index.db") as opened:
        opened.index()
        assert opened.get_status().embedding.scripts == "Latin"
    with anvil.open(index=docs.parent / "index.db", provider="none") as opened:
        assert opened.get_status().embedding.scripts is None, "another provider cannot say it"


def test_only_some_of_many_pages_are_named(docs: Path) -> None:
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
        write(docs, {f"{number:04}.md": f"# {number}\n" for number in range(1200)})
        artifact = opened.get_status().index.artifact
        assert artifact and artifact.note
        assert artifact.note.startswith("1,200 pages are newer than in this index, and refreshed: 0000.md, ")
        assert artifact.note.endswith("0019.md and 1,180 more.")
