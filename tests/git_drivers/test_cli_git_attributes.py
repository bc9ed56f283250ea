"""Lines of .gitattributes: ours and nobody else's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anvil.git_drivers.cli import index_line, with_line, without_line

OURS = index_line("docs.anvil.db")
TEXTS = some.lists(some.sampled_from(["*.png binary", "# of ours", "", "*.md text", f"{OURS} eol=lf"])).flatmap(
    lambda lines: some.sampled_from(["\n", "\r\n"]).map(lambda ending: "".join(each + ending for each in lines))
)


@given(TEXTS)
def test_what_was_added_is_taken_out_again(text: str) -> None:
    added = with_line(text, OURS)
    assert added.startswith(text) and added.splitlines()[-1] == OURS and added.count("\r\n") in (0, added.count("\n"))
    assert with_line(added, OURS) == added
    assert without_line(added, OURS) == text == without_line(text, OURS)


def test_a_last_line_without_an_end_gets_one() -> None:
    assert with_line("*.png binary", OURS) == f"*.png binary\n{OURS}\n"
    assert with_line("a x\r\nb x", OURS) == f"a x\r\nb x\r\n{OURS}\r\n"


@pytest.mark.parametrize(
    ("path", "pattern"),
    [
        ("docs.anvil.db", "/docs.anvil.db"),
        ("docs/.anvil/index.db", "/docs/.anvil/index.db"),
        ("my docs/\u00edndex.db", "/my[[:space:]]docs/\u00edndex.db"),
        ("a*b?[c]\\d.db", "/a\\*b\\?\\[c\\]\\\\d.db"),
    ],
)
def test_a_name_is_spelled_so_that_git_takes_it_literally(path: str, pattern: str) -> None:
    assert index_line(path) == f"{pattern} -text diff=anvil merge=anvil"
