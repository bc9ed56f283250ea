"""File formats of a library: endings, content types, required packages and readers, which give Markdown; encodings.

To add a format, add an entry to :data:`FORMATS`. Files are not trusted. Text needs no converter and is read in this
process; all other files in a child process with limits (:mod:`anvil.library.conversion_process`).
"""

from __future__ import annotations

import importlib.util
import io
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import BinaryIO, Literal, NamedTuple

from anvil.errors import DocumentRejected, DocumentTooLarge, UnsupportedFormat
from anvil.formats import characters
from anvil.library.document_chunker import MAX_PART_CHARACTERS, slices
from anvil.library.settings import LibraryOptions

MAX_UNPACKED_BYTES = 500_000_000
"""Size of all parts of a zipped file (DOCX, XLSX, PPTX, EPUB, ZIP) by its directory, and of a converter's file."""
MAX_COMPRESSION_RATIO = 200
"""Unpacked size divided by packed size, of a zipped file that unpacks to more than ``MIN_RATIO_BYTES``."""
MIN_RATIO_BYTES = 10_000_000
MAX_DEPTH = 6
"""Archives inside each other that are read."""
INSTALL = "pip install 'anvil-docs[library]'"


class FileKind(NamedTuple):
    """What a reader must know of a file. ``type``: its ending, without dot, in lower case. ``name``: its file name."""

    type: str
    name: str

    @classmethod
    def of(cls, source: str) -> FileKind:
        """The kind of the file that a path, a URL or a name names."""
        return cls(type_of(source), file_name(source))


class OpenFile(NamedTuple):
    """A file to read. ``depth``: the number of archives around it."""

    file: BinaryIO
    kind: FileKind
    options: LibraryOptions
    depth: int = 0


class Piece(NamedTuple):
    """A piece of a file as Markdown. ``page``: from 1; 0 if it has no pages. ``note``: a warning for people."""

    text: str
    page: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. A field with several values separates them by spaces."""

    endings: str
    """Without the dot."""
    read: Callable[[OpenFile], Iterator[Piece]]
    content: Literal["text", "zip", "other"]
    """``text`` is decoded here, because MarkItDown guesses encodings by letter frequencies; ``zip`` is examined before
    it is unpacked."""
    content_types: str = ""
    """Of downloads, which get the first ending."""
    modules: str = ""
    """Modules that must be installed."""
    converters: str = ""
    """MarkItDown's converters, in the order to try. Its own choice would read a damaged DOCX as a ZIP."""
    program: str = ""
    """A program that must be installed."""
    install: str = INSTALL
    """How to install the modules or the program."""
    when_empty: str = ""
    """Advice for a file without text."""

    @property
    def is_text(self) -> bool:
        """Whether it is Markdown or text already."""
        return self.read is _text

    def is_available(self, options: LibraryOptions) -> bool:
        """Whether its modules and its program are installed, and it is allowed."""
        return (
            all(map(importlib.util.find_spec, [*self.modules.split(), *(["markitdown"] if self.converters else [])]))
            and (not self.program or shutil.which(self.program) is not None)
            and (self.converters != AUDIO or options.transcribe_audio)
        )


# --- formats to Markdown ---------------------------------------------------------------------------------------

_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.M)
_BLANK_LINES = re.compile(r"\n{3,}")
_LIGATURE = re.compile("[\ufb00-\ufb06]")
_TILDES = re.compile("~{4,}")


def pieces(source: OpenFile) -> Iterator[Piece]:
    """The text of a file, in order. Raises :class:`DocumentRejected`, or a converter's error for a damaged file."""
    format_ = BY_ENDING[source.kind.type]
    if format_.content == "zip":  # by its directory, before a converter unpacks anything
        _check_zip(source.file, source.kind.type)
    yield from format_.read(source)


