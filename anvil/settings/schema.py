"""The one typed configuration, as values. Its layers are merged by :mod:`anvil.settings.layers`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from anvil.errors import ConfigError
from anvil.settings import index_url
from anvil.values import PAGE_ENDINGS, labelled

INDEX_FOLDER = ".anvil"
"""The default folder of an index and its files. It is never searched for documents."""
INDEX_NAME = "index.db"
LOCK_NAME = "anvil.lock"
"""The file that names the documentation of the project's dependencies."""
SITE_INDEX = "anvil/index.db"
"""The path of an index in the folder of its site."""
KEY, BASE_URL, MILVUS_TOKEN = "OPENAI_API_KEY", "OPENAI_BASE_URL", "ANVIL_MILVUS_TOKEN"
"""Environment variables. The first two are those of OpenAI's own client."""

MAX_INTERVAL_S, MAX_NUMBER = 30 * 86_400, 2**53
"""Seconds of a timeout or interval, and the limit of other numbers. The system must accept them too."""
MAX_WEIGHTS = 100
"""Globs in ``search.weights``."""
Slugs = Literal["github", "mkdocs", "vitepress", "hugo"]
"""How anchors are made from headings."""
Rule = Literal["directory", "html", "docusaurus", "vitepress", "hugo", "github"]
"""How a page's address is made from its path."""


def _within(key: str, value: float, low: float, high: float = MAX_NUMBER) -> None:
    """Raise :class:`ConfigError` unless ``value`` is between both; NaN is not."""
    if not low <= value <= high:
        raise ConfigError(f"{key} is {value}. Use a value from {low} to {high}.")


def _one_of(key: str, value: str, literal: Any) -> None:
    """Raise :class:`ConfigError` unless ``value`` is one of a literal type."""
    if value not in get_args(literal):
        raise ConfigError(f"{key} is {value!r}. Use one of {', '.join(get_args(literal))}.")


def _builder(key: str, value: str | None) -> None:
    """Raise :class:`ConfigError` unless ``value`` names an owner or a repository."""
    if value is None:
        return
    if not index_url.is_builder(value):
        raise ConfigError(f"{key} is {value[:100]!r}. Name an owner or a repository of GitHub: OWNER or OWNER/REPO.")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """Which files are pages."""

    include: tuple[str, ...] = tuple(f"**/*{ending}" for ending in PAGE_ENDINGS)
    """Globs of the files that are pages, relative to the documentation folder."""
    exclude: tuple[str, ...] = ()
    """Globs of files and folders that are left out."""
    max_file_bytes: int = 5_000_000
    """A larger file is skipped, with a warning."""
    includes: bool = True
    """Whether code and text that a page includes from other files of its repository is indexed with the page."""

    limit_key = "source.max_file_bytes"  # its name in the warning; without annotation, because it is not a key

    def __post_init__(self) -> None:
        _within("source.max_file_bytes", self.max_file_bytes, 1)


@dataclass(frozen=True, slots=True)
class ChunkingOptions:
    """How sections become chunks; sizes in characters."""

    max_chunk_size: int = 6000
    """A longer section is split, at borders of paragraphs."""
    min_chunk_size: int = 200
    """A shorter section is merged with its neighbour under the same parent."""
    merge_short_sections: bool = True
    """Whether short sections are merged."""
    slugs: Slugs = "github"
    """How anchors are made from headings: ``github`` (Docusaurus too), ``mkdocs``, ``vitepress`` or ``hugo``."""

    def __post_init__(self) -> None:
        _within("chunking.max_chunk_size", self.max_chunk_size, 200, 100_000)  # a chunk has room for 4096 windows
        _within("chunking.min_chunk_size", self.min_chunk_size, 0, self.max_chunk_size)
        _one_of("chunking.slugs", self.slugs, Slugs)


@dataclass(frozen=True, slots=True)
class FixedChunks:
    """Chunks of one size in characters, independent of headings. Neighbours share ``overlap`` characters.

    Joined, they are not the page, so an index with pages does not use them.
    """

    size: int = 800
    overlap: int = 100
    slugs: Slugs = "github"


