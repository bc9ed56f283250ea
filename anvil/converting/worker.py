"""The process that converts: one file after the other, named on stdin, pieces of Markdown to stdout.

It runs under limits that it cannot lift, with no environment to speak of, and ends with its parent.
"""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import sys
import zipfile
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, BinaryIO

from anvil.converting.text import decoded
from anvil.errors import DocumentRejected

UNPACKED = 500_000_000
"""Bytes that the parts of a zipped file (DOCX, XLSX, PPTX, EPUB, ZIP) may say they have, together."""
RATIO = 200
"""How many times its packed size the same may have, from ten million bytes on."""
_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.M)
_BLANK_LINES = re.compile(r"\n{3,}")
_WRITTEN = ("html", "htm", "csv", "json", "jsonl", "xml", "rss", "atom", "ipynb")
"""Text, whose encoding is not to be guessed by its letters."""
_ZIPPED = ("docx", "xlsx", "pptx", "epub", "zip")


class Refused(Exception):
    """A file that is over a limit or cannot be read: (message, kind)."""


def main() -> None:
    """Serve until stdin ends."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # what a library prints is no answer
        os.dup2(nothing, number)
    _bound(int(sys.argv[2]))
    for line in source:
        asked = json.loads(line)
        _allow(asked["seconds"])
        last: dict[str, Any] = {"done": True}
        try:
            for text, page in _pieces(asked):
                data = text.encode("utf-8", "replace")
                target.write(json.dumps({"page": page, "bytes": len(data)}).encode() + b"\n" + data)
                target.flush()
        except Refused as refused:
            last = {"error": refused.args[0], "kind": refused.args[1], "rest": True}
        except DocumentRejected as rejected:
            last = {"error": str(rejected), "kind": "", "rest": True}
        except MemoryError:
            last = {"error": "Converting it takes more memory than is allowed (library.convert_memory_bytes).",
                    "kind": "large"}  # fmt: skip
        except BrokenPipeError:
            os._exit(0)
        except Exception as error:
            last = {"error": _damaged(asked["type"], error), "kind": "", "rest": True}
        target.write(json.dumps(last).encode() + b"\n")
        target.flush()
        if last.get("kind") == "large" and not last.get("rest"):
            os._exit(0)  # what is left of the memory is in pieces


def _bound(memory: int) -> None:
    """Limits that hold for good: memory, no core files, no large files."""
    try:
        import resource
    except ImportError:  # Windows has no such limits; time and size hold there too
        return
    for name, most in (("RLIMIT_AS", memory), ("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", UNPACKED)):
        limit = getattr(resource, name, None)
        if limit is not None:
            _, hard = resource.getrlimit(limit)
            most = most if hard == resource.RLIM_INFINITY else min(most, hard)
            try:
                resource.setrlimit(limit, (most, most))
            except (ValueError, OSError):  # macOS does not know the first
                continue


def _allow(seconds: float) -> None:
    """Processor time for one more file: whoever should end us by the clock may be gone."""
    try:
        import resource
    except ImportError:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime + seconds * 8 + 60), hard))


def _pieces(asked: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(text, page) of a file, in order."""
    left = asked["characters"]
    with open(asked["path"], "rb") as file:
        if asked["type"] in _ZIPPED:
            _check_zip(file)
        for text, page in READERS.get(asked["type"], _by_markitdown)(file, asked):
            left -= len(text)
            if left < 0:
                most = f"{asked['characters']:,} characters (library.max_characters)"
                raise Refused(f"As Markdown it has more than {most}.", "large")
            yield text, page


def _check_zip(file: BinaryIO) -> None:
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
    packed, unpacked = sum(each.compress_size for each in entries), sum(each.file_size for each in entries)
    if unpacked > UNPACKED or (unpacked > 10_000_000 and unpacked > RATIO * packed):
        raise Refused(f"It unpacks from {packed:,} to {unpacked:,} bytes, which is refused.", "large")
    if any(each.flag_bits & 1 for each in entries):
        raise Refused("It is encrypted. Save it without a password.", "")
    file.seek(0)


# --- formats -------------------------------------------------------------------------------------------------------


def _by_markitdown(file: BinaryIO, asked: dict[str, Any]) -> Iterator[tuple[str, int]]:
    from markitdown import StreamInfo

    ending, charset = asked["type"], None
    if ending in _WRITTEN:
        file, charset = io.BytesIO(decoded(file.read()).encode("utf-8", "replace")), "utf-8"
    kind = "text/xml" if ending == "xml" else None  # systems do not agree on it
    info = StreamInfo(extension=f".{ending}", filename=asked["name"], mimetype=kind, charset=charset)
    result = _result(file, info, asked)
    title = (result.title or "").strip()
    text = _tidied(result.markdown)
    if title and not re.search(r"^# ", text, re.M):
        text = f"# {' '.join(title.split())}\n\n{text}"
    yield text, 0


