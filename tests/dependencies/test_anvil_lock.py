"""``anvil.lock``: written the same each time, and read with distrust."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.dependencies import anvil_lock
from anvil.dependencies.values import LockedDocs
from anvil.errors import ConfigError

ENTRY = LockedDocs(
    "pypi",
    "fastapi",
    "0.115.0",
    "repository",
    "https://github.com/fastapi/fastapi",
    "a" * 64,
    "b" * 64,
    tag="0.115.0",
    commit="c" * 40,
    folder="docs/en/docs",
    anvil_version="0.1.0",
    named=("folder",),
)
OTHER = LockedDocs("npm", "@acme/ui", "1.0.0", "package", "https://registry.npmjs.org/@acme/ui", "d" * 64, "e" * 64)


def test_it_is_sorted_and_comes_back() -> None:
    text = anvil_lock.render([ENTRY, OTHER])
    assert text == anvil_lock.render([OTHER, ENTRY])
    assert anvil_lock.parse(text, "anvil.lock") == [OTHER, ENTRY]
    assert text.startswith("# The documentation of this project's dependencies.") and text.index("npm") < text.index(
        "pypi"
    )


@given(st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20))
def test_any_folder_comes_back(folder: str) -> None:
    entry = replace(ENTRY, folder=f"x{folder}")
    if ".." not in f"x{folder}".split("/"):
        assert anvil_lock.parse(anvil_lock.render([entry]), "x") == [entry]


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("version = 1", "version = 2"), "newer Anvil"),
        (("version = 1", ""), "it has no version"),
        (("[[docs]]", "[docs]"), "not a list of tables|cannot"),
        (('"pypi"', '"cargo"'), "'ecosystem' of entry 1"),
        (('"pypi"', '["pypi"]'), "'ecosystem' of entry 1"),
        (('"repository"', "{}"), "'source' of entry 1"),
        (('"fastapi"', '"../x"'), "'name' of entry 1"),
        (("b" * 64, "b" * 63), "'sha256' of entry 1"),
        (("https://github.com/fastapi/fastapi", "ext::sh"), "'url' of entry 1"),
        (("https://github.com/fastapi/fastapi", "--upload-pack=x"), "'url' of entry 1"),
        (('tag = "0.115.0"', 'tag = "-x"'), "'tag' of entry 1"),
        (("docs/en/docs", "../../etc"), "'folder' of entry 1"),
        (("docs/en/docs", "/etc"), "'folder' of entry 1"),
        ((f'commit = "{"c" * 40}"\n', ""), "no commit or no folder"),
        (('anvil_version = "0.1.0"\n', ""), "no anvil_version, which a repository needs"),
        (('"repository"', '"site"'), "has an anvil_version, but an index of a site is not built here"),
        (('"repository"', '"release"'), "has an anvil_version, but an index of a release is not built here"),
        (('named = ["folder"]', 'named = ["all"]'), "'named' of entry 1"),
        (('"0.115.0"\nsource', '"\\u001b]0;x"\nsource'), "'version' of entry 1"),
    ],
)
def test_a_wrong_file_is_one_message(change: tuple[str, str], reason: str) -> None:
    text = anvil_lock.render([ENTRY])
    assert change[0] in text
    with pytest.raises(ConfigError, match=reason) as error:
        anvil_lock.parse(text.replace(*change), "anvil.lock")
    assert str(error.value).isprintable()


def test_an_entry_twice_and_a_long_file(monkeypatch: pytest.MonkeyPatch) -> None:
    text = anvil_lock.render([ENTRY])
    with pytest.raises(ConfigError, match="twice at the same version"):
        anvil_lock.parse(text + text[text.index("[[docs]]") :], "anvil.lock")
    monkeypatch.setattr(anvil_lock, "MAX_CHARACTERS", 10)
    with pytest.raises(ConfigError, match="more than 10 characters"):
        anvil_lock.parse(text, "anvil.lock")


@given(st.text())
def test_any_text_is_entries_or_one_error(text: str) -> None:
    with contextlib.suppress(ConfigError):
        assert isinstance(anvil_lock.parse(text, "x"), list)


def test_a_merge_conflict_is_named() -> None:
    text = "version = 1\n<<<<<<< HEAD\n[[docs]]\n=======\n>>>>>>> theirs\n"
    with pytest.raises(ConfigError, match=r"has merge conflicts\. Keep one of the sides"):
        anvil_lock.parse(text, "anvil.lock")


def test_a_lock_that_is_nested_too_deeply_says_so(tmp_path: Path) -> None:
    (tmp_path / "anvil.lock").write_text("version = 1\na = " + "[" * 100_000)
    with pytest.raises(ConfigError, match="cannot be used: it is nested too deeply"):
        anvil_lock.read_lock(tmp_path)
