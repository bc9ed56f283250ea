"""How much of a built site is in the Markdown that Anvil writes beside its pages, and whether code and links are right.

    python benchmarks/site_markdown.py SITE[=DOCS] ... [--provider none] [--details 8]

Each SITE is a folder of HTML that a generator wrote, DOCS the folder of its sources. Two copies of each are built with
``anvil build --site --markdown``. The columns:

- **words**: words of the content of the HTML pages that their Markdown has.
- **source words**: words of Markdown sources, without markup and definitions of links, that the Markdown of their page
  has.
- **code**: code blocks of the HTML whose text is, character for character, a fenced block of the Markdown. Blanks at
  the ends of lines do not count.
- **links**: links from one Markdown file to another that lead to a file, of all such links; then links that lead to the
  HTML of a page that has Markdown, which should be none.
- **images**: images of the Markdown, of those that the content of the HTML has with an address.
- **same**: whether both copies got the same bytes, and no HTML was touched.
- **added**: files and megabytes, of those that the site had.
- **seconds**: for the index, for the Markdown, and for the Markdown again without a change.
"""

from __future__ import annotations

import argparse
import hashlib
import html
import posixpath
import re
import shutil
import tempfile
import time
import urllib.parse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import measuring
from sites import MARKDOWN, MARKUP

import anvil
from anvil.settings.configuration import load_config
from anvil.sites import html_tree
from anvil.sites.html_page import markdown_words
from anvil.sites.page_content import content_of, generator_of, words, words_of
from anvil.sites.site_pages import SitePage
from anvil.text import front_matter, references

DEFINITION = re.compile(r"^ {0,3}\[[^\]^\n][^\]\n]*\]:[^\n]*", re.M)
FENCE = re.compile(r"^([ >]*(?:(?:[-*+]|\d+[.)]) +)*)(`{3,}|~{3,})[^\n`]*\n", re.M)
LINE_NUMBERS = ".linenos, .linenodiv, .lineno, .hljs-ln-numbers, .line-numbers-wrapper, .gutter, .lnt"


@dataclass
class Row:
    """What was counted on one site."""

    name: str
    generator: Counter[str] = field(default_factory=Counter)
    pages: int = 0
    words: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    source_words: int = 0
    missing: Counter[str] = field(default_factory=Counter)
    images: int = 0
    kept: int = 0
    code: int = 0
    other_code: list[str] = field(default_factory=list)
    links: int = 0
    broken: list[str] = field(default_factory=list)
    to_html: list[str] = field(default_factory=list)
    same: bool = False
    added: str = ""
    seconds: tuple[float, float, float] = (0, 0, 0)
    notes: tuple[str, ...] = ()


def measure(site: Path, docs: Path | None, provider: str) -> Row:
    """Build a site's index and Markdown in two copies, and count."""
    row = Row(site.name)
    with tempfile.TemporaryDirectory() as folder:
        first, second = Path(folder, "first"), Path(folder, "second")
        for copy in (first, second):
            shutil.copytree(site, copy, ignore=shutil.ignore_patterns("anvil"))
        before = _digests(first)
        pages = _build(row, first, docs, provider)
        times = row.seconds
        _build(row, second, docs, provider)
        row.seconds = times
        after, again = _digests(first), _digests(second)
        made = after.keys() - before.keys()
        own = {path for path in made if not path.startswith("anvil/index.")}
        untouched = all(after[path] == digest for path, digest in before.items())
        row.same = untouched and {path: after[path] for path in own} == {
            path: again[path] for path in again.keys() - before.keys() if not path.startswith("anvil/index.")
        }
        size = sum((first / path).stat().st_size for path in own) / 1e6
        total = sum((first / path).stat().st_size for path in before) / 1e6
        row.added = f"{len(own)}, {size:.1f} of {len(before)}, {total:.1f}"
        files = {page.file: path for path, page in pages.items()}
        for path, page in pages.items():
            _count(row, first, docs, path, page, files)
        for path in sorted(own):
            if path.endswith(".md"):
                _count_links(row, first, path, files)
    return row


def _digests(site: Path) -> dict[str, str]:
    return {
        file.relative_to(site).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in site.rglob("*")
        if file.is_file()
    }


def _build(row: Row, site: Path, docs: Path | None, provider: str) -> dict[str, SitePage]:
    config, _ = load_config(flags={"embedding.cache": False, "embedding.provider": provider, "site.folder": str(site)})
    with anvil.open(docs, config=config, site=site) as opened:
        started = time.perf_counter()
        opened.index()
        built = time.perf_counter()
        report = opened.publish_markdown("Site")
        written = time.perf_counter()
        assert not opened.publish_markdown("Site").written
        row.seconds = (built - started, written - built, time.perf_counter() - written)
        row.notes = report.notes
        return dict(opened.only.site_pages().pages())


