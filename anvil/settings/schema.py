"""The keys of the configuration, with their types, defaults and ranges: the tables of the engine.

A capability has its own table in its folder, under its name in ``SETTINGS`` of :mod:`anvil.registry`. Unknown keys,
wrong types and values from environment variables are the matter of :mod:`anvil.settings.configuration`.

Metadata of a field:

- ``path``: the value is a path. It starts from the working folder if an option or a variable names it.
- ``instead``: the key turns off a protection, and this is how the user does it without a file.
- ``keys``: the keys that stand in place of the field.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, get_args

from anvil import registry
from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.values import PAGE_ENDINGS, labelled

T = TypeVar("T")

INDEX_FOLDER = ".anvil"
"""The default folder of an index and its files. It is never searched for documents."""
INDEX_NAME = "index.db"
LOCK_NAME = "anvil.lock"
"""The file that names the documentation of the project's dependencies."""
SITE_INDEX = "anvil/index.db"
"""The path of an index in the folder of its site."""
SITE_SEARCH = "anvil/search/index.html"
"""The path of the page that searches it."""
KEY, BASE_URL = "OPENAI_API_KEY", "OPENAI_BASE_URL"
"""Environment variables of OpenAI's own client."""

MAX_INTERVAL_S, MAX_NUMBER = 30 * 86_400, 2**53
"""Seconds of a timeout or interval, and the limit of other numbers. The system must accept them too."""
MAX_WEIGHTS = 100
"""Globs in ``search.weights``."""
Slugs = Literal["github", "mkdocs", "vitepress", "hugo", "pandoc"]
"""The rules by which anchors are made from headings."""
Rule = Literal["directory", "html", "docusaurus", "vitepress", "hugo", "github"]
"""The rules by which the address of a page is made from its path."""


def within(key: str, value: float, low: float, high: float = MAX_NUMBER) -> None:
    """Raise :class:`ConfigError` unless ``low <= value <= high``. NaN is refused, too."""
    if not low <= value <= high:
        raise ConfigError(f"{key} is {value}. Use a value from {low} to {high}.")


def one_of(key: str, value: str, literal: Any) -> None:
    """Raise :class:`ConfigError` unless ``value`` is one of a literal type. No message repeats a wrong value: it could
    be a secret in the wrong place."""
    if value not in get_args(literal):
        raise ConfigError(f"{key} has an unknown value. Use one of {', '.join(get_args(literal))}.")


def builder(key: str, value: str | None) -> None:
    """Raise :class:`ConfigError` unless ``value`` names an owner or a repository, or is None."""
    if value is not None and not index_url.is_builder(value):
        raise ConfigError(f"{key} is not a place on GitHub. Name an owner or a repository: OWNER or OWNER/REPO.")


# --- the tables ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which files are pages."""

    include: tuple[str, ...] = tuple(f"**/*{ending}" for ending in PAGE_ENDINGS)
    """Globs of the files that are pages, or folders of pages, relative to the documentation folder."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders that are left out."""
    max_file_bytes: int = 5_000_000
    """A larger file is skipped, with a warning."""
    includes: bool = True
    """Whether code and text that a page includes from other files of its repository is indexed with the page."""

    limit_key = "source.max_file_bytes"  # its name in the warning; without annotation, because it is not a key

    def __post_init__(self) -> None:
        within("source.max_file_bytes", self.max_file_bytes, 1)


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """The cutting of sections into chunks. Sizes are in characters."""

    # A result shows chunks, and a model reads windows of them. So only very long sections are cut.
    max_chunk_size: int = 6000
    """A longer section is split, at borders of paragraphs."""
    min_chunk_size: int = 200
    """A shorter section is merged with its neighbour under the same parent."""
    merge_short_sections: bool = True
    """Whether short sections are merged."""
    slugs: Slugs = "github"
    """The anchors of headings: ``github`` (Docusaurus too), ``mkdocs``, ``vitepress``, ``hugo``, ``pandoc``."""

    def __post_init__(self) -> None:
        within("chunking.max_chunk_size", self.max_chunk_size, 200, 100_000)  # a chunk has room for 4096 windows
        within("chunking.min_chunk_size", self.min_chunk_size, 0, self.max_chunk_size)
        one_of("chunking.slugs", self.slugs, Slugs)


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """Chunks of one size in characters, independent of headings. Neighbours share ``overlap`` characters.

    Joined, they are not the page, so an index with pages does not use them.
    """

    size: int = 800
    overlap: int = 100
    slugs: Slugs = "github"