@dataclass(frozen=True, slots=True)
class SiteOptions:
    """The site of the documentation: where it is published, and its folder of HTML for ``--site``."""

    url: str = ""
    """The address that the documentation folder has there, such as ``https://example.org/docs/``; results then have
    URLs. Empty: the address that the pages of a built site name, else none."""
    rule: Rule = "directory"
    """How addresses follow from paths: ``directory`` (``guide/``) or ``html`` (``guide.html``), as MkDocs;
    ``docusaurus``, ``vitepress``, ``hugo`` or ``github``, which also say how anchors are made."""
    folder: str | None = None
    """The folder that a site generator wrote, such as ``site``. Its pages are indexed as readers see them, and
    ``anvil lint`` looks links up in it."""
    content: tuple[str, ...] = ()
    """CSS selectors of the element with a page's content; the first that matches counts. Empty: found by Anvil."""
    ignore: tuple[str, ...] = ()
    """CSS selectors of elements that are left out of the content."""
    include: tuple[str, ...] = ()
    """Globs of pages by their address in the site, such as ``guide/**``; empty means all."""
    exclude: tuple[str, ...] = ()
    """Globs of pages that are left out, even if ``include`` matches them."""
    versions: tuple[str, ...] = ()
    """Names of the versions that are indexed, of a site that has them in folders such as ``1.2/``; empty means all."""
    languages: tuple[str, ...] = ()
    """The languages that are indexed, as the pages name theirs, such as ``en``; empty means all."""
    markdown: bool = False
    """Whether a build of the site also writes each page as Markdown beside its HTML, and ``llms.txt`` and
    ``llms-full.txt``."""
    link_markdown: bool = False
    """Whether it does so, and puts a link to the Markdown into the head of each HTML page."""

    def __post_init__(self) -> None:
        _one_of("site.rule", self.rule, Rule)
        try:
            parts = urlsplit(self.url)
        except ValueError:  # such as http://[
            parts = urlsplit("")
        if self.url and (parts.scheme not in ("http", "https") or not parts.netloc or parts.query or parts.fragment):
            raise ConfigError("site.url must be an address such as https://example.org/docs/, without ? or #.")
        if self.folder is not None and not self.folder.strip():
            raise ConfigError("site.folder is empty. Name the folder of the built site, or leave the key out.")


@dataclass(frozen=True, slots=True)
class EmbeddingSettings:
    """Which model turns text into vectors."""

    provider: str = "local"
    """What makes the vectors: ``local`` (the bundled model, or another), ``openai``, or ``none``."""
    model: str = ""
    """Empty: the provider's own default. For ``local`` a folder, or a Hugging Face id."""
    api_key: str | None = field(default=None, repr=False)
    """For ``openai``; not set means ``OPENAI_API_KEY``."""
    base_url: str | None = field(default=None, repr=False)
    """For ``openai``: another server that speaks its protocol, over https or on this machine; not set means
    ``OPENAI_BASE_URL``. In a file that is not named with ``--config``: this machine's, or what ``OPENAI_BASE_URL``
    says."""
    dimensions: int | None = None
    """For ``openai``: shorter vectors, from models that offer them."""
    threads: int | None = None
    """For ``local``; not set means every core this process may use."""
    cache: bool = True
    """Whether vectors of documents are kept in the user's cache folder too, so that a text is embedded once for all of
    the user's projects and branches."""

    def __post_init__(self) -> None:
        if self.dimensions is not None:
            _within("embedding.dimensions", self.dimensions, 1, 8192)  # what sqlite-vec takes
        if self.threads is not None:
            _within("embedding.threads", self.threads, 1, 1024)


