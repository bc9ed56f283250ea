"""The file of a suite of questions: where it is found, how it is read and written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anvil.doc_tests.suite import FILE_NAME, MAX_FILE_BYTES
from anvil.errors import ConfigError
from anvil.system import safe_read, safe_write


def find(docs: Path | None, base: Path) -> Path | None:
    """The suite of a documentation folder: in it, or in a folder above it, up to the repository's root. ``base``: where
    to begin without a folder."""
    return next((path for path in _places(docs, base) if path.is_file()), None)


def none_found(docs: Path | None, base: Path) -> str:
    """That there is no suite, and what to do: sentences."""
    folder = docs.absolute().parent if docs is not None else base
    return (
        f"There is no {FILE_NAME} in {folder}. Write questions into it, or begin with: "
        f"anvil test --suggest > {FILE_NAME}"
    )


def _places(docs: Path | None, base: Path) -> Iterator[Path]:
    start = (docs or base).absolute()
    for folder in (start, *start.parents):
        yield folder / FILE_NAME
        if (folder / ".git").exists() or (folder / ".hg").exists():
            return
        if folder == start.parent and not any((above / ".git").exists() for above in folder.parents):
            return  # in no repository: not further than the folder of the documents


def read(path: Path) -> str:
    """The text of a suite. Raises :class:`ConfigError`."""
    try:
        if path.is_file() and path.stat().st_size > MAX_FILE_BYTES:
            raise ConfigError(f"{path} has {path.stat().st_size:,} bytes. A suite has at most {MAX_FILE_BYTES:,}.")
        return safe_read.data(path, MAX_FILE_BYTES + 1).decode("utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"There is no {path}. Name the file of a suite, or none for {FILE_NAME}.") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} cannot be read: {error}. Correct the file, or name another.") from None


def write(path: Path, text: str) -> None:
    """Replace the text of a suite. Raises :class:`ConfigError`."""
    try:
        safe_write.write_file(path, text)
    except OSError as error:
        raise ConfigError(f"{path} cannot be written: {error.strerror}. Change its permissions.") from error
