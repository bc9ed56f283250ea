"""The packages of a project: those in its lockfiles, installed ones, included requirements files, and the state of
their documentation.

Only files of this machine are read. They come with a checkout and are not trusted: size, nesting, types, names and
versions are checked. Packages that no registry has are left out: folders of the project, members of its workspace, and
packages that are locked at an address such as one of git.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from anvil.dependencies import anvil_lock, docs_cache, ecosystems, package_files
from anvil.dependencies.ecosystems import (
    ECOSYSTEMS,
    Dependency,
    DirectPackages,
    Ecosystem,
    InstalledPackages,
    LockedPackages,
)
from anvil.dependencies.package_names import is_name, is_version, normalized
from anvil.dependencies.values import LockedDocs
from anvil.errors import ConfigError
from anvil.wording import counted

_INCLUDE = re.compile(r"(?:-r|--requirement)[ \t=]{0,9}(\S+)")
MAX_INCLUDED = 50
"""Requirements files of one project that are read together."""


def parse(ecosystem: Ecosystem, name: str, text: str, place: str, project: str = ".") -> list[Dependency]:
    """The packages of a lockfile, each version once, sorted. Those of no registry are included, without a version.

    ``name``: the name of the file, which tells the format. ``place``: its name in errors. ``project``: a path in the
    workspace of the lockfile; the packages that it names are ``direct``. The result is empty if the file has a
    workspace without this project. Raises :class:`ConfigError`.
    """
    read = reader(ecosystem, name)
    assert read is not None
    with _refusing(place, "Write it again with its tool."):
        packages, projects = read(text)
        if project != "." and projects and project not in projects:
            return []
        direct: DirectPackages = {}
        for named_by_member in projects.values() if project == "." else ():  # at the top, those of all members
            for package, versions in named_by_member.items():
                direct.setdefault(package, set()).update(versions)
        own = projects.get(project, {})
        direct |= {package: versions for package, versions in own.items() if versions or package not in direct}
        return _check_packages(ecosystem, packages, direct, name)


def reader(ecosystem: Ecosystem, name: str) -> Callable[[str], LockedPackages] | None:
    """The reader of a lockfile of an ecosystem, by the file's name; None if it is not a lockfile."""
    lockfiles = ecosystems.of(ecosystem).LOCKFILES.items()
    return next((read for pattern, read in lockfiles if fnmatch.fnmatchcase(name, pattern)), None)


def named(ecosystem: Ecosystem, name: str, text: str, place: str) -> dict[str, Dependency]:
    """The packages that a file such as ``pyproject.toml`` names, by normalized name. Raises :class:`ConfigError`."""
    with _refusing(place, "Correct the file."):
        checked = (
            replace(dependency, name=normalized(ecosystem, dependency.name), direct=True, origin=name)
            for dependency in ecosystems.of(ecosystem).PROJECT_FILES[name](text)
            if is_name(ecosystem, dependency.name)
        )
        return {dependency.name: dependency for dependency in checked}


@contextmanager
def _refusing(place: str, advice: str) -> Iterator[None]:
    """Raise :class:`ConfigError` in place of the errors of a reader. ``place``: the file, for the message."""
    try:
        yield
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error).partition("\n")[0]
        raise ConfigError(f"{place} cannot be read: {reason[:200]}. {advice}") from None


def _check_packages(
    ecosystem: Ecosystem, packages: list[Dependency], direct: DirectPackages, origin: str
) -> list[Dependency]:
    shown = ECOSYSTEMS[ecosystem].shown
    wanted = {normalized(ecosystem, name): versions for name, versions in direct.items()}
    dependencies = set()
    for dependency in packages:
        if not is_name(ecosystem, dependency.name):
            raise ValueError(f"{str(dependency.name)[:80]!r} is not the name of {shown}")
        if dependency.version is not None and not is_version(dependency.version):
            raise ValueError(f"{str(dependency.version)[:80]!r} is not the version of {shown}")
        plain = normalized(ecosystem, dependency.name)
        is_direct = plain in wanted and (not wanted[plain] or str(dependency.version) in wanted[plain])
        dependencies.add(replace(dependency, name=plain, direct=is_direct, origin=origin))
    return sorted(dependencies, key=_order)


def _order(dependency: Dependency) -> tuple[str, str, str, str]:
    return dependency.ecosystem, dependency.name, dependency.version or "", dependency.origin


# --- a project -------------------------------------------------------------------------------------------------------


def dependencies(base: Path) -> list[Dependency]:
    """All packages that the project in ``base`` uses, sorted. Raises :class:`ConfigError`."""
    return sorted((dependency for ecosystem in ECOSYSTEMS for dependency in _packages_of(base, ecosystem)), key=_order)


