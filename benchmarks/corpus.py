"""The pages that the benchmarks work on: a folder of yours, or the documentation in the npm package ``next``.

Multiplied to any number of pages, the same on every machine. Each copy names its edition in all headings, titles and
file names, which are in front of each embedded text: no vector of one copy can be reused for another.
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "next"
WRITTEN = 1_700_000_000
"""All pages were last written at this second, so that indexes built in different folders can be compared."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r"(#{1,6} .*?\S)(\s*)$")
_TITLE = re.compile(r"(title: *)([\"']?)(.*?)(\2\s*)$")


def pages(folder: Path) -> dict[str, str]:
    """POSIX path -> text of the Markdown below a folder, sorted."""
    found = {}
    for path in sorted(folder.rglob("*.md*")):
        if path.suffix in (".md", ".mdx") and not any(part.startswith(".") for part in path.relative_to(folder).parts):
            found[path.relative_to(folder).as_posix()] = path.read_text(encoding="utf-8")
    return found


def next_pages() -> dict[str, str]:
    """The Markdown of the npm package ``next``, fetched with ``npm pack`` into a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        packed = subprocess.run(
            ["npm", "pack", "--silent", PACKAGE], cwd=folder, check=True, capture_output=True, text=True
        )
        found = {}
        with tarfile.open(Path(folder, packed.stdout.split()[-1])) as archive:
            for member in archive:
                inside = member.name.removeprefix("package/dist/docs/")
                if inside != member.name and inside.endswith((".md", ".mdx")):
                    file = archive.extractfile(member)
                    assert file is not None
                    found[inside] = file.read().decode("utf-8")
    return dict(sorted(found.items()))


def edition(text: str, number: int) -> str:
    """A copy of a page that says in its title and in each heading which one it is."""
    fence, lines = "", []
    front = text.startswith("---")
    for place, line in enumerate(text.splitlines(keepends=True)):
        if front and place:
            front = not line.startswith("---")
            line = _TITLE.sub(rf"\g<1>\g<2>\g<3>, edition {number}\g<4>", line)
        elif mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line.strip(" `~\r\n"):
                fence = ""
        elif not fence:
            line = _HEADING.sub(rf"\g<1>, edition {number}\g<2>", line)
        lines.append(line)
    return "".join(lines)


def multiplied(found: dict[str, str], count: int) -> Iterator[tuple[str, str]]:
    """(path, text) of ``count`` pages: all of ``found`` as they are, then their second edition, and so on."""
    for number in range(count):
        turn, place = divmod(number, len(found))
        path, text = list(found.items())[place]
        if turn:
            stem, dot, ending = path.rpartition(".")
            path, text = f"edition-{turn + 1}/{stem}-{turn + 1}{dot}{ending}", edition(text, turn + 1)
        yield path, text


def write(target: Path, found: dict[str, str], count: int, *, shuffled: bool = False) -> int:
    """Write ``count`` pages below ``target``; their bytes. ``shuffled``: created in another order."""
    chosen = list(multiplied(found, count))
    if shuffled:
        random.Random(1).shuffle(chosen)
    size = 0
    for path, text in chosen:
        file = target / path
        file.parent.mkdir(parents=True, exist_ok=True)
        data = text.encode("utf-8")
        file.write_bytes(data)
        os.utime(file, (WRITTEN, WRITTEN))
        size += len(data)
    return size


def chosen(folder: Path | None) -> dict[str, str]:
    """The pages of a folder, or those of the npm package when there is none."""
    found = pages(folder) if folder else next_pages()
    if not found:
        raise SystemExit(f"There is no Markdown in {folder}.")
    return found
