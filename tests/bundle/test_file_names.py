"""The files of pages: one for each page, with names that every system takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from anvil.bundle.file_names import page_files


def test_the_ending_is_that_of_markdown() -> None:
    paths = ["a.md", "b.mdx", "c/d.markdown", "e/index.html", "f.rst", "g.v2", "H.MD"]
    assert page_files(paths) == (
        {
            "H.MD": "H.md",
            "a.md": "a.md",
            "b.mdx": "b.md",
            "c/d.markdown": "c/d.md",
            "e/index.html": "e/index.md",
            "f.rst": "f.md",
            "g.v2": "g.v2.md",
        },
        {},
    )


def test_two_pages_never_share_a_file_and_plain_markdown_keeps_its_name() -> None:
    files, notes = page_files(["a.html", "a.md", "a.mdx", "A.md"])
    assert files == {"A.md": "A.md", "a.html": "a.html.md", "a.md": "a.md.md", "a.mdx": "a.mdx.md"}
    assert notes["a.mdx"] == "a.mdx is a.mdx.md in the bundle, because A.md is a.md."
    assert page_files(["x/é.md", "x/e\u0301.md"])[0]["x/é.md"] == "x/é.md.md"


def test_names_that_not_every_system_takes() -> None:
    long = "n" * 300
    files, notes = page_files([f"{long}.md", f"{long}{long}.md", "aux.md", "what?.md", "dots./a.md", "nul", "con/b.md"])
    assert files["aux.md"] == "aux-.md"
    assert files["what?.md"] == "what-.md"
    assert files["dots./a.md"] == "dots/a.md"
    assert (files["nul"], files["con/b.md"]) == ("nul-.md", "con-/b.md")
    assert len(files[f"{long}.md"]) == 120
    assert len(set(files.values())) == 7 == len(notes)
    assert notes["aux.md"] == "aux.md is aux-.md in the bundle, because not every system takes its name."


@given(st.lists(st.text(st.characters(blacklist_characters="/\0"), min_size=1).filter(lambda n: n not in (".", ".."))))
def test_all_pages_have_portable_files_of_their_own(paths: list[str]) -> None:
    files, _ = page_files(set(paths))
    assert files.keys() == set(paths)
    names = [name.casefold() for name in files.values()]
    assert len(set(names)) == len(names)
    for name in files.values():
        assert len(name.encode()) <= 120
        assert name.endswith(".md") and name.isprintable() and not set('<>:"|?*\\/') & set(name)
