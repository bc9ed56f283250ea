"""Chunks: the cases in ``tests/cases``, and what holds for any page."""

from __future__ import annotations

import json
import time
import unicodedata
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.index_file.manifests import recalled_chunking
from anvil.settings.schema import ChunkingOptions, FixedChunks
from anvil.text.chunker import chunks, parts
from anvil.text.markdown_sections import parse
from anvil.values import Chunk
from tests.text.test_markdown_sections import EXAMPLES, SPEC, any_text

CASES = Path(__file__).parents[1] / "cases"
NAMES = sorted(path.stem for path in CASES.glob("*.md") if path.name != "README.md")


def render(made: tuple[Chunk, ...]) -> str:
    """Chunks as a case's ``%%% expected`` holds them."""
    return "".join(
        f"%%% chunk {chunk.heading_path} (level {chunk.heading_level}, "
        f"lines {chunk.start_line}-{chunk.end_line}, anchor {chunk.anchor or '-'})\n{chunk.content}"
        for chunk in made
    )


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str) -> None:
    text = (CASES / f"{name}.md").read_text(encoding="utf-8")
    before, _, rest = text.partition("%%% input\n")
    source, _, expected = rest.partition("%%% expected\n")
    options = yaml.safe_load(before.partition("%%% options\n")[2]) or {}
    assert render(chunks(parse(source), ChunkingOptions(**options))) == expected


@dataclass(frozen=True)
class Sizes:
    """Sizes smaller than ``ChunkingOptions`` allows: the promises do not rest on them."""

    max_chunk_size: int = 40
    min_chunk_size: int = 20
    merge_short_sections: bool = True


def check(source: str, options: ChunkingOptions | Sizes) -> None:
    page = parse(source)
    made = chunks(page, options)  # type: ignore[arg-type]
    assert "".join(chunk.content for chunk in made) == (page.text if page.text.strip() else "")
    assert made == chunks(page, options)  # type: ignore[arg-type]
    position = 0
    for ordinal, chunk in enumerate(made):
        assert (chunk.ordinal, chunk.start) == (ordinal, position)
        assert chunk.content == page.text[chunk.start : chunk.end]
        assert 0 < len(chunk.content) <= options.max_chunk_size
        assert chunk.start_line is not None and chunk.end_line is not None
        assert chunk.start_line <= chunk.end_line
        assert not (chunk.content.endswith("\r") and page.text[chunk.end : chunk.end + 1] == "\n")
        position = chunk.end
    paths = [chunk.heading_path for chunk in made]
    assert len(set(paths)) == len(paths) or any("[part " in section.title for section in page.sections)


@given(any_text, st.integers(2, 60), st.booleans())
@settings(max_examples=300, deadline=None)
def test_chunks_of_any_text_join_to_it_and_keep_the_limit(source: str, limit: int, merge: bool) -> None:
    check(source, Sizes(limit, min(limit, 20), merge))


def test_chunks_of_the_examples_of_commonmark() -> None:
    for source in [SPEC, *EXAMPLES]:
        check(source, ChunkingOptions())
        check(source, Sizes())


def test_white_space_alone_changes_the_content() -> None:
    one, two = (chunks(parse(source), ChunkingOptions()) for source in ("# A\ntext\n", "# A\ntext \n"))
    assert one[0].heading_path == two[0].heading_path
    assert one[0].content != two[0].content


def test_atomic_blocks_are_whole_while_they_fit() -> None:
    fence = "```\n" + "x = 1\n\n" * 20 + "```\n"
    table = "| a |\n|---|\n" + "| b |\n" * 20
    html = "<div>\n" + "text\n" * 20 + "</div>\n"
    source = "# A\n\n" + ("word " * 30 + "\n\n" + fence + "\n" + table + "\n" + html + "\n") * 5
    made = chunks(parse(source), ChunkingOptions(max_chunk_size=300))
    for whole in (fence, table, html):
        assert sum(chunk.content.count(whole) for chunk in made) == 5


def test_parts_are_balanced_and_the_heading_is_not_left_alone() -> None:
    source = "# A\n\n" + ("word " * 40 + "\n\n") * 10
    made = chunks(parse(source), ChunkingOptions(max_chunk_size=1_900))
    assert [len(chunk.content) for chunk in made] == [1015, 1010]
    alone = chunks(parse("# A\n\n" + "x" * 290 + "\n\n" + "y" * 290 + "\n"), ChunkingOptions(max_chunk_size=300))
    assert alone[0].content.startswith("# A\n\nx")


def test_one_line_is_cut_at_a_space_else_between_characters() -> None:
    page = parse("word " * 100)
    assert all(page.text[end - 1] == " " for _, end in parts(page, 0, len(page.text), 52))
    page = parse("e\u0301" * 100 + "👩\u200d👩\u200d👧" * 20 + "👍🏽" * 20)
    for start, _ in parts(page, 0, len(page.text), 51):
        assert not unicodedata.combining(page.text[start])
        assert page.text[start] not in "\u200d🏽" and page.text[start - 1] != "\u200d"
    page = parse("\r\n" * 10 + "x")
    assert all(page.text[start] != "\n" for start, _ in parts(page, 0, len(page.text), 5))


# --- chunks of one size ----------------------------------------------------------------------------------------


@settings(deadline=None)
@given(any_text, st.integers(4, 60), st.integers(0, 30))
def test_chunks_of_one_size(source: str, size: int, overlap: int) -> None:
    page = parse(source)
    overlap = min(overlap, size // 2)
    made = chunks(page, FixedChunks(size, overlap))
    assert made == chunks(page, FixedChunks(size, overlap))
    covered = 0
    for ordinal, chunk in enumerate(made):
        assert chunk.ordinal == ordinal and chunk.content == page.text[chunk.start : chunk.end]
        assert 0 < len(chunk.content) <= size and not chunk.content.isspace()
        assert not page.text[covered : chunk.start].strip()  # what no chunk holds is blank
        if ordinal:
            assert made[ordinal - 1].start < chunk.start and made[ordinal - 1].end - chunk.start <= overlap
        assert chunk.start_line is not None and chunk.end_line is not None
        assert chunk.start_line <= chunk.end_line
        section = next(each for each in page.sections if each.start <= chunk.start < each.end)
        assert chunk.heading_path == section.heading_path
        covered = chunk.end
    assert not page.text[covered:].strip()


def test_chunks_of_one_size_end_and_overlap_at_words() -> None:
    text = "# Ferries\n\n" + " ".join(f"word{number}" for number in range(400)) + "\n"
    made = chunks(parse(text), FixedChunks(200, 40))
    words = set(text.split())
    assert len(made) > 10
    for before, after in pairwise(made):
        assert set(before.content.split()) <= words and before.end - after.start > 15


def test_a_thousand_chunks_of_one_size_take_a_moment() -> None:
    page = parse("x" * 1_000_000)
    began = time.thread_time()
    assert len(chunks(page, FixedChunks(1000, 500))) > 1000
    assert time.thread_time() - began < 5


@pytest.mark.parametrize("options", [ChunkingOptions(3000, 100), FixedChunks(400, 7, "mkdocs")])
def test_options_are_known_again_from_the_manifest(options: ChunkingOptions | FixedChunks) -> None:
    assert recalled_chunking(json.dumps({**asdict(options), "version": 1})) == options
