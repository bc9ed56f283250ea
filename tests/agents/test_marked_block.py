"""The block between markers: what is around it stays, byte for byte."""

from __future__ import annotations

import re

import pytest

from anvil.agents import marked_block
from anvil.errors import ConfigError

FIRST, LAST = marked_block.markers("docs")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("before", ["", "# Rules", "# Rules\n", "# Rules\n\n\ttext  \n", "\ufeff# Rules\n\n"])
def test_a_block_is_added_replaced_and_removed(before: str, end: str) -> None:
    text = before.replace("\n", end)
    once = marked_block.with_block(text, "docs", "one\ntwo", "AGENTS.md")
    assert once.startswith(text) and FIRST in once and "one" in once
    if "\r\n" in text:
        assert not re.search(r"(?<!\r)\n", once)
    assert marked_block.block_body(once, marked_block.blocks(once, "AGENTS.md")[0]) == "one\ntwo"
    assert marked_block.with_block(once, "docs", "one\ntwo", "AGENTS.md") == once
    other = marked_block.with_block(once + f"tail{end}", "docs", "three", "AGENTS.md")
    line_end = "\r\n" if "\r\n" in once else "\n"
    assert other.startswith(text) and other.endswith(f"{LAST}{line_end}tail{end}")
    assert marked_block.without_block(once, "docs", "AGENTS.md") == text


def test_what_surrounds_a_block_in_the_middle_is_kept() -> None:
    text = f"top\n\n{FIRST}\nold\n{LAST}\n\nbottom without a line end"
    new = marked_block.with_block(text, "docs", "new", "AGENTS.md")
    assert new == f"top\n\n{FIRST}\nnew\n{LAST}\n\nbottom without a line end"
    at_the_end = f"top\n{FIRST}\nold\n{LAST}"
    assert marked_block.with_block(at_the_end, "docs", "new", "a") == f"top\n{FIRST}\nnew\n{LAST}"


def test_folders_have_blocks_of_their_own() -> None:
    text = marked_block.with_block(marked_block.with_block("", "a/docs", "A", "f"), "b -- >/docs", "B", "f")
    assert [block.docs for block in marked_block.blocks(text, "f")] == ["a/docs", "b -- >/docs"]
    assert "A" in marked_block.without_block(text, "b -- >/docs", "f") and "\nB" not in marked_block.without_block(
        text, "b -- >/docs", "f"
    )


@pytest.mark.parametrize(
    "text",
    [
        f"{FIRST}\nx\n",
        f"x\n{LAST}\n",
        f"{LAST}\n{FIRST}\n",
        f"{FIRST}\n{FIRST}\n{LAST}\n",
        f"{FIRST}\n<!-- end of anvil agents: other -->\n",
        f"{FIRST}\na\n{LAST}\n{FIRST}\nb\n{LAST}\n",
    ],
)
def test_half_a_block_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"AGENTS\.md has"):
        marked_block.with_block(text, "docs", "new", "AGENTS.md")


def test_a_marker_inside_a_line_is_none() -> None:
    text = f"Write `{FIRST}` to begin.\n"
    assert marked_block.blocks(text, "f") == []
