"""A build: an index file from documents, put in place by one rename. Nothing is written when nothing changed.

The old index is copied into a scratch file, updated there, and published.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from anvil._version import __version__
from anvil.backends.sources.document_source import ShardSource
from anvil.backends.store import connection, keywords, lock, overwrite_guard, publish, verify
from anvil.backends.store.connection import signature
from anvil.backends.store.reader import Reader
from anvil.backends.store.writer import Writer
from anvil.core import site_urls, staleness
from anvil.core.chunking.chunker import Chunking
from anvil.core.config.schema import SiteOptions
from anvil.core.pluralize import counted
from anvil.core.shards import Shard
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, BuildError, FormatTooNew
from anvil.models.documents import BuildReport, Changes, Progress, Scan, Skipped, silent
from anvil.services.build.indexer import Indexer, adapt, settings, without

if TYPE_CHECKING:
    from anvil.backends.embedding.executor import Executor
    from anvil.backends.embedding.provider import EmbeddingProvider
    from anvil.backends.sources.document_source import DocumentSource

MAX_ROUNDS = 5
"""Attempts to read a tree that changes while it is read."""


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
    version: str | None = None,
) -> BuildReport:
    """Build or update the index file at ``index`` from ``source``. Nothing is written when nothing changed.

    ``previous``: further indexes whose vectors may be reused. One that cannot be used is named in the report's reasons.
    If there is no index yet, the first of them is the start. ``force``: read and embed all pages again; where the
    provider fails, the old vector stays. ``shard``: only its pages; the manifest names the shard. ``executor``: embeds
    the texts. ``pages``: the addresses of the published pages. ``version``: of what the pages describe; an
    index that is unchanged keeps its own. ``pageless``: the reason to report when the source has
    no page (a shard may have none). A build from plain files replaces an index that was built with a site only with
    ``force``: the index would lose the site's addresses, and get the files that the site excludes.
    Raises :class:`IndexBusy` when another process still builds the same index after ``lock_timeout_s`` seconds, and
    :class:`BuildError` and :class:`SourceError`. Then the file at ``index`` is not changed.
    """
    started = time.perf_counter()
    wanted = settings(provider, options, site_urls.recorded(pages) if pages else None)
    if shard is not None:
        source = ShardSource(source, shard)

    def says_all(standing: Reader | None, path: Path, scan: Scan) -> BuildReport | None:
        if standing is not None and version is not None and standing.meta().get("version") != version:
            return None
        report = unchanged(standing, path, wanted, scan, started, shard, source.commit(), source.excluded_hashes)
        return report and replace(report, reasons=empty(scan))

    def empty(scan: Scan) -> tuple[str, ...]:
        return (pageless,) if pageless and not scan.entries and shard is None else ()

    def compared() -> tuple[Reader | None, list[str], Scan, BuildReport | None]:
        """The index that exists, why it is not used, the documents, and the report if both are alike."""
        standing, reasons = _standing(index, read, force)
        _keep_site(standing, index, source, force)
        scan = source.scan(standing.identities() if standing else None)
        return standing, reasons, scan, None if force else says_all(standing, index, scan)

    overwrite_guard.ensure_overwritable(index)
    with contextlib.ExitStack() as opened:
        read = opened.enter_context(contextlib.ExitStack())  # the indexes that are built from
        seen = signature(index)
        standing, reasons, scan, report = compared()
        if report is None:
            opened.enter_context(lock.exclusive(index, lock_timeout_s))
            if signature(index) != seen:  # another process has built it meanwhile
                standing, reasons, scan, report = compared()
        if report is not None:
            return report

        older = {} if force else _caches(previous, read, reasons)
        if standing is None and older:  # start from the first usable one, or copy it if it is up to date
            path, standing = next(iter(older.items()))
            report = says_all(standing, path, scan)
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
        writer = Writer(connection.open_scratch())
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
        keywords.begin(writer.connection)
        writer.set_meta({"anvil_version": __version__, "shard": shard, "version": version})
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
        if provider.dimensions and (first.added or first.changed):
            opened.enter_context(_warming(provider))
        for _ in range(MAX_ROUNDS):
            indexer.update(source, scan.entries, changes)
            scan = source.scan(writer.reader.identities())
            changes = staleness.compare(writer.reader.identities(), without(indexer.unfit, scan.entries))
            if not changes:
                break
        publication = publish.Publication(writer, index)
        publication.write_text()
        indexer.embed()
        reasons += executor.notes if executor else ()
        progress("writing", 0, 1)
        digest = writer.seal()
        read.close()  # on Windows an open file cannot be replaced
        publication.finish()
        progress("writing", 1, 1)
        counts = writer.reader.counts()
    tally = indexer.tally
    if remade and tally.embedded and not tally.reused and not tally.failed:
        reasons.append("All vectors were made again.")
    if tally.kept:
        again = counted(tally.kept, "passage", "could")
        reasons.append(f"{again} not be embedded again: the vectors from before are kept. {tally.refusal}".strip())
    return replace(
        report_on("built", index, digest, counts, started),
        embedded=tally.embedded,
        reused=tally.reused,
        changes=first,
        skipped=(*scan.skipped, *tally.skipped),
        failed=tuple(tally.failed),
        reasons=(*empty(scan), *reasons),
        kept=tally.kept,
        refusal=tally.refusal,
    )


def report_on(
    outcome: Literal["built", "unchanged"],
    index: Path,
    digest: str,
    counts: Mapping[str, int],
    started: float,
    skipped: tuple[Skipped, ...] = (),
) -> BuildReport:
    """The report on an index file of which nothing was embedded. ``started``: as :func:`time.perf_counter`."""
    return BuildReport(
        outcome=outcome,
        index_path=str(index),
        digest=digest,
        pages=counts["documents"],
        chunks=counts["chunks"],
        windows=counts["windows"],
        embedded=0,
        reused=0,
        changes=Changes(),
        skipped=skipped,
        seconds=time.perf_counter() - started,
        size_bytes=index.stat().st_size,
    )


@contextlib.contextmanager
def _warming(provider: EmbeddingProvider) -> Iterator[None]:
    """Load the model in a thread while pages are read and SQLite writes the text."""

    def warm() -> None:
        with contextlib.suppress(AnvilError):  # embedding, which follows, raises it again
            provider.warm()

    thread = threading.Thread(target=warm, name="anvil-warm")
    thread.start()
    try:
        yield
    finally:
        thread.join()


def _standing(index: Path, opened: contextlib.ExitStack, force: bool) -> tuple[Reader | None, list[str]]:
    """The existing index at ``index``, checked; None and the reason when it cannot be used."""
    try:
        reader = verify.open_checked(index)
    except ArtifactMissing:
        return None, []
    except FormatTooNew:
        if force:
            return None, []
        raise  # an index of a newer Anvil is replaced with --force only
    except ArtifactError as error:
        return None, [f"{error.problem} It was built again." if error.advice else str(error)]
    except BuildError as error:
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
    readers: dict[Path, Reader] = {}
    for path in previous:
        try:
            reader = verify.open_checked(path)
        except ArtifactError as error:
            reasons.append(f"The previous index is not used: {error.problem}")
            continue
        opened.callback(reader.close)
        readers[path] = reader
    return readers


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
    """The report on an index that has all documents of ``scan`` and the settings ``wanted``; None if it differs.

    A shard must also be of ``commit``, because all shards of one index must have the same commit.
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
    return report_on("unchanged", index, meta["digest"], standing.counts(), started, scan.skipped)