def _slides(file: BinaryIO, asked: dict[str, Any]) -> Iterator[tuple[str, int]]:
    for text, _ in _by_markitdown(file, asked):
        begins = [(found.start(), int(found[1])) for found in _SLIDE.finditer(text)] or [(0, 0)]
        ends = [*(at for at, _ in begins[1:]), len(text)]
        yield from ((text[at:end], number) for (at, number), end in zip(begins, ends, strict=True))


def _pdf_pages(file: BinaryIO, asked: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Each page as a document of its own: so it keeps its number, and MarkItDown finds for each whether it is a form
    or prose; and no more than one is in memory."""
    import pypdfium2
    from markitdown import StreamInfo
    from markitdown.converters import PdfConverter

    try:
        whole = pypdfium2.PdfDocument(file)
    except pypdfium2.PdfiumError as error:
        if "assword" in str(error):
            raise Refused("It is encrypted. Save it without a password.", "") from None
        raise
    if len(whole) > asked["pages"]:
        raise Refused(
            f"It has {len(whole):,} pages; the limit is {asked['pages']:,} (library.max_pages). Split it.", "large"
        )
    converter, info = PdfConverter(), StreamInfo(extension=".pdf")
    for number in range(len(whole)):
        page, single = io.BytesIO(), pypdfium2.PdfDocument.new()
        single.import_pages(whole, [number])
        single.save(page)
        single.close()
        page.seek(0)
        yield _tidied(converter.convert(page, info).markdown), number + 1
    whole.close()


def _tidied(text: str) -> str:
    """As MarkItDown leaves its results: no blanks at the ends of lines, no two empty lines in a row."""
    lines = (line.rstrip() for line in text.replace("\f", "").replace("\r\n", "\n").split("\n"))
    return _BLANK_LINES.sub("\n\n", "\n".join(lines))


READERS: dict[str, Callable[[BinaryIO, dict[str, Any]], Iterator[tuple[str, int]]]] = {
    "pdf": _pdf_pages,
    "pptx": _slides,
}
_CONVERTERS = {
    "docx": "DocxConverter", "pptx": "PptxConverter", "xlsx": "XlsxConverter", "xls": "XlsConverter",
    "epub": "EpubConverter", "ipynb": "IpynbConverter", "msg": "OutlookMsgConverter", "csv": "CsvConverter",
    "html": "HtmlConverter", "htm": "HtmlConverter", "json": "PlainTextConverter", "jsonl": "PlainTextConverter",
    "jpg": "ImageConverter", "jpeg": "ImageConverter", "png": "ImageConverter", "wav": "AudioConverter",
    "mp3": "AudioConverter", "m4a": "AudioConverter", "rss": "RssConverter", "atom": "RssConverter",
    "xml": "RssConverter PlainTextConverter",
}  # fmt: skip
"""Which of MarkItDown's may read a type, in turn: all of them would read a damaged DOCX as the ZIP that it is."""


_RECORDINGS = "AudioConverter"
"""Sends what it reads to a speech service: the only one that reaches the network for a file."""
_GENERIC = ("PlainTextConverter", "ZipConverter", "HtmlConverter")
"""Take what no other of MarkItDown's does, the last first."""


def _result(file: BinaryIO, info: Any, asked: dict[str, Any]) -> Any:
    """What the first converter that takes a file makes of it."""
    from markitdown import UnsupportedFormatException, converters

    if asked["type"] == "zip":
        return _archives(asked["recordings"]).convert_stream(file, stream_info=info)
    for name in _CONVERTERS[asked["type"]].split():
        converter = getattr(converters, name)()
        if converter.accepts(file, info):
            return converter.convert(file, info, exiftool_path=shutil.which("exiftool"))
    raise UnsupportedFormatException("nothing like it is in it")


@lru_cache(maxsize=1)
def _archives(recordings: bool) -> Any:
    """MarkItDown for archives: it finds out what is in them by a model of its own. Without plugins, and with the
    converters of what is read outside of archives too; that of ``recordings`` only where they may be sent away."""
    from markitdown import PRIORITY_GENERIC_FILE_FORMAT, MarkItDown, converters

    reader = MarkItDown(enable_builtins=False, enable_plugins=False)
    for name in _GENERIC:
        made = getattr(converters, name)(**({"markitdown": reader} if name == "ZipConverter" else {}))
        reader.register_converter(made, priority=PRIORITY_GENERIC_FILE_FORMAT)
    special = {"PdfConverter", *" ".join(_CONVERTERS.values()).split()}.difference(_GENERIC)
    for name in sorted(special if recordings else special - {_RECORDINGS}):
        made = getattr(converters, name)()
        made.convert = partial(made.convert, exiftool_path=shutil.which("exiftool"))  # 0.1.5 passes it to none of them
        reader.register_converter(made)
    return reader


def _damaged(file_type: str, error: Exception) -> str:
    """What a converter choked on, in a sentence."""
    attempts = getattr(error, "attempts", None)
    cause = attempts[0].exc_info[1] if attempts and attempts[0].exc_info else error
    lines = str(cause).strip().splitlines()
    what = f"{type(cause).__name__}: {lines[0][:200]}" if lines else type(cause).__name__
    return f"It cannot be read as {file_type.upper()}: it is damaged, or of another kind ({what})."
