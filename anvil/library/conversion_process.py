"""Conversion of files to Markdown in child processes, with limits on time, memory and output.

Files are not trusted. The children run :func:`main` with a minimal environment, so a bad file costs one error and
nothing else. Text needs no conversion and is read in this process.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from anvil.embedding.local import QUIET
from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.library.document_chunker import DocumentPart, slices
from anvil.library.document_formats import MAX_UNPACKED_BYTES, FileKind, Format, OpenFile, decoded, format_of, pieces
from anvil.library.settings import LibraryOptions
from anvil.system.child_process import ChildProcess, Watchdog, take_over_pipes, write_message

try:
    import resource
except ImportError:  # Windows has no such limits: there only those on time and size apply
    resource = None  # type: ignore[assignment]


class Converter:
    """Converts files to parts of Markdown, with at most ``processes`` child processes. Further calls wait for one.
    Thread-safe."""

    def __init__(self, options: LibraryOptions, processes: int) -> None:
        self._options = options
        self._slots = threading.BoundedSemaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._closed = False

    def parts(self, path: Path, kind: FileKind) -> Iterator[DocumentPart]:
        """The Markdown of the file at ``path``, in order. A part is converted when it is asked for. Raises
        :class:`DocumentRejected` if the type is unknown, the file is damaged, or a limit is exceeded."""
        format_ = format_of(kind.type, self._options)
        return self._text(path) if format_.is_text else self._convert(path, kind, format_)

    def close(self) -> None:
        """Kill all processes; running conversions fail."""
        with self._lock:
            self._closed = True
            processes = [*self._idle, *self._busy]
            self._idle.clear()
        for process in processes:
            process.kill()

    def _text(self, path: Path) -> Iterator[DocumentPart]:
        try:
            text, note = decoded(path.read_bytes())
        except OSError as error:
            raise unreadable(path, error) from None
        if len(text) > self._options.max_characters:
            raise DocumentTooLarge(
                f"It has {len(text):,} characters; the limit is {self._options.max_characters:,} "
                "(library.max_characters)."
            )
        return (DocumentPart(slice_, note=note) for slice_ in slices(text))

    def _convert(self, path: Path, kind: FileKind, format_: Format) -> Iterator[DocumentPart]:
        empty = True
        with self._slots:
            process = self._take()
            try:
                for part in process.convert(path, kind):
                    if text := part.text.strip():
                        empty = False
                        yield from (DocumentPart(slice_, part.page, part.note) for slice_ in slices(text + "\n\n"))
            finally:
                self._give_back(process)
        if empty:
            raise DocumentRejected(f"It holds no text. {format_.when_empty}".strip())

    def _take(self) -> _Process:
        with self._lock:
            if self._closed:
                raise DocumentRejected("It was not converted: Anvil is being closed.")
            process = self._idle.pop() if self._idle else None
            if process is not None and process.exit_code is not None:
                process.kill()  # closes its pipes
                process = None
            process = process or _Process(self._options)
            self._busy.add(process)
            return process

    def _give_back(self, process: _Process) -> None:
        """Keep a process for the next file, or kill it if it has unread parts: they would look like the next one's."""
        with self._lock:
            self._busy.discard(process)
            reusable = process.ready and process.exit_code is None and process.file_count < MAX_FILES_PER_PROCESS
            if reusable and not self._closed:
                self._idle.append(process)
                return
        process.kill()


def unreadable(path: Path, error: OSError) -> DocumentRejected:
    if isinstance(error, FileNotFoundError):
        return DocumentRejected(f"There is no file {path}. Paths are those of the machine that Anvil runs on.")
    return DocumentRejected(f"{path} cannot be read ({error.strerror or type(error).__name__}). Check its permissions.")


