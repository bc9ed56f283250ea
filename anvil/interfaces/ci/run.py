"""The work of a CI job: build or check the index, reuse earlier ones, report the result."""

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

from anvil.backends.git.repository import Repository
from anvil.backends.git.tracked_file import TrackedIndex
from anvil.core.pluralize import counted
from anvil.core.site import pages
from anvil.errors import AnvilError, ArtifactError, BuildError
from anvil.interfaces.ci import lint_summary, question_summary, summary
from anvil.interfaces.ci.annotations import annotate, in_checkout, notes
from anvil.interfaces.ci.hosts import Host
from anvil.models.lint import LEVELS
from anvil.models.lint import Level as FindingLevel

if TYPE_CHECKING:
    from anvil.api import Anvil
    from anvil.backends.store.reader import Reader
    from anvil.models.documents import BuildReport

KEPT_NAME = "index.db"
"""The index's name in the folder that is kept between runs."""
DEPS_PREFIX = "anvil-deps-1-"
"""The beginning of cache keys of dependencies' documentation."""
MAX_WARNINGS = 10
"""Annotations of one step that GitHub shows."""


@dataclass(frozen=True, slots=True)
class Order:
    """The options of ``anvil ci``. ``keep``: the folder that is kept between runs, of the index or of dependencies'
    documentation. ``kept_key``: the cache key from which it was restored. ``mark_stale``: whether stale pages get a
    warning. ``tests``: a file of questions; ``true`` for the nearest ``anvil-tests.toml``. ``fail_level``: the lowest
    level of finding that fails; None for that of the configuration. ``site``: the folder of a built site."""

    docs: str | None = None
    index: str | None = None
    site: str | None = None
    config: str | None = None
    provider: str | None = None
    previous: tuple[str, ...] = ()
    shard: str | None = None
    keep: str | None = None
    mark_stale: bool = True
    kept_key: str | None = None
    tests: str | None = None
    fail_level: FindingLevel | None = None


def plan(order: Order, host: Host, environment: Mapping[str, str]) -> dict[str, str]:
    """The folder in which to keep the index between runs, and the prefixes of its cache key; and the same for the
    documentation of dependencies."""
    with _opened(order, host) as opened:
        temporary = Path(environment.get("RUNNER_TEMP") or tempfile.gettempdir())
        prefix = _cache_prefix(opened, order)
        values = {
            "keep": order.keep or str(temporary / f"anvil-index-{_place(opened, order)}"),
            "cache-prefix": prefix,
            "cache-branch": prefix + _branch(_base_branch(environment) or _own_branch(environment)),
            **_deps_cache(opened.base, temporary),
        }
    host.output(values)
    return values


def build(order: Order, host: Host) -> dict[str, str]:
    """Build the index, reuse vectors of the kept one, and write the new index and its manifest into that folder."""
    from anvil.backends.store import manifest_file, publish, verified_cache, verify
    from anvil.services.reports import content_health, diff

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(order, host))
        keep = Path(order.keep) if order.keep else None
        previous = [*_kept(keep), *_named(order.previous, opened, host)]
        old_copy = Path(stack.enter_context(tempfile.TemporaryDirectory())) / KEPT_NAME
        base = stack.enter_context(_of_base(opened, order, keep))
        candidates = [*([base] if base else []), opened.index_path, *previous]
        old = _first_sound(candidates, order.shard, old_copy)  # a copy, since the build may replace it
        report = opened.index(previous=previous, shard=order.shard)
        _warn(report, opened, host)
        if report.nothing_embedded:  # such an index must not be kept for the next run, or published
            raise BuildError(report.nothing_embedded_because)
        index = opened.index_path
        new = stack.enter_context(verify.open_checked(index))
        sha256 = verified_cache.sha256(index)
        contents = _contents(
            opened,
            new,
            before=_size(stack.enter_context(old), old_copy) if old else None,
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
            "changed": _yes(old is None or verified_cache.sha256(old_copy) != sha256),
            "cache-key": f"{_cache_prefix(opened, order)}{_branch(_own_branch(os.environ))}{sha256[:16]}",
        }
        if keep:
            publish.place(index, keep / KEPT_NAME)
            manifest_file.write_manifest(keep / KEPT_NAME)
    host.output(values)
    host.summarize(summary.render(contents))
    return values


