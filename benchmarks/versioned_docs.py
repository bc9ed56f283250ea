"""How often a search of documentation in many versions finds the page, in the version that readers want.

    python benchmarks/versioned_docs.py DOCS NEWEST [--provider none] [--count 60]

DOCS has a folder for each version, NEWEST is the name of the newest, such as ``v2.2.x``. A question is a heading of a
page with the page's title. "Newest": headings of pages of the newest version. "Removed": headings of pages that only
older versions have. Release notes are left out: they are about all versions.
"""

from __future__ import annotations

import argparse
import random
import re
from collections import defaultdict
from pathlib import Path

from measuring import table

import anvil

SEED = 5
HEADER = ["questions of", "questions", "page among five", "in the newest version", "MRR@5", "results"]
_TITLE = re.compile(r"^title:\s*[\"']?(.+?)[\"']?\s*$", re.MULTILINE)
_HEADING = re.compile(r"^##+ (.+)$", re.MULTILINE)


def questions(docs: Path, newest: str, count: int) -> dict[str, list[tuple[str, str]]]:
    """Set -> questions, each with the path of its page below the folder of the version."""
    by_page: dict[str, dict[str, Path]] = defaultdict(dict)  # path in the version -> version -> file
    for path in sorted(docs.rglob("*.md")):
        version, _, page = path.relative_to(docs).as_posix().partition("/")
        if "release-notes" not in page and (version == newest or re.match(r"v?\d", version)):
            by_page[page][version] = path
    chosen = random.Random(SEED)
    sets: dict[str, list[tuple[str, str]]] = {"Newest": [], "Removed": []}
    for page, versions in chosen.sample(sorted(by_page.items()), len(by_page)):
        text = (versions.get(newest) or max(versions.items())[1]).read_text(encoding="utf-8", errors="replace")
        headings = [heading for heading in _HEADING.findall(text) if len(heading.split()) >= 3]
        own = sets["Newest" if newest in versions else "Removed"]
        if headings and len(own) < count:
            title = _TITLE.search(text)
            own.append((f"{chosen.choice(headings)} {title[1] if title else ''}", page))
    return sets


def main() -> None:
    """Ask, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("docs", type=Path)
    parser.add_argument("newest")
    parser.add_argument("--provider", default="local")
    parser.add_argument("--count", type=int, default=60)
    given = parser.parse_args()
    rows = []
    with anvil.open(given.docs, provider=given.provider) as docs:
        for name, asked in questions(given.docs, given.newest, given.count).items():
            ranks, in_newest, shown = [], 0, 0
            for question, page in asked:
                paths = [hit.metadata.file_path for hit in docs.search(question, top_k=5).results]
                rank = next((number for number, path in enumerate(paths) if path.partition("/")[2] == page), None)
                ranks.append(0.0 if rank is None else 1 / (rank + 1))
                in_newest += rank is not None and paths[rank].startswith(f"{given.newest}/")
                shown += len(paths)
            number = max(len(asked), 1)
            shares = (sum(map(bool, ranks)) / number, in_newest / number, sum(ranks) / number)
            rows.append([name, str(len(asked)), *(f"{share:.3f}" for share in shares), f"{shown / number:.1f}"])
    print(table(HEADER, rows))


if __name__ == "__main__":
    main()
