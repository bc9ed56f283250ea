"""Files to Markdown. Text is read as it is; every other format goes through MarkItDown, whose only door this room is.

Files are hostile ground: they are converted by processes of their own (:mod:`pool`, :mod:`worker`), which get time,
memory and output within limits, and no environment to speak of. What they may cost is one error.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from anvil.config import LibraryOptions
from anvil.converting.formats import TEXT, Format, format_of
from anvil.converting.pool import Pool
from anvil.converting.text import decoded
from anvil.errors import DocumentRejected, DocumentTooLarge
from anvil.pieces import Piece, sliced


class Converter:
    """Files to pieces of Markdown. Usable from several threads; each conversion under way has a process."""

    def __init__(self, options: LibraryOptions, processes: int) -> None:
        self._options = options
        self._pool = Pool(options, processes)

    def pieces(self, path: Path, file_type: str, name: str) -> Iterator[Piece]:
        """The Markdown of the file at ``path``, in order; a piece is made when it is asked for.

        ``file_type``: its ending, without dot, in lower case. ``name``: what it is called. Raises
        :class:`DocumentRejected`: of an unknown type, damaged, over a limit.
        """
        format_ = format_of(file_type, self._options)
        return self._text(path) if format_ is TEXT else self._converted(path, file_type, name, format_)

    def close(self) -> None:
        """End the processes; conversions under way fail."""
        self._pool.close()

    def _text(self, path: Path) -> Iterator[Piece]:
        try:
            text = decoded(path.read_bytes(), own=False)
        except OSError as error:
            raise unreadable(path, error) from None
        if len(text) > self._options.max_characters:
            raise DocumentTooLarge(
                f"It has {len(text):,} characters; the limit is {self._options.max_characters:,} "
                "(library.max_characters)."
            )
        return (Piece(slice_) for slice_ in sliced(text))

    def _converted(self, path: Path, file_type: str, name: str, format_: Format) -> Iterator[Piece]:
        empty = True
        for piece in self._pool.convert(path, file_type, name):
            text = piece.text.strip()
            if text:
                empty = False
                yield from (Piece(each, piece.page) for each in sliced(text + "\n\n"))
        if empty:
            raise DocumentRejected(f"It holds no text. {format_.when_empty}".strip())


def unreadable(path: Path, error: OSError) -> DocumentRejected:
    """Why a file cannot be read, for people."""
    if isinstance(error, FileNotFoundError):
        return DocumentRejected(f"There is no file {path}. Paths are those of the machine that Anvil runs on.")
    return DocumentRejected(f"{path} cannot be read ({error.strerror or type(error).__name__}). Check its permissions.")
