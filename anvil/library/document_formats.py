"""The file formats that a library reads: what each needs, what web servers call it, and how it becomes Markdown.

To add a format, add an entry to :data:`FORMATS`. Files are not trusted: but for text, which needs no library, a child
process with limits reads them (:mod:`anvil.library.converter`).
"""

from __future__ import annotations

import importlib.util
import io
import re
import shutil
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from html import escape
from typing import TYPE_CHECKING, BinaryIO, Literal, NamedTuple

from anvil.errors import DocumentRejected, DocumentTooLarge, UnsupportedFormat
from anvil.formats import characters
from anvil.library.document_chunker import MAX_PART_CHARACTERS, sliced
from anvil.library.settings import LibraryOptions

if TYPE_CHECKING:
    from email.message import MIMEPart
    from xml.etree.ElementTree import Element

MAX_UNPACKED_BYTES = 500_000_000
"""Size of all parts of a zipped file (DOCX, XLSX, PPTX, EPUB, ZIP) by its directory; also of a file that is written."""
MAX_COMPRESSION_RATIO = 200
"""Unpacked size by packed size of a zipped file that unpacks to more than ``MIN_RATIO_BYTES``."""
MIN_RATIO_BYTES = 10_000_000
MAX_DEPTH = 6
"""Archives and mails inside each other."""
MAX_COLUMNS = 1000
"""Cells of a row of an OpenDocument sheet, where one may stand for any number."""
INSTALL = "pip install 'anvil-docs[library]'"


class OpenFile(NamedTuple):
    """A file to be read. ``type``: its ending. ``depth``: how many archives and mails it is in."""

    file: BinaryIO
    type: str
    name: str
    options: LibraryOptions
    depth: int = 0


class Piece(NamedTuple):
    """Markdown of a file, its page (0: none), and a note for people."""

    text: str
    page: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Format:
    """A file format. Of its texts those with several words have blanks between them.

    ``endings``: without dot. ``read``: its reader. ``content``: ``text`` is decoded here, because MarkItDown guesses
    encodings by letter frequencies; ``zip`` is examined before it is unpacked. ``converters``: those of MarkItDown, in
    the order to try, because its own choice would read a damaged DOCX as a ZIP. ``content_types``: of downloads, which
    get the first ending. ``modules`` and ``program`` must be installed; ``install``: how, for people. ``when_empty``:
    advice for a file without text.
    """

    endings: str
    read: Callable[[OpenFile], Iterator[Piece]]
    content: Literal["text", "zip", "other"]
    content_types: str = ""
    modules: str = ""
    converters: str = ""
    program: str = ""
    install: str = INSTALL
    when_empty: str = ""

    @property
    def is_text(self) -> bool:
        """Whether it is Markdown or text already."""
        return self.read is _text

    def is_available(self, options: LibraryOptions) -> bool:
        """Whether what it needs is installed and allowed."""
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
_CUE = re.compile(r"[ \t]*(?P<minute>(?:\d+:)?\d\d):\d\d[.,]\d{3} --> ")
"""The line of a subtitle that has its time."""
_TILDES = re.compile("~{4,}")
_VOICE = re.compile(r"<v(?:\.[^ <>]*)? ([^<>]*)>")
_TAG = re.compile(r"<[/\w][^<>]*>")


def pieces(source: OpenFile) -> Iterator[Piece]:
    """The text of a file, in order. Raises :class:`DocumentRejected`, or any error of a converter for a damaged
    file."""
    format_ = BY_ENDING[source.type]
    if format_.content == "zip":  # by its directory, before a converter unpacks anything
        _check_zip(source.file, source.type)
    yield from format_.read(source)


