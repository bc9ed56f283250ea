"""Names and versions of packages: checks, comparison of versions, and the dependency that a user's text names.

Names and versions come from files and servers that are not trusted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from anvil.dependencies.ecosystems import ECOSYSTEMS, Dependency, Ecosystem
from anvil.errors import ConfigError
from anvil.wording import closest_names

if TYPE_CHECKING:
    from packaging.version import Version

_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,99}")
_ANY_NUMBER = re.compile(r"(?:\.[x*])+$")
"""The end of the version of a series, such as ``1.x``."""
MAX_VERSION_CHARS = 100
_REQUEST = re.compile(rf"(?:(?P<ecosystem>{'|'.join(ECOSYSTEMS)}):)?(?P<name>@?[^@=\s]+)(?:(?:==|@)(?P<version>\S+))?")


def is_name(ecosystem: Ecosystem, name: object) -> bool:
    return isinstance(name, str) and bool(ECOSYSTEMS[ecosystem].name.fullmatch(name))


def is_version(version: object) -> bool:
    return isinstance(version, str) and bool(_VERSION.fullmatch(version))


def is_same_version(stated: str, version: str) -> bool:
    """Whether ``stated``, the version that an index states, is exactly ``version``. Both can be written differently:
    ``v2024.01`` is 2024.1. Fewer numbers may mean a series, so ``1`` is not exactly 1.0.0."""
    of_index, of_package = parse_version(stated), parse_version(version)
    if of_index is None or of_package is None:
        return stated == version
    return of_index == of_package and len(of_index.release) >= len(of_package.release)


def is_other_version(stated: str, version: str) -> bool:
    """Whether ``stated``, the version that an index states, excludes ``version``.

    A publisher may state a series, such as ``1.9`` or ``1.x`` for 1.9.3, and leave out a post-release, which has the
    documentation of its release. A prerelease belongs to no series and must be stated exactly. ``latest`` and other
    words exclude nothing.
    """
    of_index, of_package = parse_version(stated), parse_version(version)
    if of_index is None:  # a word, or a prerelease of npm with an unusual name
        return stated != version and re.match(r"v?\d", stated) is not None
    if of_package is None or of_index == of_package:
        return of_index != of_package
    width = len(of_index.release)
    is_in_series = of_index.epoch == of_package.epoch and (
        (*of_package.release, *[0] * width)[:width] == of_index.release
    )
    return of_index.is_prerelease or of_index.is_postrelease or of_package.is_prerelease or not is_in_series


def parse_version(text: str) -> Version | None:
    """A version of PyPI or npm, or the first of a series, without build metadata behind ``+``; None for other text."""
    from packaging.version import InvalidVersion, Version  # late: commands that only read anvil.lock do not need it

    try:
        return Version(Version(_ANY_NUMBER.sub("", text[:MAX_VERSION_CHARS].lower())).public)
    except InvalidVersion:
        return None


def normalized(ecosystem: Ecosystem, name: str) -> str:
    """The name in the form in which the registry compares names: ``Foo_Bar`` is ``foo-bar`` on PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower() if ECOSYSTEMS[ecosystem].folds_names else name


def parse_request(text: str) -> tuple[Ecosystem | None, str, str | None]:
    """(ecosystem, name, version) of ``NAME``, ``NAME==VERSION``, ``NAME@VERSION``, ``npm:NAME`` or ``pypi:NAME``.

    Raises :class:`ConfigError`.
    """
    match = _REQUEST.fullmatch(text.strip())
    ecosystem = next((known for known in ECOSYSTEMS if match and match["ecosystem"] == known), None)
    kinds = (ecosystem,) if ecosystem else tuple(ECOSYSTEMS)
    if not match or not any(is_name(kind, match["name"]) for kind in kinds):
        raise ConfigError(f"{text[:100]!r} is not the name of a package. Write NAME, NAME==VERSION or npm:NAME.")
    if match["version"] is not None and not is_version(match["version"]):
        raise ConfigError(f"{text[:100]!r} does not end in a version. Write NAME==VERSION, such as fastapi==0.115.0.")
    return ecosystem, match["name"], match["version"]


def find_dependency(dependencies: list[Dependency], text: str) -> Dependency:
    """The dependency that ``text`` names, in a form of :func:`parse_request`.

    With a version it need not be in a lockfile; then ``==`` means PyPI and ``@`` npm. Raises :class:`ConfigError` if no
    file has the name, or if it means several packages or versions.
    """
    ecosystem, name, version = parse_request(text)
    named = [
        dependency
        for dependency in dependencies
        if dependency.name == normalized(dependency.ecosystem, name) and ecosystem in (None, dependency.ecosystem)
    ]
    ecosystems = sorted({dependency.ecosystem for dependency in named})
    if len(ecosystems) > 1:
        raise ConfigError(f"{name} is a package of {' and '.join(ecosystems)} here. Write {ecosystems[0]}:{name}.")
    if version is not None:
        written = [each for each in ECOSYSTEMS if text.strip().endswith(f"{name}{ECOSYSTEMS[each].pin}{version}")]
        kind = ecosystems[0] if ecosystems else ecosystem or written[0]
        if not is_name(kind, name):
            raise ConfigError(f"{name[:100]!r} is not the name of a package of {kind}.")
        is_direct = any(each.direct for each in named)
        return Dependency(kind, normalized(kind, name), version, is_direct, "the command line")
    if not named:
        raise ConfigError(
            f"No lockfile has {name} from a registry, and it is not installed. {_similar(dependencies, name)}"
        )
    locked = [each for each in named if each.version is not None]
    chosen = [each for each in locked if each.direct] or locked
    if len({each.version for each in chosen}) > 1:
        versions = sorted({each.version or "" for each in chosen})
        one = f"{name}{ECOSYSTEMS[chosen[0].ecosystem].pin}{versions[-1]}"
        raise ConfigError(f"{name} is locked at several versions: {', '.join(versions)}. Name one, such as {one}.")
    if not chosen:
        raise ConfigError(f"No lockfile has the version of {name}. Lock it, install it, or name it: {name}==VERSION.")
    return chosen[0]


def _similar(dependencies: list[Dependency], name: str) -> str:
    near = closest_names(name, sorted({each.name for each in dependencies}), limit=2)
    forms = " or ".join(f"{ecosystem}:{name}{entry.pin}VERSION" for ecosystem, entry in ECOSYSTEMS.items())
    anyway = f"To take it anyway, write {forms}; from Git, with --repository URL."
    return f"Did you mean {' or '.join(near)}?" if near else anyway
