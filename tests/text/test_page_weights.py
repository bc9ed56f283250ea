"""Weights of pages: recorded in a manifest, recalled from one, and matched with paths."""

from __future__ import annotations

from anvil.text import page_weights


def test_weights_survive_the_manifest_in_their_order() -> None:
    text = page_weights.recorded({"b/**": 0.5, "a": 2})
    assert text == '[["b/**",0.5],["a",2]]'
    assert list(page_weights.recalled(text).items()) == [("b/**", 0.5), ("a", 2)]
    assert page_weights.recorded({}) is None and page_weights.recalled(None) == {}


def test_the_first_glob_counts_and_a_folder_means_its_pages() -> None:
    weight_of = page_weights.weigher({"old/kept.md": 1.0, "old": 0.5, "**/draft-*.md": 0.2})
    assert [weight_of(path) for path in ("old/kept.md", "old/a.md", "new/draft-1.md", "new/a.md", "older.md")] == [
        1.0,
        0.5,
        0.2,
        None,
        None,
    ]