def _check_zip(file: BinaryIO, file_type: str) -> None:
    """Refuse what is encrypted or unpacks to too much."""
    if file.read(len(_COMPOUND)) == _COMPOUND:  # Office writes it with a password, its older programs for every file
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
    """Blocks of code: as Markdown, comments would be headings, and the first document of YAML front matter."""
    text, note = decoded(source.file.read())
    fence = max(["~~~", *_TILDES.findall(text)], key=len) + "~"  # no line of the file ends the block
    for part in sliced(text, MAX_PART_CHARACTERS - 2 * len(fence) - 100):  # else the block itself would be split
        yield Piece(f"{fence}{source.type}\n{part}\n{fence}", note=note)


def _by_markitdown(source: OpenFile) -> Iterator[Piece]:
    from markitdown import StreamInfo, converters

    file, format_ = source.file, BY_ENDING[source.type]
    charset, note = None, ""
    if format_.content == "text":
        text, note = decoded(file.read())
        file, charset = io.BytesIO(text.encode("utf-8", "replace")), "utf-8"
    kind = "text/xml" if source.type == "xml" else None  # systems do not agree on it
    ending = format_.endings.split()[0]  # MarkItDown does not know the others
    info = StreamInfo(extension=f".{ending}", filename=source.name, mimetype=kind, charset=charset)
    for name in format_.converters.split():
        converter = getattr(converters, name)()
        if converter.accepts(file, info):
            # no search for the name of an identifier would find it with "\\_" in it
            result = converter.convert(file, info, exiftool_path=shutil.which("exiftool"), escape_underscores=False)
            yield Piece(_titled(_tidy(result.markdown), result.title), note=note)
            return
    raise ValueError("nothing like it is in it")


def _transcript(source: OpenFile) -> Iterator[Piece]:
    """What is spoken in a file of subtitles, with the time of each minute. Captions that roll repeat their lines."""
    text, note = decoded(source.file.read())
    read, spoken, minute, is_spoken = characters.LINE_END.split(text), [""], "", False
    for line, after in zip(read, [*read[1:], ""], strict=True):
        if cue := _CUE.match(line):
            if cue["minute"] != minute:
                minute = cue["minute"]
                spoken += ["", f"[{line.split()[0][:-4]}]"]  # without the milliseconds
            is_spoken = True
        elif not line.strip():
            is_spoken = False
        elif is_spoken and not (line.strip().isdecimal() and _CUE.match(after)):  # the number of the next subtitle
            words = _TAG.sub("", _VOICE.sub(r"\1: ", line)).strip()
            spoken += [words] if words != spoken[-1] else []
    yield Piece("\n".join(spoken), note=note)


def _word(source: OpenFile) -> Iterator[Piece]:
    """By mammoth as HTML. MarkItDown's Markdown of that splits identifiers, such as ``max\\_size``, and it fails at a
    picture that the document only links to."""
    import mammoth
    from markitdown.converter_utils.docx.pre_process import pre_process_docx  # formulas

    from anvil.sites.html_page import read_fragment

    html = mammoth.convert_to_html(
        pre_process_docx(source.file),
        style_map="p[style-name='Title'] => h1:fresh",  # it is not among the headings
        convert_image=mammoth.images.img_element(lambda image: {}),
    ).value
    for box, mark in (('<input checked="checked" type="checkbox" />', "[x]"), ('<input type="checkbox" />', "[ ]")):
        html = html.replace(box, mark)
    yield Piece(read_fragment(html).converted.markdown)


def _web_page(source: OpenFile) -> Iterator[Piece]:
    text, note = decoded(source.file.read())
    yield Piece(_page_text(text), note=note)


def _page_text(html: str) -> str:
    """The Markdown of a web page; empty if scripts make its text."""
    from anvil.sites.html_page import read_page

    markdown, _, facts = read_page(html)
    return _titled(markdown, facts.title) if markdown.strip() and not facts.shell else ""


def _titled(text: str, title: str | None) -> str:
    """The text with its title as a heading, unless it has one."""
    title = " ".join((title or "").split())
    return f"# {title}\n\n{text}" if title and not re.search(r"^# ", text, re.M) else text


