"""Adding, updating, removing and comparing entries of ``anvil.lock``, and syncing the cache with them.

If the cache has all entries, a sync imports no code that fetches or builds.
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
    """An entry of ``anvil.lock`` whose version the project does not use. ``current``: the version that it uses now;
    None if it does not use the package."""

    docs: LockedDocs
    current: str | None


def add(
    finder: DocsFinder, base: Path, wanted: Sequence[str], hints: DocsHints, refresh: bool = False
) -> list[DocsReport]:
    """Find the documentation of packages, and write entries for it into ``anvil.lock``.

    ``wanted``: names, with versions as a user types them. ``hints`` are for a single package. If one package has no
    documentation, the entries of the others are still written. Raises :class:`ConfigError` if a name is not that of a
    package; then nothing is written.
    """
    entries = anvil_lock.read_lock(base)
    used = project_dependencies.dependencies(base)
    chosen = [package_names.find_dependency(used, text) for text in wanted]
    reports = []
    for dependency in dict.fromkeys(chosen):
        report = finder.find(dependency, hints, refresh)
        if report.docs is not None:
            before = next((each for each in entries if each.key == report.docs.key), None)
            entries = [each for each in entries if each != before] + [report.docs]
            anvil_lock.write_lock(base, entries)
            report = replace(report, outcome="current" if before == report.docs else "updated" if before else "added")
            report = _with_note_on_change(report, before)
        reports.append(report)
    return reports


def update(finder: DocsFinder, base: Path, wanted: Sequence[str] = ()) -> list[DocsReport]:
    """Search the documentation of the versions that the project uses now. ``wanted``: names; empty means all entries.

    If the project does not use a package any more, its entry keeps its version, and its report has a note. An entry is
    removed if its version is not used any more and all versions that are used have entries.
    """
    entries = read_entries(base)
    chosen = _entries_named(entries, wanted)
    used = project_dependencies.dependencies(base)
    reports: list[DocsReport] = []
    for entry in chosen:
        version = _current_version(used, entry, entries)
        if version != entry.version and any(each.key == (entry.ecosystem, entry.name, version) for each in entries):
            entries = [each for each in entries if each != entry]
            anvil_lock.write_lock(base, entries)
            note = f"The project uses {version} only, which anvil.lock has."
            reports.append(report_on("removed", entry, docs=entry, notes=(note,)))
            continue
        dependency = Dependency(entry.ecosystem, entry.name, version or entry.version)
        # Only places that the user named stay. Others are searched again, and so is the tag if the version changed.
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
            report = _with_note_on_change(replace(report, outcome="current" if is_same else "updated"), entry)
            if version is None:
                note = f"No lockfile has {entry.name} any more. To remove it: anvil deps remove {entry.name}"
                report = replace(report, notes=(*report.notes, note))
        reports.append(report)
    return reports


def remove(base: Path, wanted: Sequence[str]) -> list[DocsReport]:
    """Remove entries from ``anvil.lock``. The cache keeps the files, because other projects may use them."""
    entries = read_entries(base)
    gone = _entries_named(entries, wanted)
    anvil_lock.write_lock(base, [entry for entry in entries if entry not in gone])
    return [report_on("removed", entry, docs=entry) for entry in gone]


def outdated(base: Path) -> list[Outdated]:
    """The entries whose version is not the one that the project uses. Nothing is requested from the network."""
    entries = read_entries(base)
    used = project_dependencies.dependencies(base)
    rows = [Outdated(entry, _current_version(used, entry, entries)) for entry in entries]
    return [row for row in rows if row.current != row.docs.version]


def _entries_named(entries: Sequence[LockedDocs], wanted: Sequence[str]) -> list[LockedDocs]:
    """The entries with these names; all if there are none. Raises :class:`ConfigError` if no entry has a name."""
    if not wanted:
        return list(entries)
    chosen: dict[LockedDocs, None] = {}
    for text in wanted:
        ecosystem, name, version = package_names.parse_request(text)
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


def _current_version(
    dependencies: Iterable[Dependency], entry: LockedDocs, entries: Sequence[LockedDocs]
) -> str | None:
    """The version of an entry's package that the project uses now: the entry's own if it is still used, else preferably
    that of a direct dependency."""
    package = entry.ecosystem, entry.name
    used = [each for each in dependencies if (each.ecosystem, each.name) == package and each.version]
    versions = [each.version for each in sorted(used, key=lambda each: not each.direct)]
    if entry.version in versions:
        return entry.version
    with_entries = {each.version for each in entries if (each.ecosystem, each.name) == package}
    without_entry = (version for version in versions if version not in with_entries)
    return next(without_entry, versions[0] if versions else None)


def _with_note_on_change(report: DocsReport, before: LockedDocs | None) -> DocsReport:
    """The report, with a note if a version has other documentation than before: a release should not change."""
    docs = report.docs
    if docs is None or before is None or docs.key != before.key:
        return report
    if (docs.digest, docs.url) == (before.digest, before.url):
        return report
    # The same pages may be read in another way: of a commit with other hints, of an archive by another Anvil.
    may_differ = docs.commit is not None or docs.anvil_version != before.anvil_version
    if (docs.url, docs.commit) == (before.url, before.commit) and docs.anvil_version is not None and may_differ:
        return report
    commit = f" at {before.commit[:12]}" if before.commit else ""
    was = f"It was from {before.source} {before.url}{commit}, with the digest {before.digest[:12]}."
    return replace(report, notes=(*report.notes, f"The same version has other documentation now. {was}"))


def sync(config: Config, base: Path, cache: FetchedCache, progress: Progress = silent) -> list[DocsReport]:
    """Fetch or build the entries that are not in the cache. Raises :class:`ConfigError` without an ``anvil.lock``."""
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
    """The entries of ``anvil.lock``. Raises :class:`ConfigError` if there is no file."""
    entries = anvil_lock.read_lock(base)
    if not entries and anvil_lock.project_text(base / LOCK_NAME) is None:
        raise ConfigError(f"There is no {LOCK_NAME} in {base}. Write one with 'anvil deps add NAME'.")
    return entries
