"""Tables of HTML: their rows, headers and spans, and which only arrange blocks."""

# ruff: noqa: E501 - HTML as generators write it

from __future__ import annotations

import pytest

from anvil.sites.html_page import read_page

CASES = {
    "table": (
        "<table><thead><tr><th>a</th><th>b|c</th></tr></thead><tr><td>1<br>2</td><td><code>3</code></td></tr></table>",
        "| a | b\\|c |\n| --- | --- |\n| 1 2 | `3` |",
    ),
    "table without a header": ("<table><tr><td>a</td></tr><tr><td>b</td></tr></table>", "|  |\n| --- |\n| a |\n| b |"),
    "table with spans": (
        '<table><tr><th>a</th><th>b</th></tr><tr><td rowspan="2">c</td><td>d</td></tr><tr><td>e</td></tr>'
        '<tr><td colspan="2">f</td></tr></table>',
        "| a | b |\n| --- | --- |\n| c | d |\n|  | e |\n| f |  |",
    ),
    "table with a header and a table in a cell": (
        "<table><thead><tr><th>a</th><th>b</th></tr></thead><tr><td>c</td><td>d<table><tr><td>e</td><td>f</td></tr></table>"
        "</td></tr></table>",
        "| a | b |\n| --- | --- |\n| c | d e f |",
    ),
    "table with a span of many digits": (
        f'<table><tr><th>a</th><th>b</th></tr><tr><td colspan="0">c</td><td rowspan="{"9" * 5000}">d</td></tr></table>',
        "| a | b |\n| --- | --- |\n| c | d |",
    ),
    "table of Javadoc": (
        '<div class="summary-table"><div class="table-header col-first">a</div><div class="table-header col-last">b</div>'
        '<div class="col-first"><code>c</code></div>\n<div class="col-last"><div class="block">d</div> e</div>'
        '<div class="col-first"></div><div class="col-last">f</div></div>',
        "| a | b |\n| --- | --- |\n| `c` | d e |\n|  | f |",
    ),
    "table that is a layout": ("<table><tr><td><h2>a</h2>b</td><td>c</td></tr></table>", "## a\n\nb\n\nc"),
}


@pytest.mark.parametrize(("html", "expected"), CASES.values(), ids=CASES)
def test_a_table_is_markdown(html: str, expected: str) -> None:
    assert read_page(f"<main>{html}</main>").markdown == f"{expected}\n"


def test_a_long_table_is_linear() -> None:
    rows = "<tr>" + "<td>x</td>" * 3 + "</tr>"
    wide = "<tr>" + "<td>y</td>" * 3_000 + "</tr>"
    text = read_page(f"<main><table>{wide}{rows * 3_000}</table></main>").markdown
    assert text.count("x") == 9_000 and len(text) < 200_000
