"""Earlier indexes: those whose vectors a build reuses, and the one that it is compared with."""

from __future__ import annotations

import glob
import hashlib
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.ci import pull_request
from anvil.ci.runners import Runner
from anvil.cli.output import relative
from anvil.errors import AnvilError, ArtifactError
from anvil.git.tracked_file import TrackedIndex
from anvil.index_file.reader import Reader
from anvil.settings.schema import LOCK_NAME
from anvil.system import safe_files

if TYPE_CHECKING:
    from anvil.api import Anvil


def named(previous: tuple[str, ...], opened: Anvil, runner: Runner) -> Iterator[Path]:
    """The indexes of ``previous``: paths, glob patterns and addresses, one per line.

    A missing one is a warning, since the first run has none.
    """
    from anvil.settings import index_url

    for name in (line.strip() for value in previous for line in value.splitlines()):
        if index_url.is_remote(name):
            yield from _fetched(name, opened, runner)
        elif name:
            files = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not files:
                runner.annotate("warning", f"There is no previous index at {name}: its vectors cannot be reused.")
            yield from map(Path, files)


def _fetched(name: str, opened: Anvil, runner: Runner) -> Iterator[Path]:
    from anvil.fetch.fetch_index import fetch_as_configured

    try:
        fetched = fetch_as_configured(name, opened.config, opened.base, head=opened.folder)
    except AnvilError as error:
        runner.annotate("warning", f"The previous index cannot be fetched: {error}")
        return
    runner.line(f"The previous index is from {fetched.origin}, built from commit {(fetched.commit or 'unknown')[:12]}.")
    yield fetched.path


def first_sound(candidates: list[Path], shard: str | None, copy: Path) -> Reader | None:
    """The first index that is sound and of the same shard, copied to ``copy`` and opened there."""
    from anvil.index_file import publish, verify

    for path in candidates:
        try:
            with verify.open_checked(path) as reader:
                same_shard = reader.meta().get("shard") == shard
        except ArtifactError:
            continue  # the build gets the same indexes, and reports the reason
        if same_shard:
            publish.place(path, copy)
            return verify.open_checked(copy)
    return None


DEPS_PREFIX = "anvil-deps-1-"
"""The beginning of cache keys of dependencies' documentation."""


def branch_key(name: str) -> str:
    return f"{_id(name)}-"


def index_folder(opened: Anvil, shard: str | None) -> str:
    """The name of a folder for this index, or for this shard, among others of the same checkout."""
    return f"anvil-index-{_place(opened, shard)}"


def index_key(opened: Anvil, shard: str | None) -> str:
    """The prefix of cache keys. It depends on format and model, since other indexes cannot be reused."""
    from anvil.index_file.table_rows import FORMAT_VERSION

    return f"anvil-{FORMAT_VERSION}-{opened.provider.digest[:12]}-{_place(opened, shard)}-"


def deps_cache(base: Path, temporary: Path) -> dict[str, str]:
    """The folder in which to keep dependencies' documentation between runs, and its cache key. Files are named by their
    content: those of an earlier ``anvil.lock`` are of use."""
    lock = base / LOCK_NAME
    try:
        name = hashlib.sha256(safe_files.data(lock)).hexdigest()[:16]
    except OSError:  # without a lock, or with one that 'anvil deps sync' refuses
        name = "none"
    return {
        "deps-folder": str(temporary / f"anvil-deps-{_id(relative(lock))}"),
        "deps-key": f"{DEPS_PREFIX}{name}",
        "deps-prefix": DEPS_PREFIX,
    }


def _place(opened: Anvil, shard: str | None) -> str:
    return _id(f"{relative(opened.index_path)}\n{shard or ''}")


def _id(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]


@contextmanager
def base_index(opened: Anvil, kept_index: Path | None, kept_key: str, shard: str | None) -> Iterator[Path | None]:
    """The index of the branch that a pull request is for: the committed one, or the last one that a run kept there.
    ``kept_key``: the cache key from which ``kept_index`` was restored.

    None if there is neither, as in a checkout without history, and for a shard.
    """
    from anvil.index_file import verify

    branch = None if shard else pull_request.base_branch()
    with ExitStack() as stack:
        base = None
        if branch is not None:
            is_of_base = kept_key.startswith(index_key(opened, shard) + branch_key(branch))
            base = kept_index if is_of_base else None
            for revision in pull_request.revisions():
                with suppress(AnvilError):  # no history, or no usable index in that commit
                    tracked = TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)
                    file = stack.enter_context(tracked.file(revision))
                    verify.open_checked(file).close()
                    base = file
                    break
        yield base
