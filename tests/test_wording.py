from __future__ import annotations

import pytest

from anvil.wording import bytes_of, closest_names, closest_note, counted, first_of, listed, size


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (counted(0, "page"), "0 pages"),
        (counted(1, "page"), "1 page"),
        (counted(1200, "page"), "1,200 pages"),
        (counted(1, "page", "differ"), "1 page differs"),
        (counted(2, "page", "differ"), "2 pages differ"),
        (counted(1, "vector", "are"), "1 vector is"),
        (counted(1, "file", "could"), "1 file could"),
        (listed([]), ""),
        (listed(["a"]), "a"),
        (listed(["a", "b"]), "a and b"),
        (listed(["a", "b", "c"]), "a, b and c"),
        (first_of(["a", "b"], 2), "a, b"),
        (first_of(["a", "b", "c"], 2), "a, b and 1 more"),
        (size(0), "0 B"),
        (size(999), "999 B"),
        (size(1000), "1.0 kB"),
        (size(999_999), "1.0 MB"),
        (size(2_100_000), "2.1 MB"),
        (size(999_950_000), "1.0 GB"),
    ],
)
def test_one_and_many(said: str, expected: str) -> None:
    assert said == expected


def test_bytes_are_written_in_several_ways() -> None:
    assert [bytes_of(text) for text in ("812", "9.4 kB", "2MB", " 1g ", "much", "2 TB", "9" * 400)] == [
        812,
        9_400,
        2_000_000,
        1_000_000_000,
        None,
        None,
        None,
    ]


def test_names_that_are_spelled_alike_are_the_closest() -> None:
    names = ("build", "bundle", "search")
    assert closest_names("bulid", names) == ["build"]
    assert closest_names("bundl", names, limit=2) == ["bundle", "build"]
    assert closest_names("serve", names, cutoff=0.9) == []
    assert closest_names("build" + "x" * 100_000, names) == []


def test_a_note_names_the_closest_behind_a_space_or_is_empty() -> None:
    assert closest_note(["a.md", "b.md"]) == " Closest: a.md, b.md."
    assert closest_note(["A > B", "C"], "; ") == " Closest: A > B; C."
    assert closest_note([]) == ""
