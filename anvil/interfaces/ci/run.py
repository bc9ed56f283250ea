"""A CI job's work: what to reuse, build or check, and what to tell about it."""

from __future__ import annotations

import glob
import hashlib
import os
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from anvil.backends.git.tracked_file import TrackedIndex
from anvil.core.pluralize import counted
from anvil.errors import AnvilError, ArtifactError, BuildError
from anvil.interfaces.ci import summary
from anvil.interfaces.ci.annotations import in_checkout, notes
from anvil.interfaces.ci.hosts import Host

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.backends.store.reader import Reader
    from anvil.models.documents import BuildReport

KEPT = "index.db"
"""The index's name in the folder that is kept, whatever it is called in the checkout."""
MOST = 10
"""Warnings about files at most: GitHub shows no more of a step."""


@dataclass(frozen=True, slots=True)
class Order:
    """What a job asks for: the options of ``anvil build``, ``keep``, a folder, and whether stale pages are marked.
    ``kept_key``: the name under which a cache had what is in ``keep``."""

    docs: str | None = None
    index: str | None = None
    config: str | None = None
    provider: str | None = None
    previous: tuple[str, ...] = ()
    shard: str | None = None
    keep: str | None = None
    mark_stale: bool = True
    kept_key: str | None = None


def plan(order: Order, host: Host, environment: Mapping[str, str]) -> dict[str, str]:
    """Say where the index is kept between runs, and under which name a cache finds it again."""
    with _opened(order, host) as opened:
        folder = Path(environment.get("RUNNER_TEMP") or tempfile.gettempdir()) / f"anvil-index-{_place(opened, order)}"
        prefix = _cache_prefix(opened, order)
        told = {
            "keep": order.keep or str(folder),
            "cache-prefix": prefix,
            "cache-branch": prefix + _branch(_base_branch(environment) or _own_branch(environment)),
        }
    host.output(told)
    return told


def build(order: Order, host: Host) -> dict[str, str]:
    """Build the index, reusing what was kept; leave it and its manifest in the folder that is kept."""
    from anvil.backends.store import manifest_file, publish, verified_cache, verify
    from anvil.services.reports import content_health, diff

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(order, host))
        keep = Path(order.keep) if order.keep else None
        previous = [*_kept(keep), *_named(order.previous, opened, host)]
        held = Path(stack.enter_context(tempfile.TemporaryDirectory())) / KEPT
        base = stack.enter_context(_of_base(opened, order, keep))
        candidates = [*([base] if base else []), opened.index_path, *previous]
        old = _last(candidates, order.shard, held)  # a copy: the build may take its place
        report = opened.index(previous=previous, shard=order.shard)
        _warn(report, opened, host)
        if report.nothing_embedded:  # before it is kept for the next run, or published
            raise BuildError(report.nothing_embedded_because)
        index = opened.index_path
        new = stack.enter_context(verify.open_checked(index))
        sha256 = verified_cache.sha256(index)
        told = _told(
            opened,
            new,
            before=_size(stack.enter_context(old), held) if old else None,
            difference=diff.difference(old, new) if old else None,
            health=content_health.examine(new),
            report=report,
            since=_base_branch(os.environ) if base else None,
        )
        values = {
            "index-path": str(index.absolute()),
            "digest": report.digest,
            "pages": str(report.pages),
            "chunks": str(report.chunks),
            "embedded": str(report.embedded),
            "changed": _yes(old is None or verified_cache.sha256(held) != sha256),
            "cache-key": f"{_cache_prefix(opened, order)}{_branch(_own_branch(os.environ))}{sha256[:16]}",
        }
        if keep:
            publish.place(index, keep / KEPT)
            manifest_file.write_manifest(keep / KEPT)
    host.output(values)
    host.summarize(summary.render(told))
    return values


