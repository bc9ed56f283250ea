"""Globs against a table of what people expect, and against a matcher too simple to be wrong."""

from __future__ import annotations

import time
import unicodedata
from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.formats import patterns

YES = [
    ("[z-a].md", "z.md"),
    ("***/a.md", "b/c/a.md"),
    ("architecture.md", "architecture.md"),
    ("epics/*", "epics/a.md"),
    ("epics/", "epics/deep/a.md"),
    ("epics/**", "epics/deep/a.md"),
    ("./epics/*.md", "epics/a.md"),
    ("/epics/*.md", "epics/a.md"),
    ("**/api.md", "api.md"),
    ("**/api.md", "a/b/api.md"),
    ("**", "a/b/c.md"),
    ("a/**/b.md", "a/b.md"),
    ("a/**/b.md", "a/x/y/b.md"),
    ("**/x/**/*.md", "x/a.md"),
    ("a**b", "axxb"),
    ("*.{md,mdx}", "a.mdx"),
    ("{guide,api/{v1,v2}}/*.md", "api/v2/a.md"),
    ("{a,**/b}/c.md", "x/y/b/c.md"),
    ("{**,x}/c.md", "c.md"),
    ("page{,-old}.md", "page.md"),
    ("[a-c]?.md", "bx.md"),
    ("[!a-c].md", "d.md"),
    ("[^a-c].md", "d.md"),
    ("[]].md", "].md"),
    ("[a-].md", "-.md"),
    ("[{,].md", "{.md"),
    (r"\*.md", "*.md"),
    (r"[\]].md", "].md"),
    (r"\{a,b\}.md", "{a,b}.md"),
    ("a}.md", "a}.md"),
    ("a,b.md", "a,b.md"),
    ("文書/*.md", "文書/ü.md"),
    ("a b/*.md", "a b/c d.md"),
    ("*", ".hidden"),
]
NO = [
    ("[z-a].md", "a.md"),
    ("epics/*", "epics/deep/a.md"),
    ("epics/*", "epics-old/a.md"),
    ("epics/**", "epics"),
    ("epics", "epics/a.md"),
    ("*.md", "a/b.md"),
    ("**/api.md", "xapi.md"),
    ("a**b", "ax/b"),
    ("a/**/b.md", "axb.md"),
    ("a?b", "a/b"),
    ("a[/]b", "a/b"),
    ("a[!x]b", "a/b"),
    ("API.md", "api.md"),
    ("a.md", "a.md/b"),
    ("a.md", "a.mdx"),
    ("a.md", "axmd"),
    ("", ""),
]


@pytest.mark.parametrize(("pattern", "path"), YES)
def test_fits(pattern: str, path: str) -> None:
    assert patterns.matches(pattern, path)


@pytest.mark.parametrize(("pattern", "path"), NO)
def test_does_not_fit(pattern: str, path: str) -> None:
    assert not patterns.matches(pattern, path)


@pytest.mark.parametrize("pattern", ["", "[", "a[b", "[!", "[]", "{", "{a,b", "{a,{b}", "a\\", "[\\", "x" * 1025])
def test_malformed_matches_nothing(pattern: str) -> None:
    glob = patterns.glob(pattern)
    assert not any(glob.matches(path) for path in ("", "a", "ab", pattern, "[", "{"))


def test_a_selection_is_a_page_a_folder_or_a_glob() -> None:
    paths = ["a.md", "epics/a.md", "epics/sub/b.md", "epics-old/x.md", "[id]/page.md"]

    def selected(pattern: str) -> list[str]:
        return list(filter(patterns.selects(pattern), paths))

    for everything in ("", ".", "/", "./", "**"):
        assert selected(everything) == paths
    for folder in ("epics", "epics/", "./epics", "/epics/", "epics/**"):
        assert selected(folder) == ["epics/a.md", "epics/sub/b.md"]
    assert selected("epics/*") == ["epics/a.md"] and selected("*.md") == ["a.md"] and selected("a.md") == ["a.md"]
    assert selected("[id]") == selected("[id]/") == ["[id]/page.md"]
    assert selected("epic") == selected("..") == selected("{") == selected(" ") == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_a_selection_finds_letters_with_marks_in_any_composition(form: Literal["NFC", "NFD"]) -> None:
    """macOS may list the name of a file decomposed, and a keyboard composes it."""
    pattern = unicodedata.normalize(form, "Führer/é*.md")
    paths = [unicodedata.normalize(other, "Führer/école.md") for other in ("NFC", "NFD")]
    assert list(filter(patterns.selects(pattern), paths)) == paths
    assert list(filter(patterns.selects(unicodedata.normalize(form, "Führer")), paths)) == paths