Chunking = ChunkingOptions | FixedChunks
"""The two ways to cut a page."""


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """The site of the documentation: its address, and its folder of HTML for ``--site``."""

    url: str = ""
    """The address of the documentation folder in the site, such as ``https://example.org/docs/``; results then have
    URLs. Empty: the address that the pages of a built site name, else none."""
    rule: Rule = "directory"
    """The rule for addresses of pages: ``directory`` (``guide/``) or ``html`` (``guide.html``), as in MkDocs;
    ``docusaurus``, ``vitepress``, ``hugo`` or ``github``, which also set the rule for anchors."""
    folder: str | None = field(default=None, metadata={"path": True})
    """The folder that a site generator wrote, such as ``site``. Its pages are indexed as readers see them, and
    ``anvil lint`` looks links up in it."""
    content: tuple[str, ...] = ()
    """CSS selectors of the element with a page's content; the first that matches counts. Empty: Anvil finds the
    element."""
    ignore: tuple[str, ...] = ()
    """CSS selectors of elements that are left out of the content."""
    include: tuple[str, ...] = ()
    """Globs of pages by their address in the site, such as ``guide/**``; empty means all."""
    exclude: tuple[str, ...] = ()
    """Globs of pages that are left out, even if ``include`` matches them."""
    versions: tuple[str, ...] = ()
    """Names of the versions that are indexed, of a site that has them in folders such as ``1.2/``. Empty means all."""
    languages: tuple[str, ...] = ()
    """The languages that are indexed, as the pages name them, such as ``en``. Empty means all."""
    markdown: bool = False
    """Whether a build of the site also writes each page as Markdown beside its HTML, and ``llms.txt`` and
    ``llms-full.txt``."""
    link_markdown: bool = False
    """Whether a build also writes the Markdown, and puts a link to it into the head of each HTML page."""
    search_page: bool = False
    """Whether a build of the site also writes a page that searches the published index in the browser, and the script
    of a search box for other pages."""

    @property
    def writes_markdown(self) -> bool:
        """Whether a build of the site also writes its pages as Markdown: ``link_markdown`` implies it."""
        return self.markdown or self.link_markdown

    def __post_init__(self) -> None:
        one_of("site.rule", self.rule, Rule)
        parts = index_url.split(self.url)
        if self.url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
            raise ConfigError("site.url must be an address such as https://example.org/docs/, without ? or #.")
        if self.folder is not None and not self.folder.strip():
            raise ConfigError("site.folder is empty. Name the folder of the built site, or leave the key out.")


BUNDLED_MODEL = "all-MiniLM-L6-v2-docs"
"""The name of the model in Anvil's package, which an empty ``embedding.model`` selects."""

PROVIDERS_HELP = "local (default), openai, none (keywords only)"
"""The embedding providers, in the help of commands."""


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """The model that turns text into vectors."""

    provider: str = "local"
    """The provider of the vectors: ``local`` (the bundled model, or another), ``openai``, or ``none``."""
    model: str = ""
    """Empty: the provider's own default. For ``local`` a folder, or a Hugging Face id."""
    api_key: str | None = field(default=None, repr=False)
    """For ``openai``; not set means ``OPENAI_API_KEY``."""
    base_url: str | None = field(default=None, repr=False)
    """For ``openai``: another server that speaks its protocol, over https or on this machine; not set means
    ``OPENAI_BASE_URL``. In a file that is not named with ``--config``, only a server on this machine or the one in
    ``OPENAI_BASE_URL`` is accepted."""
    dimensions: int | None = None
    """For ``openai``: shorter vectors, from models that offer them."""
    threads: int | None = None
    """For ``local``; not set means every core this process may use."""
    passages: bool = True
    """For the bundled model: whether the best 10 passages of a hybrid search are read again, word by word. That finds
    more, and takes about 0.1 s on two processors."""
    cache: bool = True
    """Whether vectors of documents are kept in the user's cache folder too, so that a text is embedded once for all of
    the user's projects and branches."""

    def __post_init__(self) -> None:
        if self.dimensions is not None:
            within("embedding.dimensions", self.dimensions, 1, 8192)  # what sqlite-vec takes
        if self.threads is not None:
            within("embedding.threads", self.threads, 1, 1024)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """Limits and weights of all searches."""

    threshold: float = 0.0
    """Results with a lower score are omitted. From 0, which keeps all, to 1."""
    min_confidence: float = 0.0
    """Results with a lower confidence are omitted. From 0, which keeps all, to 1."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Globs of pages, each with a factor for their scores, from 0.1 to 3: ``"legacy/**" = 0.5``. The first glob that a
    page matches counts. A build records them in the index."""

    def __post_init__(self) -> None:
        if len(self.weights) > MAX_WEIGHTS:
            raise ConfigError(f"search.weights has {len(self.weights)} globs. Use at most {MAX_WEIGHTS}.")
        for glob, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)):
                raise ConfigError(f"search.weights has no number for {glob!r}. Write a factor such as 0.5.")
            within(f"search.weights.{glob!r}", weight, 0.1, 3)
        within("search.threshold", self.threshold, 0, 1)
        within("search.min_confidence", self.min_confidence, 0, 1)