@dataclass(frozen=True, slots=True)
class SearchOptions:
    """How queries are answered."""

    threshold: float = 0.0
    """Results with a lower score are omitted. From 0, which keeps all, to 1."""
    min_confidence: float = 0.0
    """Results with a lower confidence are omitted. From 0, which keeps all, to 1."""
    weights: Mapping[str, float] = field(default_factory=dict)
    """Globs of pages, each with the factor of their scores, from 0.1 to 3: ``"legacy/**" = 0.5``. The first glob
    that a page matches counts. A build records them in the index."""

    def __post_init__(self) -> None:
        if len(self.weights) > MAX_WEIGHTS:
            raise ConfigError(f"search.weights has {len(self.weights)} globs. Use at most {MAX_WEIGHTS}.")
        for glob, weight in self.weights.items():
            if isinstance(weight, bool) or not isinstance(weight, (int, float)):
                raise ConfigError(f"search.weights has no number for {glob!r}. Write a factor such as 0.5.")
            _within(f"search.weights.{glob!r}", weight, 0.1, 3)
        _within("search.threshold", self.threshold, 0, 1)
        _within("search.min_confidence", self.min_confidence, 0, 1)


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """What the server of a documentation folder writes down. Nothing unless it is switched on."""

    question_log: bool = False
    """Whether the questions that agents ask are logged, on this machine only: time, question, confidence and pages.
    What looks like a secret or an e-mail address is masked. `anvil questions` shows which ones no page answers."""
    report_page: bool = False
    """Whether agents get the tool `report_page`, with which they report pages that are outdated, wrong or missing, into
    the same log."""
    log_bytes: int = 5_000_000
    """Bytes of the log. A longer one is renamed to `questions.old.jsonl`, in place of the one before."""

    def __post_init__(self) -> None:
        _within("serve.log_bytes", self.log_bytes, 1000)


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """How a published index is fetched."""

    refresh: int = 600
    """Seconds between checks for a newer published index while serving; 0: never."""
    max_bytes: int = 2_000_000_000
    """A larger index is not fetched."""
    require_attestation: bool = False
    """Whether a published index is refused unless a valid attestation says that the right repository built it. For
    ``anvil deps`` too."""
    attested_by: str | None = None
    """Who must have built the index that ``index`` at the top names or ``anvil pull`` fetches, by a valid attestation:
    ``OWNER`` or ``OWNER/REPO`` on GitHub. Not set means what the address says: the repository of
    ``github:OWNER/REPO``, the owner of ``https://OWNER.github.io/``."""
    trusted_root: str | None = None
    """A ``trusted_root.json`` of another Sigstore than the public one. An error in a file not named with
    ``--config``."""

    def __post_init__(self) -> None:
        _builder("fetch.attested_by", self.attested_by)
        if self.trusted_root is not None and not self.trusted_root.strip():
            raise ConfigError("fetch.trusted_root is empty. Name a file, or leave the key out.")
        _within("fetch.refresh", self.refresh, 0, MAX_INTERVAL_S)
        _within("fetch.max_bytes", self.max_bytes, 1)


@dataclass(frozen=True, slots=True)
class DepsOptions:
    """Where ``anvil deps`` finds packages and their documentation."""

    pypi_url: str = "https://pypi.org/simple/"
    """The index of Python packages (the simple API). The environment's own setting goes first: ``UV_DEFAULT_INDEX``,
    ``UV_INDEX_URL`` or ``PIP_INDEX_URL``."""
    npm_url: str = "https://registry.npmjs.org/"
    """The registry of npm packages. The environment's own setting goes first: ``NPM_CONFIG_REGISTRY``."""
    max_fetch_bytes: int = 500_000_000
    """Bytes that are fetched from one repository. Pages alone are fetched, if its server can send a part."""
    max_package_bytes: int = 50_000_000
    """Bytes of a package's archive in which documentation is searched. A larger one is not downloaded."""
    allow_private_urls: bool = False
    """Whether packages may name servers of this machine and its network, and repositories by ``file://``. An error in a
    file not named with ``--config``."""

    def __post_init__(self) -> None:
        _within("deps.max_fetch_bytes", self.max_fetch_bytes, 1)
        _within("deps.max_package_bytes", self.max_package_bytes, 1)
        for key in ("pypi_url", "npm_url"):
            if not index_url.is_allowed(getattr(self, key)):
                raise ConfigError(f"deps.{key} must be an https address, such as https://HOST/PATH/.")


@dataclass(frozen=True, slots=True)
class ContextEmbeddings:
    """Whether the context has vectors."""

    provider: str = "none"
    """``none``, ``local`` or ``openai``; the model is that of ``[embedding]``."""


@dataclass(frozen=True, slots=True)
class ArtifactTypes:
    """Globs over paths from the repository's root. The first that matches decides the type, else it is ``generic``."""

    template: tuple[str, ...] = ("**/.specify/templates/**",)
    """Globs of templates. The types are tried in this order; other files are ``generic``."""
    checklist: tuple[str, ...] = ("**/checklists/**", "**/checklist.md")
    """Of checklists."""
    spec: tuple[str, ...] = ("**/spec.md",)
    """Of specs."""
    plan: tuple[str, ...] = ("**/plan.md",)
    """Of plans."""
    tasks: tuple[str, ...] = ("**/tasks.md",)
    """Of task lists."""
    decision: tuple[str, ...] = ("**/adr/**", "**/adrs/**", "**/decisions/**")
    """Of decisions."""


