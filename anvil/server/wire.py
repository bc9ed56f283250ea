"""The process's stdin and stdout as lines of protocol. Whatever else is printed goes to stderr.

Both are done by daemon threads of their own, with plain ``os.read`` and ``os.write``: the process can end while one of
them still waits for the other side, and the first line is there before the SDK is loaded.
"""

from __future__ import annotations

import asyncio
import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable

LONGEST = 4 * 1024 * 1024
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
        self._leaving: queue.SimpleQueue[tuple[bytes, Callable[[], object]] | None] = queue.SimpleQueue()
        self.broken = False
        """Whether nobody reads what is written any more."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        self._writer = threading.Thread(target=self._write, name="stdout", daemon=True)
        self._writer.start()

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
                self._arrived.wait(0.5)  # in steps, since a signal wakes nobody on Windows
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

    def put(self, line: bytes, done: Callable[[], object] = int) -> None:
        """Have a line written; ``done`` is called from another thread when it is, or when nobody reads any more."""
        self._leaving.put((line, done))

    async def write(self, line: bytes) -> None:
        """Write a line and wait: a client that does not read makes the server wait, not grow."""
        loop, written = asyncio.get_running_loop(), asyncio.Event()

        def done() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(written.set)

        self.put(line, done)
        await written.wait()

    def _write(self) -> None:
        while (leaving := self._leaving.get()) is not None:
            line, done = leaving
            view = memoryview(line if line.endswith(b"\n") else line + b"\n")
            try:
                while view and not self.broken:
                    view = view[os.write(self._target, view) :]
            except OSError:
                self.broken = True
            done()

    def close(self, seconds: float = 1.0) -> None:
        """Give what is to be written so much time to leave."""
        self._leaving.put(None)
        self._writer.join(seconds)
