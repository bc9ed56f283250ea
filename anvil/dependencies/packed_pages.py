"""Pages that are in memory, such as those of a package: they have one time, and no repository."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from anvil.documents.file_selection import printable, refusal
from anvil.formats.timestamps import timestamp
from anvil.git.objects import blob_id
from anvil.settings.schema import SourceOptions
from anvil.values import Document, Scan, Skipped


class PackedPages:
    """``pages``: path -> bytes. The time of all pages is 1980, the oldest one that a ZIP archive can have: packages
    record when they were packed, not when a page changed."""

    root_path = "."
    problem: str | None = None
    excluded_hashes: frozenset[str] | None = None
    _TIME = timestamp(315_532_800)

    def __init__(self, name: str, pages: Mapping[str, bytes]) -> None:
        self.name = name
        limit = SourceOptions().max_file_bytes
        reasons = {path: refusal(data, limit) for path, data in sorted(pages.items())}
        self._pages = {path: pages[path] for path, reason in reasons.items() if reason is None}
        self._skipped = tuple(Skipped(printable(path), reason) for path, reason in reasons.items() if reason)
        self._ids = {path: blob_id(data) for path, data in self._pages.items()}

    def commit(self) -> str | None:
        return None

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan(dict(self._ids), self._skipped)

    def read(self, path: str) -> Document | Skipped:
        return self.text(path)

    def text(self, path: str) -> Document | Skipped:
        data = self._pages.get(path)
        if data is None:
            return Skipped(printable(path), f"not in the {self.name}")
        return Document(path, self._ids[path], data.decode("utf-8-sig"), len(data), self._TIME)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return dict.fromkeys(paths, self._TIME)
