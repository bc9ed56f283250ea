"""Where an index is, and how it is opened."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.values import Changes, Progress

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.index_file.reader import IndexReader, Reader

CLOSED = "This index is closed. Open it again, as with anvil.open()."


class IndexLocation:
    """An index file on this machine; subclasses are for an index that is fetched, and for one in Milvus."""

    is_file = True
    origin: str | None = None
    """The address of a published index or of Milvus, without credentials; None for a local file."""
    copy_class: Any = None
    """The class of the copy for queries; None: :class:`anvil.live.memory_copy.MemoryCopy`."""
    published_at: str | None = None
    """When the index was published, from its server (ISO 8601, UTC); None when unknown."""

    def __init__(self, path: Path, *, built_here: bool = True) -> None:
        """``built_here``: whether there are documents or a site that it is built from."""
        self._built_here = built_here
        self.path = path
        """The index file. For an index in Milvus: a path for messages and locks, at which there is no file."""
        self.on_replaced: Callable[[], None] = lambda: None
        """Called when another index was put at :attr:`path`, by the thread that did so."""

    @property
    def fetched(self) -> bool:
        """Whether the first attempt to find the index is done."""
        return True

    def start(self, progress: Progress | None = None) -> None:
        """Fetch, and keep up to date, in a thread of its own; returns at once. A second call does nothing more."""

    def ensure_fetched(self, wait: bool) -> None:
        """Return when there is an index at :attr:`path`. ``wait``: however long it takes.

        Raises :class:`FetchError` when there is none yet.
        """

    def notes(self) -> list[str]:
        """Sentences on how the index was fetched."""
        return []

    def open(self) -> AbstractContextManager[IndexReader]:
        """A reader of the index. Raises :class:`ArtifactError` when it cannot be used."""
        return self.open_file()

    def open_file(self) -> Reader:
        """The reader of :attr:`path`."""
        from anvil.index_file import verify

        # Which of the two decides only what a message advises: a build here, or where the index was built.
        return verify.open_checked(self.path) if self._built_here else verify.open_foreign(self.path)

    def compare(self, source: DocumentSource) -> Changes:
        """How the documents differ from the index. Raises :class:`ArtifactError` when it cannot be used, or is a
        shard."""
        from anvil.index_file import verify
        from anvil.live import site_view

        with self.open() as reader:
            verify.refuse_part(reader, self.path)
            return site_view.compared(reader, source)

    def stop(self) -> None:
        """End the thread; queries still work. A second call does nothing."""

    def close(self) -> None:
        """Close the connection, once no memory copy uses it."""
