from __future__ import annotations

import importlib.util
import os
import sys
import threading
import time
import wave
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from anvil.errors import DocumentRejected, DocumentTooLarge, UnsupportedFormat
from anvil.library.conversion_process import Converter
from anvil.library.document_formats import FileKind, advice, available, decoded, format_of, looked_for
from anvil.library.settings import LibraryOptions
from tests.support import documents, fork_server

OPTIONS = LibraryOptions()


@pytest.fixture(scope="module")
def converter() -> Iterator[Converter]:
    made = Converter(OPTIONS, 1)
    yield made
    made.close()


def converted(converter: Converter, path: Path) -> str:
    return "".join(piece.text for piece in converter.parts(path, FileKind.of(path.name)))


def process_ids(converter: Converter) -> set[int]:
    return {each.pid for each in converter._idle}


def test_office_files_with_macros_are_read_as_those_without(converter: Converter, tmp_path: Path) -> None:
    assert converted(converter, documents.docx(tmp_path / "a.docm", "Plan", "At noon.")) == "# Plan\n\nAt noon.\n\n"
    assert "| Ada |" in converted(converter, documents.xlsx(tmp_path / "a.xlsm", [["Ada"]]))
    assert "beta" in converted(converter, documents.pptx(tmp_path / "a.pptm", [("One", "beta")]))


# --- each format, by real files ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "make", "wanted"),
    [
        ("a.docx", lambda path: documents.docx(path, "Report", "The keeper sleeps."), "# Report\n\nThe keeper sleeps."),
        ("a.xlsx", lambda path: documents.xlsx(path, [["boat", "length"], ["Ada", "12"]]), "| Ada | 12 |"),
        (
            "b.xlsx",
            lambda path: documents.xlsx(path, [["Boats", ""], ["Ada", "12"], ["", ""], ["Eve", ""]]),
            "| Boats |  |\n| --- | --- |\n| Ada | 12 |\n| Eve |  |",
        ),
        (
            "a.epub",
            lambda path: documents.epub(path, "Tides", r"Set max_size, or <code>a\_b</code>."),
            r"Set max_size, or `a\_b`.",
        ),
        ("a.ipynb", lambda path: documents.notebook(path, "# Notes"), "# Notes"),
        ("a.csv", lambda path: path.write_text("x,y\n1,2\n"), "| 1 | 2 |"),
        ("a.json", lambda path: path.write_text('{"lamp": true}'), '{"lamp": true}'),
        ("a.xml", lambda path: path.write_text("<?xml version='1.0'?><r><a>lamp</a></r>"), "<a>lamp</a>"),
        ("a.zip", lambda path: documents.archive(path, {"in/a.csv": b"x,y\n1,2\n", "b.txt": b"hello"}), "| 1 | 2 |"),
        (
            "a.yaml",
            lambda path: path.write_text("---\n# A lamp.\nlamp: on\n---\nhorn: off\n"),
            "~~~~yaml\n---\n# A lamp.\nlamp: on\n---\nhorn: off\n",
        ),
        ("a.toml", lambda path: path.write_text("a = '''\n~~~~~\n'''"), "~~~~~~toml\na = '''\n~~~~~\n'''\n~~~~~~"),
        ("a.html", lambda path: path.write_bytes(b"<html><body><p>cr\xe8me</p></body></html>"), "crème"),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 8 else "",
)
def test_formats(converter: Converter, tmp_path: Path, name: str, make: Callable[[Path], object], wanted: str) -> None:
    path = tmp_path / name
    make(path)
    assert wanted in converted(converter, path)


