"""What readers see of Markdown: masking, restoring, cleaning, and what of it search finds and shows."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import anvil
from anvil.text import markdown_sections, visible_text
from tests.conftest import write


def seen(text: str) -> str:
    return visible_text.shown(visible_text.masked(text))


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a <span class=x>b</span> c", "a b c"),
        ("H<sub>2</sub>O", "H2O"),
        (
            "H<sub>2</sub>SO<SUB>4</SUB>, *x*<sup>2</sup>, <i>n</i><sup>-1</sup>, 4<sup>th</sup>",
            "H2SO4, *x*2, n-1, 4th",
        ),
        ("`word`<sup>1.2</sup>", "`word` 1.2"),  # a footnote or label is no part of the word before it
        ("<code>word</code><sup>1</sup>", "word 1"),
        ("words<sup>3</sup>. More.<sup>4</sup>", "words 3. More. 4"),
        ("duration<sup>(required)</sup> API<sup>beta</sup>", "duration (required) API beta"),
        ("10<sup>6</sup>", "10 6"),  # and not 106
        ("a <sup>1</sup>", "a 1"),
        ("a<!-- b\n\nc -->d", "a\n\nd"),
        ("a <!-- never closed", "a <!-- never closed"),
        ("<style>\np {}\n\nq {}\n</style>\nb", "\n\n\n\n\nb"),
        ("<script src='a>b'>let a = 1 < 2\n</script>b", "\nb"),
        ('<svg width="1"><text>x</text>\n</svg>', " \n"),
        ('<img alt="1 > 2" src="a.png">b', " 1 > 2 b"),
        ("<IMG SRC='a.png' ALT=''><IMG>b", "  b"),
        ('<Aside title="Watch out">a</Aside>', '<Aside title="Watch out">a</Aside>'),  # a component
        ("a {/* mdx */} {{/* hugo */}} b", "a   b"),
        ("[a]: https://example.com\n[b]: <u v> 'T'\n", "\n\n"),
        ("[a]:\n  https://example.com\n  (T)\nb", "\n\n\nb"),
        ("text\n[a]: https://example.com", "text\n[a]: https://example.com"),
        ("[a]: no definition", "[a]: no definition"),
        ("[^1]: A <b>note</b>\n[a]: b", "[^1]: A note\n"),
        ("text\n*[HTML]: Hyper Text", "text\n"),
        ("- a\n\n    <b>c</b>\n\n    [d]: e", "- a\n\n    c\n\n"),
        ("!!! note\n\n    <b>c</b>", "!!! note\n\n    c"),
        ("{{<table>}} <b>a</b> {{</table >}}", "{{<table>}} a "),  # shortcodes of Hugo
        ('{{% tab "A" %}}\nb\n{{% /tab %}}\n{{< /tabs >}}', '{{% tab "A" %}}\nb\n\n'),
        ('{% tab title="A" %}\nb\n{% endtab %}\n`{% endtab %}`', '{% tab title="A" %}\nb\n\n`{% endtab %}`'),
        ("import A from 'a';\nimport {B,\n  C} from \"b\"\nimport './d.css'\n\n# E", "\n\n\n\n\n# E"),
        ("%% a\n\n```\nb\n```\n%%\nc %% d %%", "\n\n\n\n\n\nc "),  # comments of Obsidian
        ("- %% a %%\n> %% b\n> c %%\n", "- \n\n\n"),
        ("| `a | b |\n| <b>c</b> | `d` |\n", "| `a | b |\n| c | `d` |\n"),
        ("`a\n<b>c</b>`", "`a\n<b>c</b>`"),
        ("- `a\n- <b>c</b> `d`\n", "- `a\n- c `d`\n"),  # code ends in its item, and in its heading
        ("1. `a\n2. <b>c</b>`\n", "1. `a\n2. c`\n"),
        ("a ` b\n## <b>c</b> `\n", "a ` b\n## c `\n"),
        ("> ```\n> <b>\n<b>c</b>", "> ```\n> <b>\nc"),  # and a fence with the quote around it
        ("> ```\r\n\r\n<b>c</b>", "> ```\r\n\r\nc"),
        ("> ```\n> <b>\n> ```\n> <b>c</b>", "> ```\n> <b>\n> ```\n> c"),
        ("- > ```\n  > <b>\n  > ```\n  <b>c</b>", "- > ```\n  > <b>\n  > ```\n  c"),
    ],
)
def test_hidden(text: str, wanted: str) -> None:
    assert seen(text) == wanted


def test_of_a_site_what_its_extensions_take_for_looks_is_hidden_too() -> None:
    text = (
        '# A :material-x: { #a .b }\n\n[c](d){ .button target="_blank" } :a-b: {x} {{ y }} {% z %}\n\n'
        '/// tab | E\n    ``` yaml title="f.yml" hl_lines="1"\n    :material-x: { .b }\n    ```\n///\n'
    )
    assert visible_text.masked(text) == text
    for shown in ("import a from 'b'\n", "%% a %%\n", "a %% b %% c\n"):  # text for Python-Markdown
        assert visible_text.masked(shown, site=True) == shown
    assert visible_text.shown(visible_text.masked(text, site=True)) == (
        "# A  \n\n[c](d) :a-b: {x} {{ y }} {% z %}\n\n E\n"
        '    ``` yaml "f.yml" "1"\n    :material-x: { .b }\n    ```\n///\n'
    )


def test_spaces_spelled_as_entities_part_words_on_a_site() -> None:
    text = "one&nbsp;two &emsp; `a&nbsp;b`\n"
    assert visible_text.shown(visible_text.masked(text, site=True)).split() == ["one", "two", "`a&nbsp;b`"]
    assert visible_text.masked(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "Pass <your-name> to <PATH>, or a <Component label='b'>, at <https://example.com> or <a@example.com>",
        "`<b>` and `` ` <i> `` and \\<i>",
        "```html\n<b>\n<!-- c -->\n[a]: b\n```\n",
        "> ~~~\n> <b>\n> ~~~\n",
        "- a\n\n  ```\n  <b>\n  ```\n",
        "1. ```\n   <b>\n   ```\n",
        "    <b>\n\n    <i>\n",
        "- a\n\n        <b>\n",
        "a < b and b > c, 1 <2> 3",
        "[text](https://example.com), [text][a], [a]",
        "Code:\nimport a from 'b'\n\nimport a from 'b' is prose\n\nimport a from\n\n'b'\n",
        "import\n\na from 'b'\n\nimport \"fmt\"\n",
        "```js\nimport a from 'b'\n```\n",
        "5 %% 2 is 1, and 6 %% 2 is 0\n| %% | a percent sign | %% |\n",
        "%% parts rules:\n\n```\n%%\nfoo\n```\n",
        "%%{init: {}}%%\n",
        "%% a\nb %% c\n\n%%d%% and `for %%i` of %%e%%, 60 %% and\n70 %% or `%%`\n80%% of 90%% \n%%%\nf\n%%%\n\n%%",
    ],
)
def test_code_and_what_is_no_html_stay(text: str) -> None:
    assert visible_text.masked(text) == text


PIECES = [
    "<!--",
    "-->",
    "<b>",
    "</b>",
    "`",
    "``",
    "```",
    "\n",
    "\n\n",
    "    ",
    "<svg>",
    "</svg>",
    "<script>",
    "</script>",
    '"',
    "'",
    '<a b="',
    ">",
    "[x]: y",
    "*[a]: b",
    "\r\n",
    "\r",
    "\\",
    "- ",
    "> ",
    "text ",
    "\x7f",
    "\x1f",
    "{/*",
    "*/}",
    "~~~",
    "é",
    "import ",
    " from ",
    "{{% /",
    "{% end",
    "%}}",
]


def test_offsets_lines_and_the_source_survive() -> None:
    draw = random.Random(13)
    for _ in range(3000):
        text = "".join(draw.choice(PIECES) for _ in range(draw.randrange(30)))
        mask = visible_text.masked(text)
        assert len(mask) == len(text)
        assert [(at, each) for at, each in enumerate(mask) if each in "\r\n"] == [
            (at, each) for at, each in enumerate(text) if each in "\r\n"
        ]
        assert visible_text.restored(mask, visible_text.taken(text, mask)) == text


def test_masks_of_a_damaged_index_stay_and_no_text_is_added() -> None:
    mask = f"a{visible_text.MASK}b{visible_text.GAP}c"
    assert visible_text.restored(mask, "<") == f"a<b{visible_text.MASK}c"
    assert visible_text.restored(mask, "<> and more") == "a<b>c"


@pytest.mark.parametrize(
    "unit",
    [
        *PIECES,
        "[x]:\n y\n",
        "` `` ",
        "- a\n",
        "- ",
        "> ```\n",
        "<a b='",
        '<a b="c" ',
        "</script   ",
        "[\\",
        "{ .a",
        ".b",
        "{ a=b ",
        ":material-",
        "/",
    ],
)
def test_the_time_grows_with_the_text_and_no_faster(unit: str) -> None:
    def took(size: int) -> float:
        text = unit * (size // len(unit))
        began = time.process_time()
        visible_text.masked(text)
        visible_text.masked(text, site=True)
        return time.process_time() - began

    assert (long := took(80_000)) < 0.2 or long < 12 * took(20_000)


def test_lines_that_end_with_a_carriage_return_take_the_time_of_others() -> None:
    def took(line: str) -> float:
        text, at, lines, began = line * 100_000, 0, 0, time.process_time()
        while at < len(text):
            at, lines = visible_text._line_end(text, at), lines + 1
        assert lines == 100_000
        return time.process_time() - began

    # With a look at the whole rest of the text for each line: 15 times.
    assert took("a line of text\r") < 4 * took("a line of text\n")


def test_a_cleaned_page_keeps_its_sections_and_lines() -> None:
    text = "---\na: b\n---\n# One <!-- c\n\n-->\n<div>\n## No heading\n</div>\n\n## Two\n\n<b>x</b>\n"
    page = markdown_sections.parse(text)
    clean = visible_text.cleaned(page)
    assert [each.heading_path for each in clean.sections] == [each.heading_path for each in page.sections]
    assert [each.start_line for each in clean.sections] == [each.start_line for each in page.sections]
    assert clean.text[clean.sections[1].start :] == "## Two\n\nx\n"
    assert clean.text.count("\n") == page.text.count("\n")
    assert clean.sections[-1].end == clean.blocks[-1].end == len(clean.text)
    assert visible_text.cleaned(clean) is clean


def test_a_folder_is_kept_exactly_and_what_cannot_be_seen_is_not_found(tmp_path: Path) -> None:
    page = (
        "# Lamp\n\n<!-- zebra -->\nThe <span class='yak'>wick</span> is short.\n\n<style>\n.quagga {}\n</style>\n\n"
        "## Use\n\nTurn the [knob].\n\n[knob]: https://example.com/okapi\n*[wick]: dromedary\n\n"
        "```html\n<i>gnu</i>\n```\n"
    )
    write(tmp_path, {"lamp.md": page, "plain.md": "# Plain\n\nNothing hidden.\n"})
    with anvil.open(tmp_path, index=tmp_path / "i.db") as opened:
        opened.index()
        assert "".join(chunk.content for chunk in opened.get_page("lamp.md").chunks) == page
        assert opened.get_section("lamp.md", "Lamp > Use").content == page[page.index("## Use") :]
        for word in ("zebra", "yak", "span", "quagga", "okapi", "dromedary"):
            assert not opened.search(word, mode="keyword").results, word
        hits = opened.search("wick", mode="semantic").results
        lamp = "".join(hit.content for hit in hits if hit.metadata.file_path == "lamp.md")
        assert "The wick is short." in lamp and "<i>gnu</i>" in lamp
        assert "zebra" not in lamp and "quagga" not in lamp and "\x7f" not in lamp
        [hit] = opened.search("gnu", mode="keyword").results
        assert hit.metadata.start_line is not None and hit.metadata.end_line is not None
        lines = page.split("\n")[hit.metadata.start_line - 1 : hit.metadata.end_line]
        assert len(hit.content.rstrip("\n").split("\n")) == len("\n".join(lines).rstrip("\n").split("\n"))


def test_a_comment_that_another_one_replaces_costs_no_vector(tmp_path: Path) -> None:
    write(tmp_path, {"a.md": "# A\n\nText <!-- one -->.\n"})
    with anvil.open(tmp_path, index=tmp_path / "i.db") as opened:
        assert opened.index().embedded == 1
        write(tmp_path, {"a.md": "# A\n\nText <!-- one and two -->.\n"})
        report = opened.index()
        assert (report.embedded, report.reused) == (0, 1)
