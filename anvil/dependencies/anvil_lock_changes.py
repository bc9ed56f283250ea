"""Adding, updating and removing entries of ``anvil.lock``, and bringing what they name into the cache.

With all of it in the cache, nothing is imported that fetches or builds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from anvil.dependencies import anvil_lock, docs_cache, package_names, project_dependencies
from anvil.dependencies.ecosystems import Dependency
from anvil.dependencies.values import DocsHints, DocsReport, LockedDocs, report_on
from anvil.errors import AnvilError, ConfigError
from anvil.fetch.fetched_cache import FetchedCache
from anvil.fetch.settings import FetchOptions
from anvil.settings.schema import LOCK_NAME, Config
from anvil.values import Progress, silent

if TYPE_CHECKING:
    from anvil.dependencies.finder import DocsFinder


@dataclass(frozen=True, slots=True)
class Outdated:
    """An entry of ``anvil.lock`` whose package has another version in the project now. ``current``: None when the
    project does not use it any more."""

    docs: LockedDocs
    current: str | None


def add(
    finder: DocsFinder, base: Path, wanted: Sequence[str], hints: DocsHints, refresh: bool = False
) -> list[DocsReport]:
    """Find the documentation of packages, and write it into ``anvil.lock``. ``hints`` is for a single package.

    What is found is written, also when something else is not. Raises :class:`ConfigError` for a name that cannot be
    looked up; then nothing is written.
    """
    entries = anvil_lock.read_lock(base)
    used = project_dependencies.dependencies(base)
    chosen = [package_names.matching(used, text) for text in wanted]
    reports = []
    for dependency in dict.fromkeys(chosen):
        report = finder.find(dependency, hints, refresh)
        if report.docs is not None:
            before = next((each for each in entries if each.key == report.docs.key), None)
            entries = [each for each in entries if each != before] + [report.docs]
            anvil_lock.write_lock(base, entries)
            report = replace(report, outcome="current" if before == report.docs else "updated" if before else "added")
            report = _with_replacement(report, before)
        reports.append(report)
    return reports


def update(finder: DocsFinder, base: Path, wanted: Sequence[str] = ()) -> list[DocsReport]:
    """Search the documentation of the versions that the project uses now. ``wanted``: names; all when it is empty.

    An entry whose package the project does not use any more stays as it is, and its report says so. One of a version
    that is not used any more is removed where the versions that are used have entries.
    """
    entries = read_entries(base)
    chosen = _named(entries, wanted)
    used = project_dependencies.dependencies(base)
    reports: list[DocsReport] = []
    for entry in chosen:
        version = _current(used, entry, entries)
        if version != entry.version and any(each.key == (entry.ecosystem, entry.name, version) for each in entries):
            entries = [each for each in entries if each != entry]
            anvil_lock.write_lock(base, entries)
            note = f"The project uses {version} only, which anvil.lock has."
            reports.append(report_on("removed", entry, docs=entry, notes=(note,)))
            continue
        dependency = Dependency(entry.ecosystem, entry.name, version or entry.version)
        # Where the user said that the documentation is. What was found by itself is searched again, and so is the tag
        # of another version.
        hints = DocsHints(
            repository=entry.url if "repository" in entry.named else None,
            tag=entry.tag if "tag" in entry.named and dependency.version == entry.version else None,
            folder=entry.folder if "folder" in entry.named else None,
        )
        report = finder.find(dependency, hints, refresh=bool(wanted))
        if report.docs is not None:
            is_same = report.docs == entry
            entries = [each for each in entries if each.key not in (entry.key, report.docs.key)] + [report.docs]
            anvil_lock.write_lock(base, entries)
            report = _with_replacement(replace(report, outcome="current" if is_same else "updated"), entry)
            if version is None:
                note = f"No lockfile has {entry.name} any more. To remove it: anvil deps remove {entry.name}"
                report = replace(report, notes=(*report.notes, note))
        reports.append(report)
    return reports


def remove(base: Path, wanted: Sequence[str]) -> list[DocsReport]:
    """Remove entries from ``anvil.lock``. The cache keeps the files, because other projects may use them."""
    entries = read_entries(base)
    gone = _named(entries, wanted)
    anvil_lock.write_lock(base, [entry for entry in entries if entry not in gone])
    return [report_on("removed", entry, docs=entry) for entry in gone]


def outdated(base: Path) -> list[Outdated]:
    """The entries whose version is not the one that the project uses. Nothing is requested from the network."""
    entries = read_entries(base)
    used = project_dependencies.dependencies(base)
    rows = [Outdated(entry, _current(used, entry, entries)) for entry in entries]
    return [row for row in rows if row.current != row.docs.version]


def _named(entries: Sequence[LockedDocs], wanted: Sequence[str]) -> list[LockedDocs]:
    """The entries that names select; all without names. Raises :class:`ConfigError` for a name that none has."""
    if not wanted:
        return list(entries)
    chosen: dict[LockedDocs, None] = {}
    for text in wanted:
        ecosystem, name, version = package_names.requested(text)
        matches = [
            entry
            for entry in entries
            if entry.name == package_names.normalized(entry.ecosystem, name)
            and ecosystem in (None, entry.ecosystem)
            and version in (None, entry.version)
        ]
        if not matches:
            entry_names = ", ".join(sorted({entry.name for entry in entries})[:10]) or "nothing"
            raise ConfigError(f"{LOCK_NAME} does not have {text}. It has {entry_names}.")
        chosen.update(dict.fromkeys(matches))
    return list(chosen)


def _current(dependencies: Iterable[Dependency], entry: LockedDocs, entries: Sequence[LockedDocs]) -> str | None:
    """The version of a package that the project uses now: the entry's own where it still does, else the direct one."""
    package = entry.ecosystem, entry.name
    used = [each for each in dependencies if (each.ecosystem, each.name) == package and each.version]
    versions = [each.version for each in sorted(used, key=lambda each: not each.direct)]
    if entry.version in versions:
        return entry.version
    # of several versions, one that no entry has yet
    taken = {each.version for each in entries if (each.ecosystem, each.name) == package}
    return next((version for version in versions if version not in taken), versions[0] if versions else None)