def test_a_word_document_keeps_identifiers_and_boxes_and_loses_no_text_by_a_missing_picture(
    converter: Converter, tmp_path: Path
) -> None:
    path = documents.docx(tmp_path / "a.docx", "max_size", "Set max_size.")
    box = (
        '<w:p><w:sdt><w:sdtPr><w14:checkbox xmlns:w14="http://schemas.microsoft.com/office/word/2010/wordml">'
        '<w14:checked w14:val="1"/></w14:checkbox></w:sdtPr><w:sdtContent><w:r><w:t>\u2612</w:t></w:r></w:sdtContent>'
        "</w:sdt><w:r><w:t> Lit</w:t></w:r></w:p>"
    )
    drawing = (
        '<w:p><w:r><w:drawing><wp:inline xmlns:wp="http://schemas.openxmlformats.org/drawingml/2006/'
        'wordprocessingDrawing"><wp:docPr id="1" name="a" descr="A lamp"/><a:graphic xmlns:a="http://schemas.'
        'openxmlformats.org/drawingml/2006/main"><a:graphicData><pic:pic xmlns:pic="http://schemas.openxmlformats.org'
        '/drawingml/2006/picture"><pic:blipFill><a:blip r:embed="rId99"/></pic:blipFill></pic:pic></a:graphicData>'
        "</a:graphic></wp:inline></w:drawing></w:r></w:p>"
    )
    link = (
        '<Relationship Id="rId99" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/image" '
        'Target="https://example.org/a.png" TargetMode="External"/></Relationships>'
    )
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    main, links = "word/document.xml", "word/_rels/document.xml.rels"
    files[main] = files[main].replace(b"<w:sectPr", f"{box}{drawing}<w:sectPr".encode())
    files[links] = files[links].replace(b"</Relationships>", link.encode())
    text = converted(converter, documents.archive(path, files))
    assert text == "# max_size\n\nSet max_size.\n\n[x] Lit\n\nA lamp\n\n"


def test_identifiers_in_tables_of_slides_are_found_by_their_names(converter: Converter, tmp_path: Path) -> None:
    import pptx

    deck = pptx.Presentation()
    table = deck.slides.add_slide(deck.slide_layouts[6]).shapes.add_table(1, 1, 0, 0, 9, 9).table
    table.cell(0, 0).text = "max_size"
    deck.save(str(tmp_path / "a.pptx"))
    assert "max_size" in converted(converter, tmp_path / "a.pptx")


