"""Files to Markdown. Text is read as it is; MarkItDown, which only this folder imports, converts all other formats.

Files are not trusted. They are converted in child processes (:mod:`pool`, :mod:`worker`) with limits on time, memory
and output and with a minimal environment, so that a bad file costs one error and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.library.converter_pool import Pool
from anvil.library.file_formats import TEXT, Format, format_of
from anvil.library.text_encoding import decoded
from anvil.settings.schema import LibraryOptions
from anvil.text.chunks_in_parts import DocumentPart, sliced


class Converter:
    """Files to parts of Markdown. Thread-safe; each running conversion has a process."""

    def __init__(self, options: LibraryOptions, processes: int) -> None:
        self._options = options
        self._pool = Pool(options, processes)

    def parts(self, path: Path, file_type: str, name: str) -> Iterator[DocumentPart]:
        """The Markdown of the file at ``path``, in order; each part is converted when it is read.

        ``file_type``: its ending, without dot, in lower case. ``name``: its file name. Raises
        :class:`DocumentRejected` for an unknown type, a damaged file, or one over a limit.
        """
        format_ = format_of(file_type, self._options)
        return self._text(path) if format_ is TEXT else self._converted(path, file_type, name, format_)

    def close(self) -> None:
        """End the processes; running conversions fail."""
        self._pool.close()

    def _text(self, path: Path) -> Iterator[DocumentPart]:
        try:
            text = decoded(path.read_bytes(), use_declared=False)
        except OSError as error:
            raise unreadable(path, error) from None
        if len(text) > self._options.max_characters:
            raise DocumentTooLarge(
                f"It has {len(text):,} characters; the limit is {self._options.max_characters:,} "
                "(library.max_characters)."
            )
        return (DocumentPart(slice_) for slice_ in sliced(text))

    def _converted(self, path: Path, file_type: str, name: str, format_: Format) -> Iterator[DocumentPart]:
        empty = True
        for part in self._pool.convert(path, file_type, name):
            text = part.text.strip()
            if text:
                empty = False
                yield from (DocumentPart(slice_, part.page) for slice_ in sliced(text + "\n\n"))
        if empty:
            raise DocumentRejected(f"It holds no text. {format_.when_empty}".strip())


def unreadable(path: Path, error: OSError) -> DocumentRejected:
    """Why a file cannot be read, for people."""
    if isinstance(error, FileNotFoundError):
        return DocumentRejected(f"There is no file {path}. Paths are those of the machine that Anvil runs on.")
    return DocumentRejected(f"{path} cannot be read ({error.strerror or type(error).__name__}). Check its permissions.")
