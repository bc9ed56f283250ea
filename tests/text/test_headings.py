"""Titles as a reader sees them, anchors as sites derive them, breadcrumbs that are unique."""

from __future__ import annotations

import re
import time

import pytest
from markdown.extensions.toc import unique

from anvil.text.headings import MAX_TITLE, Anchors, attributes, breadcrumbs, plain, slug, under_heading, window_header

TITLES = {
    '`<ClientOnly />` <Badge type="info" text="component" />': "<ClientOnly />",
    "[isort](https://pypi.org/project/isort/)?": "isort?",
    "**Bold**, *emphasis* and ***both***": "Bold, emphasis and both",
    "snake_case_name and _one_ __two__": "snake_case_name and one two",
    "`__init__` stays, `*so*` does `&amp;` this": "__init__ stays, *so* does &amp; this",
    "_foo_bar_ x": "foo_bar x",
    "a_b c_": "a_b c_",
    "a *b * c": "a *b * c",
    "a * b* c": "a * b* c",
    'a*"b"* c': 'a*"b"* c',
    '*"b"*a': '*"b"*a',
    "`` a`b ``": "a`b",
    "2 * 3 * 4": "2 * 3 * 4",
    "~~Old~~ new": "Old new",
    "*never closed, `nor this": "*never closed, `nor this",
    r"\*escaped\* \`code\`": "*escaped* `code`",
    "Q&amp;A &lt;b&gt; &#65; AT&T": "Q&A <b> A AT&T",
    "![a *logo*](logo.png) Name": "a logo Name",
    "[`code`](target 'title') and [a [b] c](d(e)f)": "code and a [b] c",
    "[text][label] and [text][]": "text and text",
    "[Unreleased] and [Undefined]": "Unreleased and [Undefined]",
    "Claim[^1] and[^2]": "Claim and[^2]",
    "List<string> of Map<string, number>": "List of Map<string, number>",
    "<https://example.org> <me@example.org>": "https://example.org me@example.org",
    "a <!-- comment --> b {/* comment */}": "a b",
    "Vue <Foo :bar=\"x > y\" @click='z' {...rest} a={{b: 1}} /> end": "Vue end",
    "`word`<sup>1.2</sup> of H<sub>2</sub>O<sup>beta</sup>": "word 1.2 of H2O beta",
    "  two \t\u00a0 spaces ": "two spaces",
    "日本**語**です": "日本語です",
    "Cafe\u0301": "Cafe\u0301",
    "": "",
}


@pytest.mark.parametrize(("source", "title"), TITLES.items())
def test_title_is_what_a_reader_sees(source: str, title: str) -> None:
    assert plain(source, {"unreleased", "^1"}) == title


@pytest.mark.parametrize(
    ("source", "bare", "anchor"),
    [
        ("Title {#id}", "Title", "id"),
        ("Title {#id} ##", "Title", "id"),
        ('Title ## {: #id .c k="v w" }', "Title", "id"),
        ("Title {id=it}", "Title", "it"),
        ("Title {/* #an-id */}", "Title", "an-id"),
        ("Title {.wide}", "Title", ""),
        ("Title {-}", "Title", ""),  # of Pandoc: not numbered
        ("Title {#id -}", "Title", "id"),
        ("Range {1-2}", "Range {1-2}", ""),
        ("Title {: name}", "Title", ""),
        ("Title {: name #id other .c }", "Title", "id"),
        ("Title {:.2f 1}", "Title {:.2f 1}", ""),
        ("Title{: name}", "Title{: name}", ""),
        ("Title {: }", "Title {: }", ""),
        ("Title {name}", "Title {name}", ""),
        ("标注 :id=call-outs", "标注", "call-outs"),  # of docsify
        ("Title {docsify-ignore-all}", "Title", ""),
        ("key :id=1 in a text", "key :id=1 in a text", ""),
        ("Title {}", "Title {}", ""),
        ("`{#id}`", "`{#id}`", ""),
        ("C#", "C#", ""),
        ("C #", "C", ""),
        ("##", "", ""),
    ],
)
def test_attribute_lists_and_closing_hashes(source: str, bare: str, anchor: str) -> None:
    assert attributes(source) == (bare, anchor)


def test_slugs_of_both_styles() -> None:
    assert slug("What's new in `2.0`? - Ünïcode_x", "github") == "whats-new-in-20---ünïcode_x"
    assert slug("What's new in `2.0`? - Ünïcode_x", "mkdocs") == "whats-new-in-20-unicode_x"
    assert slug("日本語", "github") == "日本語"
    assert slug("日本語", "mkdocs") == ""


