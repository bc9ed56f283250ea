"""The program of a converter process: one file after the other, each as parts of Markdown.

It sets resource limits that it cannot raise again, has a minimal environment, and ends with its parent.
"""

from __future__ import annotations

import contextlib
import io
import os
import sys
import zipfile
from collections.abc import Iterator
from typing import Any, BinaryIO

from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.library import to_markdown
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
_ZIP = b"PK\x03\x04"
_ZIPPED_TYPES = ("docx", "xlsx", "pptx", "epub", "zip")


def main() -> None:
    """Serve until the parent closes the pipe."""
    requests, answers = take_over_pipes()
    _limit_resources(int(sys.argv[2]))
    for request in requests:
        _limit_cpu_time(request["seconds"])
        last: dict[str, Any] = {"done": True}
        try:
            for text, page in _pieces(request):
                write_message(answers, {"page": page}, text.encode("utf-8", "replace"))
        except DocumentRejected as rejected:
            is_large = isinstance(rejected, DocumentTooLarge)
            last = {"error": str(rejected), "large": is_large, "ready": True}
        except MemoryError:
            message = "Converting it takes more memory than is allowed (library.convert_memory_bytes)."
            write_message(answers, {"error": message, "large": True})
            os._exit(0)  # the memory is too fragmented for another file
        except BrokenPipeError:
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


def _pieces(request: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """(text, page) of a file, in order. Raises :class:`DocumentRejected`."""
    characters_left = request["characters"]
    with open(request["path"], "rb") as file:
        if request["type"] in _ZIPPED_TYPES:
            _check_zip(file, MAX_ARCHIVE_DEPTH if request["type"] == "zip" else None)
        for text, page in to_markdown.pieces(file, request):
            characters_left -= len(text)
            if characters_left < 0:
                limit = f"{request['characters']:,} characters (library.max_characters)"
                raise DocumentTooLarge(f"As Markdown it has more than {limit}.")
            yield text, page


def _check_zip(file: BinaryIO, depth: int | None) -> None:
    """Refuse what is encrypted or unpacks to too much. ``depth``: how many archives may be inside each other; None
    where archives inside it are not read."""
    with zipfile.ZipFile(file) as archive:
        if any(entry.flag_bits & 1 for entry in archive.infolist()):
            raise DocumentRejected("It is encrypted. Save it without a password.")
        _check_unpacked(archive, depth, 0, 0)
    file.seek(0)


def _check_unpacked(archive: zipfile.ZipFile, depth: int | None, packed: int, unpacked: int) -> tuple[int, int]:
    """Bytes of all members, packed and unpacked, with those of archives among them and what was counted before."""
    if depth == 0:
        raise DocumentTooLarge(f"It has archives inside each other, more than {MAX_ARCHIVE_DEPTH}.")
    entries = archive.infolist()
    packed, unpacked = (
        packed + sum(entry.compress_size for entry in entries),
        unpacked + sum(entry.file_size for entry in entries),
    )
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
    reason = f"{type(cause).__name__}: {lines[0][:200]}" if lines else type(cause).__name__
    return (
        f"It cannot be read as {file_type.upper()}: it is damaged, or of another kind ({reason}). "
        "Open it in its own program, and save it again."
    )