MAX_FILES_PER_PROCESS = 500
"""Files that a process converts before it is replaced, so that memory leaks of libraries do not add up."""
MAX_LINE_BYTES = 4096
MAX_ERROR_CHARACTERS = 1000
START_TIMEOUT_S = 60.0
EXIT_TIMEOUT_S = 5.0
_INHERITED_VARIABLES = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LANG", "LC_ALL", "HOME", "USERPROFILE")
"""Variables that a process gets: no keys, tokens and proxies are among them."""
_OWN_VARIABLES = {**dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1"), **QUIET}
"""Without these, numeric libraries reserve memory for each processor, and onnxruntime, which MarkItDown imports, sends
telemetry."""


class _Process(ChildProcess):
    def __init__(self, options: LibraryOptions) -> None:
        inherited = {name: os.environ[name] for name in _INHERITED_VARIABLES if name in os.environ}
        self._options = options
        super().__init__(
            "anvil.library.conversion_process", str(options.convert_memory_bytes), env={**inherited, **_OWN_VARIABLES}
        )
        self.file_count = 0
        self.ready = True
        """Whether it waits for a file and everything that it sent has been read."""

    def convert(self, path: Path, kind: FileKind) -> Iterator[DocumentPart]:
        """The parts of a file. The limit on time does not count the time between two calls for a part."""
        self.ready = False
        self.file_count += 1
        options = self._options
        start_s = START_TIMEOUT_S if self.file_count == 1 else 0.0  # the first file also waits for the imports
        watchdog = Watchdog(self, options.convert_seconds + start_s)
        # A character has up to four bytes in UTF-8. The process itself counts characters; this limit is for a process
        # that a hostile file has taken over.
        bytes_left = 4 * options.max_characters + 4
        try:
            with watchdog:
                self.send({"path": str(path), "kind": kind._asdict(), "options": asdict(options)})
            while True:
                with watchdog:
                    message, text = self.receive(MAX_LINE_BYTES, bytes_left)
                if text is None:
                    break
                bytes_left -= len(text)
                page, note = message.get("page"), message.get("note")
                yield DocumentPart(
                    text.decode("utf-8", "replace"),
                    page if isinstance(page, int) else 0,
                    note if isinstance(note, str) else "",
                )
        except (OSError, EOFError, ValueError):
            self._raise_broken(watchdog)
        if message.get("done") is True:
            self.ready = True
        elif isinstance(message.get("error"), str):
            self.ready = message.get("ready") is True
            error = DocumentTooLarge if message.get("large") is True else DocumentRejected
            raise error(message["error"][:MAX_ERROR_CHARACTERS])
        else:
            self._raise_broken(watchdog)

    def _raise_broken(self, watchdog: Watchdog) -> NoReturn:
        """Raise the error for a process that ended or sent something invalid."""
        options, code = self._options, self.wait(EXIT_TIMEOUT_S)
        self.kill()
        # SIGXCPU: the limit on processor time. Windows does not have it.
        if watchdog.expired or code == -getattr(signal, "SIGXCPU", 0):
            raise DocumentTooLarge(
                f"Converting it took longer than {options.convert_seconds:g} s (library.convert_seconds). "
                "Split it, or allow more."
            )
        reason = f"code {code}" if code is not None else "an invalid answer"
        raise DocumentRejected(
            f"Converting it broke the converter ({reason}): it is damaged, or needs more than "
            f"{options.convert_memory_bytes / 1e6:,.0f} MB of memory (library.convert_memory_bytes)."
        )


# --- in the process ------------------------------------------------------------------------------------------------

CPU_TIME_FACTOR, EXTRA_CPU_TIME_S = 8, 60
"""Processor time that a file may take: this many times ``library.convert_seconds``, because a converter may use several
processors, and these seconds."""


def main() -> None:
    """Convert one file after the other, until the parent closes the pipe. A request has the ``path`` and the ``kind``
    of a file, and the fields of :class:`LibraryOptions` as ``options``."""
    requests, answers = take_over_pipes()
    _limit_resources(int(sys.argv[2]))
    for request in requests:
        options, kind = LibraryOptions(**request["options"]), FileKind(**request["kind"])
        _limit_cpu_time(options.convert_seconds)
        last: dict[str, Any] = {"done": True}
        characters_left = options.max_characters
        try:
            with open(request["path"], "rb") as file:
                for text, page, note in pieces(OpenFile(file, kind, options)):
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
        except BrokenPipeError:  # the parent has gone, and a normal exit would write to the pipe again
            os._exit(0)
        except Exception as error:
            last = {"error": _failure_message(kind.type, error), "ready": True}
        write_message(answers, last)


def _limit_resources(memory_bytes: int) -> None:
    """Set the limits of the process: memory, no core files, no large files."""
    if resource is None:
        return
    for name, value in (("RLIMIT_AS", memory_bytes), ("RLIMIT_CORE", 0), ("RLIMIT_FSIZE", MAX_UNPACKED_BYTES)):
        limit = getattr(resource, name, None)
        if limit is not None:
            _, hard = resource.getrlimit(limit)
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            with contextlib.suppress(ValueError, OSError):  # macOS does not support RLIMIT_AS
                resource.setrlimit(limit, (value, value))


def _limit_cpu_time(seconds: float) -> None:
    """Allow processor time for one more file: a limit also if the parent, which watches the clock, has gone."""
    if resource is None:
        return
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    limit = int(used.ru_utime + used.ru_stime + seconds * CPU_TIME_FACTOR + EXTRA_CPU_TIME_S)
    resource.setrlimit(resource.RLIMIT_CPU, (limit, hard))


def _failure_message(file_type: str, error: Exception) -> str:
    lines = str(error).strip().splitlines()
    reason = f"{type(error).__name__}: {lines[0][:200].rstrip('.')}" if lines else type(error).__name__
    return (
        f"It cannot be read as {file_type.upper()}: it is damaged, or of another kind ({reason}). "
        "Open it in its own program, and save it again."
    )
