"""The type of an artifact by its path, and an id that depends on the path only. Pure."""

from __future__ import annotations

import dataclasses
import hashlib
import re
from typing import Literal

from anvil.context.settings import ArtifactTypes
from anvil.formats import globs

Kind = Literal["spec", "plan", "tasks", "checklist", "template", "decision", "generic"]
KINDS: tuple[Kind, ...] = ("spec", "plan", "tasks", "checklist", "template", "decision", "generic")

_LOSSY = re.compile(r"[^\w-]+")
_FEATURE = ("spec", "plan", "tasks")


def kind_of(path: str, types: ArtifactTypes) -> Kind:
    """The type of the artifact at ``path`` (POSIX, from the repository's root): the first whose globs fit."""
    for field in dataclasses.fields(types):
        if any(globs.compile(glob, ignore_case=True).matches(path) for glob in getattr(types, field.name)):
            return field.name  # type: ignore[return-value]
    return "generic"


def id_of(path: str, kind: Kind) -> str:
    """A readable id: ``spec-001-mcp-server`` for ``specs/001-mcp-server/spec.md``.

    It depends on the path and its type only. If another path could have the same readable part, a hash of the path is
    added.
    """
    readable = _readable(path, kind)
    if _path_of(readable, kind) == path:
        return f"{kind}-{readable}"
    return f"{kind}-{readable}-{hashlib.sha256(path.encode()).hexdigest()[:8]}"


def _readable(path: str, kind: Kind) -> str:
    folders, _, name = path.removesuffix(".md").rpartition("/")
    names = folders.split("/") if folders else []
    if kind in _FEATURE and len(names) == 2 and names[0] == "specs" and name == kind:
        names = names[1:]
    elif kind == "checklist" and len(names) == 3 and names[0] == "specs" and names[2] == "checklists":
        names = [names[1], name]
    elif kind == "template" and names == [".specify", "templates"]:
        names = [name]
    else:
        names = [*names, name]
    return ".".join(_LOSSY.sub("-", part).strip("-") for part in names)


def _path_of(readable: str, kind: Kind) -> str:
    """The path of a readable part, with the folders and suffixes that :func:`_readable` leaves out."""
    names = readable.split(".")
    if kind in _FEATURE and len(names) == 1:
        return f"specs/{names[0]}/{kind}.md"
    if kind == "checklist" and len(names) == 2:
        return f"specs/{names[0]}/checklists/{names[1]}.md"
    if kind == "template" and len(names) == 1:
        return f".specify/templates/{names[0]}.md"
    return "/".join(names) + ".md"