def _check_zip(file: BinaryIO, file_type: str) -> None:
    """Raise :class:`DocumentRejected` if a file is encrypted or unpacks to too much."""
    if file.read(len(_COMPOUND)) == _COMPOUND:  # Office writes such a file with a password, old versions always
        raise DocumentRejected(
            f"It is encrypted, or of an older Office. Save it without a password, as .{file_type}, and add it again."
        )
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    if any(entry.flag_bits & 1 for entry in entries):  # bit 0 of a ZIP entry: encrypted
        raise DocumentRejected("It is encrypted. Save it without a password.")
    packed, unpacked = sum(entry.compress_size for entry in entries), sum(entry.file_size for entry in entries)
    bomb = unpacked > MIN_RATIO_BYTES and unpacked > MAX_COMPRESSION_RATIO * packed
    if bomb or unpacked > MAX_UNPACKED_BYTES:
        raise DocumentTooLarge(f"It unpacks from {packed:,} to {unpacked:,} bytes, which is refused.")
    file.seek(0)


def _text(source: OpenFile) -> Iterator[Piece]:
    text, note = decoded(source.file.read())
    yield Piece(text, note=note)


def _code(source: OpenFile) -> Iterator[Piece]:
    """The file as blocks of code. Read as Markdown, its comments would be headings, and a first YAML document would be
    front matter, which no search finds."""
    text, note = decoded(source.file.read())
    fence = max(["~~~", *_TILDES.findall(text)], key=len) + "~"  # no line of the file ends the block
    for part in slices(text, MAX_PART_CHARACTERS - 2 * len(fence) - 100):  # room for the fences: no block is split
        yield Piece(f"{fence}{source.kind.type}\n{part}\n{fence}", note=note)


def _by_markitdown(source: OpenFile) -> Iterator[Piece]:
    from markitdown import StreamInfo, converters

    file, format_ = source.file, BY_ENDING[source.kind.type]
    charset, note = None, ""
    if format_.content == "text":
        text, note = decoded(file.read())
        file, charset = io.BytesIO(text.encode("utf-8", "replace")), "utf-8"
    mime_type = (
        "text/xml" if source.kind.type == "xml" else None
    )  # the one that MarkItDown guesses depends on the system
    ending = format_.endings.split()[0]  # MarkItDown does not know the others
    info = StreamInfo(extension=f".{ending}", filename=source.kind.name, mimetype=mime_type, charset=charset)
    for name in format_.converters.split():
        converter = getattr(converters, name)()
        if converter.accepts(file, info):
            # with "\\_" in it, a search for an identifier would not find it
            result = converter.convert(file, info, exiftool_path=shutil.which("exiftool"), escape_underscores=False)
            yield Piece(_with_title(_tidy(result.markdown), result.title), note=note)
            return
    raise ValueError("its content is not of this format")


