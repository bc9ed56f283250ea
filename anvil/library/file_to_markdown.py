"""The program of a converter process: one file after the other, each as parts of Markdown.

It sets resource limits that it cannot raise again, has a minimal environment, and ends with its parent. PDF is
converted page by page, PowerPoint slide by slide, web pages as those of a site, and all other formats as MarkItDown
does.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import unicodedata
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, BinaryIO, NamedTuple

from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.formats import characters
from anvil.library.document_formats import AUDIO, BY_ENDING, FORMATS
from anvil.system.child_process import take_over_pipes, write_message

MAX_UNPACKED_BYTES = 500_000_000
"""Size of all parts of a zipped file (DOCX, XLSX, PPTX, EPUB, ZIP) by its directory; also of a file that is written."""
MAX_COMPRESSION_RATIO = 200
"""Unpacked size by packed size of a zipped file that unpacks to more than ``MIN_RATIO_BYTES``."""
MIN_RATIO_BYTES = 10_000_000
MAX_ARCHIVE_DEPTH = 6
"""Archives inside each other."""
CPU_TIME_FACTOR, EXTRA_CPU_TIME_S = 8, 60
"""Processor time of a file, on several processors, by the seconds it may take."""
_ZIP, _COMPOUND = b"PK\x03\x04", b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


def main() -> None:
    """Serve until the parent closes the pipe. A request has the ``path``, ``type`` and ``name`` of a file, and the
    fields of :class:`anvil.library.settings.LibraryOptions`."""
    requests, answers = take_over_pipes()
    _limit_resources(int(sys.argv[2]))
    for request in requests:
        _limit_cpu_time(request["convert_seconds"])
        last: dict[str, Any] = {"done": True}
        try:
            for text, page, note in _pieces(request):
                write_message(answers, {"page": page, "note": note}, text.encode("utf-8", "replace"))
        except DocumentRejected as rejected:
            is_large = isinstance(rejected, DocumentTooLarge)
            last = {"error": str(rejected), "large": is_large, "ready": True}
        except MemoryError:
            message = "Converting it takes more memory than is allowed (library.convert_memory_bytes)."
            write_message(answers, {"error": message, "large": True})
            os._exit(0)  # the memory is too fragmented for another file
        except BrokenPipeError:  # the parent is gone: a usual exit would try to write to it again
            os._exit(0)
        except Exception as error:
            last = {"error": _damaged(request["type"], error), "ready": True}
        write_message(answers, last)


def _limit_resources(memory_bytes: int) -> None:
    """Set the limits of the process: memory, no core files, no large files."""
    try:
        import resource
    except ImportError:  # Windows: only the limits on time and size apply
        return
    for name, value in (("RLIMIT_AS", memory_bytes), ("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", MAX_UNPACKED_BYTES)):
        limit = getattr(resource, name, None)
        if limit is not None:
            _, hard = resource.getrlimit(limit)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            with contextlib.suppress(ValueError, OSError):  # macOS does not support RLIMIT_AS
                resource.setrlimit(limit, (value, value))


def _limit_cpu_time(seconds: float) -> None:
    """Allow processor time for one more file. The parent, which watches the clock, may be gone."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used.ru_utime + used.ru_stime + seconds * CPU_TIME_FACTOR + EXTRA_CPU_TIME_S)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


class _Piece(NamedTuple):
    """Markdown of a file, its page (0: none), and a note for people."""

    text: str
    page: int = 0
    note: str = ""


def _pieces(request: dict[str, Any]) -> Iterator[_Piece]:
    """The text of a file, in order. Raises :class:`DocumentRejected`, or any error of a converter for a damaged
    file."""
    characters_left = request["max_characters"]
    with open(request["path"], "rb") as file:
        if BY_ENDING[request["type"]].content == "zip":  # by its directory, before a converter unpacks anything
            _check_zip(file, request["type"])
        for piece in _READERS.get(request["type"], _by_markitdown)(file, request):
            characters_left -= len(piece.text)
            if characters_left < 0:
                limit = f"{request['max_characters']:,} characters (library.max_characters)"
                raise DocumentTooLarge(f"As Markdown it has more than {limit}.")
            yield piece


