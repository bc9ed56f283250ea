"""The file formats, and what must be installed to read each of them."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass

from anvil.errors import UnsupportedFormat
from anvil.library.settings import LibraryOptions

INSTALL = "pip install 'anvil-docs[library]'"


@dataclass(frozen=True, slots=True)
class Format:
    """A file format.

    ``endings``: without dot. ``modules`` and ``programs`` must be installed in addition to MarkItDown; ``install``:
    how, for people. ``when_empty``: advice for a file without text.
    """

    endings: tuple[str, ...]
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    install: str = INSTALL
    when_empty: str = ""

    def is_installed(self) -> bool:
        """Whether its modules and programs are installed."""
        return all(importlib.util.find_spec(module) for module in ("markitdown", *self.modules)) and all(
            shutil.which(program) for program in self.programs
        )


TEXT = Format(("md", "markdown", "mdx", "txt", "text", "rst", "adoc", "org", "log"))
AUDIO = Format(
    ("wav", "mp3", "m4a"), ("speech_recognition", "pydub"), install="pip install 'markitdown[audio-transcription]'"
)
FORMATS = (
    TEXT,
    Format(("pdf",), ("pdfplumber", "pypdfium2"), when_empty="If it was scanned, let a program for OCR add the text."),
    Format(("docx",), ("mammoth",)),
    Format(("pptx",), ("pptx",)),
    Format(("xlsx",), ("openpyxl", "pandas")),
    Format(("xls",), ("xlrd", "pandas"), install="pip install 'markitdown[xls]'"),
    Format(("msg",), ("olefile",), install="pip install 'markitdown[outlook]'"),
    Format(("html", "htm", "epub", "csv", "json", "jsonl", "xml", "rss", "atom", "ipynb", "zip")),
    Format(
        endings=("jpg", "jpeg", "png"),
        modules=(),
        programs=("exiftool",),
        install="ExifTool (https://exiftool.org)",
        when_empty="It has no such metadata.",
    ),
    AUDIO,
)
"""``TEXT`` needs nothing. Of an image only the metadata is read."""


def available(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that can be read here."""
    return tuple(ending for format_ in FORMATS if _is_available(format_, options) for ending in format_.endings)


def unavailable(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that need something to be installed or allowed first."""
    return tuple(ending for format_ in FORMATS if not _is_available(format_, options) for ending in format_.endings)


def looked_for(options: LibraryOptions) -> frozenset[str]:
    """The endings that a folder import looks for: those of documents, even if they cannot be read here; those of images
    and recordings only if they can."""
    return frozenset(
        ending
        for format_ in FORMATS
        if format_.install == INSTALL or _is_available(format_, options)
        for ending in format_.endings
    )


def format_of(file_type: str, options: LibraryOptions) -> Format:
    """The format of an ending. Raises :class:`UnsupportedFormat`, with advice."""
    format_ = next((candidate for candidate in FORMATS if file_type in candidate.endings), None)
    if format_ is None:
        name = f"Files of type .{file_type[:20]}" if file_type else "Files without an ending"
        raise UnsupportedFormat(f"{name} are not read. Known are {', '.join(available(options))}.")
    if format_ is AUDIO and not options.transcribe_audio:
        raise UnsupportedFormat(
            "Recordings are not read: MarkItDown would send them to a speech service. "
            "Set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true to allow that."
        )
    if not _is_available(format_, options):
        install = f"run: {format_.install}" if format_.install.startswith("pip ") else f"install {format_.install}"
        raise UnsupportedFormat(f"To read .{file_type} files, {install}.")
    return format_


def _is_available(format_: Format, options: LibraryOptions) -> bool:
    return format_ is TEXT or (format_.is_installed() and (format_ is not AUDIO or options.transcribe_audio))