def check(order: Order, host: Host) -> tuple[bool, dict[str, str]]:
    """Compare the index with the documents, and mark those it is not up to date with; whether it is fresh."""
    from anvil.backends.store import verify
    from anvil.services.reports import content_health, diff

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(order, host))
        changes = opened.check()
        reader = stack.enter_context(verify.open_checked(opened.index_path))
        base = stack.enter_context(_of_base(opened, order, None))
        old = stack.enter_context(verify.open_checked(base)) if base else None
        told = _told(
            opened,
            reader,
            before=_size(old, base) if old and base else None,
            difference=diff.difference(old, reader) if old else None,
            health=content_health.examine(reader),
            stale=changes,
            since=_base_branch(os.environ) if base else None,
        )
        counts = reader.counts()
        values = {
            "index-path": str(opened.index_path.absolute()),
            "digest": told.digest,
            "pages": str(counts["documents"]),
            "chunks": str(counts["chunks"]),
            "embedded": "0",
            "changed": _yes(bool(changes)),
        }
        if changes:
            for note in list(notes(changes, opened, reader))[: MOST if order.mark_stale else 0]:
                host.annotate("warning", note.message, note.file, note.line)
            host.annotate(
                "error",
                f"{_shown(opened.index_path)} is stale: {counted(len(changes), 'page', 'differ')} "
                f"from the documents. Run '{'mkdocs' if told.of_site else 'anvil'} build' and commit the index.",
            )
        else:
            host.line(f"{_shown(opened.index_path)} is fresh: it says what the documents say.")
    host.output(values)
    host.summarize(summary.render(told))
    return not changes, values


# --- the base of a pull request ----------------------------------------------------------------------------------


def _base_branch(environment: Mapping[str, str]) -> str | None:
    """The branch that a pull request is for; None in other runs."""
    return environment.get("GITHUB_BASE_REF") or None


def _own_branch(environment: Mapping[str, str]) -> str:
    return environment.get("GITHUB_HEAD_REF") or environment.get("GITHUB_REF_NAME") or ""


def _branch(name: str) -> str:
    """A branch in the name of a cache."""
    return f"{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}-"


@contextmanager
def _of_base(opened: Anvil, order: Order, keep: Path | None) -> Iterator[Path | None]:
    """The index of the branch that a pull request is for: as committed there, or the last one that a run there kept.

    None where neither is at hand, as in a checkout of the last commit alone.
    """
    from anvil.backends.store import verify

    branch = None if order.shard else _base_branch(os.environ)
    with ExitStack() as stack:
        found = None
        if branch is not None:
            kept_there = (order.kept_key or "").startswith(_cache_prefix(opened, order) + _branch(branch))
            found = next(_kept(keep), None) if kept_there else None
            merge = os.environ.get("GITHUB_SHA") if os.environ.get("GITHUB_REF", "").endswith("/merge") else None
            for revision in ([f"{merge}^1"] if merge else []) + [f"origin/{branch}"]:
                with suppress(AnvilError):  # no history there, no index in that commit, or none that can be used
                    tracked = TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)
                    file = stack.enter_context(tracked.file(revision))
                    verify.open_checked(file).close()
                    found = file
                    break
        yield found


# --- what to work on -------------------------------------------------------------------------------------------


def _opened(order: Order, host: Host) -> Anvil:
    import anvil

    return anvil.open(order.docs, order.index, order.provider, order.config, progress=_Lines(host))


