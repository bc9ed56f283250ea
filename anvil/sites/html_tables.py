"""Tables of HTML as Markdown: rows, cells that span several, and tables that only arrange blocks."""

from __future__ import annotations

from anvil.sites import html_tree
from anvil.sites.html_tree import Element

MAX_SPAN = 50
"""Columns or rows of a table that one cell covers."""
_HEADING = "h1, h2, h3, h4, h5, h6"


class Table:
    """A table whose rows are collected. ``element_id``: of its element (see :func:`html_tree.ids`). ``is_layout``: its
    cells are blocks, which are not collected."""

    def __init__(self, element_id: int, is_layout: bool) -> None:
        self._element_id = element_id
        self.is_layout = is_layout
        self._rows: list[list[str]] = []
        self._has_header = False
        self._covered: dict[int, int] = {}
        """Column -> rows below that a cell above covers."""

    def is_parent_of(self, element: Element) -> bool:
        """Whether an element is a cell that is in no row, as in tables of Javadoc."""
        return element.parent is not None and element.parent.mem_id == self._element_id

    def begin_row(self, row: Element) -> None:
        """The cells that follow are of a new row."""
        if not self._rows and row.parent is not None:
            tags = {cell.tag for cell in row.iter()}
            is_named = row.parent.tag == "thead" or "table-header" in html_tree.classes(row)
            self._has_header = is_named or ("th" in tags and "td" not in tags)
        self._rows.append([])

    @property
    def has_row(self) -> bool:
        """Whether a cell can be added."""
        return bool(self._rows)

    def add(self, cell: Element, text: str) -> None:
        row = self._rows[-1]
        columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
        while self._covered.get(len(row), 0):
            self._covered[len(row)] -= 1
            row.append("")
        if rows > 1:
            self._covered.update(dict.fromkeys(range(len(row), len(row) + columns), rows - 1))
        row.extend([text.replace("|", "\\|"), *[""] * (columns - 1)])

    def lines(self) -> list[str]:
        """The table as Markdown; none for one without text."""
        rows = [row for row in self._rows if any(row)]
        if not rows:
            return []
        columns = max(map(len, rows))
        header = rows.pop(0) if self._has_header and rows[0] is self._rows[0] else []
        return [_line(row) for row in ([*header, *[""] * (columns - len(header))], ["---"] * columns, *rows)]


def is_layout(table: Element) -> bool:
    """Whether a table arranges blocks: it has headings or long code, tables without a header of its own, or is one row
    without a header."""
    if table.attributes.get("role") == "presentation" or html_tree.first(table, _HEADING) is not None:
        return True
    # a parameter of JSDoc may have a table of its properties in a cell
    has_header = any(part.tag == "thead" for part in table.iter())
    if not has_header and any(inner.mem_id != table.mem_id for inner in html_tree.select(table, "table")):
        return True
    if any("\n" in pre.text().strip() for pre in html_tree.select(table, "pre")):
        return True
    return len(html_tree.select(table, "tr")) == 1 and html_tree.first(table, "th") is None


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _span(cell: Element, attribute: str) -> int:
    value = cell.attributes.get(attribute)
    return min(MAX_SPAN, int(value)) if value and value.isascii() and value.isdigit() and int(value) > 0 else 1
