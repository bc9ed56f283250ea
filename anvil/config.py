"""The one typed configuration: defaults < file < environment < flags.

Pure: mappings in, a :class:`Config` out. An unknown key or a wrong type fails by name, with the place it was
read from and the nearest key that exists. Keys may be written ``max_chunk_size``, ``max-chunk-size`` or
``maxChunkSize``.
"""

from __future__ import annotations

import re
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Literal, TypeVar

from anvil.errors import ConfigError

T = TypeVar("T")
Slugs = Literal["github", "mkdocs"]
"""How anchors are made from headings."""


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which files are documents: globs relative to the docs folder, and the largest file read, in bytes."""

    include: tuple[str, ...] = ("**/*.md", "**/*.mdx", "**/*.markdown")
    exclude: tuple[str, ...] = ()
    max_file_bytes: int = 5_000_000


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """How sections become chunks; sizes in characters.

    A section over ``max_chunk_size`` is split, one under ``min_chunk_size`` is merged with its neighbour when
    ``merge_short_sections`` is on. ``slugs`` is the anchor style: ``github`` or ``mkdocs``.
    """

    max_chunk_size: int = 6000
    min_chunk_size: int = 200
    merge_short_sections: bool = True
    slugs: Slugs = "github"

    def __post_init__(self) -> None:
        if not 200 <= self.max_chunk_size <= 100_000:  # a chunk has room for 4096 windows
            raise ConfigError(f"chunking.max_chunk_size is {self.max_chunk_size}. Use a value from 200 to 100000.")
        if not 0 <= self.min_chunk_size <= self.max_chunk_size:
            raise ConfigError(
                f"chunking.min_chunk_size is {self.min_chunk_size}. "
                f"Use a value from 0 to max_chunk_size ({self.max_chunk_size})."
            )
        if self.slugs not in ("github", "mkdocs"):
            raise ConfigError(f"chunking.slugs is {self.slugs!r}. Use 'github' or 'mkdocs'.")


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """Chunks of one size in characters, wherever headings stand; neighbours share ``overlap`` characters.

    Joined they are not the page: never for an index of documents that are read as pages.
    """

    size: int = 800
    overlap: int = 100
    slugs: Slugs = "github"


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Which model turns text into vectors.

    ``provider``: ``local``, ``openai`` or ``none``. ``model``: empty for the provider's own default; for
    ``local`` a folder or a Hugging Face id. ``threads``: None for every usable core.
    """

    provider: str = "local"
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    base_url: str | None = None
    dimensions: int | None = None
    threads: int | None = None


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How questions are answered. ``threshold``: results scoring below it are left out (0 keeps all)."""

    threshold: float = 0.0


@dataclass(frozen=True, slots=True)
class ContextEmbeddings:
    """Whether the context has vectors: ``none``, ``local`` or ``openai``; the model is that of ``[embedding]``."""

    provider: str = "none"


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """Globs over paths from the repository's root: the first that fits says what an artifact is, else ``generic``."""

    template: tuple[str, ...] = ("**/.specify/templates/**",)
    checklist: tuple[str, ...] = ("**/checklists/**", "**/checklist.md")
    spec: tuple[str, ...] = ("**/spec.md",)
    plan: tuple[str, ...] = ("**/plan.md",)
    tasks: tuple[str, ...] = ("**/tasks.md",)
    decision: tuple[str, ...] = ("**/adr/**", "**/adrs/**", "**/decisions/**")


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """A repository's working knowledge. ``directories`` and ``index_dir`` start from the repository's root.

    Without ``chunk_size`` and ``chunk_overlap`` (characters) chunks are sections, as ``[chunking]`` says.
    """

    directories: tuple[str, ...] = ("architecture", "perspectives", "operations", "specs", ".specify/templates")
    chunk_size: int | None = None
    chunk_overlap: int | None = None
    refresh_interval_seconds: int = 1800
    max_file_size_bytes: int = 102_400
    index_dir: str = ".context/index"
    embeddings: ContextEmbeddings = field(default_factory=ContextEmbeddings)
    types: ArtifactTypes = field(default_factory=ArtifactTypes)

    def __post_init__(self) -> None:
        for key, path in [*(("directories", path) for path in self.directories), ("index_dir", self.index_dir)]:
            if re.match(r"[/\\~]|[A-Za-z]:", path) or ".." in re.split(r"[/\\]", path) or not path.strip():
                raise ConfigError(f"context.{key} names {path!r}. Name a folder inside the repository, relative to it.")
        if self.chunk_size is not None and not 200 <= self.chunk_size <= 100_000:
            raise ConfigError(f"context.chunk_size is {self.chunk_size}. Use a value from 200 to 100000.")
        if self.chunk_overlap is not None and not 0 <= self.chunk_overlap <= (self.chunk_size or 800) // 2:
            raise ConfigError(f"context.chunk_overlap is {self.chunk_overlap}. Use a value from 0 to half a chunk.")
        if self.refresh_interval_seconds < 1:
            raise ConfigError("context.refresh_interval_seconds must be at least 1.")
        if self.max_file_size_bytes < 1:
            raise ConfigError("context.max_file_size_bytes must be at least 1.")

    @property
    def fixed(self) -> FixedChunks | None:
        """How chunks are cut when one of the sizes is set."""
        if self.chunk_size is None and self.chunk_overlap is None:
            return None
        size = self.chunk_size or FixedChunks().size
        overlap = min(FixedChunks().overlap, size // 2) if self.chunk_overlap is None else self.chunk_overlap
        return FixedChunks(size, overlap)


@dataclass(frozen=True, slots=True)
class Config:
    """Everything that can be set. ``docs`` and ``index`` are paths; ``index`` None means ``<docs>/.anvil/index.db``."""

    docs: str = "docs"
    index: str | None = None
    source: SourceOptions = field(default_factory=SourceOptions)
    chunking: ChunkingOptions = field(default_factory=ChunkingOptions)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    search: SearchOptions = field(default_factory=SearchOptions)
    context: ContextOptions = field(default_factory=ContextOptions)


def configure(
    file: Mapping[str, Any] | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
    *,
    origin: str = "the configuration",
    beneath: tuple[Mapping[str, Any], str] | None = None,
) -> Config:
    """Merge the layers into a :class:`Config`.

    ``beneath``: a table and its name for errors, merged before all others.
    ``file`` is a parsed TOML table named ``origin`` in errors. ``environment`` is the process environment:
    ``ANVIL_EMBEDDING_PROVIDER`` sets ``embedding.provider``; names that set nothing of ours are not looked at,
    since other programs of that name exist, nor are empty ones. ``flags`` maps dotted keys to values; None means
    "not given".
    Raises :class:`ConfigError`.
    """
    config = _merge(Config(), *beneath, "") if beneath else Config()
    config = _merge(config, file or {}, origin, "")
    said: dict[str, Any] = {}
    for path, kind in _leaves(Config):
        variable = "ANVIL_" + "_".join(path).upper()
        if environment and environment.get(variable):
            _put(said, path, _from_text(environment[variable], kind, variable))
    config = _merge(config, said, "the environment", "")
    given: dict[str, Any] = {}
    for dotted, value in (flags or {}).items():
        if value is not None:
            _put(given, tuple(dotted.split(".")), value)
    return _merge(config, given, "the command line", "")


def _merge(current: T, table: Mapping[str, Any], origin: str, prefix: str) -> T:
    hints = typing.get_type_hints(type(current))
    updates: dict[str, Any] = {}  # applied at once: a table is validated as a whole
    for written, value in table.items():
        key = key_of(str(written))
        dotted = f"{prefix}{written}"
        if key not in hints:
            import difflib

            near = difflib.get_close_matches(key, hints, n=1, cutoff=0.5)
            hint = f"Did you mean {prefix}{near[0]}?" if near else f"Known keys: {', '.join(hints)}."
            raise ConfigError(f"Unknown key {dotted!r} in {origin}. {hint}")
        if is_dataclass(hints[key]):
            if not isinstance(value, Mapping):
                raise ConfigError(f"{dotted} in {origin} must be a table, not {_named(value)}.")
            value = _merge(getattr(current, key), value, origin, f"{dotted}.")
        else:
            value = _checked(value, hints[key], dotted, origin)
        updates[key] = value
    try:
        return replace(current, **updates)  # type: ignore[type-var]
    except ConfigError as error:
        raise ConfigError(f"In {origin}: {error}") from None


def key_of(written: str) -> str:
    """The key that is meant: ``max_chunk_size`` from ``max-chunk-size`` or ``maxChunkSize``."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", written).replace("-", "_").lower()


def _put(table: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for key in path[:-1]:
        table = table.setdefault(key, {})
    table[path[-1]] = value


def _leaves(kind: type, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], Any]]:
    hints = typing.get_type_hints(kind)
    found: list[tuple[tuple[str, ...], Any]] = []
    for each in fields(kind):
        hint = hints[each.name]
        here = (*path, each.name)
        found += _leaves(hint, here) if is_dataclass(hint) and isinstance(hint, type) else [(here, hint)]
    return found


def _plain(kind: Any) -> Any:
    """``str | None`` and a choice of strings -> ``str``; ``tuple[str, ...]`` -> ``tuple``; others as they are."""
    if isinstance(kind, types.UnionType) or typing.get_origin(kind) is typing.Union:
        kind = next(each for each in typing.get_args(kind) if each is not type(None))
    if typing.get_origin(kind) is Literal:
        return str
    return typing.get_origin(kind) or kind


def _checked(value: Any, kind: Any, dotted: str, origin: str) -> Any:
    plain = _plain(kind)
    if plain is tuple:
        if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
            return tuple(value)
        raise ConfigError(f"{dotted} in {origin} must be a list of strings, not {_named(value)}.")
    if plain is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, plain) or (isinstance(value, bool) and plain is not bool):
        wanted = {str: "a string", int: "a whole number", float: "a number", bool: "true or false"}[plain]
        raise ConfigError(f"{dotted} in {origin} must be {wanted}, not {_named(value)}.")
    return value


def _from_text(text: str, kind: Any, variable: str) -> Any:
    plain = _plain(kind)
    if plain is tuple:
        return [part.strip() for part in text.split(",") if part.strip()]
    if plain is bool:
        lowered = text.strip().lower()
        if lowered in ("1", "true", "yes", "on", "0", "false", "no", "off"):
            return lowered in ("1", "true", "yes", "on")
        raise ConfigError(f"{variable} must be true or false, not {text!r}.")
    if plain in (int, float):
        try:
            return plain(text)
        except ValueError:
            wanted = "a whole number" if plain is int else "a number"
            raise ConfigError(f"{variable} must be {wanted}, not {text!r}.") from None
    return text


def _named(value: Any) -> str:
    """What a value is, without printing it: it may be a secret in the wrong place."""
    names = {str: "a string", bool: "true or false", int: "a number", float: "a number", list: "a list"}
    return names.get(type(value), "a table" if isinstance(value, Mapping) else type(value).__name__)