@dataclass(frozen=True, slots=True)
class TaskMarks:
    """The characters in a check box. ``[ ]`` is open. Case is ignored."""

    open: tuple[str, ...] = ("~", "❌")
    """Marks of open tasks."""
    done: tuple[str, ...] = ("x", "✅", "-")
    """Marks of tasks that are done or dropped."""

    def __post_init__(self) -> None:
        for mark in (*self.open, *self.done):
            if not re.fullmatch(r"[^\[\]\s\\]{1,2}", mark):
                raise ConfigError(f"context.tasks has the mark {mark!r}. Use one or two characters, no brackets.")
        if both := {_bare(mark) for mark in self.open} & {_bare(mark) for mark in self.done}:
            raise ConfigError(f"context.tasks has {min(both)!r} as open and as done. Leave it in one of them.")

    def status(self, mark: str) -> Literal["open", "done"] | None:
        """The status for a mark; None for an unknown mark."""
        if mark == " " or _bare(mark) in map(_bare, self.open):
            return "open"
        return "done" if mark and _bare(mark) in map(_bare, self.done) else None


def _bare(mark: str) -> str:
    return mark.replace("\ufe0f", "").casefold()  # the selector for a coloured emoji


@dataclass(frozen=True, slots=True)
class ContextOptions:
    """A repository's working knowledge. ``directories`` and ``index_dir`` start from the repository's root.

    Without ``chunk_size`` and ``chunk_overlap`` (characters) chunks are sections, as ``[chunking]`` says.
    """

    directories: tuple[str, ...] = ("architecture", "perspectives", "operations", "specs", ".specify/templates")
    """Folders of the context, from the repository's root."""
    chunk_size: int | None = None
    """Characters of a chunk; not set, with the next, means sections as ``chunking`` says, else 800."""
    chunk_overlap: int | None = None
    """Characters that neighbouring chunks share; 100 when only the size is set."""
    refresh_interval_seconds: int = 1800
    """Seconds between two ingestions by a server."""
    max_file_size_bytes: int = 102_400
    """A larger file is skipped, with a warning."""
    index_dir: str = ".context/index"
    """The folder of the context's index, inside the repository."""
    embeddings: ContextEmbeddings = field(default_factory=ContextEmbeddings)
    types: ArtifactTypes = field(default_factory=ArtifactTypes)
    tasks: TaskMarks = field(default_factory=TaskMarks)

    def __post_init__(self) -> None:
        for key, path in [*(("directories", path) for path in self.directories), ("index_dir", self.index_dir)]:
            if re.match(r"[/\\~]|[A-Za-z]:", path) or ".." in re.split(r"[/\\]", path) or not path.strip():
                raise ConfigError(f"context.{key} names {path!r}. Name a folder inside the repository, relative to it.")
        if self.chunk_size is not None:
            _within("context.chunk_size", self.chunk_size, 200, 100_000)
        if self.chunk_overlap is not None and not 0 <= self.chunk_overlap <= (self.chunk_size or 800) // 2:
            raise ConfigError(f"context.chunk_overlap is {self.chunk_overlap}. Use a value from 0 to half a chunk.")
        _within("context.refresh_interval_seconds", self.refresh_interval_seconds, 1, MAX_INTERVAL_S)
        _within("context.max_file_size_bytes", self.max_file_size_bytes, 1)

    @property
    def fixed(self) -> FixedChunks | None:
        """The fixed sizes, if one of them is set."""
        if self.chunk_size is None and self.chunk_overlap is None:
            return None
        size = self.chunk_size or FixedChunks().size
        overlap = min(FixedChunks().overlap, size // 2) if self.chunk_overlap is None else self.chunk_overlap
        return FixedChunks(size, overlap)


@dataclass(frozen=True, slots=True)
class LibraryOptions:
    """The document library. The limits are those of one document."""

    index: str | None = None
    """The library's file; not set means ``library.db`` in the user's data folder."""
    max_file_bytes: int = 100_000_000
    """Bytes of a file or a download."""
    max_upload_bytes: int = 52_428_800
    """Bytes of a file sent to ``POST /upload``."""
    max_characters: int = 64_000_000
    """Characters of a document as Markdown."""
    max_pages: int = 5000
    """Pages of a PDF."""
    convert_seconds: float = 300.0
    """Seconds for the conversion of one file."""
    convert_memory_bytes: int = 2_000_000_000
    """Bytes of memory of the process that converts; not on Windows and macOS."""
    download_seconds: float = 60.0
    """Seconds for one URL, redirects included."""
    allow_private_urls: bool = False
    """Whether ``ingest_url`` can fetch from this machine and its network. An error in a file not named with
    ``--config``."""
    transcribe_audio: bool = False
    """Whether MarkItDown may send recordings to a speech service. An error in a file not named with ``--config``."""

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, float):
                _within(f"library.{each.name}", value, 0.001, MAX_INTERVAL_S)
            elif isinstance(value, int) and not isinstance(value, bool):
                _within(f"library.{each.name}", value, 1)
        if self.index is not None and not self.index.strip():
            raise ConfigError("library.index is empty. Name the library's file, or leave the key out.")
        if index_url.is_remote(self.index or "") or index_url.is_unknown(self.index or ""):
            raise ConfigError("library.index is an address. A library is a file on this machine: name its path.")


