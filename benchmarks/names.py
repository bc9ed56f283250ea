"""How often a query that is only a name finds the page that defines it first.

    python benchmarks/names.py FOLDER [FOLDER ...] [--work FOLDER] [--most 80]

Each folder of Markdown is indexed without vectors. Its names are asked: those that begin a row of a table in one page
only, and those that are a heading of one page only. A name is a compound such as ``READ_HISTORY``, ``max-size``,
``a.b`` or ``maxSize``.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import re
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from measuring import heading, table

import anvil

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(?:[_.-][A-Za-z0-9]+)+|[a-z]+(?:[A-Z][a-z0-9]+)+")
ROW = re.compile(r"\s*\|([^|]*)\|.*\|")
HEADING = re.compile(r"#{1,6} +(.*)")
MARKS = " *`\\[]#"


def main() -> None:
    """Index, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", type=Path, nargs="+")
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--most", type=int, default=80, help="names of each kind and folder")
    given = parser.parse_args()
    rows = []
    with contextlib.ExitStack() as opened_folder:
        work = given.work or Path(opened_folder.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        for number, folder in enumerate(given.folders):
            with anvil.open(folder, work / f"{number}.db", provider="none") as opened:
                opened.index()
                for kind, pattern in (("row", ROW), ("heading", HEADING)):
                    pages = defining_pages(folder, pattern)
                    names = random.Random(1).sample(sorted(pages), min(given.most, len(pages)))
                    values = [reciprocal_rank(opened, name, pages[name]) for name in names]
                    if values:
                        rows.append([folder.name, kind, str(len(values)), f"{statistics.mean(values):.3f}"])
    print(heading())
    print(table(("folder", "the name begins a", "n", "MRR@10"), rows))


def defining_pages(folder: Path, pattern: re.Pattern[str]) -> dict[str, str]:
    """Name -> the only page in which it begins a row or is a heading."""
    pages: dict[str, set[str]] = defaultdict(set)
    for file in sorted([*folder.rglob("*.md"), *folder.rglob("*.mdx")]):
        for name in names(file.read_text(encoding="utf-8", errors="replace"), pattern):
            pages[name].add(file.relative_to(folder).as_posix())
    return {name: next(iter(of_name)) for name, of_name in pages.items() if len(of_name) == 1}


def names(text: str, pattern: re.Pattern[str]) -> Iterator[str]:
    """The names that a text defines."""
    for line in text.splitlines():
        match = pattern.match(line)
        name = re.sub(r"\]\(.*", "", match[1]).strip(MARKS) if match else ""
        if NAME.fullmatch(name):
            yield name


def reciprocal_rank(opened: anvil.Anvil, name: str, page: str) -> float:
    """1 / rank of the page among the different pages of ten results; 0 without it."""
    pages = list(dict.fromkeys(hit.metadata.file_path for hit in opened.search(name, top_k=10).results))
    return 1 / (pages.index(page) + 1) if page in pages else 0.0


if __name__ == "__main__":
    main()
