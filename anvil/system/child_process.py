"""Child processes that run a module of Anvil, the protocol of their pipes, and a time limit for them.

A message is a JSON object in one line. If it has the key ``bytes``, so many bytes of data follow the line. The parent
uses :class:`ChildProcess`; ``main()`` of the module starts with :func:`take_over_pipes`.
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
from collections.abc import Iterator, Mapping
from typing import IO, Any, BinaryIO

from anvil.formats.data_formats import json_object


def write_message(pipe: IO[bytes], message: Mapping[str, Any], data: bytes | None = None) -> None:
    """Send a message and, after it, ``data``. Raises :class:`OSError` if the pipe is closed."""
    if data is not None:
        message = {**message, "bytes": len(data)}
    pipe.write(json.dumps(message).encode() + b"\n" + (data or b""))
    pipe.flush()


def take_over_pipes() -> tuple[Iterator[dict[str, Any]], BinaryIO]:
    """The parent's messages, and the pipe for answers. Called in the child. From then on, the standard streams are
    discarded, so that no output of a library gets into the answers."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    return (json.loads(line) for line in requests), answers


class ChildProcess:
    """A process that runs ``main()`` of a module. It leads a session of its own, so no keyboard interrupt reaches it.

    Methods raise :class:`OSError`, :class:`EOFError` or :class:`ValueError` if the child has ended or sends an invalid
    message.
    """

    def __init__(self, module: str, *arguments: str, env: Mapping[str, str]) -> None:
        """``arguments`` are ``sys.argv[2:]`` of the child, ``env`` is its whole environment."""
        paths = json.dumps([path for path in sys.path if path])  # without "", the current folder
        code = f"import sys, json; sys.path[:] = json.loads(sys.argv[1]); from {module} import main; main()"
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", code, paths, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=dict(env),
            start_new_session=True,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        assert self._process.stdin is not None and self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self._killed = False

    @property
    def pid(self) -> int:
        """The id of the process, and of its process group."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        return self._process.poll()

    def send(self, message: Mapping[str, Any]) -> None:
        write_message(self._stdin, message)

    def receive(self, max_line_bytes: int, max_data_bytes: int | None = None) -> tuple[dict[str, Any], bytes | None]:
        """The next message, and its data or None."""
        line = self._stdout.readline(max_line_bytes)
        if not line:
            raise EOFError("the process ended")
        message = json_object(line)
        if message is None:
            raise ValueError("a message is not a JSON object")
        if "bytes" not in message:
            return message, None
        size = message["bytes"]
        if type(size) is not int or size < 0 or (max_data_bytes is not None and size > max_data_bytes):
            raise ValueError("a message has data of a wrong size")
        data = self._stdout.read(size)
        if len(data) < size:
            raise EOFError("the process ended within its data")
        return message, data

    def wait(self, timeout_s: float) -> int | None:
        """The exit code; None if the process still runs after ``timeout_s`` seconds."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout_s)
        return self._process.poll()

    def terminate(self) -> None:
        """Ask the process to end, by SIGTERM on systems that have signals."""
        self._process.terminate()

    def close(self, timeout_s: float) -> None:
        """Close the pipes, wait up to ``timeout_s`` seconds for the end, then kill the process and its children."""
        self._close_pipes()
        try:
            self.wait(timeout_s)
        finally:
            self.kill()

    def kill(self) -> None:
        """Kill the process and all processes that it started. A second call does nothing."""
        if not self._killed:
            self._killed = True
            kill_session(self._process)
        self._process.wait()
        self._close_pipes()

    def _close_pipes(self) -> None:
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):  # the process ended without reading all data
                pipe.close()


def kill_session(process: subprocess.Popen[bytes]) -> None:
    """Kill a process that leads a session, and all processes that it started; on Windows only the process itself."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()


class Watchdog:
    """Kills a child after ``timeout_s`` seconds inside the ``with`` blocks of this object, all together."""

    def __init__(self, child: ChildProcess, timeout_s: float) -> None:
        self._child, self._left_s = child, timeout_s
        self.expired = False

    def __enter__(self) -> None:
        self._entered = time.monotonic()
        self._timer = threading.Timer(max(self._left_s, 0.0), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._left_s -= time.monotonic() - self._entered

    def _expire(self) -> None:
        self.expired = True
        self._child.kill()
