"""Exact text in pages: places, limits, and what is in ``path``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.api import Anvil
from anvil.errors import NotFound
from anvil.index_file.reader import Reader
from anvil.results import GrepMatch
from anvil.search import grep
from tests.conftest import write

PAGES = {
    "api.md": "---\ntitle: The API\n---\nIntro with --token.\r\n\r\n# API\r\n\r\nThe option --token names it.\r\n"
    "\r\n## Errors\r\n\r\nE42: the token is wrong\r\nafter\r\n",
    "guides/a.md": "# A\n\nOne --TOKEN line.\nTwo --token line.\n",
    "guides/b.md": "# B\n\n" + "x" * 5000 + " needle " + "y" * 5000 + "\n",
    "guides-old/c.md": "# C\n\n--token is old\n",
}


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Anvil]:
    place = tmp_path_factory.mktemp("grep")
    with anvil.open(write(place / "docs", PAGES), provider="none") as opened:
        yield opened


def places(result: anvil.GrepResult) -> list[tuple[str, int]]:
    return [(match.file_path, match.line or 0) for match in result.matches]


def test_lines_are_those_of_the_file_with_the_breadcrumb_of_their_section(opened: Anvil) -> None:
    result = opened.grep("token", "api.md")
    assert [(m.line, m.text, m.heading_path) for m in result.matches] == [
        (4, "Intro with --token.", "(root)"),
        (8, "The option --token names it.", "API"),
        (12, "E42: the token is wrong", "API > Errors"),
    ]
    assert opened.folder is not None
    for match in result.matches:
        source = (opened.folder / match.file_path).read_text(encoding="utf-8").splitlines()
        assert match.line is not None and source[match.line - 1] == match.text
        assert match.text in opened.get_section(match.file_path, match.heading_path).content
    assert (result.total_matches, result.total_pages, result.next_offset, result.notes) == (3, 1, None, None)


def test_case_is_ignored_unless_it_is_asked_for(opened: Anvil) -> None:
    assert places(opened.grep("--token", "guides")) == [("guides/a.md", 3), ("guides/a.md", 4)]
    assert places(opened.grep("--token", "guides", ignore_case=False)) == [("guides/a.md", 4)]


def test_a_page_in_several_versions_is_searched_in_the_newest_that_matches(tmp_path: Path) -> None:
    texts = {"v9.x": "--token", "v10.x": "--token", "v11.x": "--key"}
    pages = {f"{version}/guide/{name}.md": f"# {name}\n\n{text}\n" for version, text in texts.items() for name in "abc"}
    docs = write(tmp_path / "docs", {**pages, "v9.x/guide/old.md": "# Old\n\n--token\n", "z.md": "# Z\n\n--token\n"})
    with anvil.open(docs, provider="none") as opened:
        newest = opened.grep("--token")
        assert places(newest) == [(f"v10.x/guide/{name}.md", 3) for name in "abc"] + [
            ("v9.x/guide/old.md", 3),
            ("z.md", 3),
        ]
        assert (newest.total_matches, newest.total_pages) == (5, 5)
        assert newest.notes is not None
        assert newest.notes[0].endswith("give its path, such as v9.x.")
        assert places(opened.grep("--token", "v9.x")) == [
            (f"v9.x/guide/{name}.md", 3) for name in ("a", "b", "c", "old")
        ]
        assert opened.grep("--token", "") == newest  # as agents send it
        everywhere = opened.grep("--token", ".")
        assert (everywhere.total_matches, everywhere.notes) == (8, None)


def test_a_whole_word_and_letters_of_one_or_two_characters(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"a.md": "# A\n\nidle caf\u00e9\nthe id cafe\u0301\n"})
    with anvil.open(docs, provider="none") as opened:
        assert places(opened.grep("id", word=True)) == [("a.md", 4)]
        for word in ("caf\u00e9", "cafe\u0301"):
            assert places(opened.grep(word)) == places(opened.grep(word, word=True)) == [("a.md", 3), ("a.md", 4)]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (None, {"api.md", "guides-old/c.md", "guides/a.md"}),
        ("guides", {"guides/a.md"}),
        ("/guides/", {"guides/a.md"}),
        ("./guides/a.md", {"guides/a.md"}),
        ("guides*/*", {"guides-old/c.md", "guides/a.md"}),
        ("**/a.md", {"guides/a.md"}),
        ("", {"api.md", "guides-old/c.md", "guides/a.md"}),
    ],
)
def test_a_path_is_a_page_a_folder_or_a_glob(opened: Anvil, path: str | None, expected: set[str]) -> None:
    assert {match.file_path for match in opened.grep("--token", path).matches} == expected


def test_an_absolute_path_is_a_page(opened: Anvil) -> None:
    assert opened.folder is not None
    assert opened.grep("--token", str(opened.folder / "api.md")).total_pages == 1


@pytest.mark.parametrize("path", ["guides/c.md", "nope/**", "../x.md", "a\0b", "\ud800", "x" * 5000])
def test_a_path_without_a_page_is_an_error(opened: Anvil, path: str) -> None:
    with pytest.raises(NotFound, match="list_pages"):
        opened.grep("token", path)


def test_the_lines_around_a_match(opened: Anvil) -> None:
    (match,) = opened.grep("E42", context=2).matches
    assert match.before == ("## Errors", "") and match.after == ("after", "")
    (match,) = opened.grep("--TOKEN", ignore_case=False, context=20).matches
    assert match.before == ("# A", "") and match.after is not None and match.after[0] == "Two --token line."
    assert opened.grep("E42").matches[0].before is None


def test_the_answer_goes_on_where_it_stopped(opened: Anvil) -> None:
    everything = opened.grep("token")
    parts: list[GrepMatch] = []
    offset = 0
    while True:
        part = opened.grep("token", max_matches=2, offset=offset)
        assert (part.total_matches, part.total_pages) == (everything.total_matches, everything.total_pages)
        parts += part.matches
        if part.next_offset is None:
            break
        assert part.next_offset == offset + 2
        offset = part.next_offset
    assert tuple(parts) == everything.matches and len(parts) == 6
    assert opened.grep("token", max_chars=1).next_offset == 1  # one match is always there
    assert opened.grep("token", offset=6).matches == ()


def test_a_long_line_is_cut_around_its_match(opened: Anvil) -> None:
    (match,) = opened.grep("needle").matches
    assert " needle " in match.text and match.text.startswith("…x") and match.text.endswith("y…")
    assert len(match.text) == grep.MAX_LINE_CHARS + 2
    (whole,) = opened.grep("needle", max_chars=None).matches
    assert len(whole.text) == 10_008


def test_an_edit_is_found_at_once(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, provider="none") as opened:
        assert not opened.grep("fresh words").matches
        (docs / "guides" / "a.md").write_text("# A\n\nSome fresh words.\n", encoding="utf-8")
        assert places(opened.grep("fresh words")) == [("guides/a.md", 3)]
        (docs / "guides" / "a.md").unlink()
        assert not opened.grep("fresh words").matches


def test_metadata_is_read_of_the_shown_pages_only(opened: Anvil, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 pages that took a sixth of the time."""
    read: list[str] = []

    def recorded(_: Reader, path: str) -> None:
        read.append(path)

    monkeypatch.setattr(Reader, "document", recorded)
    monkeypatch.setattr(Reader, "documents", recorded)
    assert places(opened.grep("token", max_matches=2)) == [("api.md", 4), ("api.md", 8)]
    assert read == ["api.md"]


