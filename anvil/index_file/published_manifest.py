"""The manifest: a small JSON file next to a published index, which clients read before they download the index.

Manifests that are read are untrusted, so each field is checked.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

from anvil.errors import ArtifactRejected
from anvil.formats.patterns import OBJECT_ID, SHA256
from anvil.index_file import connection, verify
from anvil.system import safe_files

T = TypeVar("T")
MAX_CHARACTERS = 100_000
"""Characters of the longest manifest that is read."""
# The index is in the folder of its manifest: a name with a slash, or one that begins with a dot, could lead out of it.
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f:?#%]{1,200}")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """The model of an index's vectors. ``dimensions``: 0 without vectors."""

    provider: str
    name: str
    digest: str
    dimensions: int


@dataclass(frozen=True, slots=True)
class Manifest:
    """The manifest that is published with an index. Clients read it before they download the index.

    ``file`` is the index's name in the same folder, ``sha256`` the hash of its bytes, ``size`` in bytes. ``digest`` is
    the hash of its text and configuration. ``last_modified`` is the time of its newest page.
    """

    format: int
    file: str
    sha256: str
    size: int
    digest: str
    commit: str | None
    last_modified: str
    anvil_version: str
    model: ModelIdentity
    pages: int
    chunks: int
    vectors: int


# The file's own hash is in the manifest and not in the file, where it could not be. Clients that download one ask for
# these bytes; :mod:`verify` needs no manifest.
def describe(path: Path) -> Manifest:
    """The manifest for the index at ``path``. The index is checked first. Raises :class:`ArtifactError`."""
    with verify.open_checked(path) as reader:
        meta, counts = reader.meta(), reader.counts()
        sha256, size = connection.sha256(reader.connection)
    return Manifest(
        format=int(meta["format_version"]),
        file=path.name,
        sha256=sha256,
        size=size,
        digest=meta["digest"],
        commit=meta.get("commit") or None,
        last_modified=meta["last_index_timestamp"],
        anvil_version=meta["anvil_version"],
        model=ModelIdentity(
            provider=meta["embedding_provider"],
            name=meta["embedding_model"],
            digest=meta["embedding_model_digest"],
            dimensions=int(meta["embedding_dimensions"]),
        ),
        pages=counts["documents"],
        chunks=counts["chunks"],
        vectors=counts["vectors"],
    )


def manifest_path(index: Path) -> Path:
    """The path of an index's manifest: ``index.json`` for ``index.db``."""
    return index.with_suffix(".json")


def write_manifest(index: Path) -> Path:
    """Write the manifest of an index, if it changed; its path."""
    path = manifest_path(index)
    safe_files.update_file(path, render(describe(index)).encode(), replace=True)
    return path


def render(manifest: Manifest) -> str:
    """The manifest as JSON: sorted keys, one line each."""
    return json.dumps(asdict(manifest), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str, place: str) -> Manifest:
    """A manifest from its JSON. Unknown keys are ignored.

    Raises :class:`ArtifactRejected`, with ``place`` in the message.
    """
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS} characters")
        values = json.loads(text)
        return _checked(Manifest, values)
    except (ValueError, RecursionError) as error:
        raise ArtifactRejected(f"{place} is not the manifest of an index: {error}.") from None


def found(text: str, place: str, any_page: bool = False) -> Manifest | None:
    """A manifest, or None for another program's file with the same name.

    ``any_page``: also None for a page of HTML or XML, because many sites answer every address with one. Raises
    :class:`ArtifactRejected` for a manifest with errors, such as an incomplete one, and for what is not JSON.
    """
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        if any_page and text.lstrip("\ufeff \t\r\n").startswith("<"):
            return None
    else:
        if not isinstance(values, dict) or not {"sha256", "digest", "anvil_version"} & values.keys():
            return None
    try:
        return parse(text, place)
    except ArtifactRejected as error:
        raise ArtifactRejected(f"{error} Publish it again with the index, or remove it.") from None


_PATTERNS = {"file": _NAME, "sha256": SHA256, "digest": SHA256, "commit": OBJECT_ID}


def _checked(kind: type[T], values: Any) -> T:
    """A dataclass from a JSON object that has its fields. Raises :class:`ValueError`."""
    fields: dict[str, Any] = {}
    for name, hint in get_type_hints(kind).items():
        value = values.get(name) if isinstance(values, dict) else None
        is_table = is_dataclass(hint)
        is_valid = isinstance(value, dict if is_table else hint)
        if isinstance(value, int):  # a bool is an int in Python, and no number of a manifest is negative
            is_valid = is_valid and type(value) is int and value >= 0
        elif isinstance(value, str) and name in _PATTERNS:
            is_valid = is_valid and _PATTERNS[name].fullmatch(value) is not None
        if not is_valid:
            raise ValueError(f"its {name!r} is missing or wrong")
        fields[name] = _checked(hint, value) if is_table else value
    return kind(**fields)
