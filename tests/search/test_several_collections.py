"""The scale on which results of several collections are compared."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.index_file import verify
from anvil.requests import SearchRequest
from anvil.search import several_collections
from anvil.search.candidates import FileIndex
from anvil.search.searcher import Searcher
from anvil.search.several_collections import Vocabulary, estimate, home_shares, merged_scores
from anvil.settings.schema import ChunkingOptions
from tests.conftest import write

WORDS = ["yaml", "sync", "the", "quote", "zzz"]
vocabularies = st.lists(
    st.builds(
        Vocabulary,
        st.dictionaries(st.sampled_from(WORDS[:4]), st.integers(0, 30)),
        st.integers(30, 30_000),
        st.floats(1, 500),
    ),
    min_size=1,
    max_size=9,
)


@given(vocabularies)
def test_the_shares_of_all_collections_are_one(collections: list[Vocabulary]) -> None:
    shares = home_shares(dict.fromkeys(WORDS, 1.0), collections)
    assert all(0 <= share <= 1 + 1e-9 for share in shares)
    is_known = any(count for vocabulary in collections for count in vocabulary.frequencies.values())
    assert sum(shares) == pytest.approx(1.0 if is_known else 0.0)


@given(vocabularies)
def test_the_order_of_the_collections_does_not_matter(collections: list[Vocabulary]) -> None:
    weights = dict.fromkeys(WORDS, 1.0)
    assert home_shares(weights, collections[::-1]) == pytest.approx(home_shares(weights, collections)[::-1])


def test_a_word_is_at_home_where_it_is_dense_not_where_there_is_more_text() -> None:
    small, large = Vocabulary({"quote": 15}, 30, 100), Vocabulary({"quote": 150}, 30_000, 100)
    shares = home_shares({"quote": 1.0}, [small, large])
    assert shares[0] > 0.95
    chance = home_shares({"quote": 1.0}, [Vocabulary({"quote": 1}, 30, 100), Vocabulary({"quote": 9000}, 30_000, 100)])
    assert chance[1] > 0.9  # one use in a small collection says little


def test_a_rare_word_counts_more_than_a_common_one() -> None:
    one = Vocabulary({"the": 1000, "sync": 10}, 1000, 100)
    other = Vocabulary({"the": 100}, 1000, 100)
    assert home_shares({"the": 1.0, "sync": 1.0}, [other, one])[1] > 0.9
    assert home_shares({"the": 1.0, "zzz": 1.0}, [one, other])[0] == pytest.approx(
        home_shares({"the": 1.0}, [one, other])[0]
    )


results = st.lists(st.tuples(st.floats(-10, 10), st.floats(0, 1)), max_size=20)


@given(results, st.floats(0, 1))
def test_a_collection_keeps_the_order_of_its_results(found: list[tuple[float, float]], behind: float) -> None:
    scores = sorted((score for _, score in found), reverse=True)
    merged = merged_scores([odds for odds, _ in found], scores, behind)
    assert merged == sorted(merged, reverse=True) and all(0 <= score <= 1 for score in merged)
    assert merged <= merged_scores([odds for odds, _ in found], scores, 0.0)


def test_the_best_result_has_the_confidence_of_its_collection() -> None:
    assert merged_scores([0.0, 2.0], [0.9, 0.9], 0.0) == [0.880797, 0.880797]
    assert merged_scores([], [], 0.0) == []
    assert merged_scores([800.0], [1.0], 0.0) == [1.0]


def test_words_and_nearness_make_a_collection_promising() -> None:
    assert estimate(0.5, 1.0) > estimate(0.4, 1.0) > estimate(0.4, 0.9)


def test_of_equal_results_the_first_collection_comes_first(tmp_path: Path, keywords: EmbeddingProvider) -> None:
    """Also if another one is a little more promising, and is searched first."""
    with ExitStack() as stack:
        searchers = []
        for number in range(7):
            # The share of the first collection is a little smaller, by less than a difference of scores that counts.
            others = {f"{other}.md": "word " * (300 + (number == other == 0)) for other in range(20)}
            docs = write(tmp_path / str(number), {"lamp.md": f"# Lamp {number}\n\nLight it.\n", **others})
            index = tmp_path / f"{number}.db"
            build(WorkingTree(docs), index, keywords, ChunkingOptions())
            reader = stack.enter_context(verify.open_checked(index))
            searchers.append(Searcher(FileIndex(reader), keywords))
        hits = several_collections.search(searchers, SearchRequest("light", 20, mode="keyword")).hits
    assert [hit.title for hit in hits] == [f"Lamp {number}" for number in range(7)]