def _sheets(source: OpenFile) -> Iterator[Piece]:
    """Each sheet as a table, without empty rows. MarkItDown fills empty cells with NaN, and makes 12 to 12.0 then."""
    import openpyxl

    for sheet in openpyxl.load_workbook(source.file, read_only=True, data_only=True, keep_links=False).worksheets:
        sheet.reset_dimensions()  # what programs write there is often wrong
        yield from _sheet(sheet.title, ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True)))


def _sheet(title: str, rows: Iterable[list[str]]) -> Iterator[Piece]:
    filled = [row for row in rows if any(row)]
    width = max((at + 1 for row in filled for at, cell in enumerate(row) if cell), default=0)
    lines = [f"| {' | '.join([*row, *[''] * width][:width])} |" for row in filled]
    if lines:
        yield Piece("\n".join([f"## {title}", lines[0], f"|{' --- |' * width}", *lines[1:]]))


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
    return text.removesuffix(" 00:00:00")  # of a date


def _slides(source: OpenFile) -> Iterator[Piece]:
    from pptx.shapes.autoshape import Shape

    # It raises for shapes that python-pptx does not know, and MarkItDown looks only for types that others have.
    Shape.shape_type = None  # type: ignore[method-assign, assignment]
    for text, *_ in _by_markitdown(source):
        before, *slides = _SLIDE.split(text)  # the mark of a slide would be a passage of its own
        yield Piece(before)
        yield from (Piece(slide, int(number)) for number, slide in zip(slides[::2], slides[1::2], strict=True))


def _pdf_pages(source: OpenFile) -> Iterator[Piece]:
    from anvil.library.pdf_pages import pdf_pages

    for number, text in pdf_pages(source.file, source.options.max_pages, source.name):
        yield Piece(_tidy(text), number)


