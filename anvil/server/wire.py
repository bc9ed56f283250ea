"""The process's stdin and stdout as lines of protocol. Whatever else is printed goes to stderr.

Reading happens in a daemon thread of its own, by ``os.read``: the process can end while a read still waits, and the
first line is there before the SDK is loaded.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections import deque
from collections.abc import Callable

LONGEST = 16 * 1024 * 1024
"""Bytes of the longest line that is read; a longer one is dropped and answered with an error."""
TOO_LONG = b"\0"
"""Stands for a line that was dropped."""
END = None


class Wire:
    """Lines from a file descriptor, in order, and whole lines to another."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._lines: deque[bytes | None] = deque()
        self._arrived = threading.Condition()
        self._wake: Callable[[], None] | None = None
        self._writing = threading.Lock()
        self.broken = False
        threading.Thread(target=self._read, name="stdin", daemon=True).start()

    @classmethod
    def claimed(cls) -> Wire:
        """The wire on fds 0 and 1, which from now on are empty and stderr to everybody else."""
        sys.stdout.flush()
        source, target = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        return cls(source, target)

    def _read(self) -> None:
        line = bytearray()
        dropping = False
        while True:
            try:
                block = os.read(self._source, 65536)
            except OSError:
                block = b""
            if not block:
                break
            *ended, rest = block.split(b"\n")
            for part in ended:
                line += part
                self._put(TOO_LONG if dropping else bytes(line))
                line.clear()
                dropping = False
            line += rest
            if len(line) > LONGEST:
                line.clear()
                dropping = True
        if line and not dropping:
            self._put(bytes(line))
        self._put(END)

    def _put(self, line: bytes | None) -> None:
        with self._arrived:
            self._lines.append(line)
            self._arrived.notify()
            wake = self._wake
        if wake:
            wake()

    def first(self) -> bytes | None:
        """Wait for the first line and leave it in its place; None at the end of input."""
        with self._arrived:
            while not self._lines:
                self._arrived.wait()
            return self._lines[0]

    async def next(self) -> bytes | None:
        """The next line, None at the end of input. For one reader, in one event loop."""
        loop, arrived = asyncio.get_running_loop(), asyncio.Event()

        def wake() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(arrived.set)

        while True:
            with self._arrived:
                if self._lines:
                    return self._lines.popleft()
                self._wake = wake
            await arrived.wait()
            arrived.clear()

    def write(self, line: bytes) -> None:
        """Write a whole line. A reader that went away is remembered in ``broken``, not raised."""
        view = memoryview(line if line.endswith(b"\n") else line + b"\n")
        with self._writing:
            try:
                while view and not self.broken:
                    view = view[os.write(self._target, view) :]
            except OSError:
                self.broken = True
