"""The log of a server on stderr, such as its line for each call; and progress of long work, for the log and clients.

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

from anvil.formats.characters import json_line, log_line

LEVELS = {"silent": 100, "error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
"""Name on the command line -> level. ``silent`` is above all levels, so nothing is logged."""

log = logging.getLogger("anvil.server")
FIELDS = "anvil_fields"
"""The attribute of a record with the named values of an event."""
MAX_FOREIGN_CHARACTERS = 500
"""Characters of a message of another library. It may quote a text of a client."""


def event(level: int, message: str, **fields: Any) -> None:
    """Log a message with named values. In JSON lines each of them is a field."""
    log.log(level, message, extra={FIELDS: fields})


def configure(level: str = "info", form: str = "text") -> None:
    """Write the log to stderr from now on. ``form``: ``text`` or ``json``.

    Of other libraries only warnings and errors are written. Loggers with a handler of their own, as an ASGI server may
    have, are left to it.
    """
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_is_relevant)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger("anvil").setLevel(LEVELS[level])
    logging.captureWarnings(True)


def _is_relevant(record: logging.LogRecord) -> bool:
    """Whether a record is written. Messages of other libraries are shortened.

    Not written are a client that disconnected during its request or its stream, a request that ends with the server,
    and records that another handler writes.
    """
    logger = logging.getLogger(record.name)
    while logger.parent is not None:
        if any(not isinstance(handler, logging.NullHandler) for handler in logger.handlers):
            return False
        logger = logger.parent
    error: Any = record.exc_info[1] if record.exc_info else None
    while len(getattr(error, "exceptions", ())) == 1:  # an exception group, as of the SDK's tasks
        error = error.exceptions[0]
    kind = type(error).__name__
    if not record.name.startswith("anvil"):
        if kind == "ValidationError" and record.name.startswith("mcp"):
            record.exc_info = None  # an invalid message of a client: the traceback shows only code of the SDK
        if len(message := record.getMessage()) > MAX_FOREIGN_CHARACTERS:
            record.msg, record.args = message[:MAX_FOREIGN_CHARACTERS] + "...", None
    return kind not in ("ClientDisconnect", "ClosedResourceError", "BrokenResourceError", "CancelledError")


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
"""A function that sends a notification, by its method and params. It is called from any thread and must not block."""

LOG_INTERVAL_S, NOTIFY_INTERVAL_S = 5.0, 0.25
"""Least time between two log lines, and between two messages to a client."""


class ProgressReporter:
    """A :data:`anvil.values.Progress` for servers. It reports to the log, to requests with a progress token, and to
    :attr:`log_to_clients`. The numbers that a request gets never decrease."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._watchers: set[Callable[[float, float, str], None]] = set()
        self.log_to_clients: Callable[[str], object] | None = None
        self._stage, self._base, self._done, self._total = "", 0, 0, 0
        self._logged = time.monotonic() - LOG_INTERVAL_S + 1.0
        self._notified = 0.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Report that ``done`` of ``total`` are done in this stage. May be called from any thread."""
        now = time.monotonic()
        with self._lock:
            if begins := stage != self._stage or done < self._done:
                self._base += self._total  # one progress bar over all stages, so the earlier ones are added
            self._stage, self._done, self._total = stage, done, total
            message = f"{stage} {done} of {total}"
            log = total > 1 and now - self._logged >= LOG_INTERVAL_S
            notify = begins or done >= total or now - self._notified >= NOTIFY_INTERVAL_S
            self._logged = now if log else self._logged
            self._notified = now if notify else self._notified
            if notify or log:  # under the lock, so that nothing is sent to a request that has stopped watching
                for watcher in self._watchers:
                    watcher(self._base + done, self._base + total, message)
        if log:
            event(logging.INFO, message)
            if self.log_to_clients is not None:
                self.log_to_clients(message)

    @contextmanager
    def sent(self, token: Any, send: Send) -> Iterator[None]:
        """A context in which progress is sent as notifications of one request, if ``token`` is a progress token."""
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
