"""Bringing what ``anvil.lock`` says into the cache. With all at hand, nothing is imported that fetches or builds."""

from __future__ import annotations

from pathlib import Path

from anvil.dependencies import anvil_lock, docs_cache
from anvil.dependencies.values import Attempt, DocsReport, Ecosystem, LockedDocs, Outcome
from anvil.errors import AnvilError, ConfigError
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.settings import FetchOptions
from anvil.index_file import verify
from anvil.settings.schema import LOCK_NAME, Config
from anvil.values import Progress, silent


def sync(config: Config, base: Path, cache: FetchedCache, progress: Progress = silent) -> list[DocsReport]:
    """Fetch or build the entries that are not in the cache. Raises :class:`ConfigError` without ``anvil.lock``."""
    entries = read_entries(base)
    options = config.table(FetchOptions)
    found = {
        entry: docs_cache.find(cache, entry) if docs_cache.is_attested(cache, entry, options, base) else None
        for entry in entries
    }
    fetched: dict[LockedDocs, DocsReport] = {}
    if None in found.values():
        from anvil.dependencies.attempts import sentence
        from anvil.dependencies.finder import DocsFinder

        with DocsFinder(config, base, cache, progress) as finder:
            for entry in (entry for entry, path in found.items() if path is None):
                try:
                    fetched[entry] = report_on("fetched", entry, _pages(finder.obtain(entry)))
                except AnvilError as error:
                    problem = str(error)
                    if entry.shown not in problem:
                        problem = f"{entry.shown} cannot be fetched or built. {sentence(problem)}"
                    fetched[entry] = failed(entry.ecosystem, entry.name, entry.version, problem, finder.attempts)
    return [
        fetched[entry] if path is None else report_on("current", entry, _pages(path)) for entry, path in found.items()
    ]


def read_entries(base: Path) -> list[LockedDocs]:
    """The entries of ``anvil.lock``. Raises :class:`ConfigError` without the file."""
    entries = anvil_lock.read_lock(base)
    if not entries and anvil_lock.project_text(base / LOCK_NAME) is None:
        raise ConfigError(f"There is no {LOCK_NAME} in {base}. Write one with 'anvil deps add NAME'.")
    return entries


def report_on(outcome: Outcome, entry: LockedDocs, pages: int | None = None) -> DocsReport:
    return DocsReport(outcome, entry.name, entry.version, entry.ecosystem, entry, pages)


def failed(
    ecosystem: Ecosystem, name: str, version: str | None, problem: str, attempts: tuple[Attempt, ...]
) -> DocsReport:
    """The report on documentation that cannot be fetched or built."""
    return DocsReport("failed", name, version, ecosystem, attempts=attempts, problem=problem)


def _pages(path: Path) -> int:
    with verify.open_checked(path) as reader:
        return reader.counts()["documents"]
