"""Safe reads and writes of files, in folders that other people control; and the user's folders for caches and data.

In a checkout, somebody can have put a pipe in the place of a file, which would block a read; or a link to an endless
device, or to a file outside. So only regular files are read, up to a limit, and a write replaces or refuses a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from anvil.errors import BuildError, ConfigError

MAX_BYTES = 10_000_000
"""Bytes of the largest configuration file that is read."""
# With O_NONBLOCK, opening a pipe does not wait for a writer.
_FLAGS = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_KINDS = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a folder", stat.S_IFIFO: "a pipe"}
# A link or a pipe may take the place of the file after the check. With these flags, which Windows does not have, a link
# is not followed, and a pipe does not block.
_OPEN_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
_RENAME_ATTEMPTS = 20 if os.name == "nt" else 1
_RENAME_PAUSE_S = 0.1


def data(path: Path, max_bytes: int = MAX_BYTES, *, follow: bool = True) -> bytes:
    """The bytes of a file. Raises :class:`OSError`, also if it is no regular file or has more than ``max_bytes``.

    ``follow=False`` refuses a link, except on Windows, where links are not recognized.
    """
    descriptor = os.open(path, _FLAGS if follow else _FLAGS | getattr(os, "O_NOFOLLOW", 0))
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file", str(path))
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise OSError(errno.EFBIG, f"it has more than {max_bytes:,} bytes", str(path))
    return content


def reason(error: Exception) -> str:
    """The reason of an error, without the file's name."""
    return (isinstance(error, OSError) and error.strerror) or str(error)


def unwritable(path: str | os.PathLike[str], error: OSError) -> str:
    """The message that a file or folder cannot be written, with the next step."""
    is_full = error.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", errno.ENOSPC))
    step = "Free some space on its disk" if is_full else "Check its place and its permissions"
    return f"{os.fspath(path)} cannot be written: {reason(error)}. {step}, and try again."


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn :class:`OSError` from writing ``path`` or a file in it into :class:`BuildError`, with the next step."""
    try:
        yield
    except OSError as error:
        raise BuildError(unwritable(error.filename or path, error)) from error


def text(path: Path, max_bytes: int = MAX_BYTES, errors: str = "strict") -> str:
    """The text of a UTF-8 file, without a byte order mark, and with ``\\n`` as the end of lines.

    Raises :class:`OSError` like :func:`data`, and :class:`UnicodeDecodeError`.
    """
    decoded = data(path, max_bytes).decode("utf-8-sig", errors)
    return decoded.replace("\r\n", "\n").replace("\r", "\n")


def sha256(path: Path) -> str:
    """The SHA-256 of a file of any size, hex."""
    return hashed(path, hashlib.sha256())


def digest(path: Path) -> str | None:
    """The SHA-256 of the regular file at ``path``, hex; None if there is nothing. Raises as :func:`regular_file`."""
    return None if regular_file(path) is None else hashed(path, hashlib.sha256(), opener)


def hashed(path: Path, whole: hashlib._Hash, opener: Callable[[str, int], int] | None = None) -> str:
    """Add a file of any size to the hash ``whole``. Returns the hex digest. ``opener``: see :func:`open`."""
    with open(path, "rb", opener=opener) as file:
        while block := file.read(1 << 20):
            whole.update(block)
    return whole.hexdigest()


def write_file(path: Path, content: str | bytes, *, replace: bool = False, flush: bool = True) -> None:
    """Write a whole file or nothing: a new file beside it is written, flushed to the disk, and renamed over it.

    Text is written as UTF-8 with ``\\n``. An existing file keeps its mode. ``replace``: a link or a pipe at ``path`` is
    replaced instead of refused. ``flush=False``: the content may be lost when the power fails. Raises
    :class:`BuildError` if there is something else than a regular file, and :class:`OSError`.
    """
    try:
        state = regular_file(path)
    except BuildError:
        if not replace:
            raise
        state = None
    new_file = path.with_name(f"{path.name}.{os.urandom(4).hex()}.new")  # a name that no other writer uses
    try:
        with open(new_file, "xb", opener=opener) as file:
            file.write(content.encode() if isinstance(content, str) else content)
            if flush:
                file.flush()
                os.fsync(file.fileno())
        if state is not None:
            new_file.chmod(stat.S_IMODE(state.st_mode))
        rename(new_file, path)
    finally:
        new_file.unlink(missing_ok=True)


def update_file(path: Path, content: bytes, *, replace: bool = False, flush: bool = True) -> None:
    """Call :func:`write_file`, unless the content is the same: other programs notice changes by a file's time."""
    try:
        is_same = not path.is_symlink() and data(path, len(content)) == content
    except OSError:  # it is missing or larger, or write_file() refuses it
        is_same = False
    if not is_same:
        write_file(path, content, replace=replace, flush=flush)


