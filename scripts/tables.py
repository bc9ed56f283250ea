"""Markdown tables for the pages of docs/reference/, and the texts under fields in the code."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Iterable


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A Markdown table; line breaks and ``|`` in cells are made safe."""
    head = list(head)
    lines = [line(head), "|" + "---|" * len(head), *map(line, rows)]
    return "\n".join(lines) + "\n"


def line(cells: Iterable[str]) -> str:
    """One row of a table."""
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |"


class Meanings(dict[str, str]):
    """Field -> the string under it in the source of a class, as Markdown in one line."""

    def __missing__(self, field: str) -> str:
        raise KeyError(f"{field} has no text under it that says what it means")


def meanings(kind: type) -> Meanings:
    """What the fields of a class mean. KeyError, naming the field, for one without a text."""
    found = Meanings()
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(definition, ast.ClassDef)
    for field, below in itertools.pairwise(definition.body):
        target: ast.expr | None = field.target if isinstance(field, ast.AnnAssign) else None
        if isinstance(field, ast.Assign):
            (target,) = field.targets
        if isinstance(target, ast.Name) and isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            found[target.id] = prose(str(below.value.value))
    return found


def prose(text: str) -> str:
    """A docstring as Markdown in one line."""
    return " ".join(text.replace("``", "`").split())
