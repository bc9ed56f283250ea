"""Names and versions of packages, checked: they come from files and servers that are not trusted."""

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
"""The end of the name of a series, such as ``1.x``."""
MAX_VERSION_CHARS = 100
_REQUEST = re.compile(rf"(?:(?P<ecosystem>{'|'.join(ECOSYSTEMS)}):)?(?P<name>@?[^@=\s]+)(?:(?:==|@)(?P<version>\S+))?")


def is_name(ecosystem: Ecosystem, name: object) -> bool:
    return isinstance(name, str) and bool(ECOSYSTEMS[ecosystem].name.fullmatch(name))


def is_version(version: object) -> bool:
    return isinstance(version, str) and bool(_VERSION.fullmatch(version))


def is_same_version(stated: str, version: str) -> bool:
    """Whether an index that says that it is of ``stated`` is of exactly ``version``, in whatever way both are written:
    ``v2024.01`` is 2024.1. With fewer numbers it may be of a series: ``1`` is not exactly 1.0.0."""
    here, there = parsed(stated), parsed(version)
    if here is None or there is None:
        return stated == version
    return here == there and len(here.release) >= len(there.release)


def is_other_version(stated: str, version: str) -> bool:
    """Whether an index that says that it is of ``stated`` is not of ``version``.

    A publisher may name a series, such as ``1.9`` or ``1.x`` for 1.9.3, and leave out a post-release, which has the
    documentation of its release. A prerelease is in no series: it must be named exactly. ``latest`` and other words say
    nothing.
    """
    here, there = parsed(stated), parsed(version)
    if here is None:  # also a prerelease of npm with a word of its own
        return stated != version and re.match(r"v?\d", stated) is not None
    if there is None or here == there:
        return here != there
    width = len(here.release)
    is_in_series = here.epoch == there.epoch and (*there.release, *[0] * width)[:width] == here.release
    return here.is_prerelease or here.is_postrelease or there.is_prerelease or not is_in_series


def parsed(text: str) -> Version | None:
    """A version of PyPI or npm, or the first of a series, without what is behind ``+``, which says how it was built;
    None for another text."""
    from packaging.version import InvalidVersion, Version  # commands that read anvil.lock alone do without

    try:
        return Version(Version(_ANY_NUMBER.sub("", text[:MAX_VERSION_CHARS].lower())).public)
    except InvalidVersion:
        return None


def normalized(ecosystem: Ecosystem, name: str) -> str:
    """The name as the registry compares it: ``Foo_Bar`` is ``foo-bar`` on PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower() if ECOSYSTEMS[ecosystem].folds_names else name


def requested(text: str) -> tuple[Ecosystem | None, str, str | None]:
    """(ecosystem, name, version) of ``NAME``, ``NAME==VERSION``, ``NAME@VERSION``, ``npm:NAME`` or ``pypi:NAME``.

    Raises :class:`ConfigError`.
    """
    match = _REQUEST.fullmatch(text.strip())
    ecosystem = next((each for each in ECOSYSTEMS if match and match["ecosystem"] == each), None)
    kinds = (ecosystem,) if ecosystem else tuple(ECOSYSTEMS)
    if not match or not any(is_name(kind, match["name"]) for kind in kinds):
        raise ConfigError(f"{text[:100]!r} is not the name of a package. Write NAME, NAME==VERSION or npm:NAME.")
    if match["version"] is not None and not is_version(match["version"]):
        raise ConfigError(f"{text[:100]!r} does not end in a version. Write NAME==VERSION, such as fastapi==0.115.0.")
    return ecosystem, match["name"], match["version"]


def matching(dependencies: list[Dependency], text: str) -> Dependency:
    """The dependency that ``text`` names (:func:`requested`). A version that nothing locks may be named; of a package
    that nothing locks, ``==`` is for PyPI and ``@`` for npm.

    Raises :class:`ConfigError` for a name that no file has, and for one that means several packages.
    """
    ecosystem, name, version = requested(text)
    named = [
        each
        for each in dependencies
        if each.name == normalized(each.ecosystem, name) and ecosystem in (None, each.ecosystem)
    ]
    ecosystems = sorted({each.ecosystem for each in named})
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
