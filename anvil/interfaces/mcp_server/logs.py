"""What the server writes on stderr: one line an event, as text or as JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime, timezone
from typing import Any

LEVELS = {"silent": 100, "error": logging.ERROR, "warn": logging.WARNING, "info": logging.INFO, "debug": logging.DEBUG}
"""Names on the command line -> levels; ``silent`` is above all of them."""

log = logging.getLogger("anvil.server")
FIELDS = "anvil_fields"


def event(level: int, message: str, **fields: Any) -> None:
    """Log ``message`` with named values, which JSON lines keep apart."""
    log.log(level, message, extra={FIELDS: fields})


def configure(level: str = "info", form: str = "text") -> None:
    """Write to stderr from now on. Libraries' own lines are shown from warnings upward, without payloads."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    handler.addFilter(_worth_telling)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(max(LEVELS[level], logging.WARNING))
    logging.getLogger("anvil").setLevel(LEVELS[level])
    logging.captureWarnings(True)


def _worth_telling(record: logging.LogRecord) -> bool:
    """All but a client that went away in the middle of its request, which is its own affair."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "ClientDisconnect"


class TextLines(logging.Formatter):
    """``12:00:01 info search_docs (ms=12.3)``; a traceback only for what nobody foresaw."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a line."""
        fields = getattr(record, FIELDS, {})
        told = " ".join(f"{name}={value}" for name, value in fields.items())
        time = datetime.fromtimestamp(record.created).strftime("%H:%M:%S")
        line = f"{time} {level_name(record)} {record.getMessage()}" + (f" ({told})" if told else "")
        return line + (f"\n{self.formatException(record.exc_info)}" if record.exc_info else "")


class JsonLines(logging.Formatter):
    """One JSON object a line: time (UTC), level, logger, message, and the named values."""

    def format(self, record: logging.LogRecord) -> str:
        """One record as a line."""
        time = datetime.fromtimestamp(record.created, timezone.utc).isoformat(timespec="milliseconds")
        found: dict[str, Any] = {
            "time": time.replace("+00:00", "Z"),
            "level": level_name(record),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, FIELDS, {}),
        }
        if record.exc_info:
            found["traceback"] = self.formatException(record.exc_info)
        return json.dumps(found, ensure_ascii=False, default=str)


def level_name(record: logging.LogRecord) -> str:
    """The level as the command line spells it."""
    return "warn" if record.levelno == logging.WARNING else record.levelname.lower()
