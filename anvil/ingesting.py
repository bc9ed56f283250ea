"""From what is handed in to a document that is ready to be kept: converted, cut, embedded, in a scratch index.

Pieces stream through: of a document of any size, a piece and a batch of vectors are in memory at once.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.config import ChunkingOptions
from anvil.errors import AnvilError, DocumentRejected
from anvil.executing import Here
from anvil.git import timestamp
from anvil.indexing import Cache, Indexer
from anvil.pieces import Cutter, Piece
from anvil.store.staging import Particulars, Stage
from anvil.wording import counted

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider

_NAME = re.compile(r"[^\\/]*$")
_BLOCK = 1 << 20
BATCH = 64
"""Windows embedded at once: work that is called off goes on for no longer."""


class Interrupted(AnvilError):
    """Work was called off; nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Fingerprint:
    """A file as it was when it was looked at: SHA-256 (hex) of its bytes, their number, and its time stamp."""

    content_hash: str
    size: int
    modified_ns: int

    @property
    def last_modified(self) -> str:
        """The time stamp, ISO 8601 in UTC."""
        return timestamp(self.modified_ns // 10**9)


def fingerprint(path: Path) -> Fingerprint:
    """Look at a file. Raises :class:`OSError`."""
    whole, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_BLOCK):
            whole.update(block)
            size += len(block)
        return Fingerprint(whole.hexdigest(), size, path.stat().st_mtime_ns)


def unchanged(path: Path, seen: Fingerprint) -> None:
    """Make sure that a file is still what was hashed. Raises :class:`DocumentRejected`."""
    try:
        now = path.stat()
    except OSError:
        now = None
    if now is None or (now.st_size, now.st_mtime_ns) != (seen.size, seen.modified_ns):
        raise DocumentRejected(f"{path} changed while it was read. Ingest it again.")


def file_name(source: str) -> str:
    """The last part of a path or URL, whichever way its slashes lean."""
    found = _NAME.search(source.split("?")[0].split("#")[0].rstrip("/\\") if "://" in source else source)
    return found[0] if found else source


def title_of(source: str) -> str:
    """What a document is called that does not say so itself: its file's name without ending, or its host's."""
    name = file_name(source)
    stem, dot, _ = name.rpartition(".")
    host_only = "://" in source and source.rstrip("/").endswith(f"://{name}")
    return stem if dot and stem and not host_only else name


def file_type(name: str) -> str:
    """The ending of a file's name, without dot, in lower case; empty when there is none."""
    stem, dot, ending = file_name(name).rpartition(".")
    return ending.lower() if dot and stem else ""


@dataclass(frozen=True, slots=True)
class Ready:
    """A document that can be kept. ``head``: what its chunks leave out. ``notes``: what did not go well."""

    stage: Stage
    particulars: Particulars
    head: str
    notes: tuple[str, ...]


class Preparation:
    """Makes documents ready, by one model and one way of cutting; usable from several threads."""

    def __init__(self, provider: EmbeddingProvider, chunking: ChunkingOptions, settings: Mapping[str, str]) -> None:
        """``settings``: the library's manifest."""
        self._provider, self._chunking, self._settings = provider, chunking, settings

    def prepare(
        self, pieces: Iterable[Piece], particulars: Particulars, former: Cache | None, halted: Callable[[], bool]
    ) -> Ready:
        """Cut and embed. ``particulars.title`` stands where the document names none; ``former``: a version whose
        vectors may be taken over. Raises :class:`Interrupted` soon after ``halted`` says so.

        Whoever is given the result closes its stage.
        """

        def check(*_: object) -> None:
            if halted():
                raise Interrupted("It was called off. Nothing of it is kept; ingest it again.")

        stage = Stage(self._settings)
        try:
            cutter = Cutter(self._chunking)
            for number, piece in enumerate(pieces):
                check()
                chunks = cutter.cut(piece.text)
                if number == 0:
                    title = " ".join((cutter.title or "").split()) or particulars.title
                    particulars = replace(particulars, title=title)
                stage.add(chunks, particulars.source, particulars.title, piece.page)
            stage.placeholder(particulars.source)
            caches = [former] if former else []
            indexer = Indexer(stage, self._provider, self._chunking, caches, check, Here(self._provider, BATCH))
            indexer.embed()
        except BaseException:
            stage.close()
            raise
        failed = indexer.tally.failed
        notes = () if not failed else (
            f"{counted(len(failed), 'passage', 'could')} not be embedded, found by keyword only: {failed[0].reason}",
        )  # fmt: skip
        return Ready(stage, particulars, cutter.head or "", notes)
