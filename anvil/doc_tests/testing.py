"""Run a suite against an index, alone or compared with a baseline."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath

from anvil.doc_tests import comparing
from anvil.doc_tests.judging import (
    Asker,
    ExpectedParts,
    QuestionVectors,
    ensure_resolved,
    hit_rate,
    mean_reciprocal_rank,
)
from anvil.doc_tests.values import STATUSES, Comparison, Outcome, Suite, TestReport
from anvil.documents.git_tree import CommitTree
from anvil.errors import AnvilError, ConfigError, SourceError
from anvil.git.repository import Repository
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file import verify
from anvil.index_file.manifests import SETTINGS
from anvil.index_file.reader import Reader
from anvil.live.memory_copy import MemoryCopy
from anvil.project_indexes import IndexLocation
from anvil.search.moved_pages import moved_pages
from anvil.search.searcher import Searcher
from anvil.settings import index_url
from anvil.settings.schema import SourceOptions
from anvil.values import Progress, silent
from anvil.wording import counted


def run(
    copy: MemoryCopy,
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
    :func:`anvil.doc_tests.testing.opened`, with ``options`` and ``fetch``. Raises :class:`AnvilError`.
    """
    began_at = time.perf_counter()
    with ExitStack() as stack:
        other: Baseline | None = None
        moved: dict[str, str] = {}
        if baseline is not None:
            other = stack.enter_context(opened(baseline, copy, folder, options or SourceOptions(), fetch, progress))
            moved = moved_pages(other.reader, copy.reader)
        renamed = _renamed(suite, copy.reader, folder, moved)
        targets = ExpectedParts(copy.reader, renamed)
        before = ExpectedParts(other.reader, _earlier(suite, other.reader, moved, renamed)) if other else None
        ensure_resolved(suite, [targets, before] if before else [targets])
        vectors = stack.enter_context(QuestionVectors(copy.provider))
        if copy.searcher.semantic:
            vectors.prepare(suite.questions)
        asker = Asker(copy.searcher, targets, vectors)
        outcomes = asker.ask_all(suite.questions, progress)
        moves = [f"{old} is {new} now. Write the new name into the suite." for old, new in sorted(renamed.items())]
        notes = [*([copy.refused] if copy.refused else []), *moves, *asker.notes, *_notes(outcomes)]
        comparison = None
        if other is not None and before is not None:
            other_asker = Asker(other.searcher, before, vectors)
            comparison = comparing.compare(
                other.name,
                comparing.Side(other.reader, before, other_asker.ask_all(suite.questions, progress)),
                comparing.Side(copy.reader, targets, outcomes),
                moved,
                vectors,
                progress,
            )
            comparison = replace(comparison, notes=(*other.notes, *comparison.notes))
        counts = copy.reader.counts()
    hit, mrr = hit_rate(outcomes), mean_reciprocal_rank(outcomes)
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
    return renamed | _in_history(folder, missing - renamed.keys(), reader)


def _earlier(suite: Suite, before: Reader, moved: Mapping[str, str], renamed: Mapping[str, str]) -> dict[str, str]:
    """Page in the suite -> page in the baseline, where they differ."""
    baseline_pages = before.identities()
    paths = {page: renamed.get(page, page) for page in _named(suite) if page not in baseline_pages}
    return {page: moved.get(path, path) for page, path in paths.items()}


def _named(suite: Suite) -> set[str]:
    return {page for question in suite.questions for page in question.pages}


