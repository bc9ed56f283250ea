"""The pause of Python's cyclic garbage collector while a large page is taken apart.

A page of a megabyte may have half a million headings. What is made of them has no cycles, and the collector would go
through all of it again for each quarter that is added: half of the processor time.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

MIN_CHARACTERS = 50_000
"""Characters of a text from which on the collector pauses."""

_lock = threading.Lock()
_pauses = 0
_enabled = True


@contextmanager
def paused(size: int) -> Iterator[None]:
    """No garbage collection within the ``with`` block, in any thread, if ``size`` is at least
    :data:`MIN_CHARACTERS`."""
    global _pauses, _enabled
    if size < MIN_CHARACTERS:
        yield
        return
    with _lock:
        if not _pauses:
            _enabled = gc.isenabled()
            gc.disable()
        _pauses += 1
    try:
        yield
    finally:
        with _lock:
            _pauses -= 1
            if not _pauses and _enabled:
                gc.enable()
