"""The process's stdin and stdout as lines of the protocol. Everything else that is printed goes to stderr.

Daemon threads read and write with plain ``os.read`` and ``os.write``. So the process can end while one of them still
waits for the client, and the first lines can be read and answered before the SDK and asyncio are loaded.
"""

from __future__ import annotations

import os
import queue
import sys
import threading
from collections import deque
from collections.abc import Callable

MAX_LINE_BYTES = 4 * 1024 * 1024
"""A longer line is dropped and answered with an error."""
OVERLONG_LINE = b"\0"
"""Takes the place of a line that was dropped."""
END_OF_INPUT = None


class StdioPipe:
    """Lines read from one file descriptor in order, and whole lines written to another."""

    def __init__(self, source: int, target: int) -> None:
        self._source, self._target = source, target
        self._lines: deque[bytes | None] = deque()
        self._arrived = threading.Condition()
        self._wake: Callable[[], None] | None = None
        self._on_end: Callable[[], None] | None = None
        self._ended = False
        self._outgoing: queue.SimpleQueue[tuple[bytes, Callable[[], object]] | None] = queue.SimpleQueue()
        self.broken = False
        """Whether the client has closed the output."""
        threading.Thread(target=self._read, name="stdin", daemon=True).start()
        self._writer = threading.Thread(target=self._write, name="stdout", daemon=True)
        self._writer.start()

    @classmethod
    def take_over_stdio(cls) -> StdioPipe:
        """The pipe on file descriptors 0 and 1. For all other code stdin is empty from now on, and stdout is stderr."""
        sys.stdout.flush()
        source, target = os.dup(0), os.dup(1)
        empty = os.open(os.devnull, os.O_RDONLY)
        os.dup2(empty, 0)
        os.close(empty)
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
            *complete, rest = block.split(b"\n")
            for part in complete:
                line += part
                self._received(OVERLONG_LINE if dropping else bytes(line))
                line.clear()
                dropping = False
            line += rest
            if len(line) > MAX_LINE_BYTES:
                line.clear()
                dropping = True
        if line and not dropping:
            self._received(bytes(line))
        self._received(END_OF_INPUT)

    def _received(self, line: bytes | None) -> None:
        with self._arrived:
            self._lines.append(line)
            self._ended = line is END_OF_INPUT
            self._arrived.notify()
            wake, on_end = self._wake, self._on_end if self._ended else None
        if wake:
            wake()
        if on_end:
            on_end()

    def on_end_of_input(self, callback: Callable[[], None]) -> None:
        """Call ``callback``, from any thread, as soon as the client has closed its end."""
        with self._arrived:
            self._on_end = callback
            ended = self._ended
        if ended:
            callback()

    def unread(self) -> list[bytes]:
        """The lines that arrived and were not taken yet."""
        with self._arrived:
            return [line for line in self._lines if line is not END_OF_INPUT]

    def at(self, position: int, ended: threading.Event | None = None) -> bytes | None:
        """The line at a position of the queue, where it stays. Waits for it; None at the end of input, or when there
        is no such line and ``ended`` is set."""
        with self._arrived:
            while len(self._lines) <= position:
                if ended is not None and ended.is_set():
                    return None
                self._arrived.wait(0.5)  # in steps: on Windows a signal does not end a wait
            return self._lines[position]

    def begins_within(self, seconds: float) -> bool:
        """Whether a first line, or the end of input, arrives within some time."""
        with self._arrived:
            return self._arrived.wait_for(lambda: bool(self._lines), seconds)

    def wake(self) -> None:
        """Let :meth:`at` look at its event."""
        with self._arrived:
            self._arrived.notify_all()

    def drop(self, position: int) -> None:
        """Remove the line at a position from the queue."""
        with self._arrived:
            del self._lines[position]

    async def next(self) -> bytes | None:
        """The next line; None at the end of input. For one reader in one event loop."""
        import asyncio

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
        """Queue a line. ``done`` is called from another thread when it is written, or when the output was closed."""
        self._outgoing.put((line, done))

    async def write(self, line: bytes) -> None:
        """Write a line and wait until it is written. If the client does not read, the server waits and needs no memory
        for further lines."""
        import asyncio

        loop, written = asyncio.get_running_loop(), asyncio.Event()

        def done() -> None:
            if not loop.is_closed():
                loop.call_soon_threadsafe(written.set)

        self.put(line, done)
        await written.wait()

    def _write(self) -> None:
        while (outgoing := self._outgoing.get()) is not None:
            line, done = outgoing
            view = memoryview(line if line.endswith(b"\n") else line + b"\n")
            try:
                while view and not self.broken:
                    view = view[os.write(self._target, view) :]
            except OSError:
                self.broken = True
            done()

    def close(self, timeout_s: float = 1.0) -> None:
        """Wait until the queued lines are written, for ``timeout_s`` at most."""
        self._outgoing.put(None)
        self._writer.join(timeout_s)
