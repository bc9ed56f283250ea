"""A filter that drops the HTTP library's log records of our requests, because URLs can be signed."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_quiet: ContextVar[bool] = ContextVar("anvil_quiet", default=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Drop the library's log records within this context."""
    token = _quiet.set(True)
    try:
        yield
    finally:
        _quiet.reset(token)


class _Quiet(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not _quiet.get()


_FILTER = _Quiet()


def install() -> None:
    """Add the filter to the library's loggers. A second call does nothing."""
    for version in ("", "2"):  # our library, and that of OpenAI's client
        for name in ("connection", "http11", "proxy", "socks"):
            logging.getLogger(f"httpcore{version}.{name}").addFilter(_FILTER)
        logging.getLogger(f"httpx{version}").addFilter(_FILTER)
    logging.getLogger("openai._base_client").addFilter(_FILTER)
