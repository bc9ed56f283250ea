"""The map of the code in docs/design.md: each folder of the packages, its purpose, and its files.

The purpose is the first sentence of the docstring in the folder's ``__init__.py``.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from scripts.tables import table

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "design.md"
PACKAGES = ("anvil", "mkdocs_anvil")
_MAP = re.compile(r"(?<=<!-- code map -->\n\n).*?(?=<!-- end of the code map -->)", re.DOTALL)


def design_page() -> str:
    """The text of docs/design.md with the map as the code is now."""
    page, maps = _MAP.subn(lambda _: code_map() + "\n", PAGE.read_text(encoding="utf-8"))
    if maps != 1:
        raise ValueError(f"{PAGE} has {maps} maps of the code between its two comments, not one")
    return page


def code_map() -> str:
    """A Markdown table of all folders."""
    rows = [
        (
            f"`{folder.relative_to(ROOT).as_posix()}/`",
            purpose(folder),
            " ".join(f"`{name}`" for name in contents(folder)),
        )
        for package in PACKAGES
        for folder in folders(ROOT / package)
    ]
    return table(("folder", "what it is", "files"), rows)


def line_table() -> str:
    """A Markdown table: the lines of Python and SQL of each folder, the most first."""
    counts = {
        f"{folder.relative_to(ROOT).as_posix()}/": sum(
            len(path.read_text(encoding="utf-8").splitlines())
            for path in sorted(folder.iterdir())
            if path.suffix in (".py", ".sql")
        )
        for package in PACKAGES
        for folder in folders(ROOT / package)
    }
    rows = [(f"`{name}`", f"{number:,}") for name, number in sorted(counts.items(), key=lambda row: (-row[1], row[0]))]
    return table(("folder", "lines"), [*rows, ("all", f"{sum(counts.values()):,}")])


def folders(package: Path) -> Iterator[Path]:
    """A package and the packages in it, a folder before its subfolders."""
    yield package
    for path in sorted(package.iterdir()):
        if (path / "__init__.py").exists():
            yield from folders(path)


def contents(folder: Path) -> Iterator[str]:
    """Names of a package's modules without ``.py``, of its data files, and of its folders of data. ``index.db`` is made
    for the wheel and is not in a checkout."""
    for path in sorted(folder.iterdir()):
        if path.name.startswith(".") or path.name in ("__init__.py", "__pycache__", "index.db", "py.typed"):
            continue
        if path.is_file():
            yield path.name.removesuffix(".py")
        elif not (path / "__init__.py").exists() and any(path.glob("*.*")):
            yield f"{path.name}/"


def purpose(folder: Path) -> str:
    """The first sentence of a package's docstring. ValueError for one without."""
    text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8")))
    if not text:
        raise ValueError(f"{folder}/__init__.py has no docstring that says what the folder is")
    return re.split(r"\.(?:\s|$)", " ".join(text.replace("``", "`").split()), maxsplit=1)[0]


if __name__ == "__main__":
    print(line_table())
