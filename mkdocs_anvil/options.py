"""The plugin's options in ``mkdocs.yml``, by MkDocs' own types, and the configuration they make."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config import base
from mkdocs.config import config_options as options

from anvil.backends.config_files import load_config
from anvil.backends.embedding.factory import PROVIDERS
from anvil.core.config.schema import INDEX_FOLDER, Config
from anvil.core.index_url import FILES
from mkdocs_anvil.pages import AUTO


class IndexPath(options.Type[str]):
    """A file inside the site, such as ``anvil/index.db``."""

    def __init__(self) -> None:
        super().__init__(str, default="anvil/index.db")

    def run_validation(self, value: object) -> str:
        path = PurePosixPath(super().run_validation(value).replace("\\", "/"))
        elsewhere = path.is_absolute() or ".." in path.parts or ":" in path.as_posix()
        if elsewhere or path.suffix.lower() not in FILES:  # whatever else the site has under other endings stays
            raise base.ValidationError(f"{value!r} is not a file inside the site. Write a path such as anvil/index.db.")
        return path.as_posix()


class Globs(options.ListOfItems[str]):
    """Globs over the pages' paths in ``docs_dir``."""

    def __init__(self) -> None:
        super().__init__(options.Type(str), default=[])


class Rendered(Globs):
    """``auto``, false, or globs, among which ``auto`` may be; always given as a list."""

    def __init__(self) -> None:
        super().__init__()
        self.default = [AUTO]

    def run_validation(self, value: object) -> list[str]:
        if value is False:
            return []
        return super().run_validation([AUTO] if value == AUTO else value)


class Chunking(base.Config):  # type: ignore[no-untyped-call]
    """How pages are cut; what is not given comes from ``anvil.toml`` or the defaults."""

    max_chunk_size = options.Optional(options.Type(int))
    min_chunk_size = options.Optional(options.Type(int))
    merge_short_sections = options.Optional(options.Type(bool))


class Embedding(base.Config):  # type: ignore[no-untyped-call]
    """What makes the vectors; a key comes from the environment, never from ``mkdocs.yml``."""

    provider = options.Optional(options.Choice(tuple(PROVIDERS)))
    model = options.Optional(options.Type(str))
    base_url = options.Optional(options.Type(str))
    dimensions = options.Optional(options.Type(int))
    threads = options.Optional(options.Type(int))


class Sources(options.Type[Any]):
    """One path or URL, or a list of them; always given as a list."""

    def __init__(self) -> None:
        super().__init__((str, list), default=[])

    def run_validation(self, value: object) -> list[str]:
        given = super().run_validation(value)
        found = [given] if isinstance(given, str) else given
        if not all(isinstance(each, str) for each in found):
            raise base.ValidationError("Expected a path or URL, or a list of them.")
        return [each for each in found if each.strip()]  # a variable that is not set leaves an empty one


class AnvilConfig(base.Config):  # type: ignore[no-untyped-call]
    """All options; the texts under them are the reference's."""

    enabled = options.Type(bool, default=True)
    """Whether the plugin does anything; `!ENV [CI, false]` lets it in CI only."""
    index_path = IndexPath()
    """Where the index goes in the site, a `.db`, `.sqlite` or `.sqlite3`; its manifest lies beside it as `.json`."""
    include = Globs()
    """Globs of the pages that are indexed, by their paths in `docs_dir`; empty means all."""
    exclude = Globs()
    """Globs of pages and folders that are left out; it wins over `include`."""
    rendered = Rendered()
    """Which pages are indexed as their HTML, converted back to Markdown: `auto`, every page whose HTML has headings or
    many words that its Markdown lacks, such as API pages; `false`, none; or globs, and `auto` may be among them."""
    previous = Sources()
    """Earlier indexes, by path or URL, whose vectors are taken over where the text is the same."""
    chunking = options.SubConfig(Chunking)
    embedding = options.SubConfig(Embedding)
    llms_txt = options.Type(bool, default=False)
    """Whether `llms.txt`, `llms-full.txt` and the Markdown of each page are put into the site, beside the HTML."""
    on_error = options.Choice(("warn", "fail"), default="warn")
    """What happens when the index cannot be built: a warning, which `--strict` makes an error, or an error."""


def settings(chosen: AnvilConfig, folder: Path, docs: Path, purpose: str) -> Config:
    """The configuration for a site whose ``mkdocs.yml`` lies in ``folder``: ``anvil.toml``, then ``ANVIL_*``, then
    the options. Raises :class:`ConfigError`.

    Anchors follow MkDocs' own rule where no published page decides them. The kept index is named for the documents'
    folder and for what it is built for, since ``mkdocs serve`` gives the pages other addresses.
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
    """Where the index of a site is kept between builds, such as ``.anvil/site-docs.db``."""
    name = docs.relative_to(folder).as_posix() if docs.is_relative_to(folder) else docs.name
    return folder / INDEX_FOLDER / f"{purpose}-{re.sub(r'[^A-Za-z0-9_.]+', '-', name).strip('-.') or 'docs'}.db"
