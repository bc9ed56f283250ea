"""Excerpts: where they begin and end, and what is in front of them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anvil.search import excerpts
from anvil.search.excerpts import excerpt, sought

OTHER = "Nothing of interest is said in this paragraph, and it is of some length.\n\n"


def shown(text: str, question: str, size: int) -> str:
    part = excerpt(text, sought(question), size)
    return part.before + text[part.start : part.end].rstrip() + part.after


def test_a_short_text_is_whole() -> None:
    assert shown("# A\n\nzebra\n", "zebra", 100) == "# A\n\nzebra"


def test_an_excerpt_begins_with_the_paragraph_that_matches() -> None:
    text = f"## Animals\n\n{OTHER * 5}The zebra is striped.\nIt runs.\n\n{OTHER * 5}"
    assert shown(text, "zebra", 120) == f"The zebra is striped.\nIt runs.\n\n{OTHER.strip()}"
    assert shown(text, "zebra", 60) == "The zebra is striped.\nIt runs."
    early = f"## Animals\n\nThe zebra.\n\n{OTHER * 5}"
    assert shown(early, "zebra", 60) == "## Animals\n\nThe zebra."
    assert shown(early, "zebra", 40) == "The zebra.", "the heading would take more than a quarter"


def test_the_beginning_stands_for_the_section_if_it_has_two_thirds_of_the_words() -> None:
    lines = OTHER * 10

    def begins(beginning: str, passage: str) -> bool:
        return shown(
            f"## Streets\n\n{beginning}\n\n{lines}{passage}\n\n{lines}", "zebra crossing lights", 200
        ).startswith(f"## Streets\n\n{beginning}")

    assert begins("A zebra crossing.", "The zebra crossing has lights.")
    assert not begins("A zebra.", "The zebra crossing has lights.")
    assert begins("A zebra.", "A crossing.")
    assert not begins("Nothing.", "A crossing.")


def test_a_match_near_the_end_has_what_stands_before_it() -> None:
    text = f"## Animals\n\n{OTHER * 5}First this.\n\nThen the zebra.\n"
    assert shown(text, "zebra", 60) == "First this.\n\nThen the zebra."


def test_a_fence_is_whole_or_properly_opened_and_closed() -> None:
    code = "".join(f"value_{number} = {number}\n" for number in range(20))
    text = f"## Setup\n\n{OTHER * 3}```python\n{code}zebra = 1\n{code}```\n\n{OTHER * 3}"
    part = shown(text, "zebra", 120)
    assert part.startswith("```python\nzebra = 1\n") and part.endswith("\n```")
    assert len(part) <= 120 and part.count("```") == 2
    short = f"## Setup\n\n{OTHER * 3}```python\nzebra = 1\n```\n\n{OTHER * 3}"
    assert shown(short, "zebra", 60) == "```python\nzebra = 1\n```"
    indented = f"## Setup\n\n{OTHER * 3}- step\n\n    ~~~~sh\n{code}    zebra\n{code}    ~~~~\n"
    part = shown(indented, "zebra", 120)
    assert "    ~~~~sh\n    zebra\n" in part and part.endswith("\n    ~~~~")


def test_code_that_is_introduced_begins_where_it_does_not_fit() -> None:
    code = "".join(f"value_{number} = {number}\n" for number in range(8))
    text = f"## Setup\n\n{OTHER * 3}The zebra is set so:\n\n```python\n{code}```\n\n{OTHER * 3}"
    part = shown(text, "zebra", 80)
    assert part == "The zebra is set so:\n\n```python\nvalue_0 = 0\nvalue_1 = 1\nvalue_2 = 2\n```"
    assert shown(text, "zebra", 30) == "The zebra is set so:"
    assert shown(text, "zebra", 160) == f"The zebra is set so:\n\n```python\n{code}```"


@pytest.mark.parametrize(
    ("end", "rest", "expected"),
    [
        ("Set it so:", "```\nx\n```\n", True),
        ("- a zebra", "- a lion\n", True),
        ("1. a zebra", "2. a lion\n", True),
        ("| a zebra |", "| a lion |\n", True),
        ("A zebra.", "Then more.\n", False),
        ("Set it so:", "", False),
    ],
)
def test_what_goes_on(end: str, rest: str, expected: bool) -> None:
    text = f"{end}\n\n{rest}"
    assert excerpts.goes_on(text, excerpts.Excerpt("", 0, len(end))) is expected


def test_rows_of_a_table_have_its_head() -> None:
    rows = "".join(f"| option_{number} | does something else |\n" for number in range(30))
    text = f"| name | does |\n|---|---|\n{rows}| zebra | stripes |\n{rows}"
    part = shown(text, "zebra", 200)
    assert part == "| name | does |\n|---|---|\n| zebra | stripes |"


def test_the_head_of_a_table_is_repeated_without_its_padding() -> None:
    rows = "".join(f"| `--option-{number}`{' ' * 80}| does something else{' ' * 80}|\n" for number in range(30))
    text = f"| Options{' ' * 80}| does{' ' * 80}|\n| {'-' * 80} | {'-' * 80} |\n{rows}| `--zebra` | stripes |\n"
    assert shown(text, "zebra", 300) == "| Options | does |\n| --- | --- |\n| `--zebra` | stripes |"
    bare = "name|does\n:--|:--\n" + "".join(f"option_{number}|something else\n" for number in range(30))
    assert shown(f"{bare}zebra|stripes\n", "zebra", 100) == "name|does\n:--|:--\nzebra|stripes"


def test_an_excerpt_of_a_list_of_definitions_is_the_definition_that_matches() -> None:
    """With all its lines, and without the definitions before and after it."""
    options = [f"  -option.{number} int\n     Sets the number {number}\n     of things\n" for number in range(40)]
    zebra = "  -zebra.stripes int\n     How many there are\n     on a horse (default 40)\n"
    dump = "".join([*options[:20], zebra, *options[20:]])
    shown_options = f"```sh\n{zebra.rstrip()}\n```"
    text = f"## Flags\n\nThese are the flags for the number of stripes:\n\n```sh\nUsage of the program\n\n{dump}```\n"
    assert shown(text, "how many stripes are there", 900) == shown_options
    assert shown(text, "how many stripes are there", 110) == shown_options
    assert shown(dump, "how many stripes are there", 900) == zebra.rstrip(), "a later chunk of a long fence"

    settings = "".join(f"`option{number}`\n: (`int`) Sets the number {number}.\n\n" for number in range(40))
    term = (
        "`zebraStripes`\n: {{< new-in 0.1 />}}\n: (`int`) How many stripes there are.\n\n  > [!NOTE]\n  > On a horse."
    )
    text = f"## Settings\n\n{settings}{term}\n\n{settings}"
    assert shown(text, "how many stripes", 900) == term

    items = "".join(f"* `option{number}` - sets a number\n    * `{number}` is the default\n" for number in range(40))
    item = "* `stripes` - how many there are\n    * `0` none\n    * `40` many"
    assert shown(f"## Fields\n\n{items}{item}\n{items}", "how many stripes", 900) == item


def test_a_name_in_the_question_decides_which_definition_it_is() -> None:
    rows = "".join(f"| `{letter}` | `DoThing{letter}` |\n" for letter in "ABCDEFGHIJKLMNOP")
    intro = "The default keys are in this table. A default key can be changed.\n\n"
    text = f"{intro}| Key | Action |\n|---|---|\n{rows}| `Z` | `ShowZebra` |\n{rows}"
    assert shown(text, "ShowZebra default key", 200) == "| Key | Action |\n|---|---|\n| `Z` | `ShowZebra` |"
    assert shown(text, "zebra default key changed", 200).startswith("The default keys")
    flags = "".join(f"      --thing-{letter} int   see --stripe-width\n" for letter in "abcdefghijkl")
    text = f"```\n{flags}  -w, --stripe-width int   of a zebra\n{flags}```\n"
    assert shown(text, "--stripe-width", 120).startswith("```\n  -w, --stripe-width int   of a zebra\n")


def test_an_item_of_a_list_is_a_block() -> None:
    items = "".join(f"- option {number}, of no interest\n" for number in range(30))
    text = f"## Options\n\n{items}- zebra: stripes\n  on horses\n{items}"
    assert shown(text, "zebra", 40) == "- zebra: stripes\n  on horses"


def test_a_long_line_is_cut_at_a_sentence_and_a_long_sentence_at_a_space() -> None:
    sentence = "This sentence says nothing about anything. "
    text = f"## Animals\n\n{sentence * 20}The zebra is striped. {sentence * 20}"
    assert shown(text, "zebra", 60) == "The zebra is striped."
    words = "word " * 100
    part = shown(f"{words}zebra {words}", "zebra", 40)
    assert "zebra" in part and len(part) <= 40 and set(part.split(" ")) == {"word", "zebra"}


def test_a_paragraph_with_line_ends_is_cut_at_its_sentences() -> None:
    """Lines of source that are cut by themselves begin and end in the middle of a sentence."""
    text = (
        "## Animals\n\nNothing of interest is said in the first sentence of this paragraph. The striped\n"
        "zebra runs over the plain. It is fast, and what else it can do is said in the other\nparagraphs.\n"
    )
    assert shown(f"{text}\n{OTHER * 3}", "zebra", 85) == "The striped\nzebra runs over the plain."
    verse = "".join(f"a short line {number}\n" for number in range(20))
    assert shown(f"{verse}the zebra\n{verse}", "zebra", 30).startswith("the zebra\n")


def test_an_abbreviation_at_the_end_of_a_line_ends_no_sentence() -> None:
    """Also in an item of a list or a quote, whose lines begin with spaces or with ``>``."""
    other = "Nothing of interest is said in this sentence. " * 3
    for start, goes_on in (("- ", "\n  "), ("> ", "\n> "), ("", "  ")):
        text = f"{start}{other}It runs over the plain with other animals, e.g.{goes_on}the zebra. {other}\n"
        assert shown(text, "zebra", 90).startswith("It runs over the plain")


def test_a_short_line_that_introduces_what_matches_is_part_of_the_excerpt() -> None:
    """Without it an agent does not know what a list or a table is a list of."""
    items = "".join(f"- the kind number {number} of stripes\n" for number in range(8))
    text = f"## Zebras\n\n{OTHER * 3}These kinds exist:\n\n{items}\n{OTHER * 3}"
    first = "- the kind number 0 of stripes\n- the kind number 1 of stripes"
    assert shown(text, "stripes kind number", 110) == f"These kinds exist:\n\n{first}"
    assert shown(text, "stripes kind number", 65) == first, "the line would take more than a quarter"


def test_an_excerpt_of_empty_fences_is_the_beginning() -> None:
    assert excerpt("```py\n", sought("zebra"), 1) == excerpts.Excerpt("", 0, 1)


def test_what_is_far_from_all_matches_changes_nothing() -> None:
    sentences = "A zebra is here. Its stripes are there. "
    near = f"{OTHER}{sentences}\n\n{OTHER}"
    assert shown(near, "zebra stripes", 45) == shown(f"{OTHER * 20}{sentences}\n\n{OTHER * 20}", "zebra stripes", 45)


@pytest.mark.parametrize("size", [1, 2, 7])
def test_a_tiny_size_is_kept(size: int) -> None:
    assert 0 < len(shown(f"## Animals\n\n```sh\nzebra {OTHER}\n```\n", "zebra", size)) <= size


LINES = "# A\n@## Zebra\n@```py\n@```\n@~~~\n@- zebra item\n@\n@\r\n@text of a line\n@    indented zebra\n@> quoted\n"
OTHERS = ("| a | zebra |\n", "|---|---|\n", "x" * 70 + "\n", "one. zebra! three? ", "\u56db\u3002\u4e94\u3002", " ")
PIECES = st.sampled_from([*LINES.split("@"), *OTHERS])


@given(st.lists(PIECES, max_size=40).map("".join), st.integers(1, 200))
def test_an_excerpt_is_never_longer_than_its_size_and_its_lines_are_lines_of_the_text(text: str, size: int) -> None:
    part = excerpt(text, sought("zebra"), size)
    passage = text[part.start : part.end]
    assert 0 <= part.start <= part.end <= len(text)
    assert len(part.before) + len(passage.rstrip()) + len(part.after) <= size
    lines = [line.strip() for line in text.splitlines()]
    for line in part.before.splitlines():
        assert line.strip() in lines or (
            set(line.strip()) <= {"`", "~"} and any(x.startswith(line.strip()) for x in lines)
        )
    if text.strip():
        assert part.end > part.start


def test_a_heading_or_an_opening_line_is_no_excerpt() -> None:
    sentence = "The first paragraph is too long for the excerpt if the heading is in front of its sentence."
    text = f"## Zebras and okapis\n\n{f'{sentence} ' * 4}\n\n{OTHER * 3}"
    assert shown(text, "zebra okapi", 100) == sentence
    code = "".join(f"a_long_command --with-option {number}\n" for number in range(9))
    text = f"Run the zebra:\n\n```sh title='a title that is much too long to be repeated'\n{code}```\n\n{OTHER * 3}"
    assert shown(text, "zebra", 40) == "Run the zebra:"
    assert shown(text, "option", 60) == "```\na_long_command --with-option 0\n```"


def test_a_sentence_that_is_too_long_is_cut_between_words() -> None:
    words = [f"word{number}" for number in range(100)]
    text = " ".join([*words[:50], "zebra", *words[50:]])
    assert set(shown(text, "zebra", 60).replace("…", " ").split()) <= {*words, "zebra"}
