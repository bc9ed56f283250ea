"""The file formats that a library reads: what converts each of them, what that needs, and what web servers call it.

To add a format, add an entry to :data:`FORMATS`.
"""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass
from typing import Literal

from anvil.errors import UnsupportedFormat
from anvil.library.settings import LibraryOptions

INSTALL = "pip install 'anvil-docs[library]'"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. Of its texts those with several words have blanks between them.

    ``endings``: without dot. ``converters``: those of MarkItDown, in the order to try, because its own choice would
    read a damaged DOCX as a ZIP; none for text that is read as it is. ``content``: ``text`` is decoded here, because
    MarkItDown guesses encodings by letter frequencies; ``zip`` is examined before it is unpacked. ``content_types``: of
    downloads, which get the first ending. ``modules`` and ``program`` must be installed in addition to MarkItDown;
    ``install``: how, for people. ``when_empty``: advice for a file without text.
    """

    endings: str
    converters: str
    content: Literal["text", "zip", "other"]
    content_types: str = ""
    modules: str = ""
    program: str = ""
    install: str = INSTALL
    when_empty: str = ""

    def is_available(self, options: LibraryOptions) -> bool:
        """Whether what it needs is installed and allowed."""
        return self.converters in ("", WEB_PAGE) or (
            all(map(importlib.util.find_spec, ["markitdown", *self.modules.split()]))
            and (not self.program or shutil.which(self.program) is not None)
            and (self.converters != AUDIO or options.transcribe_audio)
        )


WEB_PAGE = "HtmlConverter"
"""Converts pages in archives; a page that is a file needs no MarkItDown."""
AUDIO = "AudioConverter"
"""Sends recordings to a speech service; no other converter uses the network."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_SCANNED = "If it was scanned, let a program for OCR add the text."
_SCRIPTS = "If scripts make its text, save the page from a browser, and add that file."
_IMAGE = {"program": "exiftool", "install": "ExifTool (https://exiftool.org)", "when_empty": "It has no such metadata."}
_SPEECH = {"modules": "speech_recognition pydub", "install": "pip install 'markitdown[audio-transcription]'"}
FORMATS = (
    Format("md markdown mdx", "", "text", "text/markdown"),
    Format("txt text rst adoc org log", "", "text", "text/plain"),
    Format("pdf", "PdfConverter", "other", "application/pdf", "pdfplumber pypdfium2", when_empty=_SCANNED),
    Format("docx", "DocxConverter", "zip", f"{_OFFICE}.wordprocessingml.document", "mammoth"),
    Format("pptx", "PptxConverter", "zip", f"{_OFFICE}.presentationml.presentation", "pptx"),
    Format("xlsx", "XlsxConverter", "zip", f"{_OFFICE}.spreadsheetml.sheet", "openpyxl"),
    Format("xls", "XlsConverter", "other", "", "xlrd pandas", install="pip install 'markitdown[xls]'"),
    Format("msg", "OutlookMsgConverter", "other", "", "olefile", install="pip install 'markitdown[outlook]'"),
    Format("html htm", WEB_PAGE, "text", "text/html application/xhtml+xml", when_empty=_SCRIPTS),
    Format("epub", "EpubConverter", "zip", "application/epub+zip"),
    Format("csv", "CsvConverter", "text", "text/csv"),
    Format("json jsonl", "PlainTextConverter", "text", "application/json"),
    Format("xml", "RssConverter PlainTextConverter", "text", "application/xml text/xml"),
    Format("rss", "RssConverter", "text", "application/rss+xml"),
    Format("atom", "RssConverter", "text", "application/atom+xml"),
    Format("ipynb", "IpynbConverter", "text"),
    Format("zip", "ZipConverter", "zip", "application/zip"),
    Format("jpg jpeg", "ImageConverter", "other", "image/jpeg", **_IMAGE),
    Format("png", "ImageConverter", "other", "image/png", **_IMAGE),
    Format("wav", AUDIO, "other", "audio/wav", **_SPEECH),
    Format("mp3", AUDIO, "other", "audio/mpeg", **_SPEECH),
    Format("m4a", AUDIO, "other", **_SPEECH),
)
"""Of an image only the metadata is read."""
BY_ENDING = {ending: format_ for format_ in FORMATS for ending in format_.endings.split()}
BY_CONTENT_TYPE = {kind: format_.endings.split()[0] for format_ in FORMATS for kind in format_.content_types.split()}


def available(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that can be read here."""
    return tuple(ending for ending, format_ in BY_ENDING.items() if format_.is_available(options))


def unavailable(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that need something to be installed or allowed first."""
    return tuple(ending for ending, format_ in BY_ENDING.items() if not format_.is_available(options))


def looked_for(options: LibraryOptions) -> frozenset[str]:
    """The endings that a folder import looks for: those of documents, even if they cannot be read here; those of images
    and recordings only if they can."""
    of_documents = (ending for ending, format_ in BY_ENDING.items() if format_.install == INSTALL)
    return frozenset([*of_documents, *available(options)])


def format_of(file_type: str, options: LibraryOptions) -> Format:
    """The format of an ending. Raises :class:`UnsupportedFormat`, with advice."""
    format_ = BY_ENDING.get(file_type)
    if format_ is None:
        name = f"Files of type .{file_type[:20]}" if file_type else "Files without an ending"
        raise UnsupportedFormat(f"{name} are not read. Known are {', '.join(available(options))}.")
    if format_.converters == AUDIO and not options.transcribe_audio:
        raise UnsupportedFormat(
            "Recordings are not read: MarkItDown would send them to a speech service. "
            "Set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true to allow that."
        )
    if not format_.is_available(options):
        install = f"run: {format_.install}" if format_.install.startswith("pip ") else f"install {format_.install}"
        raise UnsupportedFormat(f"To read .{file_type} files, {install}.")
    return format_
