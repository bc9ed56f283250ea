"""A PDF as Markdown, page by page: text in columns, tables, words cut at line ends, and the title.

MarkItDown reads tables and forms, but takes two columns of text for a table: it mixes their lines and drops spaces.
pdfminer reads text in columns, but the cells of a table one after the other. The one that fits the page is used.
"""

from __future__ import annotations

import io
import math
import re
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, BinaryIO

from anvil.errors import DocumentRejected, DocumentTooLarge

MIN_LINE_WORDS = 5
"""Words of a line of prose. Most cells of tables have fewer."""
PROSE = 0.9
"""A page with at least this share of its words in lines of prose is not a table or a form."""
KEPT_LINE_ENDS = 0.75
"""Share of the line ends of prose that MarkItDown must keep for a page with a table. Of 400 pages those with tables had
a larger share, those with columns a third at most."""
_WORD = re.compile(r"\w+")
_UNKNOWN_GLYPH = re.compile(r"\(cid:\d+\)")
"""pdfminer writes this for a glyph whose character is not in the file."""
_CUT = re.compile(r"(?<=[^\W\d_]{2})[-\xad\u2010][ \t]*\n[ \t]*([^\W\d_]+)")
"""The hyphen and the rest of a word that is cut at the end of a line, which no search finds. The two are joined if the
rest is in lower case: of 83 such words in 101 documents, only one is really written with a hyphen."""


def pdf_pages(file: BinaryIO, max_pages: int, name: str) -> Iterator[tuple[int, str]]:
    """(number, Markdown) of each page. Each is converted as a document of its own, so it keeps its number, and one page
    is in memory at a time. The first page with text gets the title as a heading. ``name``: the file's name."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):  # "Password" or "password": pypdfium2 has one exception for all errors
            raise DocumentRejected("It is encrypted. Save it without a password.") from None
        raise
    if len(document) > max_pages:
        raise DocumentTooLarge(
            f"It has {len(document):,} pages; the limit is {max_pages:,} (library.max_pages). Split it."
        )
    title = None
    for number in range(len(document)):
        page, single = io.BytesIO(), pypdfium2.PdfDocument.new()
        single.import_pages(document, [number])
        single.save(page)
        single.close()
        text = _UNKNOWN_GLYPH.sub("", _markdown(page, document[number]))
        text = _CUT.sub(lambda cut: cut[1] if cut[1].islower() else cut[0], text)
        if title is None and text.strip():
            title = pdf_title(document, document[number], name)
            text = with_title(text, title)
        yield number + 1, text
    document.close()


def _markdown(file: io.BytesIO, page: Any) -> str:
    """The text of a page. ``file``: a PDF of this page alone, ``page``: the page of PDFium.

    pdfminer reads it if it is prose, or if MarkItDown separates the last words of a line of prose from the next line.
    """
    from markitdown import StreamInfo
    from markitdown.converters import PdfConverter
    from pdfminer.high_level import extract_text

    text = extract_text(file)
    lines = [words for line in text.splitlines() if (words := _WORD.findall(line))]
    in_prose = sum(len(words) for words in lines if len(words) >= MIN_LINE_WORDS)
    if in_prose >= PROSE * sum(map(len, lines)) or not _has_spaces(page):
        return text
    file.seek(0)
    table = PdfConverter().convert(file, StreamInfo(extension=".pdf")).markdown
    in_table = " ".join(_WORD.findall(table))
    line_ends = [
        " ".join((*line[-2:], *after[:2]))
        for line, after in pairwise(lines)
        if min(len(line), len(after)) >= MIN_LINE_WORDS
    ]
    kept = sum(words in in_table for words in line_ends)
    return table if kept >= KEPT_LINE_ENDS * len(line_ends) else text


def _has_spaces(page: Any) -> bool:
    """Whether a page of PDFium has characters for spaces. TeX writes none and places each word, which MarkItDown then
    takes for the cell of a table: half of the lines of a manual became rows."""
    import pypdfium2.raw as pdfium

    text = page.get_textpage()
    places = (place for place in range(text.count_chars()) if pdfium.FPDFText_GetUnicode(text, place) == ord(" "))
    return any(not pdfium.FPDFText_IsGenerated(text, place) for place in places)


# --- the title -----------------------------------------------------------------------------------------------------

MAX_TITLE_CHARACTERS = 300
MIN_TITLE_CHARACTERS = 4
MAX_TITLE_PAGE_CHARACTERS = 5000
"""Characters of a page in which the title is searched."""
LARGE = 1.15
"""Height of the characters of a title, divided by that of most characters of the page."""
SAME = 0.95
"""Characters are equally large if the smaller one has at least this share of the other's height."""
MAX_GAP_CHARACTERS = 12
"""Characters of another size inside a title, such as a formula."""
MIN_LETTERS = 0.6
"""Share of letters in a title. Text in fonts without a table of characters, and bad OCR, has fewer."""
MAX_LEAN = 0.1
"""Sine of the largest angle of a line that counts as horizontal. arXiv prints a number at the margin, upright and as
large as the title."""
_NO_TITLE = re.compile(
    r"\W*(?:untitled( document)?|anonymous|unspecified|document|presentation|slide|title|pdf|test|contents)[\W\d]*"
    r"|\S*[_/.:]\S*|(?:microsoft \w+ - |arxiv:).*|.*\.[a-z]{2,4}",
    re.I,
)
"""Titles that programs write for a document without one, such as ``Microsoft Word - report.doc`` or ``paper.dvi``."""


