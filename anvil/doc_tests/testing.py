"""A run of a suite against an index, alone or compared with a baseline."""

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
    """Ask all questions of ``suite``, of the index in ``copy``.

    ``folder``: the documentation folder, in whose history renamed pages are looked up. ``baseline``, ``options`` and
    ``fetch`` are those of :func:`open_baseline`. Raises :class:`AnvilError`.
    """
    began_at = time.perf_counter()
    with ExitStack() as stack:
        other: Baseline | None = None
        moved: dict[str, str] = {}
        if baseline is not None:
            source_options = options or SourceOptions()
            other = stack.enter_context(open_baseline(baseline, copy, folder, source_options, fetch, progress))
            moved = moved_pages(other.reader, copy.reader)
        renamed = _renamed_pages(suite, copy.reader, folder, moved)
        parts = ExpectedParts(copy.reader, renamed)
        before = ExpectedParts(other.reader, _baseline_paths(suite, other.reader, moved, renamed)) if other else None
        ensure_resolved(suite, [parts, before] if before else [parts])
        vectors = stack.enter_context(QuestionVectors(copy.provider))
        if copy.searcher.semantic:
            vectors.prepare(suite.questions)
        asker = Asker(copy.searcher, parts, vectors)
        outcomes = asker.ask_all(suite.questions, progress)
        renames = [f"{old} is {new} now. Write the new name into the suite." for old, new in sorted(renamed.items())]
        notes = [*([copy.refused] if copy.refused else []), *renames, *asker.notes, *_status_notes(outcomes)]
        comparison = None
        if other is not None and before is not None:
            other_asker = Asker(other.searcher, before, vectors)
            comparison = comparing.compare(
                other.name,
                comparing.Side(other.reader, before, other_asker.ask_all(suite.questions, progress)),
                comparing.Side(copy.reader, parts, outcomes),
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


def _renamed_pages(suite: Suite, reader: Reader, folder: Path | None, moved: Mapping[str, str]) -> dict[str, str]:
    """Path in the suite -> path in the index, for renamed pages. ``moved``: new path -> old path."""
    missing = _expected_pages(suite) - reader.identities().keys()
    renamed = {old: new for new, old in moved.items() if old in missing}
    return renamed | _renames_in_history(folder, missing - renamed.keys(), reader)


def _baseline_paths(
    suite: Suite, before: Reader, moved: Mapping[str, str], renamed: Mapping[str, str]
) -> dict[str, str]:
    """Path in the suite -> path in the baseline, if they differ."""
    baseline_pages = before.identities()
    paths = {page: renamed.get(page, page) for page in _expected_pages(suite) if page not in baseline_pages}
    return {page: moved.get(path, path) for page, path in paths.items()}


def _expected_pages(suite: Suite) -> set[str]:
    return {page for question in suite.questions for page in question.pages}


def _status_notes(outcomes: Sequence[Outcome]) -> Iterator[str]:
    """A note on the questions of each status that has a note."""
    for status, entry in STATUSES.items():
        count = sum(outcome.status == status for outcome in outcomes)
        if count and entry.note:
            yield f"{counted(count, 'question', entry.verb)} {entry.note}"


def _passed(suite: Suite, hit: float, mrr: float | None, comparison: Comparison | None) -> bool:
    high_enough = suite.min_hit is None or hit >= suite.min_hit
    ranked_enough = suite.min_mrr is None or mrr is None or mrr >= suite.min_mrr
    return high_enough and ranked_enough and not (comparison and comparison.lost)


def _renames_in_history(folder: Path | None, missing: Collection[str], reader: Reader) -> dict[str, str]:
    """Path in ``missing`` -> path in the index, for pages that were renamed in git. Empty outside of a repository."""
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
    """The index that the current index is compared with. ``name``: for reports. ``notes``: on its missing parts."""

    name: str
    reader: Reader
    searcher: Searcher
    notes: tuple[str, ...] = ()


@contextmanager
def open_baseline(
    baseline: str,
    current: MemoryCopy,
    folder: Path | None,
    options: SourceOptions,
    fetch: Callable[[str], Path],
    progress: Progress,
) -> Iterator[Baseline]:
    """Open a baseline: an index file, a published index, or a branch, tag or commit.

    The documents of a commit are read from git. Vectors are reused from ``current`` and from the index in that commit,
    if there is one, so that only pages that differ are embedded. ``options`` say which files are pages. ``fetch``
    returns the file of a published index. Raises :class:`AnvilError`.
    """
    if index_url.is_milvus(baseline):
        raise ConfigError(
            f"{index_url.without_secrets(baseline)} cannot be a baseline. Name a commit, or an index file."
        )
    if not isinstance(current.reader, Reader):
        raise ConfigError(
            f"Only an index file is compared with a baseline, not {current.where}. Name one with --index."
        )
    is_remote = index_url.is_remote(baseline)
    if is_remote or Path(baseline).suffix.lower() in index_url.FILES:
        path = fetch(baseline) if is_remote else Path(baseline)
        shown = index_url.without_secrets(baseline) if is_remote else baseline
        with closing(MemoryCopy(IndexLocation(path), None, current.provider)) as copy:
            copy.refresh()
            yield Baseline(f"the index {shown}", copy.reader, copy.searcher)
        return
    if folder is None:
        raise SourceError(
            f"There is no documentation folder, so {baseline!r} names no commit of it. Name the folder with --docs."
        )
    commit, name = _commit(baseline, folder)
    with ExitStack() as stack:
        # The copy starts from the index in the commit, if there is one, since then the fewest pages must be embedded.
        start = stack.enter_context(_index_in_commit(current, folder, commit)) or current.index
        tree = CommitTree(folder, commit, options)
        copy = stack.enter_context(
            closing(MemoryCopy(IndexLocation(start), tree, current.provider, progress, caches=[current.reader]))
        )
        copy.refresh()
        notes = (f"Vectors of {name} are missing: {copy.failure}",) if copy.failure else ()
        yield Baseline(name, copy.reader, copy.searcher, notes)


def _commit(revision: str, folder: Path) -> tuple[str, str]:
    """The commit of a baseline, and its name. For a branch, it is the commit at which the current branch left it."""
    repository = Repository.discover(folder)
    if repository is None:
        raise SourceError(f"{folder} is in no git repository. Name an index file as the baseline.")
    tip, head = repository.branch(revision), repository.head()
    base = repository.merge_base(tip, head) if tip and head else None
    if base is not None and base != tip:
        return base, f"{revision} where this branch left it ({repository.short(base)})"
    commit = tip or repository.resolve(revision)
    return commit, f"{revision} ({repository.short(commit)})"


@contextmanager
def _index_in_commit(current: MemoryCopy, folder: Path, commit: str) -> Iterator[Path | None]:
    """The file of the index in a commit; None if there is none with the settings of the current index."""
    with ExitStack() as stack:
        path = None
        with suppress(AnvilError):
            file = stack.enter_context(TrackedIndex(current.index, folder).file(commit))
            with verify.open_checked(file) as reader:
                has_same_settings = all(reader.meta()[key] == current.reader.meta()[key] for key in SETTINGS)
            path = file if has_same_settings else None
        yield path
