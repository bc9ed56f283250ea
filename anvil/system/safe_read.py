"""Reads of files in folders that other people control, such as a checkout: regular files only, and never without limit.

A name that Anvil reads can be planted as a pipe, which would be waited for, or as a link to a device without end.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

MAX_BYTES = 10_000_000
"""Bytes of the largest configuration file that is read."""
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)  # a pipe is opened without a writer


def data(path: Path, max_bytes: int = MAX_BYTES, *, follow: bool = True) -> bytes:
    """The bytes of a file. ``follow``: also of one that a link leads to; never so on Windows, where a link is not
    recognized. Raises :class:`OSError`, also for what is not a regular file and for one that is larger."""
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
    return content


def reason(error: Exception) -> str:
    """Why a file cannot be read, without its name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def text(path: Path, max_bytes: int = MAX_BYTES, errors: str = "strict") -> str:
    """The text of a UTF-8 file, without a byte order mark and with ``\\n`` at the end of its lines.

    Raises :class:`OSError` as :func:`data` does, and :class:`UnicodeDecodeError`.
    """
    decoded = data(path, max_bytes).decode("utf-8-sig", errors)
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def sha256(path: Path, opener: Callable[[str, int], int] | None = None) -> str:
    """SHA-256 of a file of any size, hex. ``opener``: as of :func:`open`."""
    digest = hashlib.sha256()
    with open(path, "rb", opener=opener) as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
