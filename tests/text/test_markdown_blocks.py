"""The block structure, compared with CommonMark's examples and an independent parser."""

from __future__ import annotations

import random
import re
import sys
import threading
import time
from pathlib import Path
from types import FrameType

import pytest
from markdown_it import MarkdownIt

from anvil.formats.characters import LINE_END
from anvil.text.markdown_blocks import block_structure

HERE = Path(__file__).parents[1]
SPEC = (HERE / "data" / "commonmark-spec-0.31.2.txt").read_text(encoding="utf-8")
EXAMPLES = [
    found[1].replace("→", "\t")
    for found in re.finditer(r"^`{32} example\n(.*?)^\.\n.*?^`{32}$", SPEC, re.MULTILINE | re.DOTALL)
]
LINES = r"""
# h@## h2 ##@text@===@---@- item@  cont@    code@```@~~~@```js@> quote@> # qh@> ```@1. one@1) x@<div>
</div>@<details>@<!-- c@-->@<script>@</script>@a | b@|---|---|@   # three@    # four
- # inlist@  - nested@  # in item
[foo]: /url@'title'@***@* * *@<Foo>@#@#nospace@-@+ x@10. ten@> - a@>@  ```@<br/>@<pre>
<?php@?>@text\@{#id}@- [ ] t
"""
FRAGMENTS = ["", "", "\t# tab", *LINES.strip().replace("\n", "@").split("@")]

reference = MarkdownIt("commonmark").enable("table")


def headings(text: str) -> list[tuple[int, int]]:
    return [(line - 1, level) for line, level, _, _ in block_structure(text).headings]


def expected(text: str) -> list[tuple[int, int]]:
    found = []
    for token in reference.parse(text):
        if token.type == "heading_open" and token.level == 0:
            assert token.map is not None
            found.append((token.map[0], int(token.tag[1])))
    return found


def test_headings_of_the_specification_and_its_examples() -> None:
    assert len(EXAMPLES) > 600
    assert len(headings(SPEC)) > 40
    for text in [SPEC, *EXAMPLES]:
        assert headings(text) == expected(text), text


def test_headings_of_the_cases() -> None:
    for path in (HERE / "cases").glob("*.md"):
        text = path.read_text(encoding="utf-8")
        assert headings(text) == expected(text), path.name


def test_headings_of_random_pages() -> None:
    rng = random.Random(20260131)
    differing = []
    for _ in range(3_000):
        text = "\n".join(rng.choices(FRAGMENTS, k=rng.randint(2, 7))) + "\n"
        if headings(text) != expected(text):
            differing.append(text)
    # Known: an empty list item right behind a quote, and a "</pre>" that ends a <script>.
    assert len(differing) <= 3, differing


def test_tables_are_told_from_underlined_headings() -> None:
    assert headings("a | b\n---\n") == [(0, 2)]
    assert headings("a | b\n--|--\n1 | 2\n# h\n") == [(3, 1)]
    assert [atomic for _, atomic in block_structure("text\n| a |\n|---|\n| 1 |\n\ntext\n").borders] == [
        False,
        True,
        False,
    ]


def test_items_of_a_list_are_blocks_and_an_admonition_is_one() -> None:
    assert [line for line, _ in block_structure("- a\n\n  # x\n- b\n- c\n\ntext\n").borders] == [1, 4, 5, 7]
    assert [line for line, _ in block_structure('!!! note\n\n    a\n\n    b\n\n=== "T"\n    c\n\ntext\n').borders] == [
        1,
        7,
        10,
    ]
    assert headings("!!! note\n===\n") == [(0, 1)]
    assert [line for line, _ in block_structure("> # a\n> text\n> ```\n> ```\n> text\n").borders] == [1]


def test_labels_of_references_and_footnotes() -> None:
    text = "[A  b]: /url\n[c]:\n  /url 'two\n  lines'\n[d]: x y z\n\n[^n]: text\n[^m]: text\n"
    text += "\n```\n[e]: /url\n```\n"
    assert block_structure(text).labels == {"a b", "c", "^n", "^m"}


HOSTILE = {
    "fence": "```\n" + "# x\n" * 200_000,
    "quotes": ">" * 20_000 + " x\n",
    "quote lines": (">" * 100 + " x\n") * 300,
    "inline lists": "- " * 10_000 + "x\n",
    "nested lists": "".join("  " * depth + "- x\n" for depth in range(700)),
    "tabbed lists": "".join("\t" * depth + "1. x\n" for depth in range(700)),
    "spaces in a heading": "#" + " " * 100_000 + "x\n# x" + " " * 100_000 + "#" + " " * 100_000 + "y\n",
    "brackets": "[" * 200_000 + "\n",
    "references": "[a]: b\n" * 20_000,
    "open references": "[a\n" * 20_000,
    "pipes": "|" * 200_000 + "\n" + "|" * 200_000 + "\n",
    "tag": "<a" + " b" * 50_000 + "\n",
    "tags": "<a\n" * 20_000,
    "dashes": "- " * 20_000 + "\n",
    "lazy quote": "> x\n" + "y\n" * 20_000,
    "items": "- x\n\n" * 5_000,
    "setext": "a\n" * 20_000 + "===\n",
    "long line": "x" * 2_000_000,
    "digits": "1" * 100_000 + ". x\n",
}


def test_a_line_behind_code_in_a_quote_is_a_block_of_its_own() -> None:
    assert block_structure(">     code\nA line.\n").borders == [(1, False), (2, False)]
    assert block_structure("> Text.\nA line.\n").borders == [(1, False)]


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_text_takes_linear_time_and_raises_nothing(text: str) -> None:
    began = time.thread_time()
    borders = [line for line, _ in block_structure(text).borders]
    assert time.thread_time() - began < 5  # a quadratic reader takes minutes
    assert borders == sorted(set(borders))
    assert borders[0] == 1


def test_markers_nest_to_32_columns() -> None:
    """A box is found in the innermost list item, and what stands deeper is text."""
    assert [len(block_structure("- " * items + "[ ] a\n").boxes) for items in (14, 15, 16, 17)] == [1, 1, 0, 0]
    columns = (">" + "- " * 15, "> " * 15 + "- ")  # 31 and 32
    assert [len(block_structure(f"{markers}[ ] a\n").boxes) for markers in columns] == [1, 0]


def test_deep_in_another_stack_headings_are_found_all_the_same() -> None:
    def descend(depth: int) -> list[tuple[int, int]]:
        return descend(depth - 1) if depth else headings("> " * 30 + "x\n\n# h\n")

    frame: FrameType | None = sys._getframe()
    used = 0
    while frame is not None:
        frame, used = frame.f_back, used + 1
    assert descend(sys.getrecursionlimit() - used - 40) == [(2, 1)]


def test_tool_calls_do_not_disturb_each_other() -> None:
    text = "# a\n\n> ```\n> # x\n\n- b\n  1. c\n\n  # d\n\n| a |\n|---|\n\n## e\n" * 20
    once = block_structure(text)
    wrong: list[object] = []

    def work() -> None:
        for _ in range(20):
            if block_structure(text) != once:
                wrong.append(text)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_only_three_characters_end_a_line() -> None:
    text = "a\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029b\r\n# h\r# i\n"
    assert headings(text) == [(1, 1), (2, 1)]
    assert len(LINE_END.findall(text)) == 3
