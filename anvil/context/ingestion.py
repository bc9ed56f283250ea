"""One run of an ingestion: compare the files with the index, read changed ones, publish the index, write the log."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from anvil.build import builder
from anvil.context.artifacts import contents
from anvil.context.run_log import STATE_VERSION, Records, State
from anvil.context.settings import ArtifactTypes, TaskMarks
from anvil.context.values import Ingestion
from anvil.documents.file_selection import is_failure
from anvil.errors import IndexBusy
from anvil.formats.canonical_json import canonical
from anvil.index_file import lock, verify
from anvil.requests import BuildRequest
from anvil.text.chunker import Chunking
from anvil.values import BuildReport, Skipped

if TYPE_CHECKING:
    from anvil.context.tasks import TaskedDocuments
    from anvil.embedding.fallback import FallbackProvider


def ingest(
    documents: TaskedDocuments,
    records: Records,
    provider: FallbackProvider,
    chunking: Chunking,
    rules: tuple[ArtifactTypes, TaskMarks],
    *,
    request: BuildRequest,
    notes: tuple[str, ...],
) -> tuple[Ingestion, tuple[Skipped, ...]]:
    """Update the index from the files, and write the log, also when nothing changed; the run, and the skipped files.

    ``notes`` are stored with the run. Raises :class:`IndexBusy` when another run still holds the lock, and other
    :class:`AnvilError`. Then the index is not changed.
    """
    started = time.perf_counter()
    records.prepare()
    with _alone(records, request.lock_timeout_s):
        last = records.state()
        force = request.force or (records.index.exists() and last.version != STATE_VERSION)
        report = builder.build(documents, records.index, provider, chunking, replace(request, force=force))
        if provider.failure is not None:
            notes = (*notes, f"Vectors are missing; the next run tries again: {provider.failure}")
        state = replace(
            _counted(records, report, rules, last),
            timestamp=datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            errors=tuple(skipped for skipped in report.skipped if is_failure(skipped.reason)),
            notes=notes,
            degraded=provider.failure is not None,
        )
        run = _run(report, state, started)
        records.write(run, state)
    return run, report.skipped


@contextmanager
def _alone(records: Records, lock_timeout_s: float) -> Iterator[None]:
    try:
        with lock.exclusive(records.folder / "ingestion", lock_timeout_s):
            yield
    except IndexBusy as error:
        raise IndexBusy(f"Another process is writing {records.folder}. Try again when it has finished.") from error


def _counted(records: Records, report: BuildReport, rules: tuple[ArtifactTypes, TaskMarks], last: State) -> State:
    """A state with the hashes and counts of the index as it is; those of the last run where nothing changed."""
    digest = " ".join([report.digest, *(canonical(asdict(each)) for each in rules)])
    if report.outcome == "unchanged" and digest == last.digest:
        return last
    with verify.open_checked(records.index) as reader:
        held = contents(reader, *rules)
        return State(
            hashes=reader.blob_ids(), digest=digest, embeddings=held.embeddings, tasks=held.counts, unmarked=held.note()
        )


def _run(report: BuildReport, state: State, started: float) -> Ingestion:
    assert state.timestamp is not None
    changes, errors = report.changes, len(state.errors)
    return Ingestion(
        state.timestamp,
        report.outcome,
        report.pages,
        report.chunks,
        state.embeddings,
        state.tasks,
        len(changes.added),
        len(changes.changed),
        len(changes.removed),
        len(report.skipped) - errors,
        errors,
        round(time.perf_counter() - started, 3),
        tuple(filter(None, (*state.notes, *report.reasons, state.unmarked))),
    )