_COLLECTION_NAME = re.compile(r"(@[A-Za-z0-9][A-Za-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_COLLECTION_NAME, MAX_VERSION = 100, 60
"""Characters."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One of several indexes that answer together. Each has `docs`, `index` or both. A `[[collections.NAME]]`, with two
    brackets, is one version of several."""

    name: str = field(default="", metadata={"keys": {}})  # from the table's name
    of_project: bool = field(default=False, metadata={"keys": {}})  # `docs` and `index` at the top
    missing: str = field(default="", metadata={"keys": {}})  # a message for the case that its index file does not exist
    docs: str | None = None
    """The folder of its documents, which are compared with the index before each answer. ``~/`` is the home folder."""
    index: str | None = None
    """The index file, or the address of a published index; not set means ``.anvil/index.db`` in ``docs``."""
    version: str | None = None
    """The version of the software that the documents describe, such as ``0.139``. Results have it, and a question can
    choose it."""
    attested_by: str | None = None
    """Who must have built the published index, as ``fetch.attested_by`` says for the index at the top."""
    title: str | None = None
    """A name for people, such as ``FastAPI``; not set means the name of the table."""
    default: bool = False
    """Whether this version answers a question that names none; not set for all means the newest."""
    source: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[source]`` for this collection alone."""
    chunking: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[chunking]`` for this collection alone."""
    site: Mapping[str, Any] = field(default_factory=dict)
    """Keys of ``[site]`` for this collection alone. Those at the top are for the folder ``docs`` at the top."""

    @property
    def label(self) -> str:
        """The name with the version: ``fastapi@0.139``."""
        return labelled(self.name, self.version)

    @property
    def built_from(self) -> tuple[object, ...]:
        """The values that decide what is in its index. Collections with the same index must agree in them."""
        return posixpath.normpath(self.docs or ""), self.source, self.chunking, self.site

    def __post_init__(self) -> None:
        if len(self.name) > MAX_COLLECTION_NAME or (self.name and not _COLLECTION_NAME.fullmatch(self.name)):
            raise ConfigError(
                f"{self.name[:MAX_COLLECTION_NAME]!r} cannot name a collection. Use letters, digits and . _ - such as "
                '[collections.handbook]; an npm package may keep its scope, as in [collections."@acme/ui"].'
            )
        for key in ("docs", "index", "version", "title"):
            if (value := getattr(self, key)) is not None and not value.strip():
                raise ConfigError(f"collections.{self.name}.{key} is empty. Give it a value, or leave the key out.")
        if self.version is not None and (
            len(self.version) > MAX_VERSION or re.search(r"[\s\0-\x1f\x7f@/]", self.version)
        ):
            raise ConfigError(
                f"collections.{self.name}.version is not a version. Use at most {MAX_VERSION} characters, no spaces, "
                "@ or /."
            )
        builder(f"collections.{self.name}.attested_by", self.attested_by)
        index_url.refuse_unknown(self.index or "")


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. The reference page has the texts under the keys."""

    docs: str = field(default="docs", metadata={"path": True})
    """The documentation folder. ``~/`` is the home folder."""
    index: str | None = field(default=None, metadata={"path": True})
    """The index file, or the address of a published index (``https://…``, ``github:…``); not set means
    ``.anvil/index.db`` in the documentation folder."""
    source: SourceOptions = field(default_factory=SourceOptions)
    chunking: ChunkingOptions = field(default_factory=ChunkingOptions)
    site: SiteOptions = field(default_factory=SiteOptions)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    search: SearchOptions = field(default_factory=SearchOptions)
    tables: Mapping[str, Any] = field(default_factory=dict, metadata={"keys": registry.SETTINGS})
    """Name -> the table of a capability, of those that a layer sets."""
    collections: tuple[Collection, ...] = ()
    """Indexes that answer together, by name; see below."""
    found_indexes: frozenset[str] = field(default=frozenset(), compare=False, metadata={"keys": {}})
    # Addresses in a file that the user did not name. The user's credentials for their hosts are not sent to them.

    def table(self, kind: type[T]) -> T:
        """The table of a capability, by its class, such as ``LintOptions``. The defaults where no layer sets it."""
        return next((table for table in self.tables.values() if isinstance(table, kind)), None) or kind()

    def __post_init__(self) -> None:
        if not self.docs.strip():
            raise ConfigError("docs is empty. Name the documentation folder; '.' is the working folder.")
        if self.index is not None and not self.index.strip():
            raise ConfigError("index is empty. Name the index file, or leave it out.")
        index_url.refuse_unknown(self.index or "")
        labels: set[str] = set()
        built: dict[str, Collection] = {}  # by the folder or file of the index
        for collection in self.collections:
            if collection.docs is None and collection.index is None:
                raise ConfigError(
                    f"collections.{collection.name} has no documents. Name their folder with docs, or their index with "
                    "index."
                )
            if collection.label.lower() in labels:
                raise ConfigError(
                    f"There are two collections {collection.label}. Give each its own name, or its own version."
                )
            labels.add(collection.label.lower())
            index = collection.index or collection.site.get("folder") or collection.docs
            if collection.docs is None or not isinstance(index, str) or index_url.is_remote(index):
                continue
            other = built.setdefault(posixpath.normpath(index), collection)
            if other.built_from != collection.built_from:
                raise ConfigError(
                    f"The collections {other.label} and {collection.label} have the same index file, and each build "
                    "would replace the other's. Give one of them a file of its own with the key index."
                )
        defaults = [collection.name for collection in self.collections if collection.default]
        if twice := {name for name in defaults if defaults.count(name) > 1}:
            raise ConfigError(f"collections.{min(twice)} has two default versions. Set default = true for one of them.")
