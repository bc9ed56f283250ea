"""The baseline of a comparison: the documents of a commit, or another index."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from anvil.documents import open_tree
from anvil.errors import AnvilError, ConfigError, SourceError
from anvil.git.repository import Repository
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file import verify
from anvil.index_file.reader import Reader
from anvil.index_file.writer import SETTINGS
from anvil.live.working_copy import WorkingCopy
from anvil.search.searcher import Searcher
from anvil.settings import index_url
from anvil.settings.schema import SourceOptions
from anvil.values import Progress


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
    current: WorkingCopy,
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
        with closing(WorkingCopy(path, None, current.provider)) as copy:
            copy.refresh()
            yield Baseline(f"the index {shown}", copy.reader, copy.searcher)
        return
    if folder is None:
        raise SourceError(f"There is no documentation folder, so {named!r} names no commit of it. Name it with --docs.")
    commit, name = _commit(named, folder)
    with ExitStack() as stack:
        start = stack.enter_context(_committed(current, folder, commit)) or current.index
        tree = open_tree.commit_tree(folder, commit, options)
        copy = stack.enter_context(
            closing(WorkingCopy(start, tree, current.provider, progress, caches=[current.reader]))
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
def _committed(current: WorkingCopy, folder: Path, commit: str) -> Iterator[Path | None]:
    """The index in the commit, if it has the settings of the current one; else None."""
    with ExitStack() as stack:
        path = None
        with suppress(AnvilError):
            file = stack.enter_context(TrackedIndex(current.index, folder).file(commit))
            with verify.open_checked(file) as reader:
                has_same_settings = all(reader.meta()[key] == current.reader.meta()[key] for key in (*SETTINGS,))
            path = file if has_same_settings else None
        yield path
