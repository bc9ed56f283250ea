"""How much of the text that a site's index searches no reader of the site sees.

    python benchmarks/visible_text.py SITE... [--words 20]

Each SITE is a folder that ``mkdocs build`` wrote, with an index in it. The words of each page in the index are looked
up among the words of its HTML: its text, and what readers get at through it, the targets, titles and descriptions of
links and images. A word that is not there is text that no reader sees. Tags, styles, scripts and drawings of the HTML
do not count as seen. The language of a code block and the ending of a linked page are not counted as words.
"""

from __future__ import annotations

import argparse
import re
import sys
import urllib.parse
from collections import Counter
from pathlib import Path

import measuring
from bs4 import BeautifulSoup

from anvil.index_file.reader import Reader
from anvil.index_file.verify import open_checked
from anvil.text import visible_text

WORD = re.compile(r"[^\W_]+")
MARKUP = re.compile(r"^[ \t>]*(?:`{3,}|~{3,})[ \t]*[\w+#.-]+|(?<=\.)md(?=[)#\"' ])", re.M)
"""What is no text at all: the language of a code block, and the ending of a page that a link points at."""
REACHED = ("href", "src", "alt", "title", "id", "name")
"""Attributes whose words lead readers somewhere, or are read out."""
UNSEEN = "script, style, template, svg, head"


def words(text: str) -> list[str]:
    """The words of a text, folded, those without a letter left out."""
    return [word for word in WORD.findall(text.casefold()) if not word.isdigit()]


def seen(html: str) -> set[str]:
    """What readers of a page see or can get at."""
    soup = BeautifulSoup(html, "html.parser")
    for each in soup.select(UNSEEN):
        each.decompose()
    said = [*soup.get_text("\x00").split("\x00"), soup.get_text()]  # words that tags part, both ways
    for element in soup.find_all(True):
        for name in REACHED:
            value = element.get(name)
            if isinstance(value, str):
                said.append(urllib.parse.unquote(value))
    return set(words("\n".join(said)))


def page_of(site: Path, url: str, base: str) -> Path:
    """The file of the site at an address."""
    path = urllib.parse.unquote(urllib.parse.urlparse(url).path).removeprefix(base)
    return site / path / "index.html" if not path or path.endswith("/") else site / path


def common_base(urls: list[str]) -> str:
    """The path that all addresses of a site begin with, up to a slash."""
    paths = [urllib.parse.unquote(urllib.parse.urlparse(url).path) for url in urls]
    shortest = min(paths, key=len, default="/")
    return shortest[: shortest.rfind("/") + 1]


def counted(site: Path, reader: Reader) -> tuple[int, int, Counter[tuple[str, str]]]:
    """Words that are searched, pages looked at, and (page, word) -> how often it is there unseen."""
    documents = [each for each in reader.documents() if each.url]
    base = common_base([str(each.url) for each in documents])
    total, pages, unseen = 0, 0, Counter[tuple[str, str]]()
    for document in documents:
        file = page_of(site, str(document.url), base)
        if not file.exists():
            print(f"{document.file_path}: no {file}", file=sys.stderr)
            continue
        pages += 1
        known = seen(file.read_text(encoding="utf-8"))
        chunks = reader.chunks(reader.chunk_rows(document.id))
        for chunk in chunks.values():
            found = words(MARKUP.sub("", visible_text.shown(chunk.content)))
            total += len(found)
            unseen.update((document.file_path, word) for word in found if word not in known)
    return total, pages, unseen


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sites", nargs="+", type=Path)
    parser.add_argument("--index", default="anvil/index.db", help="the path of the index in a site")
    parser.add_argument("--words", type=int, default=0, help="name so many of the words, most frequent first")
    options = parser.parse_args()
    rows = []
    for site in options.sites:
        with open_checked(site / options.index) as reader:
            total, pages, unseen = counted(site, reader)
        amount = sum(unseen.values())
        rows.append([site.name, f"{pages:,}", f"{total:,}", f"{amount:,}", f"{100 * amount / max(total, 1):.2f} %"])
        for (page, word), count in unseen.most_common(options.words):
            print(f"{site.name}: {page}: {word} ({count})", file=sys.stderr)
    print(measuring.heading())
    print(measuring.table(["site", "pages", "words searched", "of them unseen", "share"], rows))


if __name__ == "__main__":
    main()
