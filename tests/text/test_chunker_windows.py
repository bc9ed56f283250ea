"""Windows: they cover a chunk, overlap, and keep the limit of the model."""

from __future__ import annotations

import re
import time
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from anvil.text.chunker import cut_windows, window_text
from tests.text.test_markdown_sections import any_text


def tokens(text: str) -> list[tuple[int, int]]:
    """Word pieces of up to four letters, symbols by themselves; control characters and blanks give none."""
    return [found.span() for found in re.finditer(r"[^\W_]{1,4}|[^\w\s\x00-\x1f]|_", text)]


def covered(text: str, spans: list[tuple[int, int]], limit: int, overlap: int, above: str = "T > B") -> int:
    made = cut_windows(text, above, spans, len(tokens(above)), limit, overlap)
    seen = bytearray(len(text))
    for window in made:
        assert window.text == window_text(above, text[window.start : window.end])
        seen[window.start : window.end] = b"\x01" * (window.end - window.start)
    assert all(flag or char.isspace() for flag, char in zip(seen, text, strict=True))
    assert [window.start for window in made] == sorted({window.start for window in made})
    assert made == cut_windows(text, above, spans, len(tokens(above)), limit, overlap)
    return len(made)


@given(any_text, st.integers(1, 40), st.integers(0, 50), st.sampled_from(["", "T > B"]))
@settings(max_examples=300, deadline=None)
def test_windows_cover_any_text(text: str, limit: int, overlap: int, above: str) -> None:
    assert covered(text, tokens(text), limit, overlap, above) >= 1


@given(any_text, st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30))).map(sorted))
@settings(max_examples=200, deadline=None)
def test_windows_cover_whatever_the_tokenizer_says(text: str, spans: list[tuple[int, int]]) -> None:
    # A character has four bytes at most, so no more than four tokens begin at it.
    spans = [span for number, span in enumerate(spans) if number < 4 or spans[number - 4][0] != span[0]]
    assert covered(text, spans, 12, 3) >= 1


def test_windows_that_would_begin_at_the_same_character_are_one() -> None:
    spans = [(0, 1)] * 4 + [(1, 2)] * 4 + [(2, 3)] * 2
    assert [(each.start, each.end) for each in cut_windows(" 00", "T > B", spans, 3, 12, 3)] == [(1, 3)]


def test_windows_keep_the_limit_and_overlap() -> None:
    text = "".join(f"Sentence number {n} says a little. And then\nit goes on.\n" for n in range(100))
    made = cut_windows(text, "T > B", tokens(text), 3, 64, 12)
    assert all(len(tokens(window.text)) <= 64 for window in made)
    for one, two in pairwise(made):
        assert text[one.end] == "\n"
        assert 4 <= len(tokens(text[two.start : one.end])) <= 20
    assert len(cut_windows(text[:100], "T", tokens(text[:100]), 1, 256, 32)) == 1


def test_windows_do_not_cut_words_while_there_is_a_choice() -> None:
    text = "internationalization " * 60
    made = cut_windows(text, "", tokens(text), 0, 32, 8)
    assert all(window.text.endswith("internationalization") for window in made)
    assert all(window.text.startswith("internationalization") for window in made)


def test_a_chunk_without_tokens_is_one_window() -> None:
    assert [window.text for window in cut_windows(" \n", "T", [], 1, 64, 8)] == ["T\n \n"]
    assert [(w.start, w.end) for w in cut_windows("\x00\x01", "T", [(0, 0)], 1, 64, 8)] == [(0, 2)]


def test_a_long_header_leaves_room_for_the_text() -> None:
    text = "word " * 100
    assert len(cut_windows(text, "h", tokens(text), 500, 64, 32)) <= 30


def test_windows_overlap_by_at_most_half() -> None:
    text = "word " * 64
    made = cut_windows(text, "", tokens(text), 0, 16, 100)
    assert len(made) == 7
    assert all(two.start - one.start == 8 * len("word ") for one, two in pairwise(made))


def test_windows_take_linear_time() -> None:
    text = "word and more, " * 40_000
    spans = tokens(text)
    began = time.thread_time()
    assert len(cut_windows(text, "T", spans, 1, 64, 31)) > 1_000
    assert time.thread_time() - began < 4
