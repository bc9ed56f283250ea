from __future__ import annotations

from anvil.wording import closest_paths

PAGES = ["guide/install.md", "guide/CRLF.md", "api/index.md", "index.md"]


def test_case_does_not_count_in_names_and_in_spelling() -> None:
    assert closest_paths("crlf.md", PAGES)[0] == "guide/CRLF.md"
    assert closest_paths("INSTALL", PAGES) == ["guide/install.md"]
    assert closest_paths("GUIDE/INSTAL.MD", PAGES)[0] == "guide/install.md"


def test_pages_that_differ_in_case_only_are_all_named() -> None:
    assert closest_paths("readme.md", ["README.md", "Readme.md"]) == ["README.md", "Readme.md"]


def test_names_count_in_addresses_of_collections() -> None:
    assert closest_paths("Index.md", ["docs:guide/a.md", "fastapi:index.md"])[0] == "fastapi:index.md"


def test_the_callers_own_come_first_and_the_rest_is_limited() -> None:
    assert closest_paths("other/index.md", PAGES, ["guide/install.md"], limit=2) == ["guide/install.md", "api/index.md"]


def test_a_long_path_is_cut_before_it_is_compared() -> None:
    assert closest_paths("x" * 100_000, PAGES) == []


def test_an_ending_that_all_pages_have_makes_none_of_them_alike() -> None:
    assert closest_paths("Range_Select.md", ["README.md", "CHANGELOG.md"]) == []
    assert closest_paths("nope.md", ["CHANGELOG.md", "README.md"]) == []
    assert closest_paths("Undo.md", ["README.md", "Undoing.md"]) == ["Undoing.md"]
    assert closest_paths("bred.md", ["handbook:bread.md", "docs:index.md"]) == ["handbook:bread.md"]
