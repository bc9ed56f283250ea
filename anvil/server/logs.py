"""The log of a server on stderr, with a line for each call, and the progress of long work, to the log and to clients.

The log has one line for each event, as text or JSON. Any thread may report progress, such as that of the first build.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from typing import Any

from anvil.errors import AnvilError
from anvil.formats.characters import json_line, log_line

LEVELS = {"silent": 100, "error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
"""Names on the command line -> levels. ``silent`` is above all of them."""

log = logging.getLogger("anvil.server")
FIELDS = "anvil_fields"
MAX_FOREIGN_CHARACTERS = 500
"""Length of a message of another library, which may quote what a client sent."""


def event(level: int, message: str, **fields: Any) -> None:
    """Log ``message`` with named values, which are fields of their own in JSON lines."""
    log.log(level, message, extra={FIELDS: fields})


@contextmanager
def timed(tool: str) -> Iterator[None]:
    """Log a line for the call of a tool, or of a method of the protocol: its outcome and its duration. Level debug."""
    started = time.perf_counter()
    outcome = "answered"
    try:
        yield
    except AnvilError:
        outcome = "refused"
        raise
    except BaseException as error:
        outcome = "failed" if isinstance(error, Exception) else "cancelled"
        raise
    finally:
        if log.isEnabledFor(logging.DEBUG):
            event(logging.DEBUG, f"{tool} {outcome}", tool=tool, ms=round((time.perf_counter() - started) * 1000, 3))


def configure(level: str = "info", form: str = "text") -> None:
    """Write to stderr from now on. Of other libraries, only warnings and errors are shown, and nothing that has a
    handler of its own, as the log of an ASGI server may have."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_is_relevant)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger("anvil").setLevel(LEVELS[level])
    logging.captureWarnings(True)


def _is_relevant(record: logging.LogRecord) -> bool:
    """False for a client that disconnected during its request, for a request that ends with the server, and for what
    another handler writes. What other libraries say of a client's mistake is one line of bounded length."""
    logger = logging.getLogger(record.name)
    while logger.parent is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return False
        logger = logger.parent
    kind = record.exc_info[0].__name__ if record.exc_info and record.exc_info[0] else ""
    if not record.name.startswith("anvil"):
        if kind == "ValidationError" and record.name.startswith("mcp"):
            record.exc_info = None  # of the protocol's messages: where the SDK noticed it tells nothing
        if len(message := record.getMessage()) > MAX_FOREIGN_CHARACTERS:
            record.msg, record.args = message[:MAX_FOREIGN_CHARACTERS] + "...", None
    return kind not in ("ClientDisconnect", "CancelledError")


class TextLines(logging.Formatter):
    """``12:00:01 info search_docs (ms=12.3)``, with a traceback for an unexpected exception."""

    def format(self, record: logging.LogRecord) -> str:
        fields = getattr(record, FIELDS, {})
        values = " ".join(f"{name}={value}" for name, value in fields.items())
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{time} {level_name(record)} {record.getMessage()}" + (f" ({values})" if values else "")
        return log_line(line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else ""))


class JsonLines(logging.Formatter):
    """A JSON object in each line: time (UTC), level, logger, message, and the named values."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        entry: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": level_name(record),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            entry["traceback"] = self.formatException(record.exc_info)
        return json_line(json.dumps(entry, ensure_ascii=False, default=str))


def level_name(record: logging.LogRecord) -> str:
    return "warn" if record.levelno == logging.WARNING else record.levelname.lower()


# --- progress -------------------------------------------------------------------------------------------

Send = Callable[[str, dict[str, Any]], object]
"""Sends a notification: its method and params. It is called from any thread, and must not block."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Time between two log lines, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.values.Progress` that reports to the log, to requests with a progress token, and to
    :attr:`log_to_clients`. The progress of a request never decreases."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: set[Callable[[float, float, str], None]] = set()
        self.log_to_clients: Callable[[str], object] | None = None
        self._stage, self._base, self._done, self._total = "", 0, 0, 0
        self._logged = time.monotonic() - LOG_INTERVAL_S + 1.0
        self._notified = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report from any thread: ``stage``, ``done`` of ``total``."""
        now = time.monotonic()
        with self._lock:
            if begins := stage != self._stage or done < self._done:
                self._base += self._total  # one progress bar over all stages, which never goes back
            self._stage, self._done, self._total = stage, done, total
            message = f"{stage} {done} of {total}"
            log = total > 1 and now - self._logged >= LOG_INTERVAL_S
            notify = begins or done >= total or now - self._notified >= NOTIFY_INTERVAL_S
            self._logged = now if log else self._logged
            self._notified = now if notify else self._notified
            if notify or log:  # with the lock, so that nothing is sent once a request has stopped watching
                for watcher in self._watchers:
                    watcher(self._base + done, self._base + total, message)
        if log:
            event(logging.INFO, message)
            if self.log_to_clients is not None:
                self.log_to_clients(message)

    @contextmanager
    def sent(self, token: Any, send: Send) -> Iterator[None]:
        """A context in which progress is sent as notifications, if the request has a progress token."""
        if type(token) not in (int, str):
            yield
            return

        def watcher(done: float, total: float, message: str) -> None:
            params = {"progressToken": token, "progress": done, "total": total, "message": message}
            send("notifications/progress", params)

        with self._lock:
            self._watchers.add(watcher)
        try:
            yield
        finally:
            with self._lock:
                self._watchers.discard(watcher)
