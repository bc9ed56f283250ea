"""Formats to Markdown: PDF page by page, PowerPoint slide by slide, all others as MarkItDown converts them."""

from __future__ import annotations

import io
import re
import shutil
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, BinaryIO

from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.library.text_encoding import decoded

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.M)
_BLANK_LINES = re.compile(r"\n{3,}")
_TEXT_TYPES = ("html", "htm", "csv", "json", "jsonl", "xml", "rss", "atom", "ipynb")
"""Text: decoded here, because MarkItDown guesses encodings by letter frequencies."""


def pieces(file: BinaryIO, request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(text, page) of a file, in order. Raises :class:`DocumentRejected`, or any error of a converter for a damaged
    file."""
    return _READERS.get(request["type"], _by_markitdown)(file, request)


def _by_markitdown(file: BinaryIO, request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    from markitdown import StreamInfo

    ending, charset = request["type"], None
    if ending in _TEXT_TYPES:
        file, charset = io.BytesIO(decoded(file.read()).encode("utf-8", "replace")), "utf-8"
    kind = "text/xml" if ending == "xml" else None  # systems do not agree on it
    info = StreamInfo(extension=f".{ending}", filename=request["name"], mimetype=kind, charset=charset)
    result = _result(file, info, request)
    title = (result.title or "").strip()
    text = _tidy(result.markdown)
    if title and not re.search(r"^# ", text, re.M):
        text = f"# {' '.join(title.split())}\n\n{text}"
    yield text, 0


def _slides(file: BinaryIO, request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for text, _ in _by_markitdown(file, request):
        slides = [(mark.start(), int(mark[1])) for mark in _SLIDE.finditer(text)] or [(0, 0)]
        ends = [*(start for start, _ in slides[1:]), len(text)]
        yield from ((text[start:end], number) for (start, number), end in zip(slides, ends, strict=True))


def _pdf_pages(file: BinaryIO, request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each page, converted as a document of its own. So it keeps its number, MarkItDown decides for each page whether
    it is a form or prose, and only one page is in memory."""
    import pypdfium2
    from markitdown import StreamInfo
    from markitdown.converters import PdfConverter

    try:
        document = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise DocumentRejected("It is encrypted. Save it without a password.") from None
        raise
    if len(document) > request["pages"]:
        raise DocumentTooLarge(
            f"It has {len(document):,} pages; the limit is {request['pages']:,} (library.max_pages). Split it."
        )
    converter, info = PdfConverter(), StreamInfo(extension=".pdf")
    for number in range(len(document)):
        page, single = io.BytesIO(), pypdfium2.PdfDocument.new()
        single.import_pages(document, [number])
        single.save(page)
        single.close()
        page.seek(0)
        yield _tidy(converter.convert(page, info).markdown), number + 1
    document.close()


def _tidy(text: str) -> str:
    """As MarkItDown's own results: no spaces at the ends of lines, no two empty lines in a row."""
    lines = (line.rstrip() for line in text.replace("\f", "").replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


_READERS: dict[str, Callable[[BinaryIO, dict[str, Any]], Iterator[tuple[str, int]]]] = {
    "pdf": _pdf_pages,
    "pptx": _slides,
}
_CONVERTERS = {
    "docx": "DocxConverter",
    "pptx": "PptxConverter",
    "xlsx": "XlsxConverter",
    "xls": "XlsConverter",
    "epub": "EpubConverter",
    "ipynb": "IpynbConverter",
    "msg": "OutlookMsgConverter",
    "csv": "CsvConverter",
    "html": "HtmlConverter",
    "htm": "HtmlConverter",
    "json": "PlainTextConverter",
    "jsonl": "PlainTextConverter",
    "jpg": "ImageConverter",
    "jpeg": "ImageConverter",
    "png": "ImageConverter",
    "wav": "AudioConverter",
    "mp3": "AudioConverter",
    "m4a": "AudioConverter",
    "rss": "RssConverter",
    "atom": "RssConverter",
    "xml": "RssConverter PlainTextConverter",
}
"""MarkItDown's converters for a type, in the order to try. Its own choice would read a damaged DOCX as a ZIP."""

_AUDIO = "AudioConverter"
"""Sends recordings to a speech service; no other converter uses the network."""
_GENERIC = ("PlainTextConverter", "ZipConverter", "HtmlConverter")
"""Converters that take what no other takes. The last one is tried first."""


def _result(file: BinaryIO, info: Any, request: dict[str, Any]) -> Any:
    """The result of the first converter that accepts a file."""
    from markitdown import UnsupportedFormatException, converters

    if request["type"] == "zip":
        return _archives(request["recordings"]).convert_stream(file, stream_info=info)
    for name in _CONVERTERS[request["type"]].split():
        converter = getattr(converters, name)()
        if converter.accepts(file, info):
            return converter.convert(file, info, exiftool_path=shutil.which("exiftool"))
    raise UnsupportedFormatException("nothing like it is in it")


@lru_cache(maxsize=1)
def _archives(recordings: bool) -> Any:
    """MarkItDown for archives: it detects the type of each file in them. It has no plugins, and the same converters as
    files outside of archives; the one of ``recordings`` only where they may be sent to a service."""
    from markitdown import PRIORITY_GENERIC_FILE_FORMAT, MarkItDown, converters

    reader = MarkItDown(enable_builtins=False, enable_plugins=False)
    for name in _GENERIC:
        converter = getattr(converters, name)(**({"markitdown": reader} if name == "ZipConverter" else {}))
        reader.register_converter(converter, priority=PRIORITY_GENERIC_FILE_FORMAT)
    special = {"PdfConverter", *" ".join(_CONVERTERS.values()).split()}.difference(_GENERIC)
    for name in sorted(special if recordings else special - {_AUDIO}):
        converter = getattr(converters, name)()
        # MarkItDown 0.1.5 does not pass the path to its converters.
        converter.convert = partial(converter.convert, exiftool_path=shutil.which("exiftool"))
        reader.register_converter(converter)
    return reader