def _with_replacement(report: DocsReport, before: LockedDocs | None) -> DocsReport:
    """The report, with a note where an entry of the same version has other documentation now. Releases do not change,
    so somebody should look."""
    docs = report.docs
    if docs is None or before is None or docs.key != before.key:
        return report
    if (docs.digest, docs.url) == (before.digest, before.url):
        return report
    is_read_anew = docs.commit is not None or docs.anvil_version != before.anvil_version
    if (docs.url, docs.commit) == (before.url, before.commit) and docs.anvil_version is not None and is_read_anew:
        return report  # the same pages, read in another way: of an archive, only another Anvil does that
    commit = f" at {before.commit[:12]}" if before.commit else ""
    was = f"It was from {before.source} {before.url}{commit}, with the digest {before.digest[:12]}."
    return replace(report, notes=(*report.notes, f"The same version has other documentation now. {was}"))


def sync(config: Config, base: Path, cache: FetchedCache, progress: Progress = silent) -> list[DocsReport]:
    """Fetch or build the entries that are not in the cache. Raises :class:`ConfigError` without ``anvil.lock``."""
    entries = read_entries(base)
    options = config.table(FetchOptions)
    cached = {
        entry: docs_cache.find(cache, entry) if docs_cache.is_attested(cache, entry, options, base) else None
        for entry in entries
    }
    fetched: dict[LockedDocs, DocsReport] = {}
    if None in cached.values():
        from anvil.dependencies.attempts import sentence
        from anvil.dependencies.finder import DocsFinder

        with DocsFinder(config, base, cache, progress) as finder:
            for entry in (entry for entry, path in cached.items() if path is None):
                try:
                    fetched[entry] = report_on(
                        "fetched", entry, docs=entry, pages=docs_cache.pages(finder.obtain(entry))
                    )
                except AnvilError as error:
                    problem = str(error)
                    if entry.shown not in problem:
                        problem = f"{entry.shown} cannot be fetched or built. {sentence(problem)}"
                    fetched[entry] = report_on("failed", entry, attempts=finder.attempts, problem=problem)
    return [
        fetched[entry] if path is None else report_on("current", entry, docs=entry, pages=docs_cache.pages(path))
        for entry, path in cached.items()
    ]


def read_entries(base: Path) -> list[LockedDocs]:
    """The entries of ``anvil.lock``. Raises :class:`ConfigError` without the file."""
    entries = anvil_lock.read_lock(base)
    if not entries and anvil_lock.project_text(base / LOCK_NAME) is None:
        raise ConfigError(f"There is no {LOCK_NAME} in {base}. Write one with 'anvil deps add NAME'.")
    return entries
