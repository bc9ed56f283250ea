"""One run: the files compared with the index, what changed read again, the index published, the run written down."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from anvil import building
from anvil.chunking import Chunking
from anvil.config import ArtifactTypes
from anvil.context.answers import Ingestion
from anvil.context.inventory import contents
from anvil.context.records import STATE_VERSION, Records, State
from anvil.errors import IndexBusy
from anvil.models import BuildReport, Progress, Skipped, silent
from anvil.selecting import is_failure
from anvil.store import checking, publishing
from anvil.store.digest import canonical

if TYPE_CHECKING:
    from anvil.context.boxes import TaskedDocuments
    from anvil.context.yielding import Yielding


def ingest(
    documents: TaskedDocuments,
    records: Records,
    provider: Yielding,
    options: Chunking,
    types: ArtifactTypes,
    *,
    notes: tuple[str, ...] = (),
    force: bool = False,
    progress: Progress = silent,
    patience: float = 600.0,
    warn: Callable[[Skipped], None] = lambda skipped: None,
) -> Ingestion:
    """Bring the index in line with the files and write the run down, also when there was nothing to do.

    One run at a time: another is waited for up to ``patience`` seconds, then :class:`IndexBusy` is raised. ``notes``
    are kept with the run. ``warn`` is told of each file that is left out. Raises :class:`AnvilError`; then the index is
    what it was.
    """
    started = time.perf_counter()
    records.prepare()
    with _alone(records, patience):
        last = records.state()
        force = force or (records.index.exists() and last.version != STATE_VERSION)
        report = building.build(
            documents, records.index, provider, options, force=force, progress=progress, patience=patience
        )
        if provider.failure is not None:
            notes = (*notes, f"Vectors are missing; the next run tries again: {provider.failure}")
        state = replace(
            _counted(records, report, types, last),
            timestamp=datetime.now(timezone.utc).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            errors=tuple(each for each in report.skipped if is_failure(each.reason)),
            notes=notes, degraded=provider.failure is not None,
        )  # fmt: skip
        run = _told(report, state, started)
        records.write(run, state)
    for each in report.skipped:
        warn(each)
    return run


@contextmanager
def _alone(records: Records, patience: float) -> Iterator[None]:
    try:
        with publishing.exclusive(records.folder / "ingestion", patience):
            yield
    except IndexBusy as error:
        raise IndexBusy(f"Another process is writing {records.folder}. Try again when it has finished.") from error


def _counted(records: Records, report: BuildReport, types: ArtifactTypes, last: State) -> State:
    """A state with the hashes and counts of the index as it is; those of the last run where nothing changed."""
    digest = f"{report.digest} {canonical(asdict(types))}"
    if report.outcome == "unchanged" and digest == last.digest:
        return last
    with checking.open_checked(records.index) as reader:
        held = contents(reader, types)
        return State(hashes=reader.blob_ids(), digest=digest, embeddings=held.embeddings, tasks=held.counts)


def _told(report: BuildReport, state: State, started: float) -> Ingestion:
    assert state.timestamp is not None
    changes, errors = report.changes, len(state.errors)
    return Ingestion(
        state.timestamp, report.outcome, report.pages, report.chunks, state.embeddings, state.tasks,
        len(changes.added), len(changes.changed), len(changes.removed), len(report.skipped) - errors, errors,
        round(time.perf_counter() - started, 3), (*state.notes, *report.reasons),
    )  # fmt: skip
