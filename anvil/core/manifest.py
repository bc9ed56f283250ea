"""The JSON that lies beside a published index, so that a client can decide without a download.

Text in, values out: what is read comes from anywhere, so every field is checked before it is believed.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from typing import Any, TypeVar

from anvil.errors import ArtifactRejected
from anvil.models.documents import Manifest, ModelIdentity

T = TypeVar("T")
MAX_CHARACTERS = 100_000
"""Characters of the longest manifest that is read."""
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}([0-9a-f]{24})?")
_NAME = re.compile(r"(?!\.)[^/\\\x00-\x1f:?#%]{1,200}")


def render(manifest: Manifest) -> str:
    """The manifest as JSON: sorted keys, a line each, the same text for the same index."""
    return json.dumps(asdict(manifest), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str, place: str) -> Manifest:
    """A manifest from its JSON; unknown keys are left for newer readers.

    Raises :class:`ArtifactRejected`, naming ``place``, when it is not one.
    """
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS} characters")
        given = json.loads(text)
        model = _field(given, "model", dict)
        return Manifest(
            format=_field(given, "format", int),
            file=_matching(given, "file", _NAME),
            sha256=_matching(given, "sha256", _SHA256),
            size=_field(given, "size", int),
            digest=_matching(given, "digest", _SHA256),
            commit=None if given.get("commit") is None else _matching(given, "commit", _COMMIT),
            last_modified=_field(given, "last_modified", str),
            anvil_version=_field(given, "anvil_version", str),
            model=ModelIdentity(
                provider=_field(model, "provider", str),
                name=_field(model, "name", str),
                digest=_field(model, "digest", str),
                dimensions=_field(model, "dimensions", int),
            ),
            pages=_field(given, "pages", int),
            chunks=_field(given, "chunks", int),
            vectors=_field(given, "vectors", int),
        )
    except (ValueError, RecursionError) as error:
        raise ArtifactRejected(f"{place} is not the manifest of an index: {error}.") from None


def found(text: str, place: str, any_page: bool = False) -> Manifest | None:
    """A manifest from what may be another program's file of that name: None for that.

    ``any_page``: what is no JSON is another's too, for many sites answer any address with a page; but not what begins
    as a manifest does. Raises :class:`ArtifactRejected` for a manifest that is wrong, such as half a one.
    """
    try:
        return parse(text, place)
    except ArtifactRejected as error:
        if _is_of_another_kind(text, any_page):
            return None
        raise ArtifactRejected(f"{error} Publish it again with the index, or remove it.") from None


def _is_of_another_kind(text: str, any_page: bool) -> bool:
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        return any_page and not (text.lstrip().startswith("{") and '"anvil_version"' in text)
    return not isinstance(given, dict) or not {"sha256", "digest", "anvil_version"} & given.keys()


def _field(given: Any, key: str, kind: type[T]) -> T:
    value = given.get(key) if isinstance(given, dict) else None
    if not isinstance(value, kind) or isinstance(value, bool) or (isinstance(value, int) and value < 0):
        raise ValueError(f"its {key!r} is missing or wrong")
    return value


def _matching(given: Any, key: str, pattern: re.Pattern[str]) -> str:
    value = _field(given, key, str)
    if not pattern.fullmatch(value):
        raise ValueError(f"its {key!r} is missing or wrong")
    return value
