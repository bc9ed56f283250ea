"""How much of a built site is in its index, and whether its addresses and sources are right.

    python benchmarks/sites.py SITE[=DOCS] ... [--details 8]

Each SITE is a folder of HTML that a generator wrote, DOCS the folder of its sources. Each is indexed with
``anvil build --site``, without vectors, into a temporary file. The columns:

- **pages**: in the index, of those that are HTML files; the others have a reason, which
  ``anvil build --site SITE --verbose`` prints.
- **headings, sections**: all headings in the content element, also those that rules leave out, and the sections made of
  them and of API entries. Fewer sections than headings are lost ones.
- **anchors**: sections whose anchor is the id of an element of the page, of those that have one.
- **lost, invented**: words of the content that the Markdown lacks, and words that only the Markdown has, of 10,000.
- **source words**: words of the sources, without markup, that their page in the index has. This is a second look that
  shares no rule with the conversion: what the rules leave out by mistake shows here.
- **sources**: pages whose path is the file of their source.
- **lines**: sections whose line in the source file is that of their heading, of those whose heading stands there as one
  (in Markdown or reStructuredText), and then those that have a line of the others.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
import urllib.parse
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import measuring

import anvil
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import StoredDocument
from anvil.index_file.verify import open_checked
from anvil.sites import html_page, html_tree
from anvil.sites.page_content import content_of, generator_of, words
from anvil.text import markdown_sections as parser_of_markdown
from anvil.text.section_places import bare
from anvil.values import Section
from tests.support.html_words import lost_and_invented

HEADINGS = "h1, h2, h3, h4, h5, h6"
MARKUP = re.compile(
    r"^---\n.*?\n---\n|^(`{3,}|~{3,})[^\n]*|^\.\. [^\n]*|^:::[^\n]*|^!!![^\n]*|<[^>]+>|\{[^}\n]*\}|\]\([^)]*\)|"
    r":[\w:-]+:|`_|<!--.*?-->|^import [^\n]*|https?://\S+|^ *:[\w-]+:[^\n]*",
    re.M | re.S,
)
"""Parts of sources that are not text: front matter, directives, tags, attributes, targets of links."""
MARKDOWN = (".md", ".mdx", ".markdown")
PER = 10_000
ADDRESS = "https://site.example/"
"""The address of all sites here: not each says its own."""


@dataclass
class Row:
    """What was counted on one site."""

    name: str
    generator: Counter[str] = field(default_factory=Counter)
    files: int = 0
    pages: int = 0
    headings: int = 0
    sections: int = 0
    anchors: int = 0
    resolved: int = 0
    words: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    invented: Counter[str] = field(default_factory=Counter)
    source_words: int = 0
    found_words: int = 0
    sources: int = 0
    standing: int = 0
    exact: int = 0
    others: int = 0
    others_placed: int = 0
    wrong_lines: list[str] = field(default_factory=list)
    unresolved: list[str] = field(default_factory=list)
    missing: Counter[str] = field(default_factory=Counter)
    unmapped: list[str] = field(default_factory=list)


def measure(name: str, site: Path, docs: Path | None) -> Row:
    """Build the index of a site, and count."""
    row = Row(name)
    with tempfile.TemporaryDirectory() as folder:
        index = Path(folder, "index.db")
        with anvil.open(docs, index, provider="none", site=site, site_url=ADDRESS) as opened:
            opened.index()
        with open_checked(index) as reader:
            for document in reader.documents():
                _count(row, site, docs, reader, document)
    row.files = sum(1 for _ in site.rglob("*.html"))
    return row


def _count(row: Row, site: Path, docs: Path | None, reader: Reader, document: StoredDocument) -> None:
    file = html_file(site, document)
    html = file.read_bytes()
    tree = html_tree.parse(html)
    content = content_of(tree)
    row.pages += 1
    row.generator[generator_of(tree).name] += 1
    row.headings += sum(len(html_tree.select(root, HEADINGS)) for root in content.roots)
    ids = {element.attributes.get("id") for element in html_tree.select(tree, "[id]")}
    ids |= {element.attributes.get("name") for element in html_tree.select(tree, "a[name]")}
    for section in reader.sections(document.id):
        row.sections += section.heading_level > 0
        if section.anchor:
            row.anchors += 1
            row.resolved += section.anchor in ids
            if section.anchor not in ids:
                row.unresolved.append(f"{document.file_path}#{section.anchor}")
    lost, invented = lost_and_invented(html)
    row.words += html_page.read_page(html).facts.word_count
    row.lost += lost
    row.invented += invented
    if docs is None:
        return
    source = docs / document.file_path
    if not source.is_file():
        row.unmapped.append(document.file_path)
        return
    row.sources += 1
    _count_lines(row, source, reader.sections(document.id), document.file_path)
    if source.suffix in MARKDOWN:
        text = "".join(chunk.content for chunk in reader.page_chunks(document.id))
        source_words = Counter(words(MARKUP.sub(" ", source.read_text("utf-8", "replace"))))
        absent = source_words - Counter(words(text))
        row.source_words += source_words.total()
        row.found_words += source_words.total() - absent.total()
        row.missing += absent


def _count_lines(row: Row, source: Path, sections: Sequence[Section], path: str) -> None:
    """Count the sections whose line is that of their heading: of the same one where several have one text."""
    standing: dict[str, list[int]] = {}
    lines = source.read_text("utf-8", "replace").split("\n")
    if source.suffix in MARKDOWN:
        for section in parser_of_markdown.parse("\n".join(lines)).sections:
            if section.heading_level and (line := section.start_line):
                line = next(number for number in range(line, len(lines) + 1) if lines[number - 1].strip())
                standing.setdefault(bare(section.title), []).append(line)
    elif source.suffix == ".rst":
        for number, (text, below) in enumerate(itertools.pairwise(lines), 1):
            if text[:1].isalnum() and len(below) > 2 and len(set(below)) == 1 and below[0] in '=-~^"':
                standing.setdefault(bare(text), []).append(number)
    titles = Counter(bare(section.title) for section in sections)
    seen: Counter[str] = Counter()
    for section in sections:
        if not section.heading_level:
            continue
        title = bare(section.title)
        if title not in standing:
            row.others += 1
            row.others_placed += section.start_line is not None
            continue
        numbers = standing[title]
        expected = [numbers[seen[title]]] if titles[title] == len(numbers) else numbers
        seen[title] += 1
        row.standing += 1
        row.exact += section.start_line in expected
        if section.start_line not in expected:
            row.wrong_lines.append(f"{path}:{section.start_line} {section.title} (in {expected[:3]})")


def html_file(site: Path, document: StoredDocument) -> Path:
    """The HTML file of a page in the index: its address ends with the path of one file of the site."""
    path = urllib.parse.unquote(urllib.parse.urlparse(str(document.url)).path).lstrip("/")
    parts = path.split("/")
    for start in range(len(parts)):
        for candidate in _files("/".join(parts[start:])):
            if (site / candidate).is_file():
                return site / candidate
    raise SystemExit(f"{document.file_path}: no file of {site} is at {document.url}")


def _files(path: str) -> Iterator[str]:
    if path.endswith(".html"):
        yield path
    else:
        yield f"{path.rstrip('/')}.html"
        yield f"{path.rstrip('/')}/index.html".lstrip("/")


def rates(row: Row) -> Sequence[str]:
    """The cells of a row."""

    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "-"

    return (
        row.name,
        ", ".join(name for name, _ in row.generator.most_common(2)),
        f"{row.pages} / {row.files}",
        f"{row.headings}",
        f"{row.sections}",
        share(row.resolved, row.anchors),
        f"{PER * row.lost.total() / max(row.words, 1):.1f}",
        f"{PER * row.invented.total() / max(row.words, 1):.1f}",
        f"{row.words:,}",
        share(row.found_words, row.source_words),
        share(row.sources, row.pages) if row.sources or row.unmapped else "-",
        f"{share(row.exact, row.standing)} of {row.standing}; {row.others_placed} of {row.others}",
    )


def main() -> None:
    """Measure each site and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("sites", nargs="+", metavar="SITE[=DOCS]")
    options.add_argument("--details", type=int, default=0, metavar="N", help="print N of each kind of difference")
    given = options.parse_args()
    rows = []
    for named in given.sites:
        site, _, docs = named.partition("=")
        rows.append(measure(Path(site).name, Path(site), Path(docs) if docs else None))
        if given.details:
            detail(rows[-1], given.details)
    columns = (
        "site",
        "generator",
        "pages / files",
        "headings",
        "sections",
        "anchors",
        "lost",
        "invented",
        "words",
        "source words",
        "sources",
        "lines",
    )
    print(measuring.table(columns, [rates(row) for row in rows]))


def detail(row: Row, count: int) -> None:
    """Print what differs on a site."""
    for title, counter in (("lost", row.lost), ("invented", row.invented), ("missing", row.missing)):
        if counter:
            print(f"{row.name} {title}: {dict(counter.most_common(count))}")
    lists = (("unresolved", row.unresolved), ("without source", row.unmapped), ("wrong lines", row.wrong_lines))
    for title, listed in lists:
        if listed:
            print(f"{row.name} {title} ({len(listed)}): {listed[:count]}")


if __name__ == "__main__":
    main()
