"""Shards of an index: parallel builds that read a part of the pages each, and the join of their indexes."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from anvil.build.report import BuildReport, report_on
from anvil.build.row_updates import is_unchanged
from anvil.documents.document_source import DocumentSource, SourceWrapper
from anvil.errors import ArtifactMissing, ArtifactRejected, ConfigError
from anvil.index_file import connection, publish, verify
from anvil.index_file import writer as transfer
from anvil.index_file.manifests import OPTIONAL_SETTINGS, SETTINGS, SHARED_KEYS, is_shard
from anvil.index_file.reader import Reader
from anvil.index_file.writer import Writer
from anvil.values import LOCK_TIMEOUT_S, Changes, Progress, Scan, silent


@dataclass(frozen=True, slots=True)
class Shard:
    """One of ``count`` parallel builds, with a ``number`` from 1, written ``3/8``.

    The hash of a page's path decides its shard. So new or removed pages do not move others to another shard, each shard
    can reuse the vectors of its last build, and all shards have about the same number of pages.
    """

    number: int
    count: int

    @classmethod
    def parse(cls, text: str) -> Shard:
        """The shard for a text such as ``3/8``. Raises :class:`ConfigError` for other texts."""
        if not is_shard(text):
            raise ConfigError(f"{text!r} is not a shard. Name one as NUMBER/COUNT, such as 3/8. COUNT is 999 at most.")
        number, _, count = text.partition("/")
        return cls(int(number), int(count))

    def holds(self, path: str) -> bool:
        """Whether a page (POSIX, relative to the documents' folder) belongs to this shard."""
        # Not Python's hash(), which differs between processes: all builds must divide the pages in the same way.
        digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).digest()
        return int.from_bytes(digest[:8], "big") % self.count == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"


class ShardSource(SourceWrapper):
    """The part of a source's documents that belongs to a shard."""

    def __init__(self, source: DocumentSource, shard: Shard) -> None:
        super().__init__(source)
        self._shard = shard
        self.name = f"{source.name}, shard {shard}"

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        whole = self._source.scan(indexed)
        holds = self._shard.holds
        return Scan(
            {path: blob for path, blob in whole.entries.items() if holds(path)},
            tuple(item for item in whole.skipped if holds(item.path)),
        )


def join(
    shards: Sequence[Path], out: Path, *, progress: Progress = silent, lock_timeout_s: float = LOCK_TIMEOUT_S
) -> BuildReport:
    """Write all shards as one index to ``out``, with the same bytes as one build of all pages.

    No page is read, cut or embedded. Nothing is written if ``out`` is up to date. Raises :class:`ArtifactError` if a
    file is not a shard, a shard is missing, or the settings of two shards differ; and :class:`BuildError`. Then the
    file at ``out`` is not changed.
    """
    started = time.perf_counter()
    if any(out.resolve() == shard.resolve() for shard in shards):
        raise ConfigError(f"{out} is one of the shards. Name another file for the whole.")
    publish.ensure_overwritable(out)
    with contextlib.ExitStack() as opened:
        readers = [(path, opened.enter_context(verify.open_checked(path))) for path in shards]
        meta = _shared_manifest(readers)
        entries = {path: identity for _, reader in readers for path, identity in reader.identities().items()}
        lock = opened.enter_context(publish.exclusive(out, lock_timeout_s, progress))
        report = _standing(out, meta, entries, started)
        if report:
            return report
        writer = Writer(connection.open_scratch())
        opened.callback(writer.close)
        connection.create_tables(writer.connection, int(meta["embedding_dimensions"]))
        with writer.atomic():
            writer.set_meta(meta)
            for done, (_, reader) in enumerate(readers):
                progress("joining", done, len(readers))
                transfer.copy_documents(writer, reader)
        publication = publish.Publication(writer, lock)
        publication.write_text()
        digest = writer.seal()
        publication.finish()
        counts = writer.reader.counts()
    report = report_on("built", out, digest, counts, started)
    return replace(report, reused=counts["vectors"], changes=Changes(added=tuple(sorted(entries))))


def _shared_manifest(readers: Sequence[tuple[Path, Reader]]) -> dict[str, str]:
    """The manifest values that all shards share. Raises :class:`ArtifactRejected` if they are not of one index."""
    numbers: dict[int, Path] = {}
    first, meta = readers[0][0], readers[0][1].meta()
    for path, reader in readers:
        own = reader.meta()
        if "shard" not in own:
            raise ArtifactRejected(f"{path} is a whole index, not a shard. Build shards with 'anvil build --shard'.")
        shard = Shard.parse(own["shard"])
        if shard.count != Shard.parse(meta["shard"]).count:
            raise ArtifactRejected(f"{path} is shard {shard}, {first} {meta['shard']}. Join those of one build.")
        for key in SHARED_KEYS:
            if own.get(key) != meta.get(key):
                raise ArtifactRejected(
                    f"{path} was built with {key} {own.get(key)}, {first} with {meta.get(key)}. "
                    "Build all shards alike, from one commit."
                )
        if shard.number in numbers:
            raise ArtifactRejected(f"{path} and {numbers[shard.number]} are both shard {shard}. Name each once.")
        numbers[shard.number] = path
        # Else a page could be in the joined index twice.
        stray = next((page for page in reader.blob_ids() if not shard.holds(page)), None)
        if stray is not None:
            raise ArtifactRejected(f"{path} is shard {shard}, but holds {stray} of another. Build it again.")
    count = Shard.parse(meta["shard"]).count
    missing = [str(Shard(number, count)) for number in range(1, count + 1) if number not in numbers]
    if missing:
        raise ArtifactRejected(f"Missing: shard {', '.join(missing)}. Name all {count} shards.")
    return {key: meta[key] for key in SHARED_KEYS if key in meta}


def _standing(out: Path, meta: dict[str, str], entries: dict[str, str], started: float) -> BuildReport | None:
    """The report on an index at ``out`` that is up to date; None if there is none."""
    try:
        with verify.open_checked(out) as reader:
            wanted = {key: meta[key] for key in (*SETTINGS, *OPTIONAL_SETTINGS) if key in meta}
            if not is_unchanged(reader, wanted, Scan(entries)):
                return None
            return report_on("unchanged", out, reader.meta()["digest"], reader.counts(), started)
    except (ArtifactMissing, ArtifactRejected):
        return None  # FormatTooNew is raised: an index of a newer Anvil is not replaced
