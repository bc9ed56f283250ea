"""Tables of Markdown, made from the rows and cells of an HTML table, with cells that span several rows or columns."""

from __future__ import annotations

from anvil.sites import html_tree
from anvil.sites.html_tree import Element

MAX_SPAN = 50
"""Columns or rows of a table that one cell covers."""


class Table:
    """The rows of a table, added one by one. ``element_id``: the id of its element (see :func:`html_tree.ids`).
    ``is_layout``: its cells become blocks of the page, so no rows are added."""

    def __init__(self, element_id: int, is_layout: bool) -> None:
        self._element_id = element_id
        self.is_layout = is_layout
        self._rows: list[list[str]] = []
        self._has_header = False
        self._covered: dict[int, int] = {}
        """Column -> number of the next rows that a cell above covers."""

    def is_parent_of(self, element: Element) -> bool:
        """Whether an element is a cell outside of rows, as in tables of Javadoc."""
        return element.parent is not None and element.parent.mem_id == self._element_id

    def begin_row(self, row: Element) -> None:
        """Start a row. :meth:`add` adds its cells."""
        if not self._rows and row.parent is not None:
            tags = {cell.tag for cell in row.iter()}
            is_named = row.parent.tag == "thead" or "table-header" in html_tree.classes(row)
            self._has_header = is_named or ("th" in tags and "td" not in tags)
        self._rows.append([])

    @property
    def has_row(self) -> bool:
        """Whether a row was started, so that a cell can be added."""
        return bool(self._rows)

    def add(self, cell: Element, text: str) -> None:
        """Add a cell to the last row."""
        row = self._rows[-1]
        columns, rows = _span(cell, "colspan"), _span(cell, "rowspan")
        while self._covered.get(len(row), 0):
            self._covered[len(row)] -= 1
            row.append("")
        if rows > 1:
            self._covered.update(dict.fromkeys(range(len(row), len(row) + columns), rows - 1))
        row.extend([text.replace("|", "\\|"), *[""] * (columns - 1)])

    def lines(self) -> list[str]:
        """The lines of the table in Markdown; empty if no cell has text."""
        rows = [row for row in self._rows if any(row)]
        if not rows:
            return []
        columns = max(map(len, rows))
        header = rows.pop(0) if self._has_header and rows[0] is self._rows[0] else []
        return [_line(row) for row in ([*header, *[""] * (columns - len(header))], ["---"] * columns, *rows)]


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _span(cell: Element, attribute: str) -> int:
    value = cell.attributes.get(attribute) or ""
    if not (value.isascii() and value.isdigit()):
        return 1
    # int() refuses a number of more than 4,300 digits
    return max(1, min(MAX_SPAN, int(value))) if len(value) < 10 else MAX_SPAN
