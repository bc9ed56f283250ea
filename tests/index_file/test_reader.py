"""Queries against an index: which of them use an index of SQLite, and the order of equal matches."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import NoProvider
from anvil.index_file import verify
from anvil.settings.schema import ChunkingOptions, EmbeddingSettings
from tests.conftest import write

SAME = "# Lamp\n\nA lamp burns oil.\n"


@pytest.fixture
def index(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    pages = write(tmp_path / "docs", {f"{name}.md": SAME for name in "abcdef"})
    build(WorkingTree(pages), tmp_path / "i.db", NoProvider(EmbeddingSettings(provider="none")), ChunkingOptions())
    return tmp_path / "i.db"


def test_a_page_is_found_by_the_index_of_paths(index: Path) -> None:
    """Reading all pages for one takes 2 ms with 20,000 of them, and a search reads up to eight."""
    with verify.open_checked(index) as reader:
        statements: list[tuple[str, Any]] = []

        def recorded(_: object, sql: str, values: Any) -> bool:
            statements.append((sql, values))
            return True

        reader.connection.exec_trace = recorded
        assert reader.document("c.md") is not None
        reader.connection.exec_trace = None
        [(sql, values)] = statements
        plan = " ".join(row[-1] for row in reader.connection.execute(f"EXPLAIN QUERY PLAN {sql}", values))
    assert "USING INDEX documents_path" in plan


def test_equal_matches_are_in_the_order_of_their_rows(index: Path) -> None:
    with verify.open_checked(index) as reader:
        rows = reader.matching("lamp", (2, 2, 1, 0.5), 4)
        documents = [id_ for id_, path in reader.paths() if path in ("b.md", "d.md", "f.md")]
        chosen = reader.matching("lamp", (2, 2, 1, 0.5), 2, documents)
        all_rows = sorted(row for row, _ in reader.chunk_documents())
        own_rows = sorted(row for row, document in reader.chunk_documents() if document in documents)
    assert rows == all_rows[:4]
    assert chosen == own_rows[:2]
