"""Changed pages to rows: the order of the work."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from anvil.build import builder
from anvil.documents.document_source import SourceWrapper
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.settings.schema import ChunkingOptions
from anvil.values import Document, KnownTimes, Skipped
from tests.conftest import write


class Recorded(SourceWrapper):
    """A source with a list of the calls in an update."""

    def __init__(self, docs: Path) -> None:
        super().__init__(WorkingTree(docs))
        self.calls: list[str] = []

    def commit(self) -> str | None:
        self.calls.append("commit")
        return super().commit()

    def last_modified(self, paths: Collection[str], known: KnownTimes, since: str | None) -> dict[str, str]:
        self.calls.append("times")
        return super().last_modified(paths, known, since)

    def read(self, path: str) -> Document | Skipped:
        self.calls.append(path)
        return super().read(path)


def test_changed_and_added_pages_are_read_in_the_order_of_their_paths(
    tmp_path: Path, keywords: EmbeddingProvider
) -> None:
    """Whichever of them are new, and after the commit: a commit that is made meanwhile is noticed by the next build."""
    index, docs = tmp_path / "index.db", write(tmp_path / "docs", {"b.md": "# B\n", "d.md": "# D\n"})
    builder.build(WorkingTree(docs), index, keywords, ChunkingOptions())
    source = Recorded(write(docs, {f"{name}.md": f"# {name}, edited\n" for name in "dcba"}))
    builder.build(source, index, keywords, ChunkingOptions())
    first = source.calls.index("times")
    assert source.calls[first - 1 :][:6] == ["commit", "times", "a.md", "b.md", "c.md", "d.md"]
