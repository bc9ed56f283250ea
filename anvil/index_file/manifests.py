"""Manifests: the keys of an index, in its table ``anvil_meta``, and the JSON file next to a published index.

Clients read the JSON file before they download the index. Both may come from anywhere, so each key that is read has a
rule here. A build adds its version, its shard and the version that the pages describe.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, get_type_hints

from anvil.documents.document_source import DocumentSource
from anvil.errors import ArtifactRejected, ConfigError
from anvil.formats.data_formats import canonical, strict_json
from anvil.formats.patterns import OBJECT_ID, SHA256, bounded, lazy_pattern
from anvil.index_file.table_rows import FORMAT_VERSION
from anvil.settings.schema import Chunking, ChunkingOptions, Config, FixedChunks, SearchOptions, SiteOptions

if TYPE_CHECKING:
    from anvil.embedding.provider import EmbeddingProvider
    from anvil.index_file.reader import Reader

T = TypeVar("T")
MAX_DIMENSIONS = 8192
"""The most dimensions that sqlite-vec accepts."""
_NUMBER = lazy_pattern(r"0|[1-9][0-9]{0,14}")
NOT_WHOLE = "{} is shard {} of an index, not a whole one. Join all with 'anvil merge'."
"""A message, with the path of the index and its shard."""
_SHARD = lazy_pattern(r"([1-9][0-9]{0,2})/([1-9][0-9]{0,2})")
_PATH_HASH = lazy_pattern(r"[0-9a-f]{20}")
SETTINGS = (
    "format_version",
    "chunking",
    "embedding_provider",
    "embedding_model",
    "embedding_model_digest",
    "embedding_dimensions",
    "windows",
)
"""The keys of the manifest that decide the content of the rows. They are part of the digest."""
REQUIRED = ("anvil_version", "docs_root_path", "digest", "checksum", "needs_reembed", "last_index_timestamp", *SETTINGS)


def settings(
    provider: EmbeddingProvider, options: Chunking, configured: Mapping[str, str | None] | None = None
) -> dict[str, str]:
    """The keys of the manifest on which the rows depend.

    ``configured``: those of :data:`OPTIONAL_SETTINGS`; the value None means that the key is not configured.
    """
    from anvil.text.chunker import CHUNKER_VERSION, OVERLAP_TOKENS  # a check of a file does without
    from anvil.text.query import TERMS_VERSION

    keys = {
        "format_version": str(FORMAT_VERSION),
        "chunking": canonical({**asdict(options), "terms": TERMS_VERSION, "version": CHUNKER_VERSION}),
        "embedding_provider": provider.name,
        "embedding_model": provider.model,
        "embedding_model_digest": provider.digest,
        "embedding_dimensions": str(provider.dimensions),
        "windows": canonical({"overlap": OVERLAP_TOKENS}),  # their size is in the model's digest
    }
    assert set(SETTINGS) == set(keys)
    return keys | {key: value for key, value in (configured or {}).items() if value is not None}


def of_source(source: DocumentSource, commit: str | None) -> dict[str, str | None]:
    """The keys on the origin of the rows; None if it is not known. ``commit``: of the documents."""
    hashes = source.excluded_hashes
    left_out = None if hashes is None else canonical(sorted(hashes))
    return {"commit": commit, "docs_root_path": source.root_path, "left_out": left_out}


def of_rows(reader: Reader) -> dict[str, str]:
    """The keys with counts of the rows, and with the newest time in them."""
    counts = reader.counts()
    lacking = counts["windows"] - counts["vectors"] if reader.has_vectors() else 0
    newest = reader.connection.execute("SELECT coalesce(max(last_modified), '') FROM documents").get
    numbers = {f"count_{name}": str(count) for name, count in counts.items()}
    return {**numbers, "needs_reembed": str(lacking), "last_index_timestamp": newest}


def digest(reader: Reader) -> str:
    """The key ``digest``, SHA-256 (hex) over the settings of an index and the digests of its documents."""
    meta, whole = reader.meta(), hashlib.sha256()
    for key in SETTINGS:
        whole.update(f"{key}={meta[key]}".encode() + b"\0")
    documents = reader.connection.execute("SELECT library, file_path, digest FROM documents")
    for library, path, own in sorted(documents):
        whole.update(f"{library}\0{path}\0".encode() + own)
    return whole.hexdigest()


# --- settings that are there only if they are configured ---


def recorded(config: Config) -> dict[str, str | None]:
    """The optional keys of the manifest for a configuration; None if they are not configured."""
    return {"site": recorded_site(config.site), "weights": recorded_weights(config.search.weights)}


_VERSIONS = ("terms", "version")
"""Keys of the chunking in a manifest that are no options."""


def recalled_chunking(text: str) -> Chunking:
    """The chunking from its text in a manifest. That also has the versions of the chunker and of the terms."""
    options = {key: value for key, value in json.loads(text).items() if key not in _VERSIONS}
    # Only chunks of one fixed size have an overlap; the manifest names no kind.
    return FixedChunks(**options) if "overlap" in options else ChunkingOptions(**options)


def recorded_site(site: SiteOptions) -> str | None:
    """The address of a site and its rule as text for the manifest; None without an address."""
    return json.dumps([site.url, site.rule], separators=(",", ":")) if site.url else None


def recalled_site(text: str | None) -> SiteOptions:
    """The site options from the text of :func:`recorded_site`."""
    if text is None:
        return SiteOptions()
    url, rule = json.loads(text)
    return SiteOptions(url, rule)


def recorded_weights(weights: Mapping[str, float]) -> str | None:
    """The weights of pages as text for the manifest, in their order; None without any."""
    return canonical(list(weights.items())) if weights else None


def recalled_weights(text: str | None) -> dict[str, float]:
    """The inverse of :func:`recorded_weights`. Raises :class:`ValueError` and :class:`TypeError` for another text."""
    return {bounded(glob): weight for glob, weight in json.loads(text)} if text else {}


OPTIONAL_SETTINGS = tuple(recorded(Config()))
"""Keys of the manifest on which rows or results depend, and which are there only if they are configured."""

SHARED_KEYS = (*SETTINGS, "anvil_version", "commit", "docs_root_path", *OPTIONAL_SETTINGS)
"""Keys that are equal in all shards of one index."""


# --- the check ---


def wrong(meta: Mapping[str, str]) -> str | None:
    """The first problem of a manifest, as a clause; None if it is valid."""
    missing = [key for key in REQUIRED if key not in meta]
    if missing:
        return f"its manifest lacks {', '.join(missing)}"
    rules: dict[str, Callable[[str], object]] = {
        "digest": SHA256.fullmatch,
        "checksum": SHA256.fullmatch,
        "embedding_dimensions": _NUMBER.fullmatch,
        "needs_reembed": _NUMBER.fullmatch,
        "format_version": str(FORMAT_VERSION).__eq__,
        "commit": OBJECT_ID.fullmatch,
        "left_out": _are_path_hashes,
        "chunking": _is_chunking,
        "site": lambda text: recorded_site(recalled_site(text)) == text,
        "weights": lambda text: recorded_weights(SearchOptions(weights=recalled_weights(text)).weights) == text,
        "shard": is_shard,
    }
    invalid = [key for key, rule in rules.items() if key in meta and not _is_valid(meta[key], rule)]
    if invalid:
        return f"its manifest has impossible values for {', '.join(invalid)}"
    if int(meta["embedding_dimensions"]) > MAX_DIMENSIONS:
        return "its manifest names impossible dimensions"
    return None


def _is_valid(text: str, rule: Callable[[str], object]) -> bool:
    try:
        return bool(rule(text))
    except (ConfigError, ValueError, TypeError, RecursionError):  # the settings are no settings of a build
        return False


def is_shard(text: str) -> bool:
    """Whether a text names a shard: ``NUMBER/COUNT`` such as ``3/8``, at most ``999/999``."""
    match = _SHARD.fullmatch(text)
    return match is not None and int(match[1]) <= int(match[2])


def _are_path_hashes(text: str) -> bool:
    names = strict_json(text)
    return isinstance(names, list) and all(isinstance(name, str) and _PATH_HASH.fullmatch(name) for name in names)


def _is_chunking(text: str) -> bool:
    options = strict_json(text)
    if not isinstance(options, dict) or any(type(options.pop(key, None)) is not int for key in _VERSIONS):
        return False
    kind = FixedChunks if "overlap" in options else ChunkingOptions
    # By type(), because isinstance takes True for a number: 1 for true would be another digest of the same options.
    if any(type(value) is not type(getattr(kind(), key, None)) for key, value in options.items()):
        return False
    kind(**options)
    return "max_chunk_size" in options or {"size", "overlap"} <= options.keys()


# --- the file that is published with an index -------------------------------------------------------------

MAX_CHARACTERS = 100_000
"""Characters of the longest manifest that is read."""
# The index is in the folder of its manifest. A name with a slash, or one that begins with a dot, could lead out of it.
_NAME = lazy_pattern(r"(?!\.)[^/\\\x00-\x1f:?#%]{1,200}")


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

    - ``file``: the index's name in the same folder; ``sha256``: the hash of its bytes; ``size``: in bytes.
    - ``digest``: the hash of its text and configuration.
    - ``last_modified``: the time of its newest page.
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


def manifest_path(index: Path) -> Path:
    """The path of an index's manifest: ``index.json`` for ``index.db``."""
    return index.with_suffix(".json")


def render(manifest: Manifest) -> str:
    """The manifest as JSON: sorted keys, one line each."""
    return json.dumps(asdict(manifest), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def parse(text: str, place: str) -> Manifest:
    """A manifest from JSON, ignoring unknown keys. Raises :class:`ArtifactRejected`, with ``place`` in the message."""
    try:
        if len(text) > MAX_CHARACTERS:
            raise ValueError(f"it has more than {MAX_CHARACTERS} characters")
        values = json.loads(text)
        return _checked(Manifest, values)
    except (ValueError, RecursionError) as error:
        raise ArtifactRejected(f"{place} is not the manifest of an index: {error}.") from None


def found(text: str, place: str, any_page: bool = False) -> Manifest | None:
    """A manifest, or None for a file of another program with the same name.

    ``any_page``: also None for a page of HTML or XML, because many sites answer every address with one. Raises
    :class:`ArtifactRejected` for a manifest with errors, such as an incomplete one, and for text that is not JSON.
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
    """A dataclass from a JSON object with its fields. Raises :class:`ValueError`."""
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
