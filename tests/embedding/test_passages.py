"""Scores of passages, by the scorer that is bundled."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anvil.embedding.local import BUNDLED, LocalProvider
from anvil.embedding.passages import HeadedText, PassageScorer
from anvil.errors import ModelError
from anvil.settings.schema import EmbeddingSettings

QUESTION = "How do I revoke a key that was stolen?"
RIGHT = HeadedText("Keys > Revoke", "Run `keys revoke ID`. A revoked key is refused at once, and its sessions end.")
WRONG = [
    HeadedText("Keys > Rotate", "Signing keys are rotated every 30 days; the old one stays valid for a day."),
    HeadedText("Install", "Download the package for your system and unpack it."),
    HeadedText("Themes", "Colours and fonts of the dashboard are set in `theme.toml`."),
]
FILLER = "The dashboard shows requests per second for each region, and alerts when there are none. " * 40


@pytest.fixture(scope="module")
def provider() -> Iterator[LocalProvider]:
    local = LocalProvider(EmbeddingSettings())
    yield local
    local.close()


@pytest.fixture
def scorer(provider: LocalProvider) -> PassageScorer:
    found = provider.passages
    assert found is not None
    return found


def test_the_passage_that_answers_has_the_highest_score(scorer: PassageScorer) -> None:
    scores = scorer.score(QUESTION, [*WRONG, RIGHT])
    assert scores.shape == (4,)
    assert scores.argmax() == 3
    assert scores.max() <= 1


def test_a_score_depends_on_question_and_passage_alone(scorer: PassageScorer) -> None:
    passages = [*WRONG, RIGHT]
    alone = [scorer.score(QUESTION, [passage])[0] for passage in passages]
    for threads in (1, None):
        for order in (1, -1):  # each with a scorer that has no score yet
            other = LocalProvider(EmbeddingSettings(threads=threads)).passages
            assert other is not None
            assert other.score(QUESTION, passages[::order]).tolist() == alone[::order]
            assert other.score(QUESTION, passages).tolist() == alone


def test_a_passage_is_read_once_for_a_question(monkeypatch: pytest.MonkeyPatch) -> None:
    scorer = LocalProvider(EmbeddingSettings()).passages
    assert scorer is not None
    runs: list[int] = []
    run = scorer.token_vectors

    def counted(ids: Sequence[int]) -> Any:
        runs.append(len(ids))
        return run(ids)

    monkeypatch.setattr(scorer, "token_vectors", counted)
    first = scorer.score(QUESTION, WRONG)
    assert len(runs) == 4  # the question and three passages
    assert scorer.score(QUESTION, [RIGHT, *WRONG])[1:].tolist() == first.tolist()
    assert len(runs) == 6  # the question again, and the new passage
    assert scorer.score(QUESTION, [RIGHT, *WRONG[::-1]])[:0:-1].tolist() == first.tolist()
    assert len(runs) == 6
    scorer.score(f"{QUESTION} Soon.", [RIGHT])
    assert len(runs) == 8


def test_the_part_of_a_long_text_that_fits_is_read(scorer: PassageScorer) -> None:
    late = HeadedText("Keys > Revoke", FILLER + RIGHT.text)
    cut = HeadedText("Keys > Revoke", FILLER)
    scores = scorer.score(QUESTION, [RIGHT, late, cut])
    assert scores[1] > scores[2]
    _, read = scorer.tokens(QUESTION, [late])
    assert len(read[0]) == 126


def test_the_nearest_window_says_where_to_read_a_text_without_words_of_the_question(scorer: PassageScorer) -> None:
    text = FILLER + "Ein Schlüssel wird gesperrt." + FILLER
    start = len(FILLER)
    near = scorer.tokens("zzz", [HeadedText("", text, (start, start + 28))])[1][0]
    first = scorer.tokens("zzz", [HeadedText("", text)])[1][0]
    german = set(scorer.tokens("gesperrt", [])[0])
    assert german <= set(near)
    assert not german <= set(first)


def test_the_nearest_window_counts_more_than_one_word_of_the_question_and_less_than_two(scorer: PassageScorer) -> None:
    far, near = f"{FILLER}A zebra has stripes. {FILLER}", "Tulips are planted in autumn. " * 60
    passage = HeadedText("", far + near, (len(far), len(far) + len(near)))
    tulips = set(scorer.tokens("x", [HeadedText("", "Tulips are planted in autumn.")])[1][0])
    read = {question: set(scorer.tokens(question, [passage])[1][0]) for question in ("zebra", "zebra stripes")}
    assert tulips <= read["zebra"] and not tulips <= read["zebra stripes"]


def test_of_a_very_long_text_the_part_around_the_nearest_window_is_read(scorer: PassageScorer) -> None:
    text = FILLER * 10 + RIGHT.text + FILLER * 10
    span = len(FILLER) * 10, len(FILLER) * 10 + len(RIGHT.text)
    wanted = set(scorer.tokens("revoked", [])[0])
    assert wanted <= set(scorer.tokens(QUESTION, [HeadedText("", text, span)])[1][0])


@pytest.mark.parametrize("question", ["", " ", "\0"])
def test_a_question_without_tokens_scores_nothing(scorer: PassageScorer, question: str) -> None:
    assert scorer.score(question, [RIGHT]).tolist() == [0.0]


def test_texts_of_any_kind_have_a_score(scorer: PassageScorer) -> None:
    assert scorer.score(QUESTION, []).tolist() == []
    chance = random.Random(0)
    noise = "".join(chr(chance.randrange(0x20, 0xFFFF)) for _ in range(500))
    scores = scorer.score(noise, [HeadedText("", ""), HeadedText(noise * 9, noise), HeadedText("a", "\ud800", (0, 1))])
    assert np.isfinite(scores).all()


def test_another_model_has_no_scorer(tmp_path: Path) -> None:
    for name in ("model.onnx", "tokenizer.json", "model.json"):
        (tmp_path / name).write_bytes((BUNDLED / name).read_bytes())
    assert LocalProvider(EmbeddingSettings(model=str(tmp_path))).passages is None


@pytest.mark.parametrize(("name", "content"), [("passages.json", "{"), ("passages.json", "{}"), ("passages.onnx", "x")])
def test_a_damaged_scorer_is_an_error_that_names_the_file(tmp_path: Path, name: str, content: str) -> None:
    for file in ("model.onnx", "tokenizer.json", "model.json", "passages.onnx", "passages.json"):
        (tmp_path / file).write_bytes((BUNDLED / file).read_bytes())
    (tmp_path / name).write_text(content, encoding="utf-8")
    scorer = LocalProvider(EmbeddingSettings(model=str(tmp_path))).passages
    assert scorer is not None
    with pytest.raises(ModelError, match=name):
        scorer.score(QUESTION, [RIGHT])


def test_the_settings_switch_it_off() -> None:
    assert LocalProvider(EmbeddingSettings(passages=False)).passages is None
