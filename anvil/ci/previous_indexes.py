"""Earlier indexes, for their vectors and for comparison, and the keys of CI caches."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci import runners
from anvil.ci.runners import Runner
from anvil.cli.output import relative
from anvil.errors import AnvilError, ArtifactError
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file.reader import Reader
from anvil.settings.schema import LOCK_NAME
from anvil.system import safe_files

if TYPE_CHECKING:
    from anvil.api import Anvil


def find(previous: tuple[str, ...], opened: Anvil, runner: Runner) -> Iterator[Path]:
    """The files of previous indexes. ``previous`` has paths, glob patterns and addresses, one per line.

    A missing index is a warning, since the first run has none.
    """
    from anvil.settings import index_url

    for name in (line.strip() for value in previous for line in value.splitlines()):
        if index_url.is_remote(name):
            yield from _fetch(name, opened, runner)
        elif name:
            files = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not files:
                runner.annotate("warning", f"There is no previous index at {name}: its vectors cannot be reused.")
            yield from map(Path, files)


def _fetch(name: str, opened: Anvil, runner: Runner) -> Iterator[Path]:
    from anvil.fetch.fetch_index import fetch_as_configured

    try:
        fetched = fetch_as_configured(name, opened.config, opened.base, head=opened.folder)
    except AnvilError as error:
        runner.annotate("warning", f"The previous index cannot be fetched: {error}")
        return
    runner.line(f"The previous index is from {fetched.origin}, built from commit {(fetched.commit or 'unknown')[:12]}.")
    yield fetched.path


def open_first_valid(candidates: list[Path], shard: str | None, copy: Path) -> Reader | None:
    """Copy the first valid index of this shard to ``copy``, and open it there. None if there is none."""
    from anvil.index_file import publish, verify

    for path in candidates:
        try:
            with verify.open_checked(path) as reader:
                same_shard = reader.meta().get("shard") == shard
        except ArtifactError:
            continue  # the build reads the same files, and reports the reason
        if same_shard:
            publish.place(path, copy)
            return verify.open_checked(copy)
    return None


DEPS_PREFIX = "anvil-deps-1-"
"""The prefix of cache keys of dependencies' documentation."""


def branch_key(name: str) -> str:
    """The part of a cache key that names a branch."""
    return f"{_short_hash(name)}-"


def index_folder(opened: Anvil, shard: str | None) -> str:
    """The name of the folder in which this index, or this shard of it, is kept."""
    return f"anvil-index-{_index_hash(opened, shard)}"


def index_key(opened: Anvil, shard: str | None) -> str:
    """The prefix of the cache keys of this index. An index of another format or model cannot be reused."""
    from anvil.index_file.table_rows import FORMAT_VERSION

    return f"anvil-{FORMAT_VERSION}-{opened.provider.digest[:12]}-{_index_hash(opened, shard)}-"


def deps_cache(base: Path, temporary: Path) -> dict[str, str]:
    """The folder in which to keep dependencies' documentation between runs, and its cache keys.

    Files are named by their content, so those of an earlier ``anvil.lock`` can be reused by the prefix of the key.
    """
    lock = base / LOCK_NAME
    try:
        name = hashlib.sha256(safe_files.data(lock)).hexdigest()[:16]
    except OSError:  # there is no lock, or it cannot be read: 'anvil deps sync' reports that
        name = "none"
    return {
        "deps-folder": str(temporary / f"anvil-deps-{_short_hash(relative(lock))}"),
        "deps-key": f"{DEPS_PREFIX}{name}",
        "deps-prefix": DEPS_PREFIX,
    }


def _index_hash(opened: Anvil, shard: str | None) -> str:
    return _short_hash(f"{relative(opened.index_path)}\n{shard or ''}")


def _short_hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]


@contextmanager
def base_index(opened: Anvil, kept_index: Path | None, kept_key: str, shard: str | None) -> Iterator[Path | None]:
    """The index of a pull request's base branch: the committed index, or the last one that a run of it kept.

    ``kept_key`` is the cache key from which ``kept_index`` was restored. None if there is neither index, as in a
    checkout without history, and for a shard.
    """
    from anvil.index_file import verify

    branch = None if shard else runners.base_branch()
    with ExitStack() as stack:
        base = None
        if branch is not None:
            is_from_base = kept_key.startswith(index_key(opened, shard) + branch_key(branch))
            base = kept_index if is_from_base else None
            for revision in runners.base_revisions():
                with suppress(AnvilError):  # no history, or no usable index in that commit
                    tracked = TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)
                    file = stack.enter_context(tracked.file(revision))
                    verify.open_checked(file).close()
                    base = file
                    break
        yield base
