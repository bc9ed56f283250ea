"""A PDF's title, its columns and its tables, by real files."""

from __future__ import annotations

from pathlib import Path

import pytest
from reportlab.pdfgen.canvas import Canvas

from anvil.library.pdf_pages import pdf_pages
from tests.support import documents


def converted(path: Path) -> str:
    with path.open("rb") as file:
        return "".join(text for _, text in pdf_pages(file, 10, path.name))


@pytest.mark.parametrize(
    ("title", "heading", "wanted"),
    [
        ("Tide tables", "", "# Tide tables\n\nHigh water"),
        ("", "Tides of the harbour", "# Tides of the harbour\n\nHigh water"),
        ("high  water", "Large", "Large\n\n# high water\n\nis at noon."),  # the page has it
        ("Microsoft Word - tides.doc", "Tides of the harbour", "# Tides of the harbour\n\nHigh water"),
        ("paper.dvi", "Tides of the harbour", "# Tides of the harbour\n\nHigh water"),
        ("a", "Tides of the harbour", "# Tides of the harbour\n\nHigh water"),  # its file name
        ("Untitled Document", "", "High water"),
        ("", "1 2 3 4", "1 2 3 4\nHigh water"),  # no words
    ],
)
def test_the_title_of_a_pdf_is_its_heading(tmp_path: Path, title: str, heading: str, wanted: str) -> None:
    path = documents.pdf(tmp_path / "a.pdf", ["High water\nis at noon.", "second page"], title, heading)
    assert converted(path).startswith(wanted)


def test_a_word_that_is_cut_at_the_end_of_a_line_is_one_again(tmp_path: Path) -> None:
    text = "The harbour office prints the tide infor-\nmation each spring, in 3-\nfold, near the Moon-\nTable."
    read = " ".join(converted(documents.pdf(tmp_path / "a.pdf", [text])).split())
    assert "tide information each spring, in 3- fold, near the Moon- Table." in read


def test_large_lines_that_are_too_long_together_are_no_title(tmp_path: Path) -> None:
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path), pageCompression=0)
    text = canvas.beginText(10, 780)
    for size, letters in ((14, "Tide " * 50), (10, "- - "), (14, "Moon " * 50), (10, "High water is at noon. " * 40)):
        text.setFont("Helvetica", size)
        text.textLine(letters)
    canvas.drawText(text)
    canvas.save()
    assert not converted(path).startswith("# ")


def test_a_title_in_small_capitals_has_its_first_letter(tmp_path: Path) -> None:
    """Papers of some conferences have one: capitals of two sizes."""
    path = tmp_path / "a.pdf"
    canvas = Canvas(str(path), pageCompression=0)
    text = canvas.beginText(50, 780)
    for size, letters in ((17, "T"), (14, "IDES "), (17, "O"), (14, "F THE "), (17, "H"), (14, "ARBOUR")):
        text.setFont("Helvetica", size)
        text.textOut(letters)
    text.setFont("Helvetica", 10)
    text.textLine("")
    text.textLine("")
    text.textLines("High water is at noon, and low water\nsix hours later, as the keeper knows.")
    canvas.drawText(text)
    canvas.save()
    assert converted(path).startswith("# TIDES OF THE HARBOUR\n\nHigh water")


def test_columns_of_a_pdf_are_read_one_after_the_other_and_tables_row_by_row(tmp_path: Path) -> None:
    """MarkItDown takes the columns of a page with something else in it for a table, and mixes their lines."""
    left = ["All boats lie at the north quay", "and the keeper of the lamp counts", "them each night before he sleeps"]
    right = ["A red lamp means that no boat", "may leave until the wind has", "turned and the tide runs out"]
    table = [["boat", "length", "berth"], ["Ada", "12", "A4"], ["Eve", "19", "B2"], ["Joan", "7", "C 1"]]
    columns = [
        (40 + 260 * column, 700 - 14 * row, line)
        for column, lines in enumerate((left, right))
        for row, line in enumerate(lines)
    ]
    cells = [
        (40 + 170 * column, 500 - 20 * row, word) for row, line in enumerate(table) for column, word in enumerate(line)
    ]
    both = converted(documents.pdf_of_words(tmp_path / "a.pdf", [*columns, *cells]))
    assert "\n".join(left) in both and "\n".join(right) in both
    rows = converted(documents.pdf_of_words(tmp_path / "b.pdf", cells))
    assert "| Ada  | 12     | A4    |" in rows


def test_words_that_are_set_one_by_one_are_prose(tmp_path: Path) -> None:
    lines = ["The tide tables are printed", "each spring, and the harbour", "office keeps a copy of them."]
    path = documents.pdf_as_tex_writes_it(tmp_path / "a.pdf", lines)
    text = converted(path)
    assert "|" not in text and " ".join(text.split()) == " ".join(lines)
