"""From documents to an artifact, in one rename; nothing is written when the index says it all already.

The standing artifact is copied into a scratch file, brought up to date there, and published.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from anvil._version import __version__
from anvil.backends.sources import git_tree
from anvil.backends.store import connection, lock, overwrite_guard, publish, verify
from anvil.backends.store.connection import signature
from anvil.backends.store.reader import Reader
from anvil.backends.store.writer import Writer
from anvil.core import site_urls, staleness
from anvil.core.chunking.chunker import Chunking
from anvil.core.config.schema import SiteOptions
from anvil.core.pluralize import counted
from anvil.core.shards import Shard
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, BuildError, FormatTooNew
from anvil.models.documents import BuildReport, Changes, Progress, Scan, silent
from anvil.services.build.indexer import Indexer, adapt, settings, without

if TYPE_CHECKING:
    from anvil.backends.embedding.executor import Executor
    from anvil.backends.embedding.provider import EmbeddingProvider
    from anvil.backends.sources.git_tree import DocumentSource

ROUNDS = 5
"""How often a tree that changes while it is read is read again."""


def build(
    source: DocumentSource,
    index: Path,
    provider: EmbeddingProvider,
    options: Chunking,
    *,
    previous: Sequence[Path] = (),
    force: bool = False,
    shard: Shard | None = None,
    progress: Progress = silent,
    lock_timeout_s: float = lock.LOCK_TIMEOUT_S,
    executor: Executor | None = None,
    pageless: str = "",
    pages: SiteOptions | None = None,
) -> BuildReport:
    """Make the index at ``index`` say what ``source`` says; nothing is written when it does already.

    ``previous`` are further artifacts whose vectors may be taken over; one that cannot be used is named in
    the report's reasons. Where there is no index yet, the first of them is begun from. ``force`` reads and embeds
    everything again; a vector that cannot be made now stays as it was. ``shard``: its pages only; the index says so.
    ``executor``: where texts are embedded. ``pages``: where they are published.
    ``pageless``: the reason to report when the source has no page; a shard may well have none.
    An index that was built with a site is replaced by one of plain files with ``force`` only: it would lose the site's
    addresses and gain the files that the site leaves out.
    Raises :class:`IndexBusy` when another process still builds the same index after ``lock_timeout_s`` seconds, and
    :class:`BuildError` and :class:`SourceError`. Then the file at ``index`` is what it was.
    """
    started = time.perf_counter()
    wanted = settings(provider, options, site_urls.recorded(pages) if pages else None)
    if shard is not None:
        source = git_tree.part(source, shard)

    def says_all(standing: Reader | None, path: Path) -> BuildReport | None:
        report = unchanged(standing, path, wanted, scan, started, shard, source.commit(), source.excluded_hashes)
        return report and replace(report, reasons=empty())

    def empty() -> tuple[str, ...]:
        return (pageless,) if pageless and not scan.entries and shard is None else ()

    overwrite_guard.ensure_overwritable(index)
    with contextlib.ExitStack() as opened:
        read = opened.enter_context(contextlib.ExitStack())  # the indexes that are built from
        seen = signature(index)
        standing, reasons = _standing(index, read, force)
        _keep_site(standing, index, source, force)
        scan = source.scan(standing.identities() if standing else None)
        report = None if force else says_all(standing, index)
        if report:
            return report
        opened.enter_context(lock.exclusive(index, lock_timeout_s))
        if signature(index) != seen:  # another build was quicker
            standing, reasons = _standing(index, read, force)
            _keep_site(standing, index, source, force)
            scan = source.scan(standing.identities() if standing else None)
            report = None if force else says_all(standing, index)
            if report:
                return report

        older = {} if force else _caches(previous, read, reasons)
        if standing is None and older:  # the first that can be used stands in: its bytes, if they say it all
            path, standing = next(iter(older.items()))
            report = says_all(standing, path)
            if report:
                read.close()
                publish.copy(path, index)
                return replace(
                    report,
                    outcome="built",
                    index_path=str(index),
                    reused=report.windows,
                    reasons=(*report.reasons, *reasons),
                )

        remade = False
        writer = Writer(connection.open_scratch(), searchable=False)
        opened.callback(writer.close)
        caches = [] if force else [*dict.fromkeys([*([standing] if standing else []), *older.values()])]
        if standing and not force:
            connection.fill(writer.connection, standing.connection)
            before = writer.reader.meta()["embedding_model_digest"]
            reasons += adapt(writer, wanted)
            remade = before != provider.digest
        else:
            connection.lay_out(writer.connection, provider.dimensions)
            writer.set_meta(wanted)
        writer.set_meta({"anvil_version": __version__, "shard": shard})
        indexer = Indexer(
            writer=writer,
            provider=provider,
            options=options,
            caches=caches,
            progress=progress,
            executor=executor,
            spare=standing if force else None,
        )
        first = changes = staleness.compare(writer.reader.identities(), scan.entries)
        for _ in range(ROUNDS):
            indexer.update(source, scan.entries, changes)
            scan = source.scan(writer.reader.identities())
            changes = staleness.compare(writer.reader.identities(), without(indexer.unfit, scan.entries))
            if not changes:
                break
        if provider.dimensions and (first.added or first.changed):
            opened.enter_context(_warming(provider))
        publication = publish.Publication(writer, index)
        publication.write_text()
        indexer.embed()
        reasons += executor.notes if executor else ()
        progress("writing", 0, 1)
        digest = writer.seal()
        read.close()  # Windows lets nobody replace an open file
        publication.finish()
        progress("writing", 1, 1)
        counts = writer.reader.counts()
    tally = indexer.tally
    if remade and tally.embedded and not tally.reused and not tally.failed:
        reasons.append("All vectors were made again.")
    if tally.kept:
        again = counted(tally.kept, "passage", "could")
        reasons.append(f"{again} not be embedded again: the vectors from before are kept. {tally.refusal}".strip())
    return BuildReport(
        outcome="built",
        index_path=str(index),
        digest=digest,
        pages=counts["documents"],
        chunks=counts["chunks"],
        windows=counts["windows"],
        embedded=tally.embedded,
        reused=tally.reused,
        changes=first,
        skipped=(*scan.skipped, *tally.skipped),
        failed=tuple(tally.failed),
        reasons=(*empty(), *reasons),
        seconds=time.perf_counter() - started,
        size_bytes=index.stat().st_size,
        kept=tally.kept,
        refusal=tally.refusal,
    )


@contextlib.contextmanager
def _warming(provider: EmbeddingProvider) -> Iterator[None]:
    """Let the model load on another core while SQLite writes the text: reading and importing want the same lock."""

    def warm() -> None:
        with contextlib.suppress(AnvilError):  # embedding, which follows, will say it
            provider.warm()

    thread = threading.Thread(target=warm, name="anvil-warm")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _standing(index: Path, opened: contextlib.ExitStack, force: bool) -> tuple[Reader | None, list[str]]:
    """The artifact that stands at ``index``, checked; None, and why, when it cannot be used."""
    try:
        reader = verify.open_checked(index)
    except ArtifactMissing:
        return None, []
    except FormatTooNew:
        if force:
            return None, []
        raise  # another person's newer index is not ours to replace
    except (ArtifactError, BuildError) as error:
        return None, [str(error)]
    opened.callback(reader.close)
    return reader, []


def _keep_site(standing: Reader | None, index: Path, source: DocumentSource, force: bool) -> None:
    if force or source.excluded_hashes is not None:
        return
    if verify.is_marked_as_site(index) if standing is None else standing.excluded_hashes() is not None:
        raise BuildError(
            f"{index} was built with a site, by 'mkdocs build'. A build from the {source.name} would lose the site's "
            "page addresses and add pages that the site leaves out. Run 'mkdocs build', or name another file with "
            "--index. To replace it all the same, add --force."
        )


def _caches(previous: Sequence[Path], opened: contextlib.ExitStack, reasons: list[str]) -> dict[Path, Reader]:
    found: dict[Path, Reader] = {}
    for path in previous:
        try:
            reader = verify.open_checked(path)
        except ArtifactError as error:
            reasons.append(f"The previous index is not used: {error}")
            continue
        opened.callback(reader.close)
        found[path] = reader
    return found


def unchanged(
    standing: Reader | None,
    index: Path,
    wanted: Mapping[str, str],
    scan: Scan,
    started: float,
    shard: Shard | None = None,
    commit: str | None = None,
    excluded_hashes: frozenset[str] | None = None,
) -> BuildReport | None:
    """The report on an index that holds, whole, what ``scan`` found and what ``wanted`` says; None when it does not.

    A shard must also be of ``commit``: those that are joined agree on it, also where one has no page that changed.
    """
    if standing is None:
        return None
    meta = standing.meta()
    if any(meta.get(key) != wanted.get(key) for key in (*wanted, "site")) or meta["needs_reembed"] != "0":
        return None
    if meta.get("shard") != (str(shard) if shard else None) or (shard and meta.get("commit") != commit):
        return None
    if standing.excluded_hashes() != excluded_hashes or staleness.compare(standing.identities(), scan.entries):
        return None
    counts = standing.counts()
    return BuildReport(
        outcome="unchanged",
        index_path=str(index),
        digest=meta["digest"],
        pages=counts["documents"],
        chunks=counts["chunks"],
        windows=counts["windows"],
        embedded=0,
        reused=0,
        changes=Changes(),
        skipped=scan.skipped,
        failed=(),
        reasons=(),
        seconds=time.perf_counter() - started,
        size_bytes=index.stat().st_size,
    )
