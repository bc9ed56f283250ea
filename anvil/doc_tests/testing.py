"""Run a suite against an index, alone or compared with a baseline."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from anvil.doc_tests import baseline as baselines
from anvil.doc_tests import comparing, judging, renames
from anvil.doc_tests.asking import Asker, Targets, ensure_resolved
from anvil.doc_tests.question_vectors import QuestionVectors
from anvil.doc_tests.values import Comparison, Outcome, Suite, TestReport
from anvil.index_file.reader import Reader
from anvil.live.working_copy import WorkingCopy
from anvil.settings.schema import SourceOptions
from anvil.values import Progress, silent
from anvil.wording import counted

RECORDING_ADVICE = "'anvil test --update' shows and records their answers."
"""The end of the note on questions that have no expect."""


def run(
    copy: WorkingCopy,
    suite: Suite,
    folder: Path | None,
    *,
    baseline: str | None = None,
    options: SourceOptions | None = None,
    fetch: Callable[[str], Path] = Path,
    progress: Progress = silent,
) -> TestReport:
    """Ask the index of ``copy`` all questions of ``suite``.

    ``folder``: the documentation folder, in whose history renamed pages are looked up. ``baseline``: see
    :func:`anvil.doc_tests.baseline.opened`, with ``options`` and ``fetch``. Raises :class:`AnvilError`.
    """
    began_at = time.perf_counter()
    with ExitStack() as stack:
        other = moved = None
        if baseline is not None:
            other = stack.enter_context(
                baselines.opened(baseline, copy, folder, options or SourceOptions(), fetch, progress)
            )
            moved = renames.between(other.reader, copy.reader)
        renamed = _renamed(suite, copy.reader, folder, moved or {})
        targets = Targets(copy.reader, renamed)
        before = Targets(other.reader, _earlier(suite, other.reader, moved or {}, renamed)) if other else None
        ensure_resolved(suite, [targets, before] if before else [targets])
        vectors = stack.enter_context(QuestionVectors(copy.provider))
        if copy.searcher.semantic:
            vectors.prepare(suite.questions)
        asker = Asker(copy.searcher, targets, vectors)
        outcomes = asker.ask_all(suite.questions, progress)
        moves = [f"{old} is {new} now. Write the new name into the suite." for old, new in sorted(renamed.items())]
        notes = [*moves, *asker.notes, *_notes(outcomes)]
        comparison = None
        if other is not None and before is not None:
            other_asker = Asker(other.searcher, before, vectors)
            comparison = comparing.compare(
                other.name,
                suite.questions,
                comparing.Side(other.reader, before, other_asker.ask_all(suite.questions, progress)),
                comparing.Side(copy.reader, targets, outcomes),
                moved or {},
                vectors,
                progress,
            )
            comparison = replace(comparison, notes=(*other.notes, *comparison.notes))
        counts = copy.reader.counts()
    hit, mrr = judging.hit_rate(outcomes), judging.mean_reciprocal_rank(outcomes)
    return TestReport(
        suite.origin,
        _passed(suite, hit, mrr, comparison),
        hit,
        mrr,
        suite.min_hit,
        suite.min_mrr,
        outcomes,
        counts["documents"],
        counts["chunks"],
        time.perf_counter() - began_at,
        tuple(notes),
        comparison,
    )


def _renamed(suite: Suite, reader: Reader, folder: Path | None, moved: Mapping[str, str]) -> dict[str, str]:
    """Page in the suite -> page in the index, of renamed pages. ``moved``: new path -> old path."""
    missing = _named(suite) - reader.identities().keys()
    renamed = {old: new for new, old in moved.items() if old in missing}
    return renamed | renames.from_history(folder, missing - renamed.keys(), reader)


def _earlier(suite: Suite, before: Reader, moved: Mapping[str, str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Page in the suite -> page in the baseline, where they differ."""
    here = before.identities()
    paths = {page: renamed.get(page, page) for page in _named(suite) if page not in here}
    return {page: moved.get(path, path) for page, path in paths.items()}


def _named(suite: Suite) -> set[str]:
    return {expectation.page for question in suite.questions for expectation in question.expect}


def _notes(outcomes: Sequence[Outcome]) -> list[str]:
    notes = []
    if new := [outcome for outcome in outcomes if outcome.status == "new"]:
        notes.append(f"{counted(len(new), 'question', 'have')} no expect. {RECORDING_ADVICE}")
    if unjudged := [outcome for outcome in outcomes if outcome.status == "unjudged"]:
        notes.append(f"{counted(len(unjudged), 'question', 'were')} not judged: {unjudged[0].note}")
    return notes


def _passed(suite: Suite, hit: float, mrr: float | None, comparison: Comparison | None) -> bool:
    high_enough = suite.min_hit is None or hit >= suite.min_hit
    ranked_enough = suite.min_mrr is None or mrr is None or mrr >= suite.min_mrr
    return high_enough and ranked_enough and not (comparison and comparison.lost)
