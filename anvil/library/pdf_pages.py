"""A PDF as Markdown, page by page, with its title. The file is untrusted.

MarkItDown reads tables and forms, and takes text in two columns for one: its lines are then mixed, and without blanks.
pdfminer reads text in columns, and the cells of a table one after the other. The one that fits the page is used.
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
"""Share of a page's words in lines of prose, from which on it is not a table or a form."""
KEPT_LINE_ENDS = 0.75
"""Share of the line ends of prose that MarkItDown keeps. Of 400 pages those with tables had more, those with columns at
most a third."""
_WORD = re.compile(r"\w+")
_UNKNOWN_GLYPH = re.compile(r"\(cid:\d+\)")
"""What pdfminer writes for a glyph whose character the file does not tell."""
_CUT = re.compile(r"(?<=[^\W\d_]{2})[-\xad\u2010][ \t]*\n[ \t]*([^\W\d_]+)")
"""From the hyphen on, a word that is cut at the end of a line, as no search finds it. Of 83 in 101 documents whose rest
is in small letters, one is written with its hyphen."""


def pdf_pages(file: BinaryIO, max_pages: int, name: str) -> Iterator[tuple[int, str]]:
    """(number, Markdown) of each page, converted as a document of its own: so it keeps its number, and only one page is
    in memory. The title is in the first page with text, or else that of the file's ``name``."""
    import pypdfium2

    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):  # pypdfium2 has one exception for all errors
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
            text = with_title(text, title := pdf_title(document, document[number], name))
        yield number + 1, text
    document.close()


def _markdown(file: io.BytesIO, page: Any) -> str:
    """The text of a page of PDFium, whose document alone is in ``file``: by pdfminer if it is prose, or if MarkItDown
    does not keep the words together that are at the end of a line of prose and at the start of the next."""
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
    """Whether a page of PDFium has characters for spaces. TeX writes none and sets each word at its place, which
    MarkItDown takes for a cell of a table: half of the lines of a manual were rows."""
    import pypdfium2.raw as pdfium

    text = page.get_textpage()
    places = (place for place in range(text.count_chars()) if pdfium.FPDFText_GetUnicode(text, place) == ord(" "))
    return any(not pdfium.FPDFText_IsGenerated(text, place) for place in places)


# --- the title -----------------------------------------------------------------------------------------------------

MAX_TITLE_CHARACTERS = 300
MIN_TITLE_CHARACTERS = 4
MAX_TITLE_PAGE_CHARACTERS = 5000
"""Characters of a page in which a title is looked for."""
LARGE = 1.15
"""Height of a title's characters by that of most characters of its page."""
SAME = 0.95
"""Height of a character by that of the one before it, from which on both are as large."""
MAX_GAP_CHARACTERS = 12
"""Characters of another size inside a title, such as a formula."""
MIN_LETTERS = 0.6
"""Share of letters in a title. Fonts without a table of characters, and bad OCR, have fewer."""
MAX_LEAN = 0.1
"""Sine of the angle of a line that is read as horizontal. arXiv prints a number as large as the title at the margin."""
_NO_TITLE = re.compile(
    r"\W*(?:untitled( document)?|anonymous|unspecified|document|presentation|slide|title|pdf|test|contents)[\W\d]*"
    r"|\S*[_/.:]\S*|(?:microsoft \w+ - |arxiv:).*|.*\.[a-z]{2,4}",
    re.I,
)
"""What programs write for a document without a title, such as ``Microsoft Word - report.doc`` or ``paper.dvi``."""


def pdf_title(document: Any, page: Any, file_name: str) -> str:
    """The title of PDFium's ``document``, whose first page with text is ``page``; empty if it has none."""
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
        else:  # small capitals begin with a larger letter
            gap = text if len(text) == 1 and height > largest else ""
    title = " ".join(title.split())
    return title if _is_title(title) and not _NO_TITLE.fullmatch(title) else ""


def with_title(text: str, title: str) -> str:
    """The Markdown of a page with its title as a heading: where the page has it, else before the text."""
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
    """The text of a page of PDFium in pieces of one height, in points, without what is not horizontal."""
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
