"""Names and versions of packages, checked: they come from files and servers that are not trusted."""

from __future__ import annotations

import re

from anvil.errors import ConfigError
from anvil.models.dependencies import ECOSYSTEMS, Dependency, Ecosystem

_PYPI = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,198}[A-Za-z0-9])?")
_NPM = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-z0-9~-][a-z0-9._~-]{0,213}", re.IGNORECASE)
_VERSION = re.compile(r"[0-9A-Za-z][0-9A-Za-z.+!_-]{0,99}")
_REQUEST = re.compile(r"(?:(?P<ecosystem>npm|pypi):)?(?P<name>@?[^@=\s]+)(?:(?:==|@)(?P<version>\S+))?")


def is_name(ecosystem: Ecosystem, name: object) -> bool:
    """Whether ``name`` can be the name of a package."""
    return isinstance(name, str) and bool((_PYPI if ecosystem == "pypi" else _NPM).fullmatch(name))


def is_version(version: object) -> bool:
    """Whether ``version`` can be the version of a package."""
    return isinstance(version, str) and bool(_VERSION.fullmatch(version))


def is_other_version(stated: str, version: str) -> bool:
    """Whether an index that says that it is of ``stated`` is not of ``version``. ``v1.2`` is 1.2.0, too: a publisher
    may leave out the last numbers. ``latest`` and other words say nothing."""
    here, there = (re.findall(r"\d+|[a-z]+", each.lower().removeprefix("v")) for each in (stated, version))
    width = min(len(here), len(there)) if here and here[0].isdigit() else 0
    return here[:width] != there[:width]


def normalized(ecosystem: Ecosystem, name: str) -> str:
    """The name as the registry compares it: ``Foo_Bar`` is ``foo-bar`` on PyPI."""
    return re.sub(r"[-_.]+", "-", name).lower() if ecosystem == "pypi" else name


def requested(text: str) -> tuple[Ecosystem | None, str, str | None]:
    """(ecosystem, name, version) of ``NAME``, ``NAME==VERSION``, ``NAME@VERSION``, ``npm:NAME`` or ``pypi:NAME``.

    Raises :class:`ConfigError`.
    """
    match = _REQUEST.fullmatch(text.strip())
    ecosystem = next((each for each in ECOSYSTEMS if match and match["ecosystem"] == each), None)
    kinds = (ecosystem,) if ecosystem else ECOSYSTEMS
    if not match or not any(is_name(kind, match["name"]) for kind in kinds):
        raise ConfigError(f"{text[:100]!r} is not the name of a package. Write NAME, NAME==VERSION or npm:NAME.")
    if match["version"] is not None and not is_version(match["version"]):
        raise ConfigError(f"{text[:100]!r} does not end in a version. Write NAME==VERSION, such as fastapi==0.115.0.")
    return ecosystem, match["name"], match["version"]


def matching(dependencies: list[Dependency], text: str) -> Dependency:
    """The dependency that ``text`` names (:func:`requested`). A version that nothing locks may be named.

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
        kind = ecosystems[0] if ecosystems else ecosystem
        if kind is None:
            raise ConfigError(f"No lockfile has {name}. Say where it is from: pypi:{name}=={version} or npm:{name}.")
        is_direct = any(each.direct for each in named)
        return Dependency(kind, normalized(kind, name), version, is_direct, "the command line")
    if not named:
        raise ConfigError(f"No lockfile or installed package has {name}{_similar(dependencies, name)}.")
    locked = [each for each in named if each.version is not None]
    chosen = [each for each in locked if each.direct] or locked
    if len({each.version for each in chosen}) > 1:
        versions = ", ".join(sorted({each.version or "" for each in chosen}))
        raise ConfigError(f"{name} is locked at several versions: {versions}. Name one, such as {name}@VERSION.")
    if not chosen:
        raise ConfigError(f"No lockfile has the version of {name}. Lock it, install it, or name it: {name}==VERSION.")
    return chosen[0]


def _similar(dependencies: list[Dependency], name: str) -> str:
    import difflib

    near = difflib.get_close_matches(name, sorted({each.name for each in dependencies}), n=2, cutoff=0.6)
    hint = f" Did you mean {' or '.join(near)}?" if near else f" To take it all the same, write pypi:{name}==VERSION."
    return f".{hint}".rstrip(".?") + ("?" if near else "")