def _word(source: OpenFile) -> Iterator[Piece]:
    """A Word document by way of mammoth's HTML. MarkItDown's Markdown of that splits identifiers, such as
    ``max\\_size``, and it fails if the document links to a picture."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx  # formulas

    from anvil.sites.html_to_markdown import to_markdown
    from anvil.sites.page_content import whole_content

    html = mammoth.convert_to_html(
        pre_process_docx(source.file),
        style_map="p[style-name='Title'] => h1:fresh",  # mammoth itself does not take it for a heading
        convert_image=mammoth.images.img_element(lambda image: {}),
    ).value
    for box, mark in (('<input checked="checked" type="checkbox" />', "[x]"), ('<input type="checkbox" />', "[ ]")):
        html = html.replace(box, mark)
    yield Piece(to_markdown(whole_content(html)).markdown)


def _web_page(source: OpenFile) -> Iterator[Piece]:
    """The Markdown of a web page; empty if scripts make its text."""
    from anvil.sites.html_page import read_page

    html, note = decoded(source.file.read())
    markdown, _, facts = read_page(html)
    yield Piece(_with_title(markdown, facts.title) if markdown.strip() and not facts.shell else "", note=note)


def _with_title(text: str, title: str | None) -> str:
    """The text with its title as a heading, unless it has a heading of the first level."""
    title = " ".join((title or "").split())
    return f"# {title}\n\n{text}" if title and not re.search(r"^# ", text, re.M) else text


def _sheets(source: OpenFile) -> Iterator[Piece]:
    """Each sheet as a table, without empty rows. MarkItDown fills empty cells with NaN, and then writes 12.0 for 12."""
    import openpyxl

    for sheet in openpyxl.load_workbook(source.file, read_only=True, data_only=True, keep_links=False).worksheets:
        sheet.reset_dimensions()  # the size that programs write into the file is often wrong
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        filled = [row for row in rows if any(row)]
        width = max((at + 1 for row in filled for at, cell in enumerate(row) if cell), default=0)
        lines = [f"| {' | '.join([*row, *[''] * width][:width])} |" for row in filled]
        if lines:
            yield Piece("\n".join([f"## {sheet.title}", lines[0], f"|{' --- |' * width}", *lines[1:]]))


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
    return text.removesuffix(" 00:00:00")  # of a date


def _slides(source: OpenFile) -> Iterator[Piece]:
    from pptx.shapes.autoshape import Shape

    # The property raises for shapes that python-pptx does not know. MarkItDown needs it for other shapes only.
    Shape.shape_type = None  # type: ignore[method-assign, assignment]
    for text, *_ in _by_markitdown(source):
        before, *slides = _SLIDE.split(text)  # without the mark of each slide, which would be a passage of its own
        yield Piece(before)
        yield from (Piece(slide, int(number)) for number, slide in zip(slides[::2], slides[1::2], strict=True))


def _pdf_pages(source: OpenFile) -> Iterator[Piece]:
    from anvil.library.pdf_pages import pdf_pages

    for number, text in pdf_pages(source.file, source.options.max_pages, source.kind.name):
        yield Piece(_tidy(text), number)


def _tidy(text: str) -> str:
    """The text without spaces at the ends of lines and without two empty lines in a row, as MarkItDown's own results
    are. Ligatures become letters, because no query has ligatures."""
    text = _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    lines = (line.rstrip() for line in text.replace("\f", "").replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


UNREAD = "A file in it cannot be read and was left out."


def _archive(source: OpenFile) -> Iterator[Piece]:
    """The files in an archive that can be read, each under a heading.

    A note says that other documents in it, such as mails, were left out. Pictures and programs have no note.
    """
    if source.depth == MAX_DEPTH:
        raise DocumentTooLarge(f"It has archives inside each other, more than {MAX_DEPTH}.")
    lead = f"# {source.kind.name}\n\n"
    with zipfile.ZipFile(source.file) as archive:
        for name in archive.namelist():
            kind, heading = FileKind.of(name), f"{lead}## {' '.join(name.split())}\n\n"
            is_read = kind.type in BY_ENDING and BY_ENDING[kind.type].is_available(source.options)
            if not (is_read or kind.type in _SAVE_AS) or re.search(r"(^|/)(\.|__MACOSX/)", name):
                continue
            try:
                inner = OpenFile(io.BytesIO(archive.read(name)), kind, source.options, source.depth + 1)
                for piece in filter(lambda piece: piece.text.strip(), pieces(inner)):
                    yield Piece(f"{heading}{piece.text}\n\n", note=piece.note)
                    heading = lead = ""
            except (MemoryError, DocumentTooLarge):
                raise
            except Exception:  # this file is damaged, encrypted or of another type; the others are read
                yield Piece(heading or "\n\n", note=UNREAD)
                lead = ""


# --- the table ---------------------------------------------------------------------------------------------------

AUDIO = "AudioConverter"
"""This converter sends recordings to a speech service. No other one uses the network."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_SCANNED = "If it was scanned, let a program for OCR add the text."
_SCRIPTS = "If scripts make its text, save the page from a browser, and add that file."
_STRICT = "If it is a strict Open XML workbook, save it as a usual one."
_IMAGE = {"program": "exiftool", "install": "ExifTool (https://exiftool.org)", "when_empty": "It has no such metadata."}
_SPEECH = {"modules": "speech_recognition pydub", "install": "pip install 'markitdown[audio-transcription]'"}
FORMATS = (
    Format("md markdown mdx", _text, "text", "text/markdown"),
    Format("txt text rst adoc asciidoc org log tex tsv vtt srt", _text, "text", "text/plain"),
    Format("yaml yml toml", _code, "text", "application/yaml application/toml"),
    Format("pdf", _pdf_pages, "other", "application/pdf", "markitdown pdfplumber pypdfium2", when_empty=_SCANNED),
    Format("docx docm", _word, "zip", f"{_OFFICE}.wordprocessingml.document", "mammoth markitdown"),
    Format("pptx pptm", _slides, "zip", f"{_OFFICE}.presentationml.presentation", "pptx", "PptxConverter"),
    Format("xlsx xlsm", _sheets, "zip", f"{_OFFICE}.spreadsheetml.sheet", "openpyxl", when_empty=_STRICT),
    Format("xls", _by_markitdown, "other", "", "xlrd pandas", "XlsConverter", install="pip install 'markitdown[xls]'"),
    Format(
        "msg",
        _by_markitdown,
        "other",
        "",
        "olefile",
        "OutlookMsgConverter",
        install="pip install 'markitdown[outlook]'",
    ),
    Format("html htm", _web_page, "text", "text/html application/xhtml+xml", when_empty=_SCRIPTS),
    Format("epub", _by_markitdown, "zip", "application/epub+zip", "", "EpubConverter"),
    Format("csv", _by_markitdown, "text", "text/csv", "", "CsvConverter"),
    Format("json jsonl ndjson", _by_markitdown, "text", "application/json", "", "PlainTextConverter"),
    Format("xml", _by_markitdown, "text", "application/xml text/xml", "", "RssConverter PlainTextConverter"),
    Format("rss", _by_markitdown, "text", "application/rss+xml", "", "RssConverter"),
    Format("atom", _by_markitdown, "text", "application/atom+xml", "", "RssConverter"),
    Format("ipynb", _by_markitdown, "text", "", "", "IpynbConverter"),
    Format("zip", _archive, "zip", "application/zip"),
    Format("jpg jpeg", _by_markitdown, "other", "image/jpeg", converters="ImageConverter", **_IMAGE),
    Format("png", _by_markitdown, "other", "image/png", converters="ImageConverter", **_IMAGE),
    Format("wav", _by_markitdown, "other", "audio/wav", converters=AUDIO, **_SPEECH),
    Format("mp3", _by_markitdown, "other", "audio/mpeg", converters=AUDIO, **_SPEECH),
    Format("m4a", _by_markitdown, "other", "", converters=AUDIO, **_SPEECH),
)
"""All formats. Of an image only the metadata is read."""
_SAVE_AS = {
    **dict.fromkeys(("doc", "rtf", "odt", "pages"), "docx"),
    **dict.fromkeys(("ppt", "odp", "key"), "pptx"),
    **dict.fromkeys(("ods", "numbers"), "xlsx"),
    **dict.fromkeys(("eml", "mhtml", "mht"), "html"),
}
"""Type that is not read -> type in which its program can save the file."""
BY_ENDING = {ending: format_ for format_ in FORMATS for ending in format_.endings.split()}
BY_CONTENT_TYPE = {kind: format_.endings.split()[0] for format_ in FORMATS for kind in format_.content_types.split()}


