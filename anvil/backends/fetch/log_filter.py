"""What the HTTP library logs of our requests is dropped: it names URLs, which may be signed. Others keep their log."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

_quiet: ContextVar[bool] = ContextVar("anvil_quiet", default=False)


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """While this lasts, in this context, the library's loggers say nothing."""
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
    """Put the filter where the library logs; a second time does nothing."""
    for version in ("", "2"):  # of our own, and of OpenAI's client
        for each in ("connection", "http11", "proxy", "socks"):
            logging.getLogger(f"httpcore{version}.{each}").addFilter(_FILTER)
        logging.getLogger(f"httpx{version}").addFilter(_FILTER)
    logging.getLogger("openai._base_client").addFilter(_FILTER)
