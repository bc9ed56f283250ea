from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.library.document_chunker import DocumentChunker, slices
from anvil.settings.schema import ChunkingOptions
from anvil.values import Chunk

LINES = st.lists(
    st.sampled_from(
        [
            "# One",
            "## Two",
            "### Three",
            "text of some words",
            "",
            "   ",
            "```",
            "~~~~",
            "---",
            "a: 1",
            "\ufeffx",
            "* item",
            "word " * 30,
            "\t",
        ]
    ),
    max_size=60,
).map("\n".join)


def cut(text: str, size: int) -> tuple[DocumentChunker, list[Chunk]]:
    cutter = DocumentChunker(ChunkingOptions(max_chunk_size=400, min_chunk_size=50))
    return cutter, [chunk for piece in slices(text, size) for chunk in cutter.cut(piece)]


@settings(deadline=None)
@given(LINES, st.integers(20, 300))
def test_slices_joined_are_the_text(text: str, size: int) -> None:
    parts = list(slices(text, size))
    assert "".join(parts) == text
    assert all(part.strip() for part in parts) or len(parts) <= 1


@settings(deadline=None)
@given(LINES, st.integers(20, 300))
def test_nothing_is_lost_however_it_is_sliced(text: str, size: int) -> None:
    cutter, chunks = cut(text, size)
    assert (cutter.head or "") + "".join(chunk.content for chunk in chunks) == text
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    body = text[len(cutter.head or "") :]
    for chunk in chunks:
        assert body[chunk.start : chunk.end] == chunk.content


def test_breadcrumbs_go_on_from_slice_to_slice() -> None:
    parts = (f"## Part {n}\n\n{'words ' * 30}\n\n### Deep\n\n{'more ' * 30}\n\n" for n in range(9))
    text = "# Guide\n\nintro\n\n" + "".join(parts)
    whole = cut(text, 100_000)[1]
    for size in (300, 500, 900):
        assert [chunk.heading_path for chunk in cut(text, size)[1]] == [chunk.heading_path for chunk in whole]
        assert [(c.start_line, c.end_line) for c in cut(text, size)[1]] == [(c.start_line, c.end_line) for c in whole]


def test_text_before_a_slice_s_first_heading_belongs_to_the_one_before() -> None:
    text = "# A\n\n" + "\n\n".join("para " * 20 for _ in range(10)) + "\n\n# B\n\nend\n"
    paths = [chunk.heading_path.split(" [")[0] for chunk in cut(text, 300)[1]]
    assert set(paths) == {"A", "B"}


def test_no_fence_is_torn_that_fits() -> None:
    fence = "```\n" + "\n\n".join(f"line {n}" for n in range(8)) + "\n```\n"
    text = ("text\n\n" * 10 + fence) * 5
    for piece in slices(text, 260):
        assert piece.count("```") % 2 == 0


def test_long_documents_are_packed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("anvil.library.document_chunker.PACK_FROM_CHARACTERS", 1000)
    text = "".join(f"## H{n}\n\n{'w ' * 30}\n\n" for n in range(100))
    loose, tight = cut(text, 100_000)[1], cut(text, 2000)[1]
    assert len(tight) < len(loose)
    assert "".join(chunk.content for chunk in tight) == text
    late = [len(chunk.content) for chunk in tight[-20:-1]]
    assert sum(late) / len(late) > 200
