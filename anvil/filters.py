"""What a caller says of documents, checked: metadata to keep with one, and filters that choose among them.

Pure. Whatever a client sends comes out as values that are safe to store and compare, or as an error that says what
would have been.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from anvil.errors import ConfigError

FIELDS = ("file_type", "page", "last_modified", "source", "title", "library")
"""What can be filtered by, besides ``metadata.KEY``."""
METADATA_BYTES = 16_384
NAME_CHARACTERS = 200
SOURCE_CHARACTERS = 4096
_KEY = "metadata."


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that must all hold.

    ``fields``: of documents, (name in ``FIELDS``, value). ``labels``: metadata, (key, value as JSON). ``page``: of
    passages.
    """

    fields: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    page: int | None = None

    @property
    def of_documents(self) -> bool:
        """Whether it says anything of documents."""
        return bool(self.fields or self.labels)


def document_filter(given: Mapping[str, Any] | None, library: str | None = None) -> Filter:
    """The filter that a caller means, within one library or all (None). Raises :class:`ConfigError`."""
    fields = [] if library is None else [("library", library_name(library))]
    labels: list[tuple[str, str]] = []
    page: int | None = None
    for name, value in (given or {}).items():
        if isinstance(value, bool) and name.startswith(_KEY):
            labels.append((name[len(_KEY) :], json.dumps(value)))
        elif isinstance(value, bool) or not isinstance(value, (str, int)):
            raise ConfigError(f"filter.{_shown(name)} must be a string or a whole number.")
        elif name.startswith(_KEY) and len(name) > len(_KEY):
            labels.append((_sound(name[len(_KEY) :]), _spelled(value)))
        elif name not in FIELDS:
            raise ConfigError(f"Unknown filter field {_shown(name)!r}. Use {', '.join(FIELDS)} or metadata.KEY.")
        elif name == "page":
            if not isinstance(value, int):
                raise ConfigError("filter.page must be a whole number.")
            page = value
        elif not isinstance(value, str):
            raise ConfigError(f"filter.{name} must be a string.")
        else:
            fields.append((name, _sound(value)))
    return Filter(tuple(fields), tuple(labels), page)


def checked_metadata(given: Any) -> dict[str, Any]:
    """A document's metadata: a JSON object of at most ``METADATA_BYTES``. Raises :class:`ConfigError`."""
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise ConfigError("metadata must be a JSON object.")
    try:
        text = json.dumps(given, ensure_ascii=False, allow_nan=False)
        size = len(text.encode("utf-8"))
    except (TypeError, ValueError, RecursionError):
        raise ConfigError("metadata must be a JSON object, of strings, numbers, lists and objects.") from None
    if size > METADATA_BYTES:
        raise ConfigError(f"metadata has {size:,} bytes as JSON; the limit is {METADATA_BYTES:,}. Send less of it.")
    found: dict[str, Any] = json.loads(text)
    return found


def labels_of(metadata: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(key, value as JSON) of what can be filtered by: strings, whole numbers and truth values of the top level."""
    return [(key, _spelled(value)) for key, value in metadata.items() if isinstance(value, (str, int))]


def library_name(given: str) -> str:
    """A library's name. Raises :class:`ConfigError`."""
    if not given.strip() or len(given) > NAME_CHARACTERS or not given.isprintable():
        raise ConfigError(f"library must be a name of 1 to {NAME_CHARACTERS} printable characters.")
    return given


def source_name(given: str) -> str:
    """What a document is called by whoever hands it in. Raises :class:`ConfigError`."""
    if not given.strip() or len(given) > SOURCE_CHARACTERS or not given.isprintable():
        raise ConfigError(f"source must be 1 to {SOURCE_CHARACTERS} printable characters, such as a path or a URL.")
    return given


def _spelled(value: str | int) -> str:
    return json.dumps(_sound(value) if isinstance(value, str) else value, ensure_ascii=False)


def _sound(text: str) -> str:
    """Half a surrogate pair is no text that could be stored, or be found."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _shown(name: str) -> str:
    return name[:60]
