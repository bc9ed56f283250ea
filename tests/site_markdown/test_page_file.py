"""Pages as Markdown files: front matter that YAML reads, links of another file, code as it is."""

from __future__ import annotations

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from anvil.site_markdown.page_file import MarkdownPage, page_of, render
from anvil.text import front_matter
from anvil.values import Document


def same(target: str) -> str:
    return target


def document(text: str, **values: object) -> Document:
    return Document("guide.md", "", text, len(text), **{"last_modified": "", **values})  # type: ignore[arg-type]


def test_front_matter_has_what_is_known_in_a_fixed_order() -> None:
    page = page_of(
        document(
            "# Guide\n\nText.\n\n\n",
            title="The guide",
            url="https://x.test/guide/",
            last_modified="2026-01-31T09:30:00Z",
            metadata={"description": 'It says: "yes"', "version": "1.10", "language": "no", "edit_url": "https://e"},
        ),
        "guide/index.md",
    )
    assert render(page, same) == (
        '---\ntitle: "The guide"\nurl: "https://x.test/guide/"\ndescription: "It says: \\"yes\\""\nversion: "1.10"\n'
        'language: "no"\nlast_modified: "2026-01-31T09:30:00Z"\n---\n\n# Guide\n\nText.\n'
    )


def test_what_is_unknown_is_left_out() -> None:
    page = page_of(document("# Guide\n", last_modified="1970-01-01T00:00:00Z", metadata={"version": 3}), "guide.md")
    assert render(page, same) == '---\ntitle: "Guide"\n---\n\n# Guide\n'


@given(st.text(min_size=1), st.text())
def test_yaml_reads_every_value_back(title: str, description: str) -> None:
    text = render(MarkdownPage("a.md", title, "# A\n", description=description), same)
    head, _ = text.removeprefix("---\n").split("---\n\n# A")
    read = yaml.safe_load(head)
    assert read["title"] == title
    assert read.get("description", "") == description
    assert front_matter.split(text)[0]["title"] == title


def test_a_lone_surrogate_becomes_a_character_that_can_be_written() -> None:
    text = render(MarkdownPage("a.md", "a\ud800b", "# A\n"), same)
    assert yaml.safe_load(text.split("---")[1])["title"] == "a\ufffdb"
    assert text.encode()


def test_a_page_without_a_heading_gets_its_title_as_one() -> None:
    assert page_of(document("\n## Part\n", title="The\nguide"), "a.md").text == "# The guide\n\n## Part\n"
    assert page_of(document("---\ntitle: Named\n---\nText.\n"), "a.md").text == "# Named\n\nText.\n"
    assert page_of(document("```\n# no heading\n```\n", title="T"), "a.md").text == "# T\n\n```\n# no heading\n```\n"
    assert page_of(document("Title\n=====\n", title="T"), "a.md").text == "Title\n=====\n"
    assert page_of(document("## Part\n"), "b.md").title == "guide", "as in the index"


def test_front_matter_that_yaml_does_not_take_is_text() -> None:
    page = page_of(document("---\ntitle: [\n---\n\n# Odd\n"), "a.md")
    assert page.title == "Odd" and page.text == "---\ntitle: [\n---\n\n# Odd\n"
    text = render(page, same)
    assert text.startswith('---\ntitle: "Odd"\n---\n\n---\ntitle: [\n') and front_matter.split(text)[0] == {
        "title": "Odd"
    }


def test_text_that_readers_do_not_see_is_left_out_of_a_page_of_a_site() -> None:
    text = "# A\n\n<!-- secret -->\n\nText{ .lead }\n\n```\n<!-- code -->\n```\n"
    assert page_of(document(text, cleaned=True), "a.md").text == "# A\n\n\nText\n\n```\n<!-- code -->\n```\n"
    assert page_of(document(text), "a.md").text == text


CODE = """\
```md
[a](a.html) <a href="a.html">
```

    [a](a.html)

`[a](a.html)` <!-- [a](a.html) -->
"""


def test_links_and_images_lead_where_the_function_says_and_code_is_not_touched() -> None:
    text = (
        "# A\n\n[one](a.html#x \"Title\") ![two](<a b.png>) [three][ref] [four](  a.html\n 'x')\n\n"
        '[ref]: a.html "Title"\n\n<a class="x" href="a.html?x=1&amp;y=2">five</a> <img src=a.png>\n\n' + CODE
    )
    seen: list[str] = []

    def link(target: str) -> str:
        seen.append(target)
        return f"to/{target}"

    found = render(MarkdownPage("a.md", "A", text), link).split("---\n\n", 1)[1]
    assert found == (
        "# A\n\n[one](to/a.html#x \"Title\") ![two](to/a%20b.png) [three][ref] [four](  to/a.html\n 'x')\n\n"
        '[ref]: to/a.html "Title"\n\n<a class="x" href="to/a.html?x=1&amp;y=2">five</a> <img src="to/a.png">\n\n' + CODE
    )
    assert sorted(seen) == ["a b.png", "a.html", "a.html", "a.html#x", "a.html?x=1&y=2", "a.png"]


@given(st.text(alphabet="ab[]()<>!`\\\"' \n#:&", max_size=60))
def test_links_that_lead_to_the_same_change_no_character(text: str) -> None:
    assert render(MarkdownPage("a.md", "A", text), same).endswith(f"---\n\n{text}")


@pytest.mark.parametrize("target", ["a(b.html", "a b.html", "a<b>", "a\nb", 'a"b'])
def test_a_new_target_is_written_so_that_it_stays_one(target: str) -> None:
    from anvil.text import references

    text = render(MarkdownPage("a.md", "A", "[x](y)\n"), lambda _: target)
    (link,) = references.read(text).links
    assert link.text == "x"
    assert " " not in link.target and "(" not in link.target
