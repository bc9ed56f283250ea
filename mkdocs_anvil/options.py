"""The plugin's options in ``mkdocs.yml``, in MkDocs' types, and the configuration that results from them."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as options

from anvil.embedding.factory import PROVIDERS
from anvil.settings.config_file import load_config
from anvil.settings.index_url import FILES
from anvil.settings.layers import keys, plain_type
from anvil.settings.schema import INDEX_FOLDER, ChunkingOptions, Config, EmbeddingSettings
from mkdocs_anvil.pages import AUTO


class IndexPath(options.Type[str]):
    """A file inside the site, such as ``anvil/index.db``."""

    def __init__(self) -> None:
        super().__init__(str, default="anvil/index.db")

    def run_validation(self, value: object) -> str:
        path = PurePosixPath(super().run_validation(value).replace("\\", "/"))
        elsewhere = path.is_absolute() or ".." in path.parts or ":" in path.as_posix()
        if elsewhere or path.suffix.lower() not in FILES:  # a file of the site with another suffix is never replaced
            raise base.ValidationError(f"{value!r} is not a file inside the site. Write a path such as anvil/index.db.")
        return path.as_posix()


class Globs(options.ListOfItems[str]):
    """Globs over the pages' paths in ``docs_dir``."""

    def __init__(self) -> None:
        super().__init__(options.Type(str), default=[])


class Rendered(Globs):
    """``auto``, false, or globs and ``auto``. The value is always a list."""

    def __init__(self) -> None:
        super().__init__()
        self.default = [AUTO]

    def run_validation(self, value: object) -> list[str]:
        if value is False:
            return []
        return super().run_validation([AUTO] if value == AUTO else value)


def _table(kind: type, without: Collection[str], **own: Any) -> options.SubConfig[base.Config]:
    """The keys of a table of ``anvil.toml``, from which comes what is not given. ``without``: keys that the plugin does
    not take; ``own``: options in place of those that have the type of the key."""
    types = {key: own.get(key) or options.Type(plain_type(hint)) for key, hint in keys(kind).items()}
    taken = {key: options.Optional(option) for key, option in types.items() if key not in without}
    return options.SubConfig(type(kind.__name__, (base.Config,), taken))


class Sources(options.Type[Any]):
    """A path or URL, or a list of them. The value is always a list."""

    def __init__(self) -> None:
        super().__init__((str, list), default=[])

    def run_validation(self, value: object) -> list[str]:
        given = super().run_validation(value)
        sources = [given] if isinstance(given, str) else given
        if not all(isinstance(source, str) for source in sources):
            raise base.ValidationError("Expected a path or URL, or a list of them.")
        return [source for source in sources if source.strip()]  # an unset environment variable gives an empty one


class AnvilConfig(base.Config):  # type: ignore[no-untyped-call]
    """All options. The texts under them are printed in the reference."""

    index_path = IndexPath()
    """The path of the index in the site: a `.db`, `.sqlite` or `.sqlite3`. Its manifest is next to it as `.json`."""
    include = Globs()
    """Globs of the pages that are indexed, by their paths in `docs_dir`; empty means all."""
    exclude = Globs()
    """Globs of pages and folders that are not indexed, even if `include` matches them."""
    rendered = Rendered()
    """Which pages are indexed as their HTML, converted to Markdown. `auto`: pages whose HTML has headings or many words
    that their Markdown lacks, such as API pages. `false`: none. Or globs, which may be combined with `auto`."""
    previous = Sources()
    """Earlier indexes, by path or URL. Their vectors are reused for text that did not change."""
    chunking = _table(ChunkingOptions, {"slugs"})  # anchors are made as MkDocs makes them
    # the key comes from the environment only
    embedding = _table(EmbeddingSettings, {"api_key", "passages", "cache"}, provider=options.Choice(tuple(PROVIDERS)))
    llms_txt = options.Type(bool, default=False)
    """Whether `llms.txt`, `llms-full.txt` and the Markdown of each page are added to the site."""
    link_markdown = options.Type(bool, default=False)
    """Whether `llms_txt` is on, and the head of each HTML page has a link to its Markdown."""
    skill = options.Type(bool, default=False)
    """Whether an Agent Skill of the pages is published with the site, as `.well-known/agent-skills/index.json` and the
    `SKILL.md` that it names."""
    search_page = options.Type(bool, default=False)
    """Whether the site also gets a page that searches the index in the browser, next to the index, and the script of a
    search box."""
    mcp_url = options.Optional(options.Type(str))
    """The address of an MCP server over these pages, such as `https://search.example.org/mcp`; `llms.txt` and the
    skill name it."""
    tests = options.Optional(options.File(exists=True))
    """A file of questions that the pages must answer, such as `anvil-tests.toml`, next to `mkdocs.yml`. When too few of
    them are answered, each that is not is a warning, and so `--strict` fails."""
    on_error = options.Choice(("warn", "fail"), default="warn")
    """What happens when the index cannot be built: a warning, which `--strict` makes an error, or an error."""


def settings(chosen: AnvilConfig, folder: Path, docs: Path, purpose: str) -> Config:
    """The configuration for a site whose ``mkdocs.yml`` is in ``folder``: ``anvil.toml``, then ``ANVIL_*``, then the
    options. Raises :class:`ConfigError`.

    Anchors come from the HTML, or from MkDocs' rule where there is none. The name of the kept index contains the
    documents' folder and the purpose, since pages have other addresses with ``mkdocs serve``.
    """
    given = {
        f"{table}.{key}": value
        for table in ("chunking", "embedding")
        for key, value in chosen[table].items()
        if value is not None
    }
    flags = {**given, "chunking.slugs": "mkdocs", "docs": str(docs)}
    config, _ = load_config(flags=flags, start=folder)
    return replace(config, docs=str(docs), index=str(kept_index(folder, docs, purpose)))


def kept_index(folder: Path, docs: Path, purpose: str) -> Path:
    """The file in which the index of a site is kept between builds, such as ``.anvil/site-docs.db``."""
    name = docs.relative_to(folder).as_posix() if docs.is_relative_to(folder) else docs.name
    return folder / INDEX_FOLDER / f"{purpose}-{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.') or 'docs'}.db"
