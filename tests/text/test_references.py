"""What a page refers to, and the fast readings of a page, which must agree with the slow ones."""

from __future__ import annotations

import random

import pytest

from anvil.formats.characters import LINE_END, line_starts
from anvil.text import references
from anvil.text.markdown_sections import leading_title, may_have_h1, parse


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_links_and_code_go_on_behind_a_line_end_of_any_kind(end: str) -> None:
    text = "A [link\nwith two lines](a.md) and [one](\nb.md).\n\nCode `[no\nlink](c.md)`.\n\n[open\n\nd](d.md)\n"
    found = references.read(text.replace("\n", end))
    assert [(link.line, link.target) for link in found.links] == [(1, "a.md"), (2, "b.md")]


def test_a_formula_has_no_links_and_ends_with_its_paragraph() -> None:
    text = "$$\nf[i](x) = [a][i]\n$$ [a](a.md)\n\nA PID is in $$ [b](b.md)\n\n$$ [c](c.md) \\$$ $ $$ [d](d.md)\n"
    found = references.read(text)
    assert [link.target for link in found.links] == ["a.md", "b.md", "d.md"] and found.undefined == ()


def test_ticks_pair_within_a_paragraph_and_not_over_a_fence() -> None:
    text = "`a [x](x.md)\n\nb` [y](y.md)\n\n`c\n~~~\n`[no](no.md)\n~~~\n[z](z.md) `[no](no.md)`\n"
    assert [link.target for link in references.read(text).links] == ["x.md", "y.md", "z.md"]


@pytest.mark.parametrize(
    ("text", "fences"),
    [
        ("```\n- ```x\n    ```\n```\n", [(1, True)]),  # the marks inside have four columns: they are text of the code
        ("```\na\n   ```\n", [(1, True)]),
        ("```\na\n    ```\n", [(1, False)]),
        ("- a\n\n    ```\n    b\n    ```\n", [(3, True)]),
        ("- ```\n  b\n  ```\n", [(1, True)]),
        ("> ```\n> b\n> ```\n", [(1, True)]),
        ("!!! note\n\n    ```\n    b\n    ```\n", [(3, True)]),
    ],
)
def test_a_fence_is_closed_by_marks_with_at_most_three_columns_more(text: str, fences: list[tuple[int, bool]]) -> None:
    assert [(fence.line, fence.closed) for fence in references.read(text).fences] == fences


def test_two_comments_without_a_space_between_them_have_no_links() -> None:
    found = references.read("<!-- [x](x.md) --><!-- [y](y.md) -->[z](z.md)\n")
    assert [link.target for link in found.links] == ["z.md"]


def test_a_wiki_link_with_a_definition_leads_where_that_says() -> None:
    """As Foam writes it, for tools that know no such links."""
    found = references.read("[[Lamps]] and [[wicks]]\n\n[lamps]: light/lamps.md 'Lamps'\n")
    targets = [link.target for link in found.links if link.kind == "wiki"]
    assert targets == ["light/lamps.md", "wicks"]


def test_line_starts() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        text = "".join(chance.choices(["a", "\n", "\r", "\r\n", "\u2028", "\x0c"], k=chance.randrange(9)))
        lines = LINE_END.split(text)
        starts = line_starts(text)
        assert len(starts) == max(1, len(lines) - (lines[-1] == ""))
        assert all(start == 0 or text[start - 1] in "\r\n" for start in starts)


def test_quick_readings_of_headings_agree_with_the_whole_parse() -> None:
    chance = random.Random(3)
    parts = ["\n", "\r\n", "\r", " ", "  ", "\t", "#", "# ", "## ", "#\t", "x", "*b*", "`c`", "<b>", "<!-- x -->"]
    parts += ["{#id}", " #", "-", "===", "\u3000", "\x0c", "\\", "&amp;", "[a]", "> ", "- ", "|", "|-|\n", "(untitled)"]
    fast = 0
    for _ in range(4000):
        text = "".join(chance.choices(parts, k=chance.randrange(1, 9)))
        page = parse(text)
        if (title := leading_title(text)) is not None:
            assert title == page.title, text
            fast += 1
        levels = {section.heading_level for section in page.sections}
        assert may_have_h1(text) or 1 not in levels
    assert fast > 100
    assert leading_title("\n  # *One* `two`\n\ntext") == "One two"
    assert leading_title("text\n\n# One\n") is None
    assert leading_title("\r\n" * 200 + "text") is None  # in linear time
    assert not may_have_h1("text\n\n### Three\n\na = b - c # d\n")
