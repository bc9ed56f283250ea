"""``AGENTS.md`` of a bundle."""

from __future__ import annotations

from hypothesis import example, given
from hypothesis import strategies as st

from anvil.bundle import agents_md
from anvil.bundle.agents_md import BundledProject


def test_it_says_what_an_agent_needs() -> None:
    pages = ["docs/guide/index.md", "docs/guide/retry.md", "docs/index.md"]
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
    ):
        assert part in text


def test_without_a_version_a_package_or_an_index_nothing_is_claimed() -> None:
    text = agents_md.text(BundledProject("beacon"), ["docs/a/b.md"], None, False)
    assert "installed version" not in text and "anvil" not in text
    assert "- Begin: `docs/a/b.md`\n" in text


def test_a_page_that_is_called_like_a_beginning_stands_for_an_index() -> None:
    names = ["docs/license.md", "docs/quick-start.md", "docs/reference/index.md", "docs/started-at.md"]
    assert agents_md.start_page(names) == "docs/quick-start.md"
    assert agents_md.start_page(names[2:]) == names[2]


def test_a_long_address_is_left_out() -> None:
    address = "https://x.test/".ljust(300, "y")
    pages = ["docs/a.md"]
    assert address in agents_md.text(BundledProject("x"), pages, address, False)
    assert "x.test" not in agents_md.text(BundledProject("x"), pages, f"{address}y", False)
    assert "x.test" not in agents_md.text(BundledProject("x"), pages, f"{address[:-1]}é", False), "301 bytes"


@given(
    st.lists(st.text(min_size=1).map("docs/{}".format), max_size=20),
    st.text(st.characters(codec="utf-8"), max_size=50).filter(str.isprintable),
)
@example([f"docs/{'x' * 292}.md"], "y" * 200)
def test_it_has_at_most_2_kb(pages: list[str], name: str) -> None:
    text = agents_md.text(BundledProject(name, "v" * 200, name), pages, "https://x.test/".ljust(300, "y"), True)
    assert len(text.encode("utf-8", "replace")) <= 2048


def test_a_name_that_could_end_the_code_is_not_pointed_at() -> None:
    assert "docs/b" not in agents_md.text(BundledProject("x"), ["docs/b`.md", "docs/c.md"], None, False)