def _packages_of(base: Path, ecosystem: Ecosystem) -> set[Dependency]:
    """The packages in the lockfiles, installed ones that are not locked, and those that the project only names."""
    module = ecosystems.of(ecosystem)
    try:
        files = sorted(entry.name for entry in base.iterdir())
    except OSError as error:
        raise ConfigError(f"The folder {base} cannot be listed ({error.strerror}). Name another one.") from None
    top = ecosystems.project_folders(base)[-1]
    project_files = {name: _text(base / name, top) for name in module.PROJECT_FILES}
    wanted: dict[str, Dependency] = {}  # each with the first file that names it
    for name, text in project_files.items():
        wanted = (named(ecosystem, name, text, str(base / name)) if text is not None else {}) | wanted
    direct = {*wanted}
    # fnmatchcase, because on Windows fnmatch.filter() ignores case, and such a name has no reader.
    matches = ([base / name for name in files if fnmatch.fnmatchcase(name, pattern)] for pattern in module.LOCKFILES)
    lockfiles = next(filter(None, matches), [])

    def locked(path: Path) -> list[Dependency]:
        text, member = _text(path, top), base.relative_to(path.parent).as_posix()
        return [] if text is None else parse(ecosystem, path.name, text, str(path), member)

    packages = [dependency for path in lockfiles for dependency in locked(path)]
    if any(text is not None for text in project_files.values()):
        above = (folder / name for folder in ecosystems.project_folders(base)[1:] for name in module.LOCKFILES)
        of_workspace = next((locked(path) for path in above if path.is_file()), [])
        # If the lockfile at the top names this member, its tools read that one: one in its own folder is left over.
        if not lockfiles or any(dependency.direct for dependency in of_workspace):
            packages = of_workspace
    direct -= {dependency.name for dependency in packages if dependency.version is None}
    packages = [dependency for dependency in packages if dependency.version is not None]
    installed = module.installed(base)
    if installed is not None:
        packages += installed.unlocked(direct, {dependency.name for dependency in packages})
    packages += [wanted[name] for name in direct - {dependency.name for dependency in packages}]
    # direct packages whose versions the lockfile does not mark
    unmarked = direct - {dependency.name for dependency in packages if dependency.direct}
    return {replace(dependency, direct=dependency.direct or dependency.name in unmarked) for dependency in packages}


def _text(path: Path, top: Path) -> str | None:
    """The text of a file of a project; None if there is no file. Raises :class:`ConfigError`.

    After a requirements file follow the files that it includes with ``-r FILE``, as pip reads it, if they are in the
    repository, whose folder is ``top``.
    """
    text = anvil_lock.project_text(path)
    if text is None or not fnmatch.fnmatchcase(path.name, "requirements*.txt"):
        return text
    root, texts, pending = os.path.realpath(top), {os.path.realpath(path): text}, [(path.parent, text)]
    bytes_left = anvil_lock.MAX_BYTES - len(
        text
    )  # one limit for all: fifty files of the largest size would have 2.5 GB
    while pending:
        folder, text = pending.pop(0)
        lines = (line.partition(" #")[0].strip() for line in text.splitlines())
        for match in filter(None, map(_INCLUDE.fullmatch, lines)):
            file = _included_file(folder, match[1], root)
            if file is not None and str(file) not in texts and len(texts) < MAX_INCLUDED:
                included = anvil_lock.project_text(file, bytes_left) or ""
                texts[str(file)] = included
                bytes_left -= len(included)
                pending.append((file.parent, included))
    return "\n".join(texts.values())


def _included_file(folder: Path, name: str, root: str) -> Path | None:
    """The file ``name``, as a file in ``folder`` includes it; None if it is not a file below ``root``."""
    try:
        file = Path(os.path.realpath(folder / name))
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, ValueError):  # a name that no file can have: too long, or with a NUL
        return None


@dataclass(frozen=True, slots=True)
class DependencyState(Dependency):
    """A package and its documentation. ``locked``: its entry in ``anvil.lock``; None if there is none.
    ``documentation``: a few words on the documentation that the installed package carries or names; None if it is not
    installed here or has an entry. ``is_here``: whether the index of the entry is on this machine."""

    locked: LockedDocs | None = None
    documentation: str | None = None
    is_here: bool | None = None


def overview(base: Path) -> list[DependencyState]:
    """All dependencies of the project in ``base``, direct ones first. Raises :class:`ConfigError`."""
    entries = {entry.key: entry for entry in anvil_lock.read_lock(base)}
    installed = {ecosystem: ecosystems.of(ecosystem).installed(base) for ecosystem in ECOSYSTEMS}
    used = {
        (dependency.ecosystem, dependency.name, dependency.version or ""): dependency
        for dependency in dependencies(base)
    }
    unused = {  # entries of versions that the project does not use any more
        key: Dependency(entry.ecosystem, entry.name, entry.version, origin="anvil.lock")
        for key, entry in entries.items()
        if key not in used
    }
    rows = []
    for key, dependency in (used | unused).items():
        locked = entries.get(key)
        documentation = _documentation(dependency, installed[dependency.ecosystem]) if locked is None else None
        is_here = None if locked is None else docs_cache.path(docs_cache.cache(), locked).is_file()
        rows.append(DependencyState(**asdict(dependency), locked=locked, documentation=documentation, is_here=is_here))
    return sorted(rows, key=lambda row: (not row.direct, row.ecosystem, row.name, row.version or ""))


def _documentation(dependency: Dependency, installed: InstalledPackages | None) -> str | None:
    version = dependency.version
    package = None if installed is None or version is None else installed.find(dependency.name, version)
    if package is None:
        return None
    urls, files = package
    carried = package_files.carried_docs(files.keys())
    if carried.index is not None:
        return f"carries {carried.index}"
    if carried.pages:
        common_folder = posixpath.commonpath(carried.pages)
        return f"carries {counted(len(carried.pages), 'page')}{f' in {common_folder}' if common_folder else ''}"
    if carried.llms is not None:
        return f"carries {carried.llms}"
    return f"repository {urls.repository}" if urls.repository else "names no repository"
