"""Which formats are read, and what each needs to be installed."""

from __future__ import annotations

import importlib.util
import shutil
from dataclasses import dataclass

from anvil.config import LibraryOptions
from anvil.errors import UnsupportedFormat

INSTALL = "pip install 'anvil-docs[library]'"


@dataclass(frozen=True, slots=True)
class Format:
    """A way to read files.

    ``endings``: without dot. ``modules`` and ``programs``: what must be installed besides MarkItDown; ``install`` is
    how, for people. ``when_empty``: what to do about a file without text.
    """

    endings: tuple[str, ...]
    modules: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    install: str = INSTALL
    when_empty: str = ""

    def lacks(self) -> bool:
        """Whether something it needs is not installed."""
        return any(importlib.util.find_spec(each) is None for each in ("markitdown", *self.modules)) or any(
            shutil.which(each) is None for each in self.programs
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
    Format(("jpg", "jpeg", "png"), (), ("exiftool",), "ExifTool (https://exiftool.org)", "It has no such metadata."),
    AUDIO,
)
"""``text`` needs nothing. Of images, what is read is their metadata."""


def available(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that can be read here."""
    return tuple(ending for each in FORMATS if not _missing(each, options) for ending in each.endings)


def unavailable(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that could be read if something were installed or allowed."""
    return tuple(ending for each in FORMATS if _missing(each, options) for ending in each.endings)


def looked_for(options: LibraryOptions) -> frozenset[str]:
    """The endings that a folder is searched for: of documents, whether they can be read or not; of pictures and
    recordings, where they can."""
    return frozenset(
        ending for each in FORMATS if each.install == INSTALL or not _missing(each, options) for ending in each.endings
    )


def format_of(file_type: str, options: LibraryOptions) -> Format:
    """The format of an ending. Raises :class:`UnsupportedFormat`, with what would help."""
    found = next((each for each in FORMATS if file_type in each.endings), None)
    if found is None:
        name = f"Files of type .{file_type[:20]}" if file_type else "Files without an ending"
        raise UnsupportedFormat(f"{name} are not read. Known are {', '.join(available(options))}.")
    if found is AUDIO and not options.transcribe_audio:
        raise UnsupportedFormat(
            "Recordings are not read: MarkItDown would send them to a speech service. "
            "Set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true to allow that."
        )
    if _missing(found, options):
        raise UnsupportedFormat(f"To read .{file_type} files, install {found.install.removeprefix('install ')}.")
    return found


def _missing(each: Format, options: LibraryOptions) -> bool:
    return each is not TEXT and (each.lacks() or (each is AUDIO and not options.transcribe_audio))