def _notes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A sentence on the questions of each status that has one."""
    for status, entry in STATUSES.items():
        count = sum(outcome.status == status for outcome in outcomes)
        if count and entry.note:
            yield f"{counted(count, 'question', entry.verb)} {entry.note}"


def _passed(suite: Suite, hit: float, mrr: float | None, comparison: Comparison | None) -> bool:
    high_enough = suite.min_hit is None or hit >= suite.min_hit
    ranked_enough = suite.min_mrr is None or mrr is None or mrr >= suite.min_mrr
    return high_enough and ranked_enough and not (comparison and comparison.lost)


def _in_history(folder: Path | None, missing: Collection[str], reader: Reader) -> dict[str, str]:
    """Old path -> path in the index, of pages in ``missing`` that git knows as renamed. Empty outside a repository."""
    if folder is None or not missing:
        return {}
    try:
        repository = Repository.discover(folder)
        if repository is None:
            return {}
        root = PurePosixPath(repository.relative(folder))
        moves = repository.successors([str(root / path) for path in missing])
    except AnvilError:
        return {}
    present = {str(root / path): path for path in reader.identities()}
    return {path: present[new] for path in missing if (new := moves.get(str(root / path))) in present}


@dataclass(frozen=True, slots=True)
class Baseline:
    """What the current index is compared with. ``name``: for reports. ``notes``: sentences on what is missing in it."""

    name: str
    reader: Reader
    searcher: Searcher
    notes: tuple[str, ...] = ()


@contextmanager
def opened(
    named: str,
    current: MemoryCopy,
    folder: Path | None,
    options: SourceOptions,
    fetch: Callable[[str], Path],
    progress: Progress,
) -> Iterator[Baseline]:
    """The baseline that ``named`` names: an index file, an index that is published, or a branch, tag or commit.

    The documents of a commit are read from git. Their vectors come from ``current`` and from the index in that commit,
    if there is one, so that only pages that differ are embedded. ``fetch``: the file of a published index.
    Raises :class:`AnvilError`.
    """
    if index_url.is_milvus(named):
        raise ConfigError(f"{index_url.without_secrets(named)} cannot be a baseline. Name a commit, or an index file.")
    if not isinstance(current.reader, Reader):
        raise ConfigError(
            f"Only an index file is compared with a baseline, not {current.where}. Name one with --index."
        )
    if index_url.is_remote(named) or Path(named).suffix.lower() in index_url.FILES:
        is_remote = index_url.is_remote(named)
        path = fetch(named) if is_remote else Path(named)
        shown = index_url.without_secrets(named) if is_remote else named
        with closing(MemoryCopy(IndexLocation(path), None, current.provider)) as copy:
            copy.refresh()
            yield Baseline(f"the index {shown}", copy.reader, copy.searcher)
        return
    if folder is None:
        raise SourceError(f"There is no documentation folder, so {named!r} names no commit of it. Name it with --docs.")
    commit, name = _commit(named, folder)
    with ExitStack() as stack:
        # The index that is nearest to the documents of the commit: the fewest pages are then read and embedded.
        start = stack.enter_context(_committed(current, folder, commit)) or current.index
        tree = CommitTree(folder, commit, options)
        copy = stack.enter_context(
            closing(MemoryCopy(IndexLocation(start), tree, current.provider, progress, caches=[current.reader]))
        )
        copy.refresh()
        notes = (f"Vectors of {name} are missing: {copy.failure}",) if copy.failure else ()
        yield Baseline(name, copy.reader, copy.searcher, notes)


def _commit(named: str, folder: Path) -> tuple[str, str]:
    """The commit of the baseline, and its name. For a branch: the commit where the current branch left it."""
    repository = Repository.discover(folder)
    if repository is None:
        raise SourceError(f"{folder} is in no git repository. Name an index file as the baseline.")
    tip, head = repository.branch(named), repository.head()
    commit = tip or repository.resolve(named)
    base = repository.merge_base(tip, head) if tip and head else None
    name = f"{named} ({repository.short(base or commit)})"
    if base is not None and base != tip:
        return base, f"{named} where this branch left it ({repository.short(base)})"
    return commit, name


@contextmanager
def _committed(current: MemoryCopy, folder: Path, commit: str) -> Iterator[Path | None]:
    """The index in the commit, if it has the settings of the current one; else None."""
    with ExitStack() as stack:
        path = None
        with suppress(AnvilError):
            file = stack.enter_context(TrackedIndex(current.index, folder).file(commit))
            with verify.open_checked(file) as reader:
                has_same_settings = all(reader.meta()[key] == current.reader.meta()[key] for key in SETTINGS)
            path = file if has_same_settings else None
        yield path
