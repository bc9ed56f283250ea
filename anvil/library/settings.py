"""The table ``[library]`` of the configuration."""

from __future__ import annotations

from dataclasses import dataclass, field, fields

from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.settings.schema import MAX_INTERVAL_S, within


@dataclass(frozen=True, slots=True)
class LibraryOptions:
    """The document library. The limits are those of one document."""

    index: str | None = field(default=None, metadata={"path": True})
    """The library's file; not set means ``library.db`` in the user's data folder."""
    max_file_bytes: int = 100_000_000
    """Bytes of a file or a download."""
    max_upload_bytes: int = 52_428_800
    """Bytes of a file sent to ``POST /upload``."""
    max_characters: int = 64_000_000
    """Characters of a document as Markdown."""
    max_pages: int = 5000
    """Pages of a PDF."""
    convert_seconds: float = 300.0
    """Seconds for the conversion of one file."""
    convert_memory_bytes: int = 2_000_000_000
    """Bytes of memory of the process that converts; not on Windows and macOS."""
    download_seconds: float = 60.0
    """Seconds for one URL, redirects included."""
    allow_private_urls: bool = field(default=False, metadata={"instead": "start Anvil with --allow-private-urls"})
    """Whether ``ingest_url`` can fetch from this machine and its network. An error in a file not named with
    ``--config``."""
    transcribe_audio: bool = field(default=False, metadata={"instead": "set ANVIL_LIBRARY_TRANSCRIBE_AUDIO=true"})
    """Whether MarkItDown may send recordings to a speech service. An error in a file not named with ``--config``."""

    def __post_init__(self) -> None:
        for option in fields(self):
            value = getattr(self, option.name)
            if isinstance(value, float):
                within(f"library.{option.name}", value, 0.001, MAX_INTERVAL_S)
            elif isinstance(value, int) and not isinstance(value, bool):
                within(f"library.{option.name}", value, 1)
        if self.index is not None and not self.index.strip():
            raise ConfigError("library.index is empty. Name the library's file, or leave the key out.")
        if index_url.is_remote(self.index or "") or index_url.is_unknown(self.index or ""):
            raise ConfigError("library.index is an address. A library is a file on this machine: name its path.")
