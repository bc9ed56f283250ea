"""What is worth mending is found, and nothing else is."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.build import builder
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.live.memory_copy import MemoryCopy
from anvil.project_indexes import IndexLocation
from anvil.requests import BuildRequest
from anvil.search import content_health
from anvil.search.candidates import nearest_pairs
from anvil.search.content_health import ContentHealth
from anvil.settings.schema import ChunkingOptions, SourceOptions
from tests.conftest import PAGES, write

SAME = "This paragraph stands in more than one place, word for word, and is long enough to be worth the telling.\n"
QUIET = "\n".join(PAGES["guides/alerts.md"].splitlines()[10:14])
"""A section on quiet windows; said in a few other words below."""


def looked_over(docs: Path, provider: EmbeddingProvider, options: ChunkingOptions | None = None) -> ContentHealth:
    index = docs.parent / "i.db"
    options = options or ChunkingOptions()
    builder.build(WorkingTree(docs, SourceOptions()), index, provider, options, BuildRequest(force=True))
    with verify.open_checked(index) as reader:
        return _health(reader)


def _health(reader: Reader) -> ContentHealth:
    near = content_health.near_duplicates(content_health.compared_vectors(reader))
    return replace(content_health.read_index(reader), near_duplicates=near)


def test_good_pages_have_nothing_to_mend(docs: Path, local: EmbeddingProvider) -> None:
    found = looked_over(docs, local)
    assert (found.pages, found.sections, found.chunks, found.pending_vectors) == (4, 13, 13, 0)
    assert found.windows >= 13 and found.characters > 3000
    assert (found.long_sections, found.duplicates, found.near_duplicates) == ((), (), ())
    assert found.without_headings == found.empty_pages == ()


def test_vectors_that_are_still_to_be_made_are_counted(docs: Path, local: EmbeddingProvider) -> None:
    """Of a chunk that is not yet cut into windows one is, as an answer says it, too."""
    tree = WorkingTree(docs, SourceOptions())
    with contextlib.closing(
        MemoryCopy(IndexLocation(docs.parent / "none.db"), tree, local, defer_vectors=True)
    ) as copy:
        copy.begin_empty(ChunkingOptions())
        copy.read_some(99)
        found = _health(copy.reader)
        assert found.pending_vectors == found.chunks == copy.pending == 13 and found.windows == 0


def test_sections_over_the_limit_are_named_longest_first(docs: Path, keywords: EmbeddingProvider) -> None:
    write(
        docs,
        {
            "long.md": "---\nt: 1\n---\n# Long\n\nShort.\n\n## Most\n\n"
            + "A sentence. " * 60
            + "\n\n### More\n\n"
            + "A sentence. " * 50
        },
    )
    found = looked_over(docs, keywords, ChunkingOptions(max_chunk_size=500, min_chunk_size=0))
    assert found.limit == 500
    assert [(spot.file_path, spot.heading_path, spot.line) for spot in found.long_sections] == [
        ("long.md", "Long > Most", 8),
        ("long.md", "Long > Most > More", 12),
    ]
    assert found.long_sections[0].chars == len("## Most\n\n" + "A sentence. " * 60 + "\n\n")


def test_texts_in_two_places_are_duplicates_whatever_stands_above_them(docs: Path, keywords: EmbeddingProvider) -> None:
    write(
        docs,
        {
            "a.md": f"# One\n\n{SAME}\n## Other\n\nSee above.\n",
            "b.md": f"# Two\n\n## Two levels\n\n{SAME.replace(' word', chr(10) + 'word')}\n## Other\n\nSee above.\n",
        },
    )
    found = looked_over(docs, keywords)
    assert [[(spot.file_path, spot.heading_path, spot.line) for spot in spots] for spots in found.duplicates] == [
        [("a.md", "One", 1), ("b.md", "Two > Two levels", 3)]
    ]
    assert found.near_duplicates is None, "there are no vectors to find them by"


def test_sections_that_nearly_say_the_same_are_found_by_their_vectors(docs: Path, local: EmbeddingProvider) -> None:
    assert QUIET.startswith("## Silence at night")
    said = QUIET.replace("in one\nsummary", "in a summary").replace("holds back", "keeps back")
    assert said != QUIET
    write(docs, {"guides/night.md": f"# Alerts\n\n{said}\n", "copy.md": PAGES["guides/checks.md"]})
    found = looked_over(docs, local)
    assert found.near_duplicates
    paths = {(pair.first.file_path, pair.second.file_path) for pair in found.near_duplicates}
    assert paths == {("guides/alerts.md", "guides/night.md")}, "a copy is a duplicate, and told as such"
    assert 0.95 <= found.near_duplicates[0].similarity < 1


def test_texts_that_the_bundled_model_does_not_read_are_near_to_nothing(docs: Path, local: EmbeddingProvider) -> None:
    keys = [
        ("Навигация по панели списка", "Список файлов"),
        ("リストパネルのナビゲーション", "ファイルの一覧を表示する"),
    ]
    pages = {
        f"keys-{number}.md": f"# {title}\n\n| `gg` | {text} |\n|---|---|\n" + f"| `ctrl+b` | {text * 4} |\n" * 3
        for number, (title, text) in enumerate(keys)
    }
    write(docs, pages)
    assert looked_over(docs, local).near_duplicates == ()


def test_pages_without_headings_or_text_are_named(docs: Path, keywords: EmbeddingProvider) -> None:
    write(docs, {"plain.md": "Text only.\n", "blank.md": "\n \n", "front.md": "---\ntitle: x\n---\n"})
    found = looked_over(docs, keywords)
    assert (found.without_headings, found.empty_pages) == (("plain.md",), ("blank.md", "front.md"))


def test_an_index_of_nothing_is_looked_over(tmp_path: Path, local: EmbeddingProvider) -> None:
    found = looked_over(write(tmp_path / "docs", {".keep": ""}), local)
    assert (found.pages, found.chunks, found.near_duplicates) == (0, 0, None)
    assert {bar.chunks for bar in found.chunk_sizes} == {0}


@given(st.lists(st.integers(1, 9000), max_size=50), st.sampled_from([200, 6000, 100_000]))
def test_every_chunk_is_in_one_bar(sizes: list[int], limit: int) -> None:
    bars = list(content_health._bars(sizes, limit))
    assert sum(bar.chunks for bar in bars) == len(sizes)
    bounds = [bar.up_to for bar in bars]
    assert bounds == sorted(set(bounds)) and limit in bounds


@pytest.mark.parametrize("count", [0, 1, 2, 1500])
def test_nearest_pairs_are_those_of_a_plain_loop(count: int) -> None:
    chance = np.random.default_rng(count)
    centres = chance.normal(size=(max(count // 6, 1), 24))
    owners = np.sort(chance.integers(0, max(count, 1), size=count * 2))
    which = owners % len(centres)
    rows = np.clip(centres[which] * 40 + chance.normal(size=(count * 2, 24)) * 6, -127, 127).astype(np.int8)
    page = {int(owner): int(owner) // 3 for owner in owners}
    order = chance.permutation(len(owners))
    found = nearest_pairs(rows[order], owners[order], [page], 0.95, 30)

    units = rows / np.linalg.norm(rows, axis=1, keepdims=True) if count else rows.astype(float)
    names = np.unique(owners)
    means = np.array([units[owners == name].mean(0) for name in names]) if count else np.empty((0, 24))
    means = means / np.linalg.norm(means, axis=1, keepdims=True)
    cosines = np.triu(means @ means.T, 1)
    plain = sorted(
        (-float(cosines[i, j]), int(names[i]), int(names[j]))
        for i, j in zip(*np.nonzero(cosines >= 0.95), strict=True)
        if page[int(names[i])] != page[int(names[j])]
    )[:30]
    assert len(found) == len(plain)
    assert [value for _, _, value in found] == pytest.approx([-value for value, _, _ in plain], abs=1e-5)
    assert {(a, b) for a, b, _ in found[:20]} == {(a, b) for _, a, b in plain[:20]}


def test_the_largest_and_the_emptiest_pages_are_told_apart(docs: Path, keywords: EmbeddingProvider) -> None:
    write(docs, {f"p{number:02}.md": f"# P\n\n{'x' * number * 10}\n" for number in range(1, 30)})
    write(docs, {"blank.md": ""})
    found = looked_over(docs, keywords)
    assert [page.file_path for page in found.largest_pages[4:]] == [f"p{number}.md" for number in range(29, 23, -1)]
    assert [page.file_path for page in found.smallest_pages] == [f"p{number:02}.md" for number in range(1, 11)]
    first = found.smallest_pages[0]
    assert (first.title, first.chars, first.chunks) == ("P", len("# P\n\n") + 11, 1)


@pytest.mark.parametrize(("count", "largest"), [(0, 0), (1, 1), (2, 1), (3, 2)])
def test_few_pages_stand_in_one_list_only(
    tmp_path: Path, keywords: EmbeddingProvider, count: int, largest: int
) -> None:
    (tmp_path / "docs").mkdir()
    found = looked_over(write(tmp_path / "docs", {f"{n}.md": "x" * n + "\n" for n in range(1, count + 1)}), keywords)
    assert len(found.largest_pages) == largest and len(found.smallest_pages) == count - largest
    assert len({page.file_path for page in found.largest_pages + found.smallest_pages}) == count
