"""The program of a converter process: one file after the other, each as parts of Markdown.

It sets resource limits that it cannot raise again, has a minimal environment, and ends with its parent.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import Any

from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.library.document_formats import MAX_UNPACKED_BYTES, OpenFile, pieces
from anvil.library.settings import LibraryOptions
from anvil.system.child_process import take_over_pipes, write_message

CPU_TIME_FACTOR, EXTRA_CPU_TIME_S = 8, 60
"""Processor time of a file, on several processors, by the seconds it may take."""


def main() -> None:
    """Serve until the parent closes the pipe. A request has the ``path``, ``type`` and ``name`` of a file, and the
    fields of the ``options``."""
    requests, answers = take_over_pipes()
    _limit_resources(int(sys.argv[2]))
    for request in requests:
        options = LibraryOptions(**request["options"])
        _limit_cpu_time(options.convert_seconds)
        last: dict[str, Any] = {"done": True}
        characters_left = options.max_characters
        try:
            with open(request["path"], "rb") as file:
                for text, page, note in pieces(OpenFile(file, request["type"], request["name"], options)):
                    characters_left -= len(text)
                    if characters_left < 0:
                        limit = f"{options.max_characters:,} characters (library.max_characters)"
                        raise DocumentTooLarge(f"As Markdown it has more than {limit}.")
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


def _damaged(file_type: str, error: Exception) -> str:
    """Why a converter failed, in a sentence."""
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0][:200].rstrip('.')}" if lines else type(error).__name__
    return (
        f"It cannot be read as {file_type.upper()}: it is damaged, or of another kind ({reason}). "
        "Open it in its own program, and save it again."
    )