def check(order: Order, host: Host) -> tuple[bool, dict[str, str]]:
    """Compare the index, and the files with the map of ``anvil agents``, with the documents; annotate what is stale.

    Returns whether all is fresh, and values about the index.
    """
    from anvil.backends.store import verify
    from anvil.services.reports import content_health, diff

    with ExitStack() as stack:
        opened = stack.enter_context(_opened(order, host))
        changes = opened.check()
        reader = stack.enter_context(verify.open_checked(opened.index_path))
        base = stack.enter_context(_of_base(opened, order, None))
        old = stack.enter_context(verify.open_checked(base)) if base else None
        contents = _contents(
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
            "digest": contents.digest,
            "pages": str(counts["documents"]),
            "chunks": str(counts["chunks"]),
            "embedded": "0",
            "changed": _yes(bool(changes)),
        }
        if changes:
            for note in list(notes(changes, opened, reader))[: MAX_WARNINGS if order.mark_stale else 0]:
                host.annotate("warning", note.message, note.file, note.line)
            host.annotate(
                "error",
                f"{_shown(opened.index_path)} is stale: {counted(len(changes), 'page', 'differ')} "
                f"from the documents. {_way_out(opened, contents.of_site)}",
            )
        else:
            host.line(f"{_shown(opened.index_path)} is fresh: no page differs from the documents.")
        stale_files = _stale_agent_files(opened, order)
        for message in stale_files:
            host.annotate("error", message)
    host.output(values)
    host.summarize(summary.render(contents))
    return not changes and not stale_files, values


def _way_out(opened: Anvil, of_site: bool) -> str:
    """How to update a stale index."""
    if opened.config.site.folder is not None:
        return f"Build the site, and run 'anvil build --site {_shown(opened.base / opened.config.site.folder)}'."
    return f"Run '{'mkdocs' if of_site else 'anvil'} build' and commit the index."


def _stale_agent_files(opened: Anvil, order: Order) -> tuple[str, ...]:
    """What is wrong with the files that have the map of ``anvil agents``, if any."""
    from anvil.backends import installation
    from anvil.services.agents.agent_files import AgentFiles

    if opened.folder is None or opened.tree is None:
        return ()
    given = [
        word for name, value in (("--docs", order.docs), ("--config", order.config)) if value for word in (name, value)
    ]
    command = installation.line(["anvil", "agents", *given])
    return AgentFiles(opened.folder, opened.base).compare(opened.tree).messages(command)


def test(order: Order, host: Host) -> tuple[bool, dict[str, str]]:
    """Ask the questions of a suite, in a pull request also of the branch that it is for; whether they are answered."""
    with _opened(order, host) as opened:
        suite = opened.test_suite(None if order.tests in (None, "true") else order.tests)
        branch = _base_branch(os.environ)
        base = _base_commit(opened) if branch else None
        report = opened.test(suite, base)
        if branch and base is None:
            host.annotate(
                "warning",
                f"The questions are not compared with {branch}: this checkout lacks its commits. "
                "Set fetch-depth: 0 for actions/checkout.",
            )
        for sentence in report.notes:
            host.annotate("warning", sentence)
        for note in [*question_summary.notes(report, opened)][:MAX_WARNINGS]:
            host.annotate(note.level, note.message, note.file, note.line)
        pages_url = _pages_url(opened)
    values = {
        "questions": str(len(report.outcomes)),
        "failed": str(len(report.failed)),
        "lost": str(len(report.comparison.lost) if report.comparison else 0),
    }
    host.output(values)
    host.summarize(question_summary.render(report, branch, pages_url))
    host.line(question_summary.headline(report))
    return report.passed, values


def lint(order: Order, host: Host) -> tuple[bool, dict[str, str]]:
    """Examine the pages, with annotations at errors and warnings; whether no finding reaches the fail level."""
    with _opened(order, host) as opened:
        report = opened.lint()
        failing = report.at_least(order.fail_level or opened.config.lint.fail_level)
        annotate(lint_summary.annotated(report, MAX_WARNINGS), opened, host)
        pages_url = _pages_url(opened)
    values = {level + "s": str(sum(each.level == level for each in report.findings)) for level in LEVELS}
    host.output(values)
    host.summarize(lint_summary.render(report, pages_url))
    host.line(lint_summary.headline(report))
    return not failing, values