def test_when_the_time_is_up_the_rest_is_named(opened: Anvil, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grep, "TIME_LIMIT_S", -1.0)
    result = opened.grep("token")
    assert result.matches == () and result.notes is not None
    assert "in api.md; 3 pages after it not searched" in result.notes[0]


@pytest.mark.parametrize("pattern", ["tok.*en", "[Tt]oken x", r"\btoken\b", "tokens?x|zz", "(?i)token"])
def test_a_pattern_that_looks_like_an_expression_and_matches_nothing_is_explained(opened: Anvil, pattern: str) -> None:
    (note,) = opened.grep(pattern).notes or ()
    assert note == "No line has this text as it stands, and regex is off, so it is not read as an expression."
    assert opened.grep(pattern, regex=True).notes is None
    assert opened.grep("no such text (really).").notes is None


def test_text_from_an_included_file_has_a_line_of_the_page(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {"page.md": '# P\n\n--8<-- "part.txt"\n\n## Next\n\nend word\n'})
    (docs / "part.txt").write_text("included word\nsecond\nthird word\n")
    with anvil.open(docs, provider="none") as opened:
        for match in opened.grep("word").matches:
            section = opened.get_section("page.md", match.heading_path).metadata
            assert section.start_line and match.line and section.end_line
            assert section.start_line <= match.line <= section.end_line
        assert opened.grep("end word").matches[0].line == 7