Level = Literal["error", "warning", "note"]
"""How bad a finding of the linter is."""
RuleLevel = Literal[Level, "off"]
"""What a rule's findings are; ``off``: the rule is not run."""


@dataclass(frozen=True, slots=True)
class LintLevels:
    """The level of each rule: ``error``, ``warning``, ``note`` or ``off``."""

    broken_link: RuleLevel = "error"
    """A link or image whose page or file does not exist."""
    broken_anchor: RuleLevel = "error"
    """A link to an anchor that its page does not have."""
    broken_include: RuleLevel = "error"
    """A line that includes a file that does not exist."""
    undefined_reference: RuleLevel = "warning"
    """A reference link, ``[text][label]``, whose label is not defined."""
    unclosed_fence: RuleLevel = "error"
    """Fenced code that is not closed."""
    orphan_page: RuleLevel = "warning"
    """A page that no page links to and no navigation shows."""
    near_duplicate: RuleLevel = "note"
    """Two sections of different pages that say the same, or nearly."""
    repeated_heading: RuleLevel = "note"
    """A heading that its page has more than once, so that its anchor has a number."""
    empty_section: RuleLevel = "warning"
    """A heading without any text under it."""
    long_page: RuleLevel = "note"
    """A page of more than ``lint.max_page_chars`` characters."""
    image_without_alt: RuleLevel = "warning"
    """An image without alternative text."""
    fence_without_language: RuleLevel = "note"
    """Fenced code without a language."""
    unknown_suppression: RuleLevel = "warning"
    """A comment ``anvil-lint-...`` that names no rule, or nothing that can be done."""

    def __post_init__(self) -> None:
        for each in fields(self):
            _one_of(f"lint.levels.{each.name.replace('_', '-')}", getattr(self, each.name), RuleLevel)


@dataclass(frozen=True, slots=True)
class LintOptions:
    """What ``anvil lint`` examines."""

    ignore: tuple[str, ...] = ()
    """Globs of pages in which nothing is reported. Links to them are still checked."""
    fail_level: Level = "error"
    """The lowest level that makes ``anvil lint`` exit with 1: ``error``, ``warning`` or ``note``."""
    max_page_chars: int = 60_000
    """Characters from which a page is too long to be read at once; 60,000 are about 15,000 tokens."""
    levels: LintLevels = field(default_factory=LintLevels)

    def __post_init__(self) -> None:
        _one_of("lint.fail_level", self.fail_level, Level)
        _within("lint.max_page_chars", self.max_page_chars, 1)


@dataclass(frozen=True, slots=True)
class ImpactOptions:
    """What ``anvil impact`` reports."""

    min_confidence: float = 0.2
    """Findings with a lower confidence are left out. From 0, which keeps all, to 1."""
    ignore: tuple[str, ...] = ()
    """Globs of pages of which nothing is reported. Changelogs and other records of changes are always left out."""
    ignore_code: tuple[str, ...] = ()
    """Globs of changed files, from the repository's root, that are not examined, such as generated ones."""

    def __post_init__(self) -> None:
        _within("impact.min_confidence", self.min_confidence, 0, 1)