def put_file(path: Path, content: str | bytes, *, flush: bool = True) -> None:
    """Create missing folders, and call :func:`write_file`. Raises :class:`BuildError`, with the next step."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, content, flush=flush)
    except OSError as error:  # the error may have the name of the temporary file, so ``path`` is named
        raise BuildError(unwritable(path, error)) from None


def set_line(path: Path, line: str, *, present: bool) -> bool:
    """Add a line at the end of a text file, or remove it. Returns whether that changed the file.

    Other lines and the kind of line ends are kept. A file without lines is removed. Raises :class:`BuildError`.
    """
    try:
        text = data(path).decode("utf-8", "surrogateescape")
    except FileNotFoundError:
        text = ""
    except OSError as error:
        raise BuildError(f"{path} cannot be read: {reason(error)}. Move it away, and try again.") from None
    if (line in text.splitlines()) == present:
        return False
    if present:
        end = "\r\n" if "\r\n" in text else "\n"
        text += (end if text and not text.endswith("\n") else "") + line + end
    else:
        text = "".join(other for other in text.splitlines(keepends=True) if other.rstrip("\r\n") != line)
    put_file(path, text.encode("utf-8", "surrogateescape"))  # also if it is removed below, because this refuses a link
    if not text:
        clear(path)
    return True


def rename(source: Path, target: Path) -> None:
    """Call :func:`os.replace`. It is repeated on Windows, which refuses it while another program reads ``target``."""
    for attempt in range(_RENAME_ATTEMPTS):
        try:
            os.replace(source, target)
            return
        except PermissionError:
            if attempt == _RENAME_ATTEMPTS - 1:
                raise
            time.sleep(_RENAME_PAUSE_S)


def regular_file(path: str | os.PathLike[str]) -> os.stat_result | None:
    """The stat of the regular file at ``path``; None if there is nothing.

    Raises :class:`BuildError` for a link, a folder, a pipe or a device.
    """
    try:
        state = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):  # NotADirectoryError: a part of the path is a file
        return None
    _ensure_regular(path, state)
    return state


def opener(path: str, flags: int) -> int:
    """An ``opener`` for :func:`open` that opens only regular files. Raises the errors of :func:`regular_file`."""
    regular_file(path)
    descriptor = os.open(path, flags | _OPEN_FLAGS, 0o666)
    try:
        _ensure_regular(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def clear(path: Path) -> None:
    """Remove the file or link at ``path``, to make room for a new file. Raises :class:`BuildError`."""
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise BuildError(f"{path} is in the way ({error.strerror}). Remove it, and try again.") from error


def from_working_folder(path: str | os.PathLike[str]) -> str:
    """The path from the working folder. It is not changed if it is on another drive of Windows, from which no relative
    path leads, or if the working folder was removed."""
    try:
        return os.path.relpath(path)
    except (ValueError, OSError):
        return os.fspath(path)


def ensure_inside_parent(folder: Path, parent: Path | None = None) -> None:
    """Raise :class:`BuildError` if ``folder`` leads out of ``parent``, by default its parent folder, by a link."""
    parent = parent or folder.parent
    if not Path(os.path.realpath(folder)).is_relative_to(os.path.realpath(parent)):
        raise BuildError(f"{folder} is a link that leads out of {parent}. Remove it, or name another place.")


def _ensure_regular(path: str | os.PathLike[str], state: os.stat_result) -> None:
    if not stat.S_ISREG(state.st_mode):
        kind = _KINDS.get(stat.S_IFMT(state.st_mode), "a device")
        raise BuildError(
            f"{os.fspath(path)} is {kind}, and Anvil writes to regular files only. Remove it, and try again."
        )


# --- folders of the user, by the conventions of each system. These functions create none, except make_folder() -------


def user_cache() -> Path:
    """The user's cache folder, with fetched indexes, the record of checked ones, vectors and maps.

    Its content is trusted, so it must belong to this user. If several users share the folder above it, the first one
    has ``anvil`` and each other one ``anvil-UID``. Raises :class:`ConfigError` if that belongs to another user, too."""
    import platformdirs

    usual = Path(platformdirs.user_cache_dir("anvil", appauthor=False))
    if os.name == "nt" or _is_own(usual):
        return usual
    own = usual.with_name(f"anvil-{os.geteuid()}")
    if not _is_own(own):
        raise ConfigError(
            f"The cache folder {own} belongs to another user, or all users may write to it. Remove it, or set "
            "XDG_CACHE_HOME to a folder of your own."
        )
    return own


def user_data() -> Path:
    """The user's data folder, with the library."""
    import platformdirs

    return Path(platformdirs.user_data_dir("anvil", appauthor=False))


def make_folder(folder: Path) -> None:
    """Create a folder and its missing parents, for this user only. Raises :class:`OSError`."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def is_private(folder: Path) -> bool:
    """Whether a folder exists, belongs to this user, and nobody else can write to it."""
    try:
        state = folder.stat()
    except OSError:
        return False
    return os.name == "nt" or (state.st_uid == os.geteuid() and not state.st_mode & (stat.S_IWGRP | stat.S_IWOTH))


def _is_own(folder: Path) -> bool:
    """Whether a folder is missing, or belongs to this user and not all users can write to it.

    A group may write, because a folder that is open to a group, such as a volume of Kubernetes, is meant to be shared.
    A link must belong to this user, too."""
    try:
        link = folder.lstat()
        state = folder.stat()
    except FileNotFoundError:
        return not folder.is_symlink() or folder.lstat().st_uid == os.geteuid()
    except OSError:
        return True  # it cannot be used, either, and that will raise an error with the reason
    return link.st_uid == state.st_uid == os.geteuid() and not state.st_mode & stat.S_IWOTH
