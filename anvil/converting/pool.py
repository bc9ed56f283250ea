"""Processes that convert, kept for the next file: to start one takes longer than most files.

One that goes over a limit, or breaks, is ended and replaced. What they send is believed no more than the files.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from anvil.config import LibraryOptions
from anvil.embedding.local import QUIET
from anvil.errors import DocumentRejected, DocumentTooLarge, UnsupportedFormat
from anvil.pieces import Piece

LIFE = 500
"""Files that a process converts before it is replaced, so that what a library leaks is not kept."""
HEADER = 4096
"""Bytes of the longest line that a process sends ahead of a text."""
START_SECONDS = 60.0
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from anvil.converting.worker import main; main()"
_PASSED_ON = ("PATH", "SYSTEMROOT", "TEMP", "TMP", "TMPDIR", "LANG", "LC_ALL", "HOME", "USERPROFILE")
"""Of the environment: no keys, no tokens, no proxies."""
_ALONE = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "ORT_DISABLE_TELEMETRY"), "1")
"""Libraries else take memory for every processor of the machine, of which none is used here; and onnxruntime, which
MarkItDown brings along, reports to its maker."""
_KINDS = {"large": DocumentTooLarge, "unsupported": UnsupportedFormat}


class Pool:
    """At most ``processes`` of them at work; more conversions wait."""

    def __init__(self, options: LibraryOptions, processes: int) -> None:
        self._options = options
        self._turns = threading.BoundedSemaphore(processes)
        self._lock = threading.Lock()
        self._idle: list[_Process] = []
        self._busy: set[_Process] = set()
        self._closed = False

    def convert(self, path: Path, file_type: str, name: str) -> Iterator[Piece]:
        """The pieces of a file. Raises :class:`DocumentRejected`; the process is then gone if it is to blame."""
        with self._turns:
            process = self._taken()
            try:
                yield from process.convert(path, file_type, name, self._options)
            except BaseException:  # an answer that is not read to its end cannot be followed by another
                if not process.at_rest:
                    process.end()
                raise
            finally:
                self._back(process)

    def close(self) -> None:
        """End all processes, also those at work."""
        with self._lock:
            self._closed = True
            processes = [*self._idle, *self._busy]
            self._idle.clear()
        for process in processes:
            process.end()

    def _taken(self) -> _Process:
        with self._lock:
            if self._closed:
                raise DocumentRejected("It was not converted: Anvil is being closed.")
            process = self._idle.pop() if self._idle else None
            if process is None or not process.alive:
                process = _Process(self._options)
            self._busy.add(process)
            return process

    def _back(self, process: _Process) -> None:
        with self._lock:
            self._busy.discard(process)
            keep = process.at_rest and process.alive and process.converted < LIFE and not self._closed
            if keep:
                self._idle.append(process)
        if not keep:
            process.end()


class _Process:
    """One process, and what is said through its pipes: a line of JSON either way, texts behind theirs."""

    def __init__(self, options: LibraryOptions) -> None:
        paths = [each for each in sys.path if each]  # as it is here, but for the folder that we happen to be in
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, json.dumps(paths), str(options.convert_memory_bytes)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**{name: os.environ[name] for name in _PASSED_ON if name in os.environ}, **_ALONE, **QUIET},
            start_new_session=True,  # an interrupt from the keyboard is for us
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip
        self.converted = 0
        self.at_rest = True
        """Whether it waits for a file, with nothing left unsaid."""

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.poll() is None

    def convert(self, path: Path, file_type: str, name: str, options: LibraryOptions) -> Iterator[Piece]:
        """The pieces of a file, within the limits."""
        self.at_rest = False
        self.converted += 1
        asked = {
            "path": str(path), "type": file_type, "name": name, "pages": options.max_pages,
            "characters": options.max_characters, "seconds": options.convert_seconds,
            "recordings": options.transcribe_audio,
        }  # fmt: skip
        clock = _Clock(options.convert_seconds + (START_SECONDS if self.converted == 1 else 0.0), self.end)
        left = 4 * options.max_characters + 4  # bytes
        try:
            with clock:
                self._send(asked)
            while True:
                with clock:
                    told = self._told()
                    size = told.get("bytes")
                    if not isinstance(size, int) or not 0 <= size <= left:
                        break
                    left -= size
                    text = self._exactly(size).decode("utf-8", "replace")
                page = told.get("page", 0)
                yield Piece(text, page if isinstance(page, int) else 0)
        except (OSError, EOFError, ValueError):
            self._fail(clock, options)
        if told.get("done") is True:
            self.at_rest = True
            return
        if isinstance(told.get("error"), str):
            self.at_rest = told.get("rest") is True
            raise _KINDS.get(told.get("kind", ""), DocumentRejected)(told["error"][:1000])
        self._fail(clock, options)

    def _send(self, asked: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(asked).encode() + b"\n")
        self._process.stdin.flush()

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline(HEADER)
        if not line:
            raise EOFError
        told = json.loads(line)
        if not isinstance(told, dict):
            raise ValueError
        return told

    def _exactly(self, size: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            raise EOFError
        return data

    def _fail(self, clock: _Clock, options: LibraryOptions) -> None:
        """Raise for a process that went silent or mad."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(5)
        code = self._process.poll()
        self.end()
        if clock.struck or code == -getattr(signal, "SIGXCPU", 0):
            raise DocumentTooLarge(
                f"Converting it took longer than {options.convert_seconds:g} s (library.convert_seconds). "
                "Split it, or allow more."
            )
        told = f"code {code}" if code is not None else "no sound answer"
        raise DocumentRejected(
            f"Converting it broke the converter ({told}): it is damaged, or needs more than "
            f"{options.convert_memory_bytes / 1e6:,.0f} MB of memory (library.convert_memory_bytes)."
        )

    def end(self) -> None:
        """End it, and whatever it started; twice is fine."""
        if self._process.poll() is None:
            with contextlib.suppress(OSError):
                if hasattr(os, "killpg"):
                    os.killpg(self._process.pid, signal.SIGKILL)
                else:
                    self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()


class _Clock:
    """Counts the time that is spent inside, and ends the process when it is over; a reader that rests costs none."""

    def __init__(self, seconds: float, end: Any) -> None:
        self._left, self._end = seconds, end
        self.struck = False

    def __enter__(self) -> None:
        self._since = time.monotonic()
        self._timer = threading.Timer(max(self._left, 0.0), self._strike)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._left -= time.monotonic() - self._since

    def _strike(self) -> None:
        self.struck = True
        self._end()