def _tidy(text: str) -> str:
    """As MarkItDown's own results: no spaces at the ends of lines, no two empty lines in a row. Ligatures, which no
    query has, become letters."""
    text = _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    lines = (line.rstrip() for line in text.replace("\f", "").replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


# --- OpenDocument, by its elements as HTML -----------------------------------------------------------------------

_HTML = {
    **{"p": "p", "list": "ul", "list-item": "li", "list-header": "li", "line-break": "br", "frame": "div"},
    **{"table": "table", "table-header-rows": "thead", "table-row": "tr", "table-cell": "td"},
}
"""Name of an element, without its namespace -> element of HTML."""
_UNSHOWN = (
    *("annotation", "forms", "tracked-changes", "sequence-decls", "desc"),
    *("table-of-content", "alphabetical-index", "bibliography-source"),
)
"""Comments, deleted text, and what repeats the text."""


def _open_document(source: OpenFile) -> Iterator[Piece]:
    from xml.etree import ElementTree

    from anvil.sites.html_page import read_fragment

    with zipfile.ZipFile(source.file) as archive:
        names = archive.namelist()
        if "META-INF/manifest.xml" in names and b"encryption-data" in archive.read("META-INF/manifest.xml"):
            raise DocumentRejected("It is encrypted. Save it without a password.")
        root = ElementTree.fromstring(archive.read("content.xml"))
        meta = ElementTree.fromstring(archive.read("meta.xml")) if "meta.xml" in names else root
    if source.type == "ods":
        for table in _elements(root, "table"):
            yield from _sheet(_attribute(table, "name"), map(_row, _elements(table, "table-row")))
        return
    styles = {_attribute(each, "name"): _attribute(each, "parent-style-name") for each in _elements(root, "style")}
    titles = {"Title", *(name for name, parent in styles.items() if parent == "Title")}
    title = next((each.text for each in _elements(meta, "title")), None)
    slides = list(_elements(root, "page"))
    for number, part in enumerate(slides or _elements(root, "body"), 1):  # formats of dates have texts, too
        text = read_fragment("".join(_html(part, titles))).converted.markdown
        yield Piece(_titled(text, title if number == 1 else None), number if slides else 0)


def _elements(element: Element, name: str) -> Iterator[Element]:
    return (each for each in element.iter() if _name(each.tag) == name)


def _attribute(element: Element, name: str) -> str:
    return next((value for key, value in element.items() if _name(key) == name), "")


def _name(qualified: str) -> str:
    return qualified.rpartition("}")[2]


def _html(element: Element, titles: set[str]) -> Iterator[str]:
    """An element and what is in it as HTML. ``titles``: the styles of a document's title."""
    name = _name(element.tag)
    if name in _UNSHOWN:
        return
    if name == "note":  # its paragraphs would end the one that it is in
        yield f" ({escape(' '.join(''.join(each.itertext()) for each in _elements(element, 'p')))})"
        return
    tag = _HTML.get(name, "")
    if name == "h":
        tag = f"h{min(int(_attribute(element, 'outline-level') or 1), 6)}"
    elif name == "p" and _attribute(element, "style-name") in titles:
        tag = "h1"
    elif name == "a":
        tag = f'a href="{escape(_attribute(element, "href"))}"'
    elif name in ("s", "tab"):
        yield " "
    yield f"{tag and f'<{tag}>'}{escape(element.text or '')}"
    for child in element:
        yield from _html(child, titles)
        yield escape(child.tail or "")
    if tag not in ("", "br"):
        yield f"</{tag.partition(' ')[0]}>"


def _row(row: Element) -> list[str]:
    """The cells of a row. One can stand for many, such as for all to the right of the last one with text."""
    cells: list[str] = []
    for cell in row:
        text = "\n".join("".join(each.itertext()) for each in cell if _name(each.tag) == "p")
        count = int(_attribute(cell, "number-columns-repeated") or 1)
        cells += [_cell(text)] * min(count, MAX_COLUMNS - len(cells))
    return cells


# --- files in files ----------------------------------------------------------------------------------------------

UNREAD = "A file in it cannot be read and was left out."


def _archive(source: OpenFile) -> Iterator[Piece]:
    lead = f"# {source.name}\n\n"
    with zipfile.ZipFile(source.file) as archive:
        names = [name for name in archive.namelist() if not re.search(r"(^|/)(\.|__MACOSX/)", name)]
        for piece in _contained(source, ((name, partial(archive.read, name)) for name in names)):
            yield piece._replace(text=lead + piece.text)
            lead = ""


def _mail(source: OpenFile) -> Iterator[Piece]:
    """A mail: its subject as the title, who wrote it to whom and when, its text, and the files in it."""
    import email.policy

    mail = email.message_from_binary_file(source.file, policy=email.policy.default)
    assert not isinstance(mail, str)
    lines = [f"{name}: {text}" for name in ("From", "To", "Cc", "Date") if (text := _header(mail, name))]
    body, text, note = mail.get_body(("plain", "html")), "", ""
    if body is not None:
        data, codec = _payload(body), characters.known_encoding(body.get_content_charset() or "")
        text, note = (data.decode(codec, "replace"), "") if codec else decoded(data)
        text = _page_text(text) if body.get_content_subtype() == "html" else _tidy(text)
    title = _header(mail, "Subject") or source.name
    yield Piece("\n\n".join([f"# {title}", "  \n".join(lines), f"{text}\n\n"]), note=note)
    files = ((part.get_filename() or _usual_name(part), part) for part in mail.iter_attachments())
    yield from _contained(source, ((name, partial(_payload, part)) for name, part in files))


def _header(mail: MIMEPart, name: str) -> str:
    """A header, decoded; as it is written where Python's parser fails at it, as at some wrong addresses."""
    try:
        return str(mail[name] or "")
    except Exception:
        written = {key.lower(): value for key, value in mail.raw_items()}
        return " ".join(str(written[name.lower()]).split())


def _usual_name(part: MIMEPart) -> str:
    """The name of a part that has none, such as the text below a mail of a list; without an ending it is not read."""
    return f"{part.get_content_subtype()}.{BY_CONTENT_TYPE.get(part.get_content_type(), '')}"


def _payload(part: MIMEPart) -> bytes:
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else bytes(part.get_content())  # a mail in a mail


def _contained(source: OpenFile, files: Iterable[tuple[str, Callable[[], bytes]]]) -> Iterator[Piece]:
    """The files in an archive or a mail that are of known types, each under a heading."""
    if source.depth == MAX_DEPTH:
        raise DocumentTooLarge(f"It has archives inside each other, more than {MAX_DEPTH}.")
    for name, read in files:
        kind, heading = type_of(name), f"## {' '.join(name.split())}\n\n"
        if kind not in BY_ENDING or not BY_ENDING[kind].is_available(source.options):
            continue
        try:
            inner = OpenFile(io.BytesIO(read()), kind, file_name(name), source.options, source.depth + 1)
            for piece in filter(lambda piece: piece.text.strip(), pieces(inner)):
                yield Piece(f"{heading}{piece.text}\n\n", note=piece.note)
                heading = ""
        except (MemoryError, DocumentTooLarge):
            raise
        except Exception:  # it is damaged or encrypted, and the others are read
            yield Piece(heading or "\n\n", note=UNREAD)


# --- the table ---------------------------------------------------------------------------------------------------

AUDIO = "AudioConverter"
"""Sends recordings to a speech service; no other converter uses the network."""
_OFFICE = "application/vnd.openxmlformats-officedocument"
_OPEN = "application/vnd.oasis.opendocument"
_SCANNED = "If it was scanned, let a program for OCR add the text."
_SCRIPTS = "If scripts make its text, save the page from a browser, and add that file."
_STRICT = "If it is a strict Open XML workbook, save it as a usual one."
_IMAGE = {"program": "exiftool", "install": "ExifTool (https://exiftool.org)", "when_empty": "It has no such metadata."}
_SPEECH = {"modules": "speech_recognition pydub", "install": "pip install 'markitdown[audio-transcription]'"}
FORMATS = (
    Format("md markdown mdx", _text, "text", "text/markdown"),
    Format("txt text rst adoc asciidoc org log tex tsv", _text, "text", "text/plain"),
    Format("yaml yml toml", _code, "text", "application/yaml application/toml"),
    Format("vtt srt", _transcript, "text", "text/vtt application/x-subrip"),
    Format("pdf", _pdf_pages, "other", "application/pdf", "markitdown pdfplumber pypdfium2", when_empty=_SCANNED),
    Format("docx docm", _word, "zip", f"{_OFFICE}.wordprocessingml.document", "mammoth markitdown"),
    Format("pptx pptm", _slides, "zip", f"{_OFFICE}.presentationml.presentation", "pptx", "PptxConverter"),
    Format("xlsx xlsm", _sheets, "zip", f"{_OFFICE}.spreadsheetml.sheet", "openpyxl", when_empty=_STRICT),
    Format("odt", _open_document, "zip", f"{_OPEN}.text"),
    Format("odp", _open_document, "zip", f"{_OPEN}.presentation"),
    Format("ods", _open_document, "zip", f"{_OPEN}.spreadsheet"),
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
    Format("eml mhtml mht", _mail, "other", "message/rfc822 multipart/related"),
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
"""Of an image only the metadata is read."""
_SAVE_AS = {"doc": "docx", "rtf": "docx", "pages": "docx", "ppt": "pptx", "key": "pptx", "numbers": "xlsx"}
"""Types that are not read -> one as which their program can save a file."""
BY_ENDING = {ending: format_ for format_ in FORMATS for ending in format_.endings.split()}
BY_CONTENT_TYPE = {kind: format_.endings.split()[0] for format_ in FORMATS for kind in format_.content_types.split()}


def available(options: LibraryOptions) -> tuple[str, ...]:
    """The endings that can be read here."""
    return tuple(ending for ending, format_ in BY_ENDING.items() if format_.is_available(options))


def looked_for(options: LibraryOptions) -> frozenset[str]:
    """The endings that a folder import looks for: those of documents, even if they cannot be read here; those of images
    and recordings only if they can."""
    of_documents = (ending for ending, format_ in BY_ENDING.items() if format_.install == INSTALL)
    return frozenset([*of_documents, *available(options)])


def save_as(endings: Iterable[str]) -> tuple[str, ...]:
    """A sentence on files that are not read and could be saved as others; none without such an ending."""
    known = [f".{ending} as .{_SAVE_AS[ending]}" for ending in endings if ending in _SAVE_AS]
    return (f"Of the files that were left out, save {', '.join(known)}, and add those.",) if known else ()


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
        install = f"run: {format_.install}" if format_.install.startswith("pip ") else f"install {format_.install}"
        raise UnsupportedFormat(f"To read .{file_type} files, {install}.")
    return format_


# --- names of files ---------------------------------------------------------------------------------------------


def file_name(source: str) -> str:
    """The last part of a path or URL, with slashes or backslashes."""
    path = source.split("?")[0].split("#")[0].rstrip("/\\") if "://" in source else source
    return path.replace("\\", "/").rpartition("/")[2]


def title_of(source: str) -> str:
    """The title of a document that has none of its own: its file name without ending, or its host's name."""
    name = file_name(source)
    stem, dot, _ = name.rpartition(".")
    host_only = "://" in source and source.rstrip("/").endswith(f"://{name}")
    return stem if dot and stem and not host_only else name


def type_of(name: str) -> str:
    """The file type of a name: its ending, without dot, in lower case; empty when there is none."""
    stem, dot, ending = file_name(name).rpartition(".")
    return ending.lower() if dot and stem else ""


# --- bytes to text ---------------------------------------------------------------------------------------------

_GUESSED = [
    "cp1252",
    *("cp932", "euc_jp", "gb18030", "big5hkscs", "cp949"),
    *("cp1251", "koi8_r", "cp866", "cp1253", "cp1255", "cp1256", "cp874"),
]
"""What a text that names no encoding can be in; of those of Latin letters only the most frequent, because they look
alike."""
_RUN = re.compile(rb"[\x80-\xff]{4}")
"""What words in Latin letters do not have: four characters in a row that are not ASCII."""
_SAMPLE_BYTES = 64_000


def decoded(data: bytes) -> tuple[str, str]:
    """The text of a file, and a note for people if its encoding is a guess. Raises :class:`DocumentRejected` for data
    that is not text."""
    notes = []

    def guessed(data: bytes) -> str:
        codec = _guess(data)
        read_as = codec.replace("cp", "code page ")
        notes.append(
            f"It is not UTF-8 and names no encoding, so it was read as {read_as}. If characters are wrong, save it as "
            "UTF-8 and add it again."
        )
        return codec

    if not data.startswith((b"\xff\xfe", b"\xfe\xff")) and (at := data.find(b"\0")) >= 0:
        raise DocumentRejected(f"It is no text: there is a NUL byte at offset {at:,}.")
    return characters.decoded(data, guessed), "".join(notes)


def _guess(data: bytes) -> str:
    """The likely encoding of a text, by its lines from the first such word on."""
    word = _RUN.search(data)
    if word is None:
        return "cp1252"
    start = data.rfind(b"\n", 0, word.start()) + 1
    sample = data[start : start + _SAMPLE_BYTES]
    sample = sample[: sample.rfind(b"\n") + 1] or sample  # else half of a character can be at the end
    try:
        import charset_normalizer
    except ImportError:  # it comes with the extra
        return "cp1252"
    best = charset_normalizer.from_bytes(sample, cp_isolation=_GUESSED, threshold=0.8).best()
    return best.encoding if best is not None else "cp1252"