def test_repeated_anchors_are_numbered_as_the_sites_do() -> None:
    github, mkdocs = Anchors("github"), Anchors("mkdocs")
    assert [github.claim(title) for title in ["a", "a", "a-1", "a", "!", "!"]] == [
        "a",
        "a-1",
        "a-1-1",
        "a-2",
        "",
        "-1",
    ]
    assert [mkdocs.claim(title) for title in ["a", "a", "a_1", "a", "日", "日"]] == [
        "a",
        "a_1",
        "a_2",
        "a_3",
        "_1",
        "_2",
    ]
    assert Anchors("github", {"a"}).claim("A") == "a-1"


def test_breadcrumbs_stay_unique_against_literal_numbers_and_separators() -> None:
    headings = [(1, "A > B"), (1, "A"), (2, "B"), (2, "B"), (3, "C"), (2, "B [2]"), (1, "(root)")]
    assert breadcrumbs(headings) == [
        "A > B",
        "A",
        "A > B [2]",
        "A > B [3]",
        "A > B [3] > C",
        "A > B [2] [2]",
        "(root) [2]",
    ]


def test_a_title_is_bounded_and_read_in_linear_time() -> None:
    assert len(plain("x" * 5_000_000)) == MAX_TITLE
    for hostile in ["[", "*a _b ", "`a``b", "<a ", "~~a", "[a](", "&", "![", "<a {"]:
        source = hostile * (4 * MAX_TITLE // len(hostile))
        began = time.thread_time()
        assert len(plain(source)) <= MAX_TITLE
        assert time.thread_time() - began < 1, hostile


@pytest.mark.parametrize("titles", [["a 1", "a 1", "a 1"], ["a_5", "a_5", "a", "a"], ["", "", "_1"], ["a", "a", "a_1"]])
def test_mkdocs_numbers_are_those_of_python_markdown(titles: list[str]) -> None:
    ours, ids = Anchors("mkdocs"), set[str]()
    slugs = [title.replace(" ", "-") for title in titles]
    assert [ours.claim(title) for title in titles] == [unique(slug, ids) for slug in slugs]


def test_github_numbers_begin_at_one() -> None:
    ours = Anchors("github")
    assert [ours.claim(title) for title in ("a", "a", "a-1", "a")] == ["a", "a-1", "a-1-1", "a-2"]


@pytest.mark.parametrize(
    ("section", "text"),
    [
        ("## Install\n\nText.\n", "\n\nText.\n"),
        ("\n  #\nText.", "\nText."),
        ("Install\n=======\nText.", "\nText."),
        ("Install\r\n---\r\nText.", "\r\nText."),
        ("## Install", ""),
        ("Text.\n\n---\n", "Text.\n\n---\n"),
        ("#install is a tag", "#install is a tag"),
        ("    # in code\n", "    # in code\n"),
        ("| a |\n|---|\n", "| a |\n|---|\n"),
        ("- item\n---\n", "- item\n---\n"),
        ("Text\n--- and more", "Text\n--- and more"),
        ("", ""),
    ],
)
def test_the_text_under_a_heading(section: str, text: str) -> None:
    assert under_heading(section) == text


PIECE = re.compile(r"[^\W_]{1,4}|[^\w\s]|_")
"""A token of a model, about: up to four letters, or a sign."""


@pytest.mark.parametrize(
    ("title", "path", "expected"),
    [
        ("Guide", "Guide > Install > Linux", "Guide > Install > Linux"),
        ("Guide", "Install > Linux [part 2/3]", "Guide > Install > Linux"),
        ("Guide", "Guide [part 1/2]", "Guide"),
        ("Guide", "(root)", "Guide"),
        ("Guide", "Guidelines", "Guide > Guidelines"),
        ("Guide", "Install [2]", "Guide > Install [2]"),
        ("", "Install", "Install"),
        ("", "(root)", ""),
    ],
)
def test_window_header(title: str, path: str, expected: str) -> None:
    assert window_header(title, path) == expected


def test_a_window_header_is_bounded_and_keeps_title_and_leaf() -> None:
    path = " > ".join(f"Heading of level {n} with quite a few words in it" for n in range(1, 7))
    short = window_header("The page", path)
    assert len(PIECE.findall(short)) <= 48
    assert short.startswith("The page > ") and short.endswith("Heading of level 6 with quite a few words in it")
    assert len(PIECE.findall(window_header("word " * 500, "x"))) <= 48
    assert len(window_header("界" * 500, "語" * 500)) <= 48