def deps(order: Order, host: Host) -> tuple[bool, dict[str, str]]:
    """Fetch or build the documentation that ``anvil.lock`` names, with an error for each entry that fails.

    The folder that is kept between runs gets what the lock names, and nothing else. It is a copy, because the cache of
    the machine's user may serve several jobs and projects. If something fails, the folder stays as it is.

    Returns whether all of it is there, and numbers. Raises :class:`ConfigError` without ``anvil.lock``.
    """
    from anvil.backends.config_files import load_config
    from anvil.core.config.schema import LOCK_NAME
    from anvil.services.dependencies import docs_cache, syncing

    config, base = load_config(order.config)
    entries, cache = syncing.read_entries(base), docs_cache.cache()
    kept = docs_cache.kept(Path(order.keep)) if order.keep else None
    if kept is not None:
        docs_cache.copy(kept, cache, entries, config.fetch, base)
    reports = syncing.sync(config, base, cache, _Lines(host))
    is_complete = all(report.problem is None for report in reports)
    if kept is not None and is_complete:
        docs_cache.copy(cache, kept, entries, config.fetch, base)
        docs_cache.keep_only(kept, entries, config.fetch, base)
    for report in reports:
        if report.problem is not None:
            host.annotate("error", report.problem, _shown(base / LOCK_NAME))
    values = {
        "dependencies": str(len(reports)),
        "dependencies-fetched": str(sum(report.outcome == "fetched" for report in reports)),
    }
    host.output(values)
    host.summarize(summary.dependencies(reports))
    return is_complete, values


# --- the base of a pull request ----------------------------------------------------------------------------------


def _base_branch(environment: Mapping[str, str]) -> str | None:
    """The branch that a pull request is for; None in other runs."""
    return environment.get("GITHUB_BASE_REF") or None


def _own_branch(environment: Mapping[str, str]) -> str:
    return environment.get("GITHUB_HEAD_REF") or environment.get("GITHUB_REF_NAME") or ""


def _branch(name: str) -> str:
    """A branch as a part of a cache key."""
    return f"{hashlib.sha256(name.encode('utf-8', 'surrogateescape')).hexdigest()[:8]}-"


def _base_commit(opened: Anvil) -> str | None:
    """The commit that a pull request is compared with; None where this checkout does not have it."""
    for revision in _base_revisions(os.environ):
        with suppress(AnvilError):
            repository = Repository.discover(opened.folder or Path.cwd())
            if repository is not None:
                return repository.resolve(revision)
    return None


def _base_revisions(environment: Mapping[str, str]) -> list[str]:
    """Where the branch of a pull request is found: below the merge that GitHub checks out, or as fetched."""
    merge = environment.get("GITHUB_SHA") if environment.get("GITHUB_REF", "").endswith("/merge") else None
    return ([f"{merge}^1"] if merge else []) + [f"origin/{_base_branch(environment)}"]


@contextmanager
def _of_base(opened: Anvil, order: Order, keep: Path | None) -> Iterator[Path | None]:
    """The index of the branch that a pull request is for: the committed one, or the last one that a run kept there.

    None if there is neither, as in a checkout without history.
    """
    from anvil.backends.store import verify

    branch = None if order.shard else _base_branch(os.environ)
    with ExitStack() as stack:
        base = None
        if branch is not None:
            kept_there = (order.kept_key or "").startswith(_cache_prefix(opened, order) + _branch(branch))
            base = next(_kept(keep), None) if kept_there else None
            for revision in _base_revisions(os.environ):
                with suppress(AnvilError):  # no history, or no usable index in that commit
                    tracked = TrackedIndex(opened.index_path, opened.folder or opened.index_path.parent)
                    file = stack.enter_context(tracked.file(revision))
                    verify.open_checked(file).close()
                    base = file
                    break
        yield base


# --- inputs ----------------------------------------------------------------------------------------------------


def _opened(order: Order, host: Host) -> Anvil:
    import anvil

    given = order.docs, order.index, order.provider, order.config
    return anvil.open(*given, site=order.site, progress=_Lines(host))