def pdf_title(document: Any, page: Any, file_name: str) -> str:
    """The title in ``document``'s metadata, else the largest text of ``page``, the first with text; else empty."""
    title = " ".join(document.get_metadata_value("Title").replace("\0", " ").split())
    if title and len(title) <= MAX_TITLE_CHARACTERS and title not in file_name and not _NO_TITLE.fullmatch(title):
        return title
    runs = _runs(page.get_textpage())
    largest = max((height for height, text in runs if _is_title(text)), default=0.0)
    counts = Counter[float]()
    for height, text in runs:
        counts[height] += len(text)
    if not largest or largest < LARGE * counts.most_common(1)[0][0]:
        return ""
    title, gap = "", ""
    for height, text in runs:
        if SAME * largest <= height <= largest / SAME and (title or _is_title(text)):
            title, gap = title + gap + text, ""
        elif title:
            gap += text
            if len(gap.strip()) > MAX_GAP_CHARACTERS:
                break
        else:  # a single larger letter: small capitals begin with one
            gap = text if len(text) == 1 and height > largest else ""
    title = " ".join(title.split())
    return title if _is_title(title) and not _NO_TITLE.fullmatch(title) else ""


def with_title(text: str, title: str) -> str:
    """The Markdown of a page with the title as a heading: where the page has the title, else before the text."""
    if not title:
        return text
    words = r"\s+".join(map(re.escape, title.split()))
    line = re.search(rf"^[ \t]*{words}[ \t]*$", text, re.M | re.I)
    if line is None:
        return f"# {title}\n\n{text}"
    before, after = text[: line.start()].rstrip(), text[line.end() :].lstrip()
    return "\n\n".join(part for part in (before, f"# {title}", after) if part)


def _is_title(text: str) -> bool:
    characters = [character for character in text if not character.isspace()]
    letters = sum(character.isalpha() for character in characters)
    return MIN_TITLE_CHARACTERS <= len(characters) <= MAX_TITLE_CHARACTERS and letters >= MIN_LETTERS * len(characters)


def _runs(page_text: Any) -> list[tuple[float, str]]:
    """The horizontal text of a page of PDFium: (height in points, characters of this height), in order."""
    import pypdfium2.raw as pdfium

    runs: list[tuple[float, str]] = []
    box, height = pdfium.FS_RECTF(), 0.0
    for place in range(min(page_text.count_chars(), MAX_TITLE_PAGE_CHARACTERS)):
        character = chr(pdfium.FPDFText_GetUnicode(page_text, place))
        if not character.isspace():
            if abs(math.sin(pdfium.FPDFText_GetCharAngle(page_text, place))) > MAX_LEAN:
                continue
            pdfium.FPDFText_GetLooseCharBox(page_text, place, box)
            height = round(box.top - box.bottom, 1)
        before, text = runs.pop() if runs else (height, "")
        if not SAME * before <= height <= before / SAME:
            runs.append((before, text))
            before, text = height, ""
        height = before
        runs.append((height, text + character))
    return runs