class _Lines:
    """Says how far a build is, every ten seconds."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._next = time.monotonic() + 2.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if total > 1 and now >= self._next:
            self._host.line(f"{stage} {done} of {total}")
            self._next = now + 10.0


def _place(opened: Anvil, order: Order) -> str:
    """What tells this index, or this share of it, from others of the same checkout."""
    name = f"{_shown(opened.index_path)}\n{order.shard or ''}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _cache_prefix(opened: Anvil, order: Order) -> str:
    """Indexes of another format or model are of no use, so a cache is not asked for them."""
    from anvil.backends.store.connection import FORMAT_VERSION

    return f"anvil-{FORMAT_VERSION}-{opened.provider.digest[:12]}-{_place(opened, order)}-"


def _kept(folder: Path | None) -> Iterator[Path]:
    if folder and (folder / KEPT).is_file():
        yield folder / KEPT


def _named(previous: tuple[str, ...], opened: Anvil, host: Host) -> Iterator[Path]:
    """The indexes that ``previous`` names, one a line: paths, patterns, and what is published elsewhere.

    What cannot be had is a warning: the first run of all has none.
    """
    from anvil.core import index_url

    for name in (line.strip() for each in previous for line in each.splitlines()):
        if index_url.is_remote(name):
            yield from _fetched(name, opened, host)
        elif name:
            found = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not found:
                host.annotate("warning", f"There is no previous index at {name}: its vectors cannot be reused.")
            yield from map(Path, found)


def _fetched(name: str, opened: Anvil, host: Host) -> Iterator[Path]:
    from anvil.backends.fetch.fetch_index import fetch
    from anvil.backends.fetch.http_client import Limits

    try:
        found = fetch(name, head=opened.folder, limits=Limits(size=opened.config.fetch.max_bytes))
    except AnvilError as error:
        host.annotate("warning", f"The previous index cannot be had: {error}")
        return
    host.line(f"The previous index is of {found.origin}, built from commit {(found.commit or 'unknown')[:12]}.")
    yield found.path


def _last(candidates: list[Path], shard: str | None, held: Path) -> Reader | None:
    """The first of the indexes that is sound and of the same share of the pages, as a copy at ``held``."""
    from anvil.backends.store import publish, verify

    for path in candidates:
        try:
            with verify.open_checked(path) as reader:
                alike = reader.meta().get("shard") == shard
        except ArtifactError:
            continue  # the build, which is given the same, says why
        if alike:
            publish.place(path, held)
            return verify.open_checked(held)
    return None


# --- what to tell ----------------------------------------------------------------------------------------------


def _told(opened: Anvil, reader: Reader, **more: object) -> summary.Told:
    meta = reader.meta()
    return summary.Told(
        index=_shown(opened.index_path),
        docs=_shown(opened.folder) if opened.folder else "",
        digest=meta["digest"],
        commit=meta.get("commit"),
        of_site=reader.excluded_hashes() is not None,
        pages=_pages_address(opened),
        after=_size(reader, opened.index_path),
        **more,  # type: ignore[arg-type]
    )


def _pages_address(opened: Anvil) -> str | None:
    """The address on GitHub below which the pages of this commit can be read; None elsewhere."""
    server, repository, commit = (os.environ.get(f"GITHUB_{name}") for name in ("SERVER_URL", "REPOSITORY", "SHA"))
    folder = in_checkout(opened, "")
    if not (server and repository and commit) or folder is None:
        return None
    below = "" if folder == "." else f"{quote(folder, errors='surrogateescape')}/"
    return f"{server}/{repository}/blob/{commit}/{below}"


def _size(reader: Reader, path: Path) -> summary.Size:
    counts = reader.counts()
    return summary.Size(counts["documents"], counts["sections"], counts["chunks"], path.stat().st_size)


def _warn(report: BuildReport, opened: Anvil, host: Host) -> None:
    told: list[tuple[str, str | None]] = [(reason, None) for reason in report.reasons]
    told += [(f"Left out: {each.reason}", in_checkout(opened, each.path)) for each in report.skipped]
    told += [(f"Not embedded, found by keyword only: {each.path}: {each.reason}", None) for each in report.failed]
    for message, file in told[: MOST - 1]:
        host.annotate("warning", message, file)
    if len(told) >= MOST:
        host.annotate("warning", f"{len(told) - MOST + 1} more warnings stand in the log.")
        for message, file in told[MOST - 1 :]:
            host.line(f"{file}: {message}" if file else message)


def _shown(path: Path) -> str:
    """A path from the working folder, where it lies inside; POSIX."""
    absolute = path.absolute()
    here = Path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else absolute).as_posix()


def _yes(value: bool) -> str:
    return "true" if value else "false"