class _Lines:
    """Progress of a build, as a line every ten seconds."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._next = time.monotonic() + 2.0

    def __call__(self, stage: str, done: int, total: int) -> None:
        now = time.monotonic()
        if total > 1 and now >= self._next:
            self._host.line(f"{stage} {done} of {total}")
            self._next = now + 10.0


def _place(opened: Anvil, order: Order) -> str:
    """An id of this index, or of this shard, among others of the same checkout."""
    name = f"{_shown(opened.index_path)}\n{order.shard or ''}"
    return hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:8]


def _cache_prefix(opened: Anvil, order: Order) -> str:
    """The prefix of cache keys. It depends on format and model, since other indexes cannot be reused."""
    from anvil.backends.store.connection import FORMAT_VERSION

    return f"anvil-{FORMAT_VERSION}-{opened.provider.digest[:12]}-{_place(opened, order)}-"


def _deps_cache(base: Path, temporary: Path) -> dict[str, str]:
    """The folder in which to keep dependencies' documentation between runs, and its cache key. Files are named by their
    content: those of an earlier ``anvil.lock`` are of use."""
    from anvil.core.config.schema import LOCK_NAME

    lock = base / LOCK_NAME
    name = hashlib.sha256(lock.read_bytes()).hexdigest()[:16] if lock.is_file() else "none"
    place = hashlib.sha256(_shown(lock).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return {
        "deps-folder": str(temporary / f"anvil-deps-{place}"),
        "deps-key": f"{DEPS_PREFIX}{name}",
        "deps-prefix": DEPS_PREFIX,
    }


def _kept(folder: Path | None) -> Iterator[Path]:
    if folder and (folder / KEPT_NAME).is_file():
        yield folder / KEPT_NAME


def _named(previous: tuple[str, ...], opened: Anvil, host: Host) -> Iterator[Path]:
    """The indexes of ``previous``: paths, glob patterns and addresses, one per line.

    A missing one is a warning, since the first run has none.
    """
    from anvil.core import index_url

    for name in (line.strip() for value in previous for line in value.splitlines()):
        if index_url.is_remote(name):
            yield from _fetched(name, opened, host)
        elif name:
            files = [name] if os.path.exists(name) else sorted(glob.glob(name, recursive=True))
            if not files:
                host.annotate("warning", f"There is no previous index at {name}: its vectors cannot be reused.")
            yield from map(Path, files)


def _fetched(name: str, opened: Anvil, host: Host) -> Iterator[Path]:
    from anvil.backends.fetch.attestations import rule_of
    from anvil.backends.fetch.fetch_index import fetch
    from anvil.backends.fetch.http_client import Limits

    attested = rule_of(opened.config.fetch, opened.base)
    try:
        fetched = fetch(
            name,
            head=opened.folder,
            limits=Limits(size=opened.config.fetch.max_bytes),
            attested=attested if attested.required else None,
        )
    except AnvilError as error:
        host.annotate("warning", f"The previous index cannot be fetched: {error}")
        return
    host.line(f"The previous index is from {fetched.origin}, built from commit {(fetched.commit or 'unknown')[:12]}.")
    yield fetched.path


def _first_sound(candidates: list[Path], shard: str | None, copy: Path) -> Reader | None:
    """The first index that is sound and of the same shard, copied to ``copy`` and opened there."""
    from anvil.backends.store import publish, verify

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


# --- reports ---------------------------------------------------------------------------------------------------


def _contents(opened: Anvil, reader: Reader, **more: object) -> summary.Contents:
    meta = reader.meta()
    return summary.Contents(
        index=_shown(opened.index_path),
        docs=_shown(opened.folder) if opened.folder else "",
        digest=meta["digest"],
        commit=meta.get("commit"),
        of_site=reader.excluded_hashes() is not None,
        pages_url=_pages_url(opened),
        after=_size(reader, opened.index_path),
        **more,  # type: ignore[arg-type]
    )


def _pages_url(opened: Anvil) -> str | None:
    """The address of the pages' folder in this commit on GitHub; None elsewhere."""
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
    warnings: list[tuple[str, str | None]] = [(reason, None) for reason in report.reasons]
    if opened.config.site.folder is None:
        warnings += [(f"Skipped: {skipped.reason}", in_checkout(opened, skipped.path)) for skipped in report.skipped]
    else:
        for line in pages.left_out(report.skipped):
            host.line(line)
    for failure in report.failed:
        warnings.append((f"Not embedded, found by keyword only: {failure.path}: {failure.reason}", None))
    for message, file in warnings[: MAX_WARNINGS - 1]:
        host.annotate("warning", message, file)
    if len(warnings) >= MAX_WARNINGS:
        host.annotate("warning", f"{len(warnings) - MAX_WARNINGS + 1} more warnings are in the log.")
        for message, file in warnings[MAX_WARNINGS - 1 :]:
            host.line(f"{file}: {message}" if file else message)


def _shown(path: Path) -> str:
    """A POSIX path, relative to the working folder if it is below it."""
    absolute = path.absolute()
    here = Path.cwd()
    return (absolute.relative_to(here) if absolute.is_relative_to(here) else absolute).as_posix()


def _yes(value: bool) -> str:
    return "true" if value else "false"
