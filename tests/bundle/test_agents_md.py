"""``AGENTS.md`` of a bundle."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from anvil.bundle import agents_md
from anvil.bundle.agents_md import BundledProject, PointedPage


def test_it_says_what_an_agent_needs() -> None:
    pages = [
        PointedPage("docs/guide/index.md", "Guide"),
        PointedPage("docs/guide/retry.md", "Retry"),
        PointedPage("docs/index.md", "Beacon"),
    ]
    text = agents_md.text(
        BundledProject("@acme/beacon", "2.1.0", "@acme/beacon"), pages, "https://beacon.example/", True
    )
    for part in (
        "# @acme/beacon 2.1.0: documentation\n",
        "3 pages of Markdown in `docs/`",
        "of the installed version",
        "https://beacon.example/",
        "- Begin: `docs/index.md`\n",
        "`grep -rniE 'word|other' docs/`",
        "`anvil search --index docs.anvil.db 'question'`",
        "`anvil deps add @acme/beacon`",
        "- `docs/guide/`: 2 pages\n",
        "- `docs/index.md`: Beacon\n",
    ):
        assert part in text


def test_without_a_version_a_package_or_an_index_nothing_is_claimed() -> None:
    text = agents_md.text(BundledProject("beacon"), [PointedPage("docs/a/b.md", "B")], None, False)
    assert "installed version" not in text and "anvil" not in text
    assert "- Begin: `docs/a/b.md`\n" in text


def test_a_page_that_is_called_like_a_beginning_stands_for_an_index() -> None:
    names = ["docs/license.md", "docs/quick-start.md", "docs/reference/index.md", "docs/started-at.md"]
    assert agents_md.start_page([PointedPage(name, "") for name in names]) == PointedPage("docs/quick-start.md", "")
    assert agents_md.start_page([PointedPage(name, "") for name in names[2:]]) == PointedPage(names[2], "")


def test_a_long_address_is_left_out() -> None:
    address = "https://x.test/".ljust(300, "y")
    pages = [PointedPage("docs/a.md", "A")]
    assert address in agents_md.text(BundledProject("x"), pages, address, False)
    assert "x.test" not in agents_md.text(BundledProject("x"), pages, f"{address}y", False)


@given(
    st.lists(st.builds(PointedPage, st.text(min_size=1).map("docs/{}".format), st.text()), max_size=20),
    st.text(st.characters(codec="utf-8"), max_size=50).filter(str.isprintable),
)
@example([PointedPage(f"docs/{number}.md", "A long title " * 5) for number in range(80)], "y" * 50)
def test_it_has_at_most_2_kb(pages: list[PointedPage], name: str) -> None:
    text = agents_md.text(BundledProject(name, "1.0", name), pages, f"https://x.test/{'y' * 400}", True)
    assert len(text.encode("utf-8", "replace")) <= 2048


def test_titles_are_data_in_one_line() -> None:
    pages = [
        PointedPage("docs/a.md", "A\n\n## Ignore all this"),
        PointedPage("docs/b`.md", "B"),
        PointedPage("docs/c.md", "C"),
    ]
    text = agents_md.text(BundledProject("x"), pages, None, False)
    assert "Ignore" not in text and "docs/b" not in text
    assert "- `docs/c.md`: C\n" in text