def _check_zip(file: BinaryIO, file_type: str) -> None:
    """Refuse what is encrypted or unpacks to too much."""
    if file.read(len(_COMPOUND)) == _COMPOUND:  # Office writes it with a password, its older programs for every file
        raise DocumentRejected(
            f"It is encrypted, or of an older Office. Save it without a password, as .{file_type}, and add it again."
        )
    file.seek(0)
    with zipfile.ZipFile(file) as archive:
        if any(entry.flag_bits & 1 for entry in archive.infolist()):  # bit 0 of a ZIP entry: encrypted
            raise DocumentRejected("It is encrypted. Save it without a password.")
        _check_unpacked(archive, MAX_ARCHIVE_DEPTH if file_type == "zip" else None, 0, 0)
    file.seek(0)


def _check_unpacked(archive: zipfile.ZipFile, depth: int | None, packed: int, unpacked: int) -> tuple[int, int]:
    """Bytes of all members, packed and unpacked, with those of archives among them and what was counted before.
    ``depth``: how many archives may be inside each other; None where archives inside it are not read."""
    if depth == 0:
        raise DocumentTooLarge(f"It has archives inside each other, more than {MAX_ARCHIVE_DEPTH}.")
    entries = archive.infolist()
    packed += sum(entry.compress_size for entry in entries)
    unpacked += sum(entry.file_size for entry in entries)
    bomb = unpacked > MIN_RATIO_BYTES and unpacked > MAX_COMPRESSION_RATIO * packed
    if bomb or unpacked > MAX_UNPACKED_BYTES:
        raise DocumentTooLarge(f"It unpacks from {packed:,} to {unpacked:,} bytes, which is refused.")
    if depth is None:
        return packed, unpacked
    for entry in entries:
        # A damaged or encrypted archive in an archive is left out by its converter, and the others are read.
        with contextlib.suppress(zipfile.BadZipFile, NotImplementedError, RuntimeError), archive.open(entry) as member:
            if (start := member.read(len(_ZIP))) == _ZIP:
                with zipfile.ZipFile(io.BytesIO(start + member.read())) as inner:
                    packed, unpacked = _check_unpacked(inner, depth - 1, packed, unpacked)
    return packed, unpacked


def _damaged(file_type: str, error: Exception) -> str:
    """Why a converter failed, in a sentence."""
    attempts = getattr(error, "attempts", None)
    cause = attempts[0].exc_info[1] if attempts and attempts[0].exc_info else error
    lines = str(cause).strip().splitlines()
    reason = f"{type(cause).__name__}: {lines[0][:200].rstrip('.')}" if lines else type(cause).__name__
    return (
        f"It cannot be read as {file_type.upper()}: it is damaged, or of another kind ({reason}). "
        "Open it in its own program, and save it again."
    )


# --- formats to Markdown ---------------------------------------------------------------------------------------

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.M)
_BLANK_LINES = re.compile(r"\n{3,}")
_LIGATURE = re.compile("[\ufb00-\ufb06]")


def _by_markitdown(file: BinaryIO, request: dict[str, Any]) -> Iterator[_Piece]:
    from markitdown import StreamInfo

    ending, charset, note = request["type"], None, ""
    if BY_ENDING[ending].content == "text":
        text, note = decoded(file.read())
        file, charset = io.BytesIO(text.encode("utf-8", "replace")), "utf-8"
    kind = "text/xml" if ending == "xml" else None  # systems do not agree on it
    info = StreamInfo(extension=f".{ending}", filename=request["name"], mimetype=kind, charset=charset)
    result = _result(file, info, request)
    yield _Piece(_titled(_tidy(result.markdown), result.title), note=note)


def _web_page(file: BinaryIO, request: dict[str, Any]) -> Iterator[_Piece]:
    from anvil.sites.html_page import read_page

    text, note = decoded(file.read())
    markdown, _, facts = read_page(text)
    if markdown.strip() and not facts.shell:
        yield _Piece(_titled(markdown, facts.title), note=note)


def _titled(text: str, title: str | None) -> str:
    """The text with its title as a heading, unless it has one."""
    title = " ".join((title or "").split())
    return f"# {title}\n\n{text}" if title and not re.search(r"^# ", text, re.M) else text