def _count(row: Row, site: Path, docs: Path | None, path: str, page: SitePage, files: dict[str, str]) -> None:
    tree = html_tree.parse((site / page.file).read_bytes())
    content = content_of(tree)
    beside = site / f"{page.file.rpartition('.')[0]}.md"
    markdown = beside.read_text("utf-8")
    text = markdown[front_matter.split(markdown)[1] :]
    row.pages += 1
    row.generator[generator_of(tree).name] += 1
    own = Counter(words_of(content))
    there = Counter(markdown_words(text))
    row.words += own.total()
    row.lost += own - there
    fences = Counter(_fenced(text))
    row.kept += sum(link.kind == "image" for link in references.read(text).links)
    for root in content.roots:
        for node, begins in html_tree.walk(root, content.skipped):
            if begins and node.tag == "img":
                row.images += not (node.attributes.get("src") or "data:").startswith("data:")
        for block in html_tree.select(root, "pre"):
            if block.mem_id in content.skipped or html_tree.first(block, "pre") not in (None, block):
                continue
            numbers = html_tree.ids(html_tree.select(block, LINE_NUMBERS))
            lines = "".join(_texts(block, numbers | content.skipped)).replace("\r\n", "\n").split("\n")
            code = "\n".join(line.rstrip() for line in lines).strip("\n")
            if code.strip():
                row.code += 1
                if not fences[code]:
                    row.other_code.append(f"{path}: {code[:80]!r}")
    source = docs / path if docs is not None else None
    if source is not None and source.suffix in MARKDOWN and source.is_file():
        named = Counter(words(MARKUP.sub(" ", _without_definitions(source.read_text("utf-8", "replace")))))
        row.source_words += named.total()
        row.missing += named - Counter(words(markdown))


def _without_definitions(source: str) -> str:
    """A source without definitions of links, with the characters that its entities stand for."""
    return html.unescape(DEFINITION.sub("", source))


def _texts(element: html_tree.Element, skipped: frozenset[int] | set[int]) -> Iterator[str]:
    child = element.child
    while child is not None:
        if child.is_text_node:
            yield child.text_content or ""
        elif child.tag == "br":
            yield "\n"
        elif child.is_element_node and child.mem_id not in skipped:
            if "ec-line" in html_tree.classes(child):  # of Expressive Code: an element is a line
                yield "".join(_texts(child, skipped)).rstrip("\n") + "\n"
            else:
                yield from _texts(child, skipped)
        child = child.next


def _fenced(text: str) -> Iterator[str]:
    """The text of fenced blocks, without the marks of the lists and quotes that they are in."""
    at = 0
    while match := FENCE.search(text, at):
        before, marks = match[1], match[2]
        rest = re.sub(r"[-*+]|\d+[.)]", lambda mark: " " * len(mark[0]), before)
        lines = []
        at = match.end()
        for line in text[at:].split("\n"):
            at += len(line) + 1
            bare = line[len(rest) :] if line.startswith(rest) else line[len(rest.rstrip()) :].lstrip(" ")
            if bare.rstrip() == marks:
                break
            lines.append(bare)
        yield "\n".join(lines).strip("\n")


def _count_links(row: Row, site: Path, path: str, files: dict[str, str]) -> None:
    for link in references.read((site / path).read_text("utf-8")).links:
        parts = urllib.parse.urlsplit(link.target)
        if parts.scheme or parts.netloc or not parts.path or parts.path.startswith("/"):
            continue
        target = posixpath.normpath(posixpath.join(posixpath.dirname(path), urllib.parse.unquote(parts.path)))
        if target.endswith(".md"):
            row.links += 1
            if not (site / target).is_file():
                row.broken.append(f"{path}: {link.target}")
        elif link.kind == "link" and {target, f"{target}/index.html", f"{target}.html"} & files.keys():
            row.to_html.append(f"{path}: {link.target}")


def cells(row: Row) -> list[str]:
    """The cells of a row."""

    def share(lost: int, whole: int) -> str:
        return f"{100 * (whole - lost) / whole:.2f} %" if whole else "-"

    index, markdown, again = row.seconds
    return [
        row.name,
        row.generator.most_common(1)[0][0],
        str(row.pages),
        share(row.lost.total(), row.words),
        share(row.missing.total(), row.source_words),
        f"{row.code - len(row.other_code)} of {row.code}",
        f"{row.links - len(row.broken)} of {row.links}; {len(row.to_html)}",
        f"{row.kept} of {row.images}",
        "yes" if row.same else "no",
        row.added,
        f"{index:.1f}, {markdown:.2f}, {again:.2f}",
    ]


def main() -> None:
    """Measure each site and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sites", nargs="+", metavar="SITE[=DOCS]")
    options.add_argument("--provider", default="local", help="of the index, whose time is measured too")
    options.add_argument("--details", type=int, default=0, metavar="N", help="print N of each kind of difference")
    given = options.parse_args()
    rows = []
    for named in given.sites:
        site, _, docs = named.partition("=")
        row = measure(Path(site), Path(docs) if docs else None, given.provider)
        rows.append(row)
        if given.details:
            for name, count in (("lost", row.lost), ("missing", row.missing)):
                print(row.name, name, dict(count.most_common(given.details)))
            for name, found in (("code", row.other_code), ("broken", row.broken), ("to HTML", row.to_html)):
                print(row.name, name, len(found), *found[: given.details], sep="\n    ")
            print(row.name, *row.notes, sep="\n    ")
    columns = [
        "site",
        "generator",
        "pages",
        "words",
        "source words",
        "code",
        "links",
        "images",
        "same",
        "added",
        "seconds",
    ]
    print(measuring.table(columns, [cells(row) for row in rows]))


if __name__ == "__main__":
    main()