def available(options: LibraryOptions) -> tuple[str, ...]:
    """The endings of files that can be read here."""
    return tuple(ending for ending, format_ in BY_ENDING.items() if format_.is_available(options))


def looked_for(options: LibraryOptions) -> frozenset[str]:
    """The endings of files that are ingested from a folder.

    Documents are included even if they cannot be read here, so that each has an error; images and recordings only if
    they can be read.
    """
    of_documents = (ending for ending, format_ in BY_ENDING.items() if format_.install == INSTALL)
    return frozenset([*of_documents, *available(options)])


def advice(endings: Collection[str]) -> tuple[str, ...]:
    """Advice for files of these endings, which were left out: save them in another format, or install a package."""
    other_types = [f".{ending} as .{_SAVE_AS[ending]}" for ending in endings if ending in _SAVE_AS]
    save = [f"Of the files that were left out, save {', '.join(other_types)}, and add those."] if other_types else []
    formats = [(ending, BY_ENDING[ending]) for ending in endings if ending in BY_ENDING]
    packages = [each for each in formats if each[1].install.startswith("pip ") and each[1].converters != AUDIO]
    return (*save, *(_to_read(ending, format_) for ending, format_ in packages))


def _to_read(ending: str, format_: Format) -> str:
    install = f"run: {format_.install}" if format_.install.startswith("pip ") else f"install {format_.install}"
    return f"To read .{ending} files, {install}."