_COLLECTION_NAME = re.compile(r"(@[A-Za-z0-9][A-Za-z0-9._-]*/)?[A-Za-z0-9][A-Za-z0-9._-]*")
MAX_COLLECTION_NAME, MAX_VERSION = 100, 60
"""Characters."""


@dataclass(frozen=True, slots=True)
class Collection:
    """One of several indexes that answer together. Each has `docs`, `index` or both. A `[[collections.NAME]]`, with two
    brackets, is one version of several."""

    name: str = field(default="", metadata={"key": False})  # from the table's name
    of_project: bool = field(default=False, metadata={"key": False})  # `docs` and `index` at the top
    missing: str = field(default="", metadata={"key": False})  # what to say where its index file does not exist
    docs: str | None = None
    """The folder of its documents. They are compared with the index before each answer."""
    index: str | None = None
    """The index file, or where one is published; not set means ``.anvil/index.db`` in ``docs``."""
    version: str | None = None
    """The version that the documents are about, such as ``0.139``. Results have it, and a question can choose it."""
    attested_by: str | None = None
    """Who must have built the published index, as ``fetch.attested_by`` says it for the one at the top."""
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

    def __post_init__(self) -> None:
        if len(self.name) > MAX_COLLECTION_NAME or (self.name and not _COLLECTION_NAME.fullmatch(self.name)):
            raise ConfigError(
                f"{self.name[:MAX_COLLECTION_NAME]!r} cannot name a collection. Use letters, digits and . _ - such as "
                '[collections.handbook]; an npm package may keep its scope, as in [collections."@acme/ui"].'
            )
        for key in ("docs", "index", "version", "title"):
            if (value := getattr(self, key)) is not None and not value.strip():
                raise ConfigError(f"collections.{self.name}.{key} is empty. Give it a value, or leave the key out.")
        if self.version is not None and (len(self.version) > MAX_VERSION or re.search(r"[\s@/]", self.version)):
            raise ConfigError(
                f"collections.{self.name}.version is {self.version[:MAX_VERSION]!r}. Use at most {MAX_VERSION} "
                "characters, no spaces, @ or /."
            )
        _builder(f"collections.{self.name}.attested_by", self.attested_by)
        index_url.refuse_unknown(self.index or "")


@dataclass(frozen=True, slots=True)
class Config:
    """The whole configuration. The reference page has the texts under the keys."""

    docs: str = "docs"
    """The documentation folder."""
    index: str | None = None
    """The index file, or where one is published (``https://…``, ``github:…``); not set means ``.anvil/index.db`` in the
    documentation folder."""
    source: SourceOptions = field(default_factory=SourceOptions)
    chunking: ChunkingOptions = field(default_factory=ChunkingOptions)
    site: SiteOptions = field(default_factory=SiteOptions)
    embedding: EmbeddingSettings = field(default_factory=EmbeddingSettings)
    search: SearchOptions = field(default_factory=SearchOptions)
    fetch: FetchOptions = field(default_factory=FetchOptions)
    serve: ServeOptions = field(default_factory=ServeOptions)
    library: LibraryOptions = field(default_factory=LibraryOptions)
    context: ContextOptions = field(default_factory=ContextOptions)
    lint: LintOptions = field(default_factory=LintOptions)
    impact: ImpactOptions = field(default_factory=ImpactOptions)
    deps: DepsOptions = field(default_factory=DepsOptions)
    collections: tuple[Collection, ...] = ()
    """Indexes that answer together, by name; see below."""

    def __post_init__(self) -> None:
        if not self.docs.strip():
            raise ConfigError("docs is empty. Name the documentation folder; '.' is the working folder.")
        index_url.refuse_unknown(self.index or "")
        seen: set[str] = set()
        for collection in self.collections:
            if collection.docs is None and collection.index is None:
                raise ConfigError(
                    f"collections.{collection.name} has no documents. Name their folder with docs, or their index with "
                    "index."
                )
            if collection.label.lower() in seen:
                raise ConfigError(
                    f"There are two collections {collection.label}. Give each its own name, or its own version."
                )
            seen.add(collection.label.lower())
        defaults = [collection.name for collection in self.collections if collection.default]
        if twice := {name for name in defaults if defaults.count(name) > 1}:
            raise ConfigError(f"collections.{min(twice)} has two default versions. Set default = true for one of them.")