def test_ignoring_case() -> None:
    assert patterns.glob("**/*.md", ignore_case=True).matches("A/README.MD")
    assert patterns.glob("[A-C]*.Md", ignore_case=True).matches("bX.mD")
    assert not patterns.glob("**/*.md", ignore_case=True).matches("a.txt")


@pytest.mark.parametrize(
    ("pattern", "path"),
    [
        ("*a" * 400 + "b", "a" * 4000),
        ("**/" * 300 + "b", "a/" * 2000),
        ("{a,b}" * 8 + "*" * 50 + "x", "ab" * 2000),
        ("{a,b}" * 100, "ab" * 50),
        ("{" * 1000, "a"),
        ("[" * 1000, "a"),
        ("*?" * 400 + "[!a]", "a" * 4000),
        ("{a,b}" * 8 + "[a-z]" * 190, "a" * 4000),
        ("**/a/*b*/" * 100 + "x", "aab/" * 1000),
        ("*a*b*c" * 100 + "/**/*" * 80 + "d", "abc" * 700 + "/abc" * 500),
    ],
)
def test_no_pattern_stalls(pattern: str, path: str) -> None:
    began = time.process_time()
    assert not patterns._compiled.__wrapped__(pattern, False).matches(path)
    assert time.process_time() - began < 3


def simple(pattern: str, path: str) -> bool:
    """The same meaning by plain recursion, for patterns without braces and escapes."""
    if not pattern:
        return not path
    segment, slash, following = pattern.partition("/")
    if segment.startswith("**") and not segment.strip("*"):
        if not slash:
            return bool(path)
        return simple(following, path) or ("/" in path[1:] and simple(pattern, path[path.index("/", 1) + 1 :]))
    if pattern[0] == "*":
        rest = pattern.lstrip("*")
        stop = path.find("/") if "/" in path else len(path)
        return any(within(rest, path[at:]) for at in range(stop + 1))
    if not path:
        return False
    if pattern[0] == "?":
        return path[0] != "/" and within(pattern[1:], path[1:])
    if pattern[0] == "[":
        end = pattern.index("]", 2)
        members, negated = (pattern[2:end], True) if pattern[1] == "!" else (pattern[1:end], False)
        return path[0] != "/" and (path[0] in members) != negated and within(pattern[end + 1 :], path[1:])
    rest = pattern[1:]
    return path[0] == pattern[0] and (simple if pattern[0] == "/" else within)(rest, path[1:])


def within(pattern: str, path: str) -> bool:
    """As ``simple``, in the middle of a segment, where ``**`` is no more than ``*``."""
    if pattern.startswith("*"):
        return simple("*" + pattern.lstrip("*") if pattern.strip("*") else "*", path)
    return simple(pattern, path)


SEGMENT = st.lists(st.sampled_from(["a", "b", "*", "?", "[ab]", "[!a]", "-"]), min_size=1, max_size=4).map("".join)
PATTERN = st.lists(st.one_of(SEGMENT, st.just("**")), min_size=1, max_size=4).map("/".join)
PATH = st.lists(st.text("ab-", min_size=1, max_size=4), min_size=1, max_size=4).map("/".join)


@given(PATTERN, PATH)
def test_like_the_simple_matcher(pattern: str, path: str) -> None:
    assert patterns.matches(pattern, path) == simple(pattern, path)


@given(st.lists(PATTERN, min_size=1, max_size=4), PATH)
def test_braces_are_any_of_their_alternatives(globs: list[str], path: str) -> None:
    assert patterns.matches("{" + ",".join(globs) + "}", path) == any(simple(p, path) for p in globs)


@given(st.text("ab*?[]{},!^-\\/.é", max_size=30), st.text("ab/.-[]{}é\ud800", max_size=30))
def test_never_raises(pattern: str, path: str) -> None:
    glob = patterns._compiled.__wrapped__(pattern, False)
    assert glob.matches(path) in (True, False)


@given(st.text(min_size=1, max_size=30).filter(lambda t: not t.startswith(("/", "./")) and not t.endswith("/")))
def test_an_escaped_text_fits_itself(text: str) -> None:
    assert patterns.matches("".join("\\" + character for character in text), text)
