"""Real files of each kind for tests, made by the usual libraries."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Sequence
from pathlib import Path


def pdf(path: Path, pages: Sequence[str], title: str = "", heading: str = "") -> Path:
    """A PDF with one text a page, a title in its metadata, and large words on the first page."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pageCompression=0)
    if title:
        canvas.setTitle(title)
    if heading:
        canvas.setFont("Helvetica", 24)
        canvas.drawString(50, 800, heading)
        canvas.setFont("Helvetica", 12)
    for text in pages:
        lines = canvas.beginText(50, 780)
        for line in text.splitlines():
            lines.textLine(line)
        canvas.drawText(lines)
        canvas.showPage()
    canvas.save()
    return path


def pdf_as_tex_writes_it(path: Path, lines: Sequence[str]) -> Path:
    """A PDF whose words have places, and no characters for spaces between them."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pageCompression=0)
    canvas.setFont("Helvetica", 11)
    for number, line in enumerate(lines):
        left = 70.0
        for word in line.split():
            canvas.drawString(left, 700 - 14 * number, word)
            left += canvas.stringWidth(f"{word} ") + 2
    canvas.save()
    return path


def pdf_of_words(path: Path, words: Sequence[tuple[float, float, str]]) -> Path:
    """A PDF of a page with words at places: (x, y) in points from the lower left corner."""
    from reportlab.pdfgen.canvas import Canvas

    canvas = Canvas(str(path), pageCompression=0)
    canvas.setFont("Helvetica", 10)
    for x, y, text in words:
        canvas.drawString(x, y, text)
    canvas.save()
    return path


def docx(path: Path, heading: str, text: str, title: str = "") -> Path:
    """A Word document, without the hundreds of styles of the library's template, which take 0.3 s to read."""
    import docx as library

    document = library.Document()
    if title:
        document.add_heading(title, 0)
    document.add_heading(heading, 1)
    document.add_paragraph(text)
    for style in [*document.styles]:
        if style.name not in ("Title", "Heading 1", "Normal"):
            style.delete()
    document.save(str(path))
    return path


def xlsx(path: Path, rows: Sequence[Sequence[str]]) -> Path:
    """A workbook of one sheet."""
    import openpyxl

    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(list(row))
    book.save(path)
    return path


def pptx(path: Path, slides: Sequence[tuple[str, str]]) -> Path:
    """A presentation: (title, text) a slide."""
    import pptx as library

    deck = library.Presentation()
    for title, text in slides:
        slide = deck.slides.add_slide(deck.slide_layouts[1])
        slide.shapes.title.text = title
        slide.placeholders[1].text = text
    deck.save(str(path))
    return path


def epub(path: Path, title: str, text: str) -> Path:
    """A book of one chapter."""
    container = (
        '<?xml version="1.0"?><container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">'
        '<rootfiles><rootfile full-path="book.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
    )
    package = (
        '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf" version="3.0"><metadata '
        f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></metadata><manifest><item id="c" '
        'href="c.xhtml" media-type="application/xhtml+xml"/></manifest><spine><itemref idref="c"/></spine></package>'
    )
    with zipfile.ZipFile(path, "w") as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", container)
        book.writestr("book.opf", package)
        book.writestr("c.xhtml", f"<html><body><h1>{title}</h1><p>{text}</p></body></html>")
    return path


def notebook(path: Path, text: str) -> Path:
    """A Jupyter notebook of one cell."""
    cell = {"cell_type": "markdown", "metadata": {}, "source": [text]}
    path.write_text(json.dumps({"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def archive(path: Path, files: dict[str, bytes]) -> Path:
    """A ZIP of files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as packed:
        for name, data in files.items():
            packed.writestr(name, data)
    return path