def test_each_part_of_a_long_yaml_file_is_code(converter: Converter, tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("# A lamp.\nlamp: on\n" * 30_000)
    parts = [part.text.strip() for part in converter.parts(path, FileKind.of("a.yaml"))]
    assert len(parts) > 1 and all(part.startswith("~~~~yaml\n") and part.endswith("\n~~~~") for part in parts)


def test_the_title_of_a_web_page_is_its_heading(converter: Converter, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<html><head><title>Harbour  guide</title></head><body><p>x</p></body></html>")
    assert converted(converter, tmp_path / "a.html").startswith("# Harbour guide\n\n")


def test_navigation_is_left_out_and_a_title_without_a_head_is_there_once(converter: Converter, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<title>Harbour</title><nav><a href=b.html>Boats</a></nav><p>The lamp is lit.</p>")
    assert converted(converter, tmp_path / "a.html") == "# Harbour\n\nThe lamp is lit.\n\n"


def test_a_web_page_whose_text_scripts_make_is_refused(converter: Converter, tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        "<head><title>App</title></head><noscript>You need to enable JavaScript.</noscript><div id=root></div>"
        "<script src=/main.js></script>"
    )
    with pytest.raises(DocumentRejected, match=r"It holds no text\. If scripts make its text, save the page from a"):
        converted(converter, tmp_path / "a.html")


def test_a_scanned_pdf_with_a_title_holds_no_text(converter: Converter, tmp_path: Path) -> None:
    with pytest.raises(DocumentRejected, match="If it was scanned"):
        converted(converter, documents.pdf(tmp_path / "a.pdf", [""], "Tide tables"))


def test_a_shape_of_an_unknown_kind_costs_no_slide(converter: Converter, tmp_path: Path) -> None:
    import pptx

    deck = pptx.Presentation(str(documents.pptx(tmp_path / "a.pptx", [("One", "alpha")])))
    box = deck.slides[0].shapes.add_textbox(0, 0, 9, 9)
    box.text_frame.text = "a box"
    box._element.nvSpPr.cNvSpPr.attrib.clear()  # as other programs write one: neither a box nor a form
    box._element.spPr.clear()
    deck.save(str(tmp_path / "a.pptx"))
    text = converted(converter, tmp_path / "a.pptx")
    assert "alpha" in text and "a box" in text


def test_pages_of_a_pdf_and_slides_keep_their_numbers(converter: Converter, tmp_path: Path) -> None:
    path = documents.pdf(tmp_path / "a.pdf", ["first page", "", "third page"])
    assert [(piece.page, piece.text) for piece in converter.parts(path, FileKind.of("a.pdf"))] == [
        (1, "first page\n\n"),
        (3, "third page\n\n"),
    ]
    path = documents.pptx(tmp_path / "a.pptx", [("One", "alpha"), ("Two", "beta")])
    pieces = list(converter.parts(path, FileKind.of("a.pptx")))
    assert [piece.page for piece in pieces] == [1, 2] and pieces[1].text == "# Two\nbeta\n\n"


def test_what_converts_leaves_nothing_in_the_home_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """MarkItDown brings onnxruntime along, which keeps a number of this machine for what it tells its makers."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(home))
    with fork_server.cold():
        own = Converter(OPTIONS, 1)
        assert converted(own, documents.docx(tmp_path / "a.docx", "Report", "The keeper sleeps."))
        assert "page" in converted(own, documents.pdf(tmp_path / "a.pdf", ["page"]))
        own.close()
    assert not list(home.rglob("*"))


def test_text_needs_nothing_and_is_not_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    text = "\ufeff---\na: 1\n---\r\n# H\n\n\n\ttext  \n"
    (tmp_path / "a.md").write_bytes(text.encode())
    converter = Converter(OPTIONS, 1)
    assert converted(converter, tmp_path / "a.md") == text
    with pytest.raises(UnsupportedFormat, match=r"pip install 'anvil-docs\[library\]'"):
        converter.parts(tmp_path / "a.pdf", FileKind.of("a.pdf"))
    texts = "md markdown mdx txt text rst adoc asciidoc org log tex tsv vtt srt yaml yml toml"
    assert available(OPTIONS) == tuple(f"{texts} html htm zip".split())


@pytest.mark.parametrize(
    ("codec", "name", "text"),
    [
        ("cp1252", "code page 1252", "Über die Größe der Straße läßt sich nichts sagen.\n"),
        ("cp932", "code page 932", "これは日本語の説明書です。索引は一つのファイルです。\n"),
        ("euc_jp", "euc_jp", "これは日本語の説明書です。索引は一つのファイルです。\n"),
        ("gb18030", "gb18030", "这是一个中文说明文件。索引保存在一个文件中。\n"),
        ("big5hkscs", "big5hkscs", "這是一個中文說明檔案。索引保存在一個檔案中。\n"),
        ("cp949", "code page 949", "이것은 한국어 설명서입니다. 색인은 하나의 파일에 저장됩니다.\n"),
        (
            "cp949",
            "code page 949",
            "JSX를 사용하면 JavaScript 파일에 HTML과 비슷한 마크업을 작성할 수 있어요.\n",
        ),
        ("cp1251", "code page 1251", "Это русское руководство. Индекс хранится в одном файле.\n"),
        ("cp866", "code page 866", "Однажды в студеную зимнюю пору я из лесу вышел.\n"),
        ("cp1253", "code page 1253", "Αυτό είναι ένα ελληνικό εγχειρίδιο.\n"),
    ],
)
def test_an_encoding_that_nothing_names_is_guessed_and_a_note_says_so(
    converter: Converter, tmp_path: Path, codec: str, name: str, text: str
) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(("# Install\n" * 30 + text).encode(codec))
    (part,) = converter.parts(path, FileKind.of("a.txt"))
    assert part.text.endswith(text)
    assert part.note.startswith(f"It is not UTF-8 and names no encoding, so it was read as {name}.")
    (tmp_path / "a.csv").write_bytes(("a,b\n" + text).encode(codec))  # by the other process
    (part,) = converter.parts(tmp_path / "a.csv", FileKind.of("a.csv"))
    assert text.split(".")[0].strip() in part.text and name in part.note


@pytest.mark.parametrize("text", ["Füße\n", "naïve café\n", "“Quoted” text…\n"])
def test_a_text_with_a_few_accents_is_not_guessed_at(text: str) -> None:
    read, note = decoded(text.encode("cp1252"))
    assert read == text and "code page 1252" in note


def test_the_encoding_of_a_text_of_one_line_is_guessed() -> None:
    text = "Это русское руководство. Индекс хранится в одном файле."
    assert decoded(text.encode("cp1251"))[0] == text


def test_without_the_extra_an_encoding_is_not_guessed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "charset_normalizer", None)
    text, note = decoded("Это русское руководство".encode("cp1251"))
    assert text.startswith("Ýòî") and "code page 1252" in note


def test_what_is_no_text_is_refused() -> None:
    with pytest.raises(DocumentRejected, match="NUL byte at offset 1"):
        decoded(b"a\0b")


# --- hostile ground ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["bad.docx", "bad.pdf", "bad.xlsx", "bad.pptx", "bad.epub", "bad.zip"])
def test_a_damaged_file_is_one_error_and_the_process_lives(converter: Converter, tmp_path: Path, name: str) -> None:
    documents.docx(tmp_path / "good.docx", "A", "fine")
    assert converted(converter, tmp_path / "good.docx")
    before = process_ids(converter)
    (tmp_path / name).write_bytes(b"PK\x03\x04" + os.urandom(300))
    with pytest.raises(DocumentRejected, match=rf"cannot be read as {name[4:].upper()}") as caught:
        converted(converter, tmp_path / name)
    assert "Traceback" not in str(caught.value) and "\n" not in str(caught.value)
    assert converted(converter, tmp_path / "good.docx") and process_ids(converter) == before


@pytest.mark.parametrize("name", ["a.docx", "a.xlsx"])
def test_an_office_file_with_a_password_is_called_encrypted(converter: Converter, tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(bytes.fromhex("d0cf11e0a1b11ae1") + bytes(600))  # a compound file with the ciphertext
    with pytest.raises(DocumentRejected, match=rf"It is encrypted, .* Save it without a password, as \{name[1:]}"):
        converted(converter, tmp_path / name)


def test_a_zip_that_is_called_docx_is_not_read_as_zip(converter: Converter, tmp_path: Path) -> None:
    documents.archive(tmp_path / "a.docx", {"word/vbaProject.bin": b"macro", "a.txt": b"text"})
    with pytest.raises(DocumentRejected, match="DOCX"):
        converted(converter, tmp_path / "a.docx")


def test_a_title_of_word_is_a_heading(converter: Converter, tmp_path: Path) -> None:
    path = documents.docx(tmp_path / "a.docx", "Carrying days over", "Five days.", title="Holiday policy")
    assert converted(converter, path) == "# Holiday policy\n\n# Carrying days over\n\nFive days.\n\n"


def test_macros_are_left_out(converter: Converter, tmp_path: Path) -> None:
    path = documents.docx(tmp_path / "a.docx", "Plan", "What is said.")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("word/vbaProject.bin", b"AutoOpen shell calc.exe")
    assert converted(converter, path) == "# Plan\n\nWhat is said.\n\n"


def test_an_archive_is_read_as_its_files_are(converter: Converter, tmp_path: Path) -> None:
    makers: dict[str, Callable[[Path], object]] = {
        "a.docx": lambda path: documents.docx(path, "Report", "from word"),
        "a.xlsx": lambda path: documents.xlsx(path, [["boat", "length"], ["from excel", "12"]]),
        "a.pptx": lambda path: documents.pptx(path, [("One", "from slides")]),
        "a.pdf": lambda path: documents.pdf(path, ["from paper"]),
        "a.epub": lambda path: documents.epub(path, "Tides", "from a book"),
        "a.ipynb": lambda path: documents.notebook(path, "from a notebook"),
        "a.html": lambda path: path.write_text("<html><body><p>from the web</p></body></html>"),
        "a.xml": lambda path: path.write_text("<?xml version='1.0'?><r><a>from tags</a></r>"),
        "a.json": lambda path: path.write_text('{"from": "a program"}'),
        "a.csv": lambda path: path.write_text("x,y\nfrom cells,2\n"),
        "a.md": lambda path: path.write_text("# A\n\nfrom marks\n"),
    }
    for name, make in makers.items():
        make(tmp_path / name)
    inner = documents.archive(tmp_path / "inner.zip", {"b.txt": b"from inside"})
    files = {path.name: path.read_bytes() for path in sorted(tmp_path.glob("a.*"))}
    text = converted(converter, documents.archive(tmp_path / "all.zip", {**files, "in/b.zip": inner.read_bytes()}))
    for source in (
        "word",
        "excel",
        "slides",
        "paper",
        "a book",
        "a notebook",
        "the web",
        "tags",
        "cells",
        "marks",
        "inside",
    ):
        assert f"from {source}" in text
    assert '{"from": "a program"}' in text and "| from excel | 12 |" in text and "<p>" not in text


@pytest.mark.skipif(os.name == "nt", reason="the program is a script")
def test_pictures_in_an_archive_tell_of_themselves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "bin" / "exiftool"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\n[ "$1" = -ver ] && echo 12.60 || echo \'[{"Title": "The lamp"}]\'\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")
    own = Converter(OPTIONS, 1)
    try:
        text = converted(own, documents.archive(tmp_path / "a.zip", {"a.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 20}))
    finally:
        own.close()
    assert "Title: The lamp" in text


SPEECH = """
import pathlib
class Recognizer:
    def record(self, source): return source
    def recognize_google(self, audio, **options):
        with pathlib.Path(__file__).with_name("sent").open("a") as file:
            file.write("sent ")
        return "what was spoken"
class AudioFile:
    def __init__(self, file): pass
    def __enter__(self): return self
    def __exit__(self, *_): pass
"""
"""In place of SpeechRecognition: it keeps count of what would go to the service. MarkItDown passes a language from
version 0.1.9 on, and leaves a recording out of an archive when its converter raises an error."""


@pytest.mark.parametrize("allowed", [False, True])
def test_recordings_in_an_archive_want_the_same_word(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, allowed: bool
) -> None:
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "speech_recognition.py").write_text(SPEECH)
    (modules / "pydub.py").write_text("")
    monkeypatch.syspath_prepend(str(modules))
    with wave.open(str(tmp_path / "a.wav"), "wb") as recording:
        recording.setparams((1, 2, 8000, 8000, "NONE", ""))
        recording.writeframes(b"\0\1" * 8000)
    sound = (tmp_path / "a.wav").read_bytes()
    inner = documents.archive(tmp_path / "inner.zip", {"deep.wav": sound, "note": sound})
    path = documents.archive(tmp_path / "a.zip", {"a.wav": sound, "in.zip": inner.read_bytes(), "b.txt": b"words"})
    own = Converter(replace(OPTIONS, transcribe_audio=allowed), 1)
    try:
        text = converted(own, path)
    finally:
        own.close()
    assert "words" in text and ("what was spoken" in text) is allowed
    assert (modules / "sent").exists() is allowed


def test_a_zip_bomb_is_refused_before_it_is_unpacked(converter: Converter, tmp_path: Path) -> None:
    documents.archive(tmp_path / "a.zip", {"b.txt": b"0" * 20_000_000})
    with pytest.raises(DocumentTooLarge, match="unpacks from"):
        converted(converter, tmp_path / "a.zip")
    inside = (tmp_path / "a.zip").read_bytes()
    documents.archive(tmp_path / "b.zip", {"words.txt": b"words", "a.zip": inside})
    with pytest.raises(DocumentTooLarge, match="unpacks from"):
        converted(converter, tmp_path / "b.zip")


def test_a_note_says_that_a_mail_in_an_archive_is_not_read(converter: Converter, tmp_path: Path) -> None:
    path = documents.archive(tmp_path / "a.zip", {"a.eml": b"Subject: Tides", "a.exe": b"\0", "a.txt": b"words"})
    mail, text = converter.parts(path, FileKind.of("a.zip"))
    assert (mail.text.strip(), mail.note) == ("# a.zip\n\n## a.eml", "A file in it cannot be read and was left out.")
    assert (text.text.strip(), text.note) == ("## a.txt\n\nwords", "")


def test_archives_inside_archives_are_read_so_far(converter: Converter, tmp_path: Path) -> None:
    inside = b"words"
    for number in range(8):
        path = documents.archive(tmp_path / f"{number}.zip", {f"{number}.zip" if number else "a.txt": inside})
        inside = path.read_bytes()
    assert "words" in converted(converter, tmp_path / "5.zip")
    with pytest.raises(DocumentTooLarge, match="archives inside each other, more than 6"):
        converted(converter, tmp_path / "6.zip")
    documents.archive(tmp_path / "odd.zip", {"a.txt": b"words", "b.zip": b"PK\x03\x04 is no archive"})
    first, odd = converter.parts(tmp_path / "odd.zip", FileKind.of("odd.zip"))
    assert "words" in first.text and "## b.zip" in odd.text
    assert (first.note, odd.note) == ("", "A file in it cannot be read and was left out.")


def test_a_file_that_needs_too_much_memory_is_one_error(tmp_path: Path) -> None:
    pytest.importorskip("resource")
    if sys.platform == "darwin":
        pytest.skip("macOS does not bound memory")
    converter = Converter(replace(OPTIONS, convert_memory_bytes=600_000_000), 1)
    try:
        (tmp_path / "a.json").write_bytes(b"[" + b"1," * 60_000_000 + b"1]")
        with pytest.raises(DocumentTooLarge, match=r"more memory than is allowed \(library.convert_memory_bytes\)"):
            converted(converter, tmp_path / "a.json")
        assert converted(converter, documents.docx(tmp_path / "good.docx", "A", "fine"))
    finally:
        converter.close()


def test_too_many_pages(tmp_path: Path) -> None:
    converter = Converter(replace(OPTIONS, max_pages=2), 1)
    try:
        with pytest.raises(DocumentTooLarge, match="3 pages; the limit is 2"):
            converted(converter, documents.pdf(tmp_path / "a.pdf", ["a", "b", "c"]))
    finally:
        converter.close()


def test_too_much_text(converter: Converter, tmp_path: Path) -> None:
    small = Converter(replace(OPTIONS, max_characters=500), 1)
    try:
        (tmp_path / "a.txt").write_text("x" * 501)
        with pytest.raises(DocumentTooLarge, match="501 characters; the limit is 500"):
            converted(small, tmp_path / "a.txt")
        (tmp_path / "a.csv").write_text("a,b\n" * 300)
        with pytest.raises(DocumentTooLarge, match="more than 500 characters"):
            converted(small, tmp_path / "a.csv")
    finally:
        small.close()


def test_a_conversion_that_takes_too_long_is_ended_and_the_next_file_is_read(tmp_path: Path) -> None:
    converter = Converter(replace(OPTIONS, convert_seconds=1.0), 1)
    try:
        documents.docx(tmp_path / "good.docx", "A", "fine")
        assert converted(converter, tmp_path / "good.docx")  # the time to start is not counted
        (pid,) = process_ids(converter)
        rows = "".join(f"<tr><td>{n}</td><td>x</td></tr>" for n in range(60_000))
        documents.archive(tmp_path / "slow.zip", {"slow.html": f"<table>{rows}</table>".encode()})
        started = time.monotonic()
        with pytest.raises(DocumentTooLarge, match=r"longer than 1 s \(library.convert_seconds\)"):
            converted(converter, tmp_path / "slow.zip")
        assert time.monotonic() - started < 30
        assert pid not in process_ids(converter)
        with pytest.raises(ProcessLookupError):
            os.kill(pid, 0)
    finally:
        converter.close()


def test_a_process_that_dies_is_one_error(converter: Converter, tmp_path: Path) -> None:
    documents.docx(tmp_path / "good.docx", "A", "fine")
    assert converted(converter, tmp_path / "good.docx")
    path = documents.pdf(tmp_path / "a.pdf", [f"page {n}\n" * 40 for n in range(100)])
    with pytest.raises(DocumentRejected, match="broke the converter"):
        for number, _ in enumerate(converter.parts(path, FileKind.of("a.pdf"))):
            if number == 0:
                (process,) = converter._busy
                process.kill()
    assert converted(converter, tmp_path / "good.docx")


def test_nobody_is_left_when_it_is_closed(tmp_path: Path) -> None:
    converter = Converter(OPTIONS, 1)
    path = documents.pdf(tmp_path / "a.pdf", [f"page {n}\n" * 40 for n in range(100)])
    begun = threading.Event()
    failed: list[Exception] = []

    def work() -> None:
        try:
            for _ in converter.parts(path, FileKind.of("a.pdf")):
                begun.set()
        except DocumentRejected as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    (process,) = converter._busy
    converter.close()
    thread.join(10)
    assert failed and process.exit_code is not None
    with pytest.raises(DocumentRejected, match="being closed"):
        converted(converter, documents.docx(tmp_path / "a.docx", "A", "b"))


def test_keys_do_not_reach_the_process(converter: Converter, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not Path("/proc/self/environ").exists():
        pytest.skip("reads /proc")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    fresh = Converter(OPTIONS, 1)
    try:
        with fork_server.cold():
            assert converted(fresh, documents.docx(tmp_path / "a.docx", "A", "b"))
        (pid,) = process_ids(fresh)
        assert b"sk-secret" not in Path(f"/proc/{pid}/environ").read_bytes()
    finally:
        fresh.close()


# --- what is read ------------------------------------------------------------------------------------------------


def test_recordings_want_a_word_and_pictures_a_program(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(UnsupportedFormat, match="ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true"):
        format_of("wav", OPTIONS)
    monkeypatch.setattr("shutil.which", lambda name: None)
    with pytest.raises(UnsupportedFormat, match="install ExifTool"):
        format_of("png", OPTIONS)
    assert "png" not in looked_for(OPTIONS) and "pdf" in looked_for(OPTIONS)
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert "png" in available(OPTIONS) and "png" in looked_for(OPTIONS)


@pytest.mark.parametrize(("ending", "told"), [("exe", r"Files of type \.exe"), ("", "Files without an ending")])
def test_an_unknown_ending_names_the_known(ending: str, told: str) -> None:
    with pytest.raises(UnsupportedFormat, match=rf"{told} are not read\. Known are md, "):
        format_of(ending, OPTIONS)


def test_a_type_that_another_program_can_save_as_a_known_one_says_which() -> None:
    with pytest.raises(UnsupportedFormat, match=r"^Files of type \.rtf are not read\. Save it as \.docx"):
        format_of("rtf", OPTIONS)
    assert advice(["exe", "ods"]) == ("Of the files that were left out, save .ods as .xlsx, and add those.",)
    assert advice(["exe"]) == ()


def test_a_left_out_type_that_a_further_package_reads_says_which() -> None:
    """A picture has only metadata, and a recording would be sent away: neither is worth a sentence for each folder."""
    assert advice(["png", "msg", "wav", "xls"]) == (
        "To read .msg files, run: pip install 'markitdown[outlook]'.",
        "To read .xls files, run: pip install 'markitdown[xls]'.",
    )