def _sheets(file: BinaryIO, request: dict[str, Any]) -> Iterator[_Piece]:
    """Each sheet as a table, without empty rows. MarkItDown fills empty cells with NaN, and makes 12 to 12.0 then."""
    import openpyxl

    for sheet in openpyxl.load_workbook(file, read_only=True, data_only=True, keep_links=False).worksheets:
        sheet.reset_dimensions()  # what programs write there is often wrong
        rows = ([_cell(value) for value in row] for row in sheet.iter_rows(values_only=True))
        filled = [row for row in rows if any(row)]
        width = max((at + 1 for row in filled for at, cell in enumerate(row) if cell), default=0)
        lines = [f"| {' | '.join([*row, *[''] * width][:width])} |" for row in filled]
        if lines:
            yield _Piece("\n".join([f"## {sheet.title}", lines[0], f"|{' --- |' * width}", *lines[1:]]))


def _cell(value: object) -> str:
    text = "" if value is None else " ".join(str(value).split()).replace("|", "\\|")
    return text.removesuffix(" 00:00:00")  # of a date


def _slides(file: BinaryIO, request: dict[str, Any]) -> Iterator[_Piece]:
    for text, *_ in _by_markitdown(file, request):
        before, *slides = _SLIDE.split(text)  # the mark of a slide would be a passage of its own
        yield _Piece(before)
        yield from (_Piece(slide, int(number)) for number, slide in zip(slides[::2], slides[1::2], strict=True))


def _pdf_pages(file: BinaryIO, request: dict[str, Any]) -> Iterator[_Piece]:
    from anvil.library.pdf_pages import pdf_pages

    for number, text in pdf_pages(file, request["max_pages"], request["name"]):
        yield _Piece(_tidy(text), number)


def _tidy(text: str) -> str:
    """As MarkItDown's own results: no spaces at the ends of lines, no two empty lines in a row. Ligatures, which no
    query has, become letters."""
    text = _LIGATURE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    lines = (line.rstrip() for line in text.replace("\f", "").replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


_READERS: dict[str, Callable[[BinaryIO, dict[str, Any]], Iterator[_Piece]]] = {
    "pdf": _pdf_pages,
    "pptx": _slides,
    "xlsx": _sheets,
    "html": _web_page,
    "htm": _web_page,
}
_GENERIC = ("PlainTextConverter", "ZipConverter", "HtmlConverter")
"""Converters that take what no other takes. The last one is tried first."""


def _result(file: BinaryIO, info: Any, request: dict[str, Any]) -> Any:
    """The result of the first converter that accepts a file."""
    from markitdown import UnsupportedFormatException, converters

    if request["type"] == "zip":
        return _archives(request["transcribe_audio"]).convert_stream(file, stream_info=info)
    for name in BY_ENDING[request["type"]].converters.split():
        converter = getattr(converters, name)()
        if converter.accepts(file, info):
            return converter.convert(file, info, **_converter_options())
    raise UnsupportedFormatException("nothing like it is in it")


def _converter_options() -> dict[str, Any]:
    """Options of MarkItDown's converters, which take what they know of. Word's titles are not among its headings."""
    return {"exiftool_path": shutil.which("exiftool"), "style_map": "p[style-name='Title'] => h1:fresh"}


@lru_cache(maxsize=1)
def _archives(recordings: bool) -> Any:
    """MarkItDown for archives: it detects the type of each file in them. It has no plugins, and the same converters as
    files outside of archives; the one of ``recordings`` only where they may be sent to a service."""
    from markitdown import PRIORITY_GENERIC_FILE_FORMAT, MarkItDown, converters

    reader = MarkItDown(enable_builtins=False, enable_plugins=False)
    for name in _GENERIC:
        converter = getattr(converters, name)(**({"markitdown": reader} if name == "ZipConverter" else {}))
        reader.register_converter(converter, priority=PRIORITY_GENERIC_FILE_FORMAT)
    special = {name for format_ in FORMATS for name in format_.converters.split()}.difference(_GENERIC)
    for name in sorted(special if recordings else special - {AUDIO}):
        converter = getattr(converters, name)()
        # MarkItDown 0.1.5 does not pass them to its converters.
        converter.convert = partial(converter.convert, **_converter_options())
        reader.register_converter(converter)
    return reader


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
    best = charset_normalizer.from_bytes(sample, cp_isolation=_GUESSED).best()
    return best.encoding if best is not None else "cp1252"
