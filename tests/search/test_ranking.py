"""Scores: BM25F against its definition, and what fusion and lifting promise."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.search import ranking
from anvil.text.query import Query


def fields(title: str = "", heading: str = "", content: str = "", terms: str = "") -> tuple[ranking.Counts, int]:
    words = (title.split(), heading.split(), content.split(), terms.split())
    counts = (Counter(words[0]), Counter(words[1]), Counter(words[2]), Counter(words[3]))
    return counts, sum(map(len, words))


def test_a_rare_word_weighs_more_and_no_word_less_than_nothing() -> None:
    weights = [ranking.idf(frequency, 1000) for frequency in (1, 10, 500, 1000)]
    assert weights == sorted(weights, reverse=True) and weights[-1] > 0
    assert ranking.idf(3, 2000) == pytest.approx(math.log(1 + 1997.5 / 3.5))
    assert ranking.idf(3, 10) == pytest.approx(math.log(1 + 997.5 / 3.5))  # as of 1,000 chunks


def test_bm25f_is_what_the_paper_says() -> None:
    """One term, in two fields, in a chunk of average length and one twice as long."""
    one = fields(heading="cache", content="the cache is warm")
    pseudo = 2.0 * 1 + 1.0 * 1
    score, coverage = ranking.bm25f(*one, {"cache": 1.5}, average=5.0, phrases=0.0)
    assert score == pytest.approx(1.5 * pseudo * 2.2 / (pseudo + 1.2)) and coverage == 1.0
    longer, _ = ranking.bm25f(*one, {"cache": 1.5}, average=2.5, phrases=0.0)
    assert longer == pytest.approx(1.5 * pseudo * 2.2 / (pseudo + 1.2 * (0.25 + 0.75 * 2))) and longer < score


def test_coverage_is_the_share_of_the_question_in_the_breadcrumb() -> None:
    found = fields(title="x", heading="a b", content="c")
    assert ranking.bm25f(*found, {"a": 1.0, "c": 3.0, "d": 4.0}, 3.0, 0.0)[1] == pytest.approx(1 / 8)
    assert ranking.bm25f(*found, {}, 3.0, 0.0) == (0.0, 0.0)


def test_a_phrase_adds_to_the_score() -> None:
    found = fields(content="a b")
    assert ranking.bm25f(*found, {"a": 1.0}, 2.0, 2.0)[0] > ranking.bm25f(*found, {"a": 1.0}, 2.0, 0.0)[0]


def test_a_heading_counts_more_than_the_same_word_in_the_text() -> None:
    heading = ranking.bm25f(*fields(heading="cache", content="x"), {"cache": 1.0}, 2.0, 0.0)
    content = ranking.bm25f(*fields(heading="x", content="cache"), {"cache": 1.0}, 2.0, 0.0)
    assert heading > content


numbers = st.floats(0, 100, allow_nan=False)
shares = st.floats(0, 1, allow_nan=False)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(numbers, shares, shares, shares, shares), max_size=20), st.booleans(), st.booleans(), numbers)
def test_fused_scores_lie_between_nought_and_one(
    rows: list[tuple[float, float, float, float, float]], with_vectors: bool, with_links: bool, perfect: float
) -> None:
    table = np.array(rows, np.float64).reshape(-1, 5)
    pages = [number // 3 for number in range(len(rows))]
    links = table[:, 3:] if with_links else None
    scores, parts = ranking.fuse(table[:, 0], table[:, 1], table[:, 2] if with_vectors else None, links, pages, perfect)
    assert parts.sum(axis=1) == pytest.approx(scores) and (with_vectors or not parts[:, 2].any())
    assert with_links or not parts[:, 3].any()
    assert len(scores) == len(rows) and ((scores >= 0) & (scores <= 1 + 1e-12)).all()


def test_who_is_better_in_all_is_better() -> None:
    scores, _ = ranking.fuse(np.array([2.0, 1.0]), np.array([1.0, 0.5]), np.array([0.9, 0.1]), None, [1, 2], 2.0)
    assert scores[0] > scores[1]
    four = np.ones(1 + ranking.NEIGHBOURS)
    perfect, _ = ranking.fuse(2.0 * four, four, four, None, [1] * len(four), 2.0)
    assert perfect[0] == pytest.approx(1.0)


def test_of_two_equal_pages_the_one_that_links_name_or_that_more_pages_link_to_is_better() -> None:
    lexical, coverage, dense = np.array([1.0, 1.0]), np.zeros(2), np.array([0.5, 0.5])
    named, parts = ranking.fuse(lexical, coverage, dense, np.array([[0.0, 0.5], [0.5, 0.5]]), [1, 2], 2.0)
    assert named[1] > named[0] and parts[1, 3] > parts[0, 3] > 0
    popular, _ = ranking.fuse(lexical, coverage, dense, np.array([[0.5, 0.0], [0.5, 0.5]]), [1, 2], 2.0)
    assert popular[1] > popular[0]


def test_vectors_decide_between_pages_where_no_candidate_has_many_of_the_words() -> None:
    lexical, coverage, dense = np.array([2.0, 1.0]), np.zeros(2), np.array([0.2, 0.8])
    matching, _ = ranking.fuse(lexical, coverage, dense, None, [1, 2], 2.0)
    assert matching[0] > matching[1]
    vague, _ = ranking.fuse(lexical, coverage, dense, None, [1, 2], 20.0)
    assert vague[1] > vague[0]


@pytest.mark.parametrize(("perfect", "is_whole"), [(4.0, True), (10.0, True), (11.0, False)])
def test_words_have_their_whole_weight_from_two_fifths_of_a_perfect_match_on(perfect: float, is_whole: bool) -> None:
    _, parts = ranking.fuse(np.array([4.0, 1.0]), np.zeros(2), np.zeros(2), None, [1, 2], perfect)
    assert bool(parts[0, 0] == 1 / 2) is is_whole


def test_a_missing_pair_of_characters_counts_half_of_a_missing_word() -> None:
    terms = {"检索": (1.0, "检索"), "索文": (1.0, "索文"), "cache": (1.0, "cache")}
    weights = ranking.QueryWeights(Query(terms), {"检索": 3}, {"检索": 2.5})
    assert weights.missing == {"索文": 0.5, "cache": 1.0}


def test_weights_hold_the_order_of_pages() -> None:
    """Each row is a change of a weight that must not pass unseen: the first of two pages leads by it alone."""
    even, half = np.array([1.0, 1.0]), np.array([0.5, 0.5])

    def lead(lexical: list[float], links: list[list[float]]) -> bool:
        scores, _ = ranking.fuse(np.array(lexical), 0 * even, half, np.array(links), [1, 2], 2.0)
        return bool(scores[0] > scores[1])

    assert lead([0.65, 1.0], [[1.0, 0.0], [0.0, 0.0]]) and not lead([0.55, 1.0], [[1.0, 0.0], [0.0, 0.0]])
    assert lead([0.85, 1.0], [[0.0, 1.0], [0.0, 0.0]]) and not lead([0.75, 1.0], [[0.0, 1.0], [0.0, 0.0]])
    dense = np.array([0.9, 0.9, 0.9, 0.9, 0.9])
    several, _ = ranking.fuse(np.array([0.85, 0, 0, 0, 1.0]), 0 * dense, dense, None, [1, 1, 1, 1, 2], 1.0)
    assert several[0] > several[4], "a page with several near sections"
    assert (ranking.SIBLING_BOOST, ranking.MAX_BOOSTED) == (0.4, 4)


def test_words_decide_between_the_sections_of_a_page_also_then() -> None:
    lexical, coverage, dense = np.array([2.0, 1.6]), np.zeros(2), np.array([0.5, 0.6])
    vague, parts = ranking.fuse(lexical, coverage, dense, None, [1, 1], 10.0)
    assert vague[0] > vague[1]
    assert parts[0, 0] - parts[1, 0] == pytest.approx((1.0 - 0.8) / 2)


def test_above_mean_runs_from_the_mean_to_the_best() -> None:
    scores = np.array([-1.0, 0.2, 0.4, 0.6], np.float32)
    found = ranking.normalize(scores, 0.2, 0.6)
    assert found == pytest.approx([0.0, 0.0, 0.5, 1.0], abs=1e-6)
    assert ranking.normalize(np.array([0.5], np.float32), 0.5, 0.5)[0] == 0.0  # one chunk is its own mean


def test_lifting_raises_the_first_few_of_a_page_toward_its_best() -> None:
    many = ranking.MAX_BOOSTED + 2
    scores, pages = [1.0, *([0.5] * (many - 1)), 0.9], [*([1] * many), 2]
    raised = 0.5 + ranking.SIBLING_BOOST * 0.5
    few = ranking.MAX_BOOSTED - 1
    assert ranking.boost_siblings(scores, pages) == pytest.approx(
        [1.0, *([raised] * few), *([0.5] * (many - 1 - few)), 0.9]
    )


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(shares, st.integers(0, 4)), max_size=30))
def test_lifting_keeps_the_order_of_pages_and_of_sections_in_a_page(rows: list[tuple[float, int]]) -> None:
    scores, pages = [score for score, _ in rows], [page for _, page in rows]
    found = ranking.boost_siblings(scores, pages)
    for page in set(pages):
        mine = [i for i, each in enumerate(pages) if each == page]
        assert max(found[i] for i in mine) == max(scores[i] for i in mine)
        for a in mine:
            assert found[a] >= scores[a]
            for b in mine:
                if scores[a] > scores[b]:
                    assert found[a] >= found[b] - 1e-12


def test_passages_that_are_read_again_change_the_order() -> None:
    scores, summands = ranking.with_passages([0.8, 0.7, 0.2], [0.3, 0.5])
    assert scores == pytest.approx([0.8 / 1.25, 0.95 / 1.25, 0.2 / 1.25])
    assert summands == pytest.approx([0.0, 0.25 / 1.25, 0.0])


def test_passages_that_are_nearly_equal_change_the_scores_little() -> None:
    _, summands = ranking.with_passages([0.8, 0.7], [0.45, 0.5])
    assert summands == pytest.approx([0.0, 0.25 * 0.25 / 1.25])


def test_equal_passages_change_no_order() -> None:
    scores, summands = ranking.with_passages([0.8, 0.7], [0.4, 0.4])
    assert scores[0] > scores[1]
    assert summands == [0.0, 0.0]