def format_of(file_type: str, options: LibraryOptions) -> Format:
    """The format of an ending. Raises :class:`UnsupportedFormat`, with advice."""
    format_ = BY_ENDING.get(file_type)
    if format_ is None and file_type in _SAVE_AS:
        raise UnsupportedFormat(
            f"Files of type .{file_type} are not read. Save it as .{_SAVE_AS[file_type]}, and add that."
        )
    if format_ is None:
        name = f"Files of type .{file_type[:20]}" if file_type else "Files without an ending"
        raise UnsupportedFormat(f"{name} are not read. Known are {', '.join(available(options))}.")
    if format_.converters == AUDIO and not options.transcribe_audio:
        raise UnsupportedFormat(
            "Recordings are not read: MarkItDown would send them to a speech service. "
            "Set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true to allow that."
        )
    if not format_.is_available(options):
        raise UnsupportedFormat(_to_read(file_type, format_))
    return format_


# --- names of files ---------------------------------------------------------------------------------------------


def file_name(source: str) -> str:
    """The last part of a path or URL, with slashes or backslashes."""
    path = source.split("?")[0].split("#")[0].rstrip("/\\") if "://" in source else source
    return path.replace("\\", "/").rpartition("/")[2]


def title_of(source: str) -> str:
    """The title of a document without one of its own: the name of its file without ending, or of its host."""
    name = file_name(source)
    stem, dot, _ = name.rpartition(".")
    host_only = "://" in source and source.rstrip("/").endswith(f"://{name}")
    return stem if dot and stem and not host_only else name


def type_of(name: str) -> str:
    """The ending of a name, without dot, in lower case; empty if it has none."""
    stem, dot, ending = file_name(name).rpartition(".")
    return ending.lower() if dot and stem else ""


# --- bytes to text ---------------------------------------------------------------------------------------------

_GUESSABLE_ENCODINGS = [
    "cp1252",
    *("cp932", "euc_jp", "gb18030", "big5hkscs", "cp949"),
    *("cp1251", "koi8_r", "cp866", "cp1253", "cp1255", "cp1256", "cp874"),
]
"""Encodings that are guessed for a text that names none. Of the encodings of Latin letters this has only the most
frequent one, because they look alike."""
_NON_LATIN = re.compile(rb"[\x80-\xff]{4}")
"""Four bytes in a row that are not ASCII. Words in Latin letters do not have them."""
_SAMPLE_BYTES = 64_000


def decoded(data: bytes) -> tuple[str, str]:
    """The text of a file, and a note if its encoding is a guess. Raises :class:`DocumentRejected` if it is not text."""
    notes = []

    def guess(data: bytes) -> str:
        codec = _guessed_encoding(data)
        read_as = codec.replace("cp", "code page ")
        notes.append(
            f"It is not UTF-8 and names no encoding, so it was read as {read_as}. If characters are wrong, save it as "
            "UTF-8 and add it again."
        )
        return codec

    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and (at := data.find(b"\0")) >= 0:
        raise DocumentRejected(f"It is not text: there is a NUL byte at offset {at:,}.")
    return characters.decoded(data, guess), "".join(notes)


def _guessed_encoding(data: bytes) -> str:
    """The likely encoding: Windows-1252, unless a word is not in Latin letters. Then the lines from it on decide."""
    word = _NON_LATIN.search(data)
    if word is None:
        return "cp1252"
    start = data.rfind(b"\n", 0, word.start()) + 1
    sample = data[start : start + _SAMPLE_BYTES]
    sample = sample[: sample.rfind(b"\n") + 1] or sample  # whole lines: the last character must not be cut
    try:
        import charset_normalizer
    except ImportError:  # it comes with the extra "library"
        return "cp1252"
    best = charset_normalizer.from_bytes(sample, cp_isolation=_GUESSABLE_ENCODINGS, threshold=0.8).best()
    return best.encoding if best is not None else "cp1252"
