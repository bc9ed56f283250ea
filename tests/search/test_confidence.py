"""Confidence: a probability that grows with the evidence, and says so when there is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.embedding import local
from anvil.search import confidence
from anvil.search.confidence import MatchEvidence

SHARES = st.floats(0, 1)
LENGTHS = st.integers(1, 2000)
COSINES = st.floats(-1, 1)
FITS = confidence.fits_for(local.open_directory("").digest)


@given(SHARES, SHARES, LENGTHS, COSINES, COSINES, st.booleans())
def test_it_is_a_probability_with_two_digits(
    words: float, unknown: float, length: int, cosine: float, page: float, vectors: bool
) -> None:
    evidence = MatchEvidence(words, unknown, length, *((cosine, page) if vectors else (None, None)))
    found = FITS.confidence(evidence)
    assert 0 <= found <= 1 and found == round(found, 2)


@given(st.lists(SHARES, min_size=2, max_size=2), SHARES, LENGTHS, st.lists(COSINES, min_size=2, max_size=2), COSINES)
def test_more_of_the_words_and_a_higher_cosine_never_lower_it(
    words: list[float], unknown: float, length: int, cosines: list[float], page: float
) -> None:
    less, more = sorted(words)
    far, near = sorted(cosines)
    assert FITS.confidence(MatchEvidence(less, unknown, length)) <= FITS.confidence(
        MatchEvidence(more, unknown, length)
    )
    weak, strong = MatchEvidence(less, unknown, length, far, page), MatchEvidence(more, unknown, length, near, page)
    assert FITS.confidence(weak) <= FITS.confidence(strong)
    assert FITS.confidence(MatchEvidence(less, unknown, length, page, far)) <= FITS.confidence(
        MatchEvidence(less, unknown, length, page, near)
    )


@given(SHARES, st.lists(SHARES, min_size=2, max_size=2), LENGTHS)
def test_words_that_the_index_does_not_know_never_raise_it(words: float, unknown: list[float], length: int) -> None:
    few, many = sorted(unknown)
    assert FITS.confidence(MatchEvidence(words, few, length, 0.4, 0.3)) >= FITS.confidence(
        MatchEvidence(words, many, length, 0.4, 0.3)
    )


def test_no_evidence_is_unlikely_and_all_of_it_is_sure() -> None:
    for nothing in (MatchEvidence(0, 1, 3), MatchEvidence(0, 1, 3, 0.1, 0.1), MatchEvidence(0, 0, 1, 0.2, 0.1)):
        assert FITS.confidence(nothing) < 0.02 < confidence.UNLIKELY
    assert FITS.confidence(MatchEvidence(0.8, 0, 6, 0.7, 0.6)) > 0.95
    assert FITS.confidence(MatchEvidence(0.9, 0, 6)) > 0.95


def test_a_model_without_a_fit_is_judged_by_words() -> None:
    other = confidence.fits_for("another model's digest")
    assert other.vectors is None and other.words == FITS.words
    with_vectors, without = MatchEvidence(0.4, 0, 5, 0.9, 0.9), MatchEvidence(0.4, 0, 5)
    assert other.confidence(with_vectors) == other.confidence(without) < FITS.confidence(with_vectors)


@pytest.mark.parametrize(
    ("confidences", "minimum", "said"),
    [
        ([0.9, 0.0], 0.0, None),
        ([0.02, 0.01], 0.0, "Probably nothing here answers this: the highest confidence of a result is 0.02."),
        ([0.02], 0.5, "Probably nothing here answers this: the highest confidence of a result is 0.02."),
        ([0.4], 0.5, "No result has the confidence of 0.5 that was asked for; the highest is 0.40."),
        ([0.4], 0.4, None),
        ([], 0.5, None),
    ],
)
def test_what_is_said_when_nothing_is_likely(confidences: list[float], minimum: float, said: str | None) -> None:
    assert confidence.note(confidences, minimum) == said


def test_what_has_the_name_that_was_asked_for_is_taken_to_answer() -> None:
    assert confidence.is_covered([0.0, 0.01], is_named=True) and not confidence.is_covered([0.0, 0.01], is_named=False)
    assert confidence.is_covered([0.01, 0.03], is_named=False)
    assert confidence.note([0.02], is_named=True) is None
    assert confidence.note([0.02], 0.5, is_named=True) == (
        "No result has the confidence of 0.5 that was asked for; the highest is 0.02."
    )
