"""A build: an index file from documents, put in place by one rename. Nothing is written when nothing changed.

The old index is copied into a scratch file, updated there, and published.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from anvil._version import __version__
from anvil.build.report import BuildReport, report_on
from anvil.build.row_updates import Indexer, adapt, is_unchanged, without_too_large
from anvil.build.shards import Shard, ShardSource
from anvil.documents import document_source
from anvil.documents.document_source import DocumentSource
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactError, ArtifactMissing, BuildError, FormatTooNew
from anvil.index_file import connection, fts_table, publish, verify
from anvil.index_file.manifests import settings
from anvil.index_file.reader import Reader, signature
from anvil.index_file.writer import Writer
from anvil.requests import BuildRequest
from anvil.settings.schema import INDEX_FOLDER, Chunking
from anvil.values import Changes, Scan
from anvil.wording import counted

MAX_ROUNDS = 5
"""Attempts to read a tree that changes while it is read."""


@dataclass
class _Plan:
    """A build: its source, its settings, and its findings so far."""

    source: DocumentSource
    index: Path
    provider: EmbeddingProvider
    chunking: Chunking
    request: BuildRequest
    wanted: dict[str, str]
    """The settings of the index in its manifest."""
    about_pages: Callable[[int], str | None] | None
    """A function from the number of pages to a remark for the report, such as why there is none."""
    started: float
    standing: Reader | None = None
    """The index that exists, if it can be used."""
    older: dict[Path, Reader] = field(default_factory=dict)
    """Further indexes whose vectors may be reused."""
    scan: Scan = field(default_factory=lambda: Scan({}))
    reasons: list[str] = field(default_factory=list)
    changes: Changes = field(default_factory=Changes)

    def remarks_on_source(self) -> tuple[str, ...]:
        """Remarks for the report: the repository cannot be read, or there are few pages. The number of pages is not
        remarked on again while no page is added or removed."""
        problem, count = self.source.problem, len(self.scan.entries)
        has_news = not count or self.changes.added or self.changes.removed
        pages = self.about_pages(count) if self.about_pages is not None and has_news else None
        return tuple(reason for reason in (problem, pages) if reason)


def build(
    source: DocumentSource,
    index: Path,
    provider: EmbeddingProvider,
    chunking: Chunking,
    request: BuildRequest = BuildRequest(),
    *,
    configured: Mapping[str, str | None] | None = None,
    about_pages: Callable[[int], str | None] | None = None,
) -> BuildReport:
    """Build or update the index file at ``index`` from ``source``. Nothing is written when nothing changed.

    If there is no index yet, the build starts from the first usable one of ``request.previous``. The report's reasons
    name those that cannot be used. ``configured``: see :func:`anvil.index_file.manifests.settings`. ``about_pages``: a
    function from the number of pages to a remark for the report; a shard may have no page, so it is not called for one.

    A build from plain files replaces an index that was built with a site only with ``force``: the index would lose the
    site's addresses, and get the files that the site excludes.

    Raises :class:`IndexBusy` if another process still builds the same index, :class:`BuildError` and
    :class:`SourceError`. Then the file at ``index`` is not changed.
    """
    started = time.perf_counter()
    wanted = settings(provider, chunking, configured)
    if request.shard is not None:
        source, about_pages = ShardSource(source, Shard.parse(request.shard)), None
    plan = _Plan(source, index, provider, chunking, request, wanted, about_pages, started)
    publish.ensure_overwritable(index)  # before anything that takes time, such as waiting for the lock
    with contextlib.ExitStack() as opened:
        readers = opened.enter_context(contextlib.ExitStack())  # indexes whose rows or vectors are reused
        # Compared before the lock: where nothing changed, a build writes no file, so it works in a folder that is
        # read-only, and it does not wait for a build that another process began.
        unlocked = signature(index)
        report = _compare(plan, readers)
        if report is None:
            # The default folder is inside the documents' folder. If that was renamed, it must not be created again.
            parents = index.parent.name != INDEX_FOLDER
            locked = publish.exclusive(index, request.lock_timeout_s, request.progress, parents=parents)
            lock = opened.enter_context(locked)
            if signature(index) != unlocked:  # another process has built it meanwhile
                report = _compare(plan, readers)
            report = report or _copy_of_older(plan, lock, readers)
        if report is not None:
            return report
        opened.enter_context(connection.translate_scratch_errors())
        writer = Writer(connection.open_scratch())
        opened.callback(writer.close)
        return _publish(plan, _update(plan, writer, opened), lock, readers)


def _compare(plan: _Plan, readers: contextlib.ExitStack) -> BuildReport | None:
    """Open the existing index and list the documents. Returns the report if they agree."""
    plan.standing, plan.reasons = _standing(plan.index, readers, plan.request.force)
    _ensure_replaceable(plan)
    plan.scan = plan.source.scan(plan.standing.identities() if plan.standing else None)
    return None if plan.request.force else _up_to_date(plan, plan.standing, plan.index)


def _up_to_date(plan: _Plan, standing: Reader | None, path: Path) -> BuildReport | None:
    version = plan.request.version
    # Another version from the request is written, even if no page has changed.
    if standing is None or (version is not None and standing.meta().get("version") != version):
        return None
    if not is_unchanged(standing, plan.wanted, plan.scan, plan.source, plan.request.shard):
        return None
    report = report_on("unchanged", path, standing.meta()["digest"], standing.counts(), plan.started, plan.scan.skipped)
    return replace(report, reasons=plan.remarks_on_source())


def _copy_of_older(plan: _Plan, lock: publish.Lock, readers: contextlib.ExitStack) -> BuildReport | None:
    """Open the previous indexes. If there is no index, the build starts from the first of them. If that one is up to
    date, it is copied, and the report is returned."""
    if plan.request.force:
        return None
    plan.older = _caches(plan.request.previous, readers, plan.reasons)
    if plan.standing is not None or not plan.older:
        return None
    path, plan.standing = next(iter(plan.older.items()))
    report = _up_to_date(plan, plan.standing, path)
    if report is None:
        return None
    readers.close()
    publish.copy(path, lock)
    reasons = (*report.reasons, *plan.reasons)
    return replace(report, outcome="built", index_path=str(plan.index), reused=report.windows, reasons=reasons)


def _update(plan: _Plan, writer: Writer, opened: contextlib.ExitStack) -> Indexer:
    """Write the text of the documents into a scratch copy of the index. Its vectors are not made yet."""
    force, standing, provider = plan.request.force, plan.standing, plan.provider
    if standing and not force:
        connection.fill(writer.connection, standing.connection)
        plan.reasons += adapt(writer, plan.wanted)
    else:
        connection.create_tables(writer.connection, provider.dimensions)
        writer.set_meta(plan.wanted)
    fts_table.begin(writer.connection)  # before the first change: FTS5 must merge nothing on its own
    request = plan.request
    writer.set_meta({"anvil_version": __version__, "shard": request.shard, "version": request.version})
    indexer = Indexer(
        writer=writer,
        provider=provider,
        options=plan.chunking,
        # Without duplicates: if there was no index, ``standing`` is the first of the older ones.
        caches=[] if force else [*dict.fromkeys([*([standing] if standing else []), *plan.older.values()])],
        progress=request.progress,
        executor=request.workers,
        spare=standing if force else None,
    )
    plan.changes = changes = document_source.compare(writer.reader.identities(), plan.scan.entries)
    if provider.dimensions and (changes.added or changes.changed):
        opened.enter_context(_warming(provider))
    # The tree may change while it is read. It is listed again until it agrees with the index. A person may keep typing,
    # so the number of rounds is limited.
    for _ in range(MAX_ROUNDS):
        indexer.update(plan.source, plan.scan.entries, changes)
        plan.scan = plan.source.scan(writer.reader.identities())
        changes = document_source.compare(
            writer.reader.identities(), without_too_large(plan.scan.entries, indexer.too_large)
        )
        if not changes:
            break
    return indexer


def _publish(plan: _Plan, indexer: Indexer, lock: publish.Lock, readers: contextlib.ExitStack) -> BuildReport:
    request, reasons = plan.request, plan.reasons
    publication = publish.Publication(indexer.writer, lock)
    publication.write_text()  # before the vectors: the model loads meanwhile, in the thread of _warming
    indexer.embed()
    request.progress("writing", 0, 1)
    digest = indexer.writer.seal()
    readers.close()  # on Windows an open file cannot be replaced
    publication.finish()
    request.progress("writing", 1, 1)
    tally = indexer.tally
    if tally.kept:
        again = counted(tally.kept, "passage", "could")
        reasons.append(f"{again} not be embedded again: the vectors from before are kept. {tally.refusal}".strip())
    counts = indexer.writer.reader.counts()
    lacks_vectors = tally.failed and (tally.is_down or not counts["vectors"])
    return replace(
        report_on("built", plan.index, digest, counts, plan.started),
        embedded=tally.embedded,
        reused=tally.reused,
        changes=plan.changes,
        skipped=(*plan.scan.skipped, *tally.skipped),
        failed=tuple(tally.failed),
        reasons=(*plan.remarks_on_source(), *reasons),
        kept=tally.kept,
        refusal=tally.refusal,
        nothing_embedded=not tally.embedded and bool(tally.kept or lacks_vectors),
    )


@contextlib.contextmanager
def _warming(provider: EmbeddingProvider) -> Iterator[None]:
    """Load the model in a thread while pages are read and SQLite writes the text."""

    def warm() -> None:
        with contextlib.suppress(AnvilError):  # the embedding that follows raises it again
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
        return opened.enter_context(verify.open_checked(index)), []
    except ArtifactMissing:
        return None, []
    except FormatTooNew:
        if force:
            return None, []
        raise  # only --force replaces an index of a newer Anvil
    except ArtifactError as error:
        return None, [f"{error.problem} It was built again." if error.advice else str(error)]
    except BuildError as error:  # such as a file that cannot be read; if it cannot be written either, that raises
        return None, [str(error)]


def _ensure_replaceable(plan: _Plan) -> None:
    """Raise :class:`BuildError` if plain files would replace an index that was built with a site, or if a shard would
    replace an index of all pages."""
    standing, index, source, shard = plan.standing, plan.index, plan.source, plan.request.shard
    named = plan.request.named
    if plan.request.force:
        return
    way_out = f"name another file with {named('index')}. To replace it all the same, use {named('force')}."
    # An index that was damaged may still say that it was built with a site.
    of_site = connection.is_marked_as_site(index) if standing is None else standing.excluded_hashes() is not None
    if of_site and source.excluded_hashes is None:
        raise BuildError(
            f"{index} was built with a site, by 'mkdocs build'. A build from the {source.name} would lose the site's "
            f"page addresses and add pages that the site leaves out. Run 'mkdocs build', or {way_out}"
        )
    if shard is not None and standing is not None and standing.meta().get("shard") is None:
        raise BuildError(
            f"{index} has all pages, and shard {shard} would replace it. {way_out[0].upper()}{way_out[1:]}"
        )


def _caches(
    previous: Sequence[str | os.PathLike[str]], opened: contextlib.ExitStack, reasons: list[str]
) -> dict[Path, Reader]:
    readers: dict[Path, Reader] = {}
    for path in map(Path, previous):
        try:
            readers[path] = opened.enter_context(verify.open_checked(path))
        except ArtifactError as error:
            reasons.append(f"The previous index is not used: {error.problem}")
    return readers
