"""Where an index may come from, as one string."""

from __future__ import annotations

import urllib.parse

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from anvil.errors import ConfigError
from anvil.library.settings import LibraryOptions
from anvil.settings import index_url
from anvil.settings.index_url import PLACES, GitHubAddress, LocalPath, WebAddress
from anvil.settings.schema import Config


@pytest.mark.parametrize(
    ("source", "shown"),
    [
        ("github:o/r#artifact:docs-index", "github:o/r#artifact:docs-index"),
        ("github:o/r artifact:docs index", "github:o/r#artifact:docs index"),
        ("GitHub:o/r.x@feature/a-b#artifact:n", "github:o/r.x@feature/a-b#artifact:n"),
        ("github:o/r#release:v1.0", "github:o/r#release:v1.0"),
        ("https://u:p@docs.example.com:8443/a/?k=v#f", "https://docs.example.com:8443/a/"),
        ("https://[::1]:8/a.db", "https://[::1]:8/a.db"),
        ("HTTPS://docs.example.com", "https://docs.example.com/"),
        ("../here", "../here"),
        (r"C:\docs\index.db", r"C:\docs\index.db"),
    ],
)
def test_addresses_are_shown_without_secrets(source: str, shown: str) -> None:
    assert index_url.parse(source).shown == shown


@pytest.mark.parametrize(
    ("source", "places"),
    [
        ("https://docs.example.com", PLACES),
        ("https://docs.example.com/v1.2", PLACES),
        ("https://docs.example.com/a/index.db", ("",)),
        ("https://docs.example.com/a/index.json", ("",)),
        ("https://docs.example.com/a/INDEX.DB", ("",)),
        ("https://docs.example.com/download?id=3", ("",)),
    ],
)
def test_what_is_tried_below_an_address(source: str, places: tuple[str, ...]) -> None:
    found = index_url.parse(source)
    assert isinstance(found, WebAddress) and found.places == places
    assert places == ("",) or found.url.endswith("/")


def test_the_parts_of_a_place_on_github() -> None:
    found = index_url.parse("github:acme/docs@release/1.x artifact:docs-index")
    assert found == GitHubAddress("acme", "docs", "release/1.x", "artifact", "docs-index")


@pytest.mark.parametrize(
    "source",
    [
        "http://docs.example.com/",
        "ftp://x.org/a.db",
        "https://",
        "https://a b/",
        "",
        "s3://bucket/index.db",
        "https://x:99999999/",
        "file:///etc/passwd",
        "github:o",
        "github:o/r",
        "github:o/..#release:v",
        "github:-o/r#release:v",
        "github:o/r@main#release:v1",
        "github:o/r@a..b c#artifact:",
        "http://127.0.0.1.example.com",
        "http://localhost@docs.example.com/",
    ],
)
def test_sources_that_make_no_sense(source: str) -> None:
    with pytest.raises(ConfigError) as caught:
        index_url.parse(source)
    assert str(caught.value).endswith(".")


NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789%:@/?#[]\\ \t\n.-é", max_size=12)


@given(st.builds("".join, st.lists(st.one_of(st.sampled_from(["https://", "http://", "github:", "@", "/"]), NAMES))))
@example("https://[")
@example("https://[::1")
def test_any_text_is_an_address_or_refused(source: str) -> None:
    try:
        found = index_url.parse(source)
    except ConfigError:
        return
    assert isinstance(found, LocalPath) is not index_url.is_remote(source.strip())
    if isinstance(found, WebAddress):
        assert index_url.is_allowed(found.url) and found.host and "@" not in urllib.parse.urlsplit(found.url).netloc
        assert index_url.parse(found.url).shown == found.shown


@given(st.text(st.characters(codec="ascii", exclude_categories=["Cc", "Zs"]), min_size=3))
def test_a_password_is_never_shown(rest: str) -> None:
    password = f"zQ9{rest}"  # no part of an address or a sentence
    source = f"https://reader:{urllib.parse.quote(password, safe='')}@docs.example.com/?sig={password}"
    try:
        found = index_url.parse(source)
    except ConfigError as error:
        assert password not in str(error)
        return
    assert isinstance(found, WebAddress) and found.credentials == ("reader", password)
    assert password not in found.shown and "reader" not in repr(found)


@pytest.mark.parametrize("user", ["s3cret", "x:s3cret", "x:s3c@s3cret"])
def test_a_token_in_a_whole_url_after_github_is_not_shown(user: str) -> None:
    with pytest.raises(ConfigError, match=r"'github:https://github\.com/o/r#release:v1' is not a place") as caught:
        index_url.parse(f"github:https://{user}@github.com/o/r#release:v1")
    assert "s3c" not in str(caught.value)


@pytest.mark.parametrize(
    "path",
    ["docs/index.db", r"C:\docs\index.db", "C:/docs/index.db", "C://docs/index.db", r"\\host\share\i.db", "a:b.db"],
)
def test_paths_are_no_unknown_addresses(path: str) -> None:
    assert not index_url.is_unknown(path) and index_url.file(path) == path
    assert Config(index=path).index == path


@pytest.mark.parametrize("source", ["htps://u:s3cret@h/x", " s3://s3cret/x", "file:///s3cret", "ftp+x://s3cret"])
def test_an_unknown_address_is_no_index(source: str) -> None:
    for made in (lambda: Config(index=source), lambda: LibraryOptions(index=source), lambda: index_url.file(source)):
        with pytest.raises(ConfigError) as caught:
            made()
        assert "s3cret" not in str(caught.value)


def test_a_library_has_no_address() -> None:
    with pytest.raises(ConfigError, match="is a file on this machine"):
        LibraryOptions(index="https://docs.example.com/")


def test_a_builder_is_an_owner_or_a_repository() -> None:
    assert all(map(index_url.is_builder, ("a", "a/b.c_d-e", "a-b/c")))
    assert not any(map(index_url.is_builder, ("", "a/", "/b", "a/b/c", "a b", "https://x", "-a", None, 7)))
