"""Several indexes into one: the shards that were built side by side."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Sequence
from pathlib import Path

from anvil.building import unchanged
from anvil.errors import ArtifactMissing, ArtifactRejected, ConfigError
from anvil.models import BuildReport, Changes, Progress, Scan, silent
from anvil.sharding import Shard
from anvil.store import checking, connection, copying, publishing
from anvil.store.reading import Reader
from anvil.store.writing import SETTINGS, Writer

ALIKE = (*SETTINGS, "anvil_version", "commit", "docs_root_path")
"""Keys of the manifest in which the shards of one index agree."""


def join(
    shards: Sequence[Path], out: Path, *, progress: Progress = silent, patience: float = 600.0
) -> BuildReport:
    """Make one index of all its shards, at ``out``: byte for byte what one build of all the pages would have made.

    Nothing is read, cut or embedded, and nothing is written when ``out`` holds it all already. Raises
    :class:`ArtifactError` when a file is no shard, one is missing or does not fit the others, and
    :class:`BuildError`; then the file at ``out`` is what it was.
    """
    started = time.perf_counter()
    if any(out.resolve() == shard.resolve() for shard in shards):
        raise ConfigError(f"{out} is one of the shards. Name another file for the whole.")
    with contextlib.ExitStack() as opened:
        readers = []
        for path in shards:
            readers.append((path, checking.open_checked(path)))
            opened.callback(readers[-1][1].close)
        meta = _agreed(readers)
        entries = {path: blob for _, reader in readers for path, blob in reader.blob_ids().items()}
        opened.enter_context(publishing.exclusive(out, patience))
        report = _standing(out, meta, entries, started)
        if report:
            return report
        writer = Writer(connection.open_scratch())
        opened.callback(writer.close)
        connection.lay_out(writer.connection, int(meta["embedding_dimensions"]))
        with writer.atomic():
            writer.set_meta(meta)
            for done, (_, reader) in enumerate(readers):
                progress("joining", done, len(readers))
                copying.take_over(writer, reader)
        publication = publishing.Publication(writer, out)
        publication.write_text()
        digest = writer.seal()
        publication.finish()
        counts = writer.counts()
    return BuildReport(
        "built", str(out), digest, counts["documents"], counts["chunks"], counts["windows"], 0, counts["vectors"],
        Changes(added=tuple(sorted(entries))), seconds=time.perf_counter() - started, size_bytes=out.stat().st_size,
    )  # fmt: skip


def _agreed(readers: Sequence[tuple[Path, Reader]]) -> dict[str, str]:
    """The manifest that all shards agree on; :class:`ArtifactRejected` unless they are all shards of one index."""
    found: dict[int, Path] = {}
    metas = [(path, reader.meta()) for path, reader in readers]
    first, meta = metas[0]
    for (path, own), (_, reader) in zip(metas, readers, strict=True):
        if "shard" not in own:
            raise ArtifactRejected(f"{path} is a whole index, not a shard. Build shards with 'anvil build --shard'.")
        shard = Shard.parse(own["shard"])
        if shard.count != Shard.parse(meta["shard"]).count:
            raise ArtifactRejected(f"{path} is shard {shard}, {first} {meta['shard']}. Join those of one build.")
        for key in ALIKE:
            if own.get(key) != meta.get(key):
                raise ArtifactRejected(
                    f"{path} was built with {key} {own.get(key)}, {first} with {meta.get(key)}. "
                    "Build all shards alike, from one commit."
                )
        if shard.number in found:
            raise ArtifactRejected(f"{path} and {found[shard.number]} are both shard {shard}. Name each once.")
        found[shard.number] = path
        stray = next((page for page in reader.blob_ids() if not shard.holds(page)), None)
        if stray is not None:
            raise ArtifactRejected(f"{path} is shard {shard}, but holds {stray} of another. Build it again.")
    count = Shard.parse(meta["shard"]).count
    missing = [str(Shard(number, count)) for number in range(1, count + 1) if number not in found]
    if missing:
        raise ArtifactRejected(f"Missing: shard {', '.join(missing)}. Name all {count} shards.")
    return {key: meta[key] for key in ALIKE if key in meta}


def _standing(out: Path, meta: dict[str, str], entries: dict[str, str], started: float) -> BuildReport | None:
    """The report on an index at ``out`` that says it all already."""
    try:
        with checking.open_checked(out) as reader:
            return unchanged(reader, out, {key: meta[key] for key in SETTINGS}, Scan(entries), started)
    except (ArtifactMissing, ArtifactRejected):
        return None  # a newer Anvil's index is not ours to replace
