"""What is examined: a project, as the options and the configuration name it."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil import addresses, program
from anvil.config import Config
from anvil.configfile import index_file, load_config
from anvil.errors import ConfigError

if TYPE_CHECKING:
    from anvil.sources import DocumentSource


@dataclass(frozen=True)
class Place:
    """A project. ``given``: the options that named it, by which a command is made to mean the same one."""

    config: Config
    project: Path
    """The folder of the configuration file; without one the working folder."""
    problem: str | None = None
    """Why the configuration could not be read; then :attr:`config` holds the defaults."""
    given: tuple[tuple[str, str], ...] = ()

    @property
    def folder(self) -> Path:
        """The documentation folder, there or not."""
        return self.project / self.config.docs

    @property
    def index(self) -> Path:
        """The index file, there or not; for one from elsewhere, where it is kept once it is fetched. One that is
        :attr:`asked` is no file: ConfigError."""
        if not self.remote:
            return index_file(self.config, self.project)
        from anvil.fetching import cached_path

        return cached_path(self.config.index or "", head=self.folder if self.folder.is_dir() else self.project)

    @property
    def remote(self) -> bool:
        """Whether the index is published elsewhere."""
        return addresses.is_remote(self.config.index or "")

    @property
    def asked(self) -> bool:
        """Whether the index is asked where it is, in Milvus, rather than read as a file."""
        return addresses.is_milvus(self.config.index or "")

    @property
    def has_index(self) -> bool:
        """Whether there is an index to answer from; of one that is asked it is not known, and taken to be so."""
        return self.asked or self.index.exists()

    @cached_property
    def documents(self) -> DocumentSource:
        """The documents as they lie there. Raises :class:`SourceError`."""
        from anvil import sources

        return sources.working_tree(self.folder, self.config.source)

    def shown(self, path: Path) -> str:
        """A path as one would type it here."""
        try:
            below = Path(os.path.abspath(path)).relative_to(Path.cwd())
        except ValueError:
            return str(path)
        return str(below)

    def anvil(self, *words: str, options: tuple[str, ...] = ()) -> str:
        """The command line of this ``anvil`` with ``words``, and with those of ``options`` that were given here; a
        secret in them is left for the reader to put in."""
        given = ((option, value) for option, value in self.given if option in options)
        named = [word for option, value in given for word in (option, _shown(value))]
        return program.line([*program.spelled(), *words, *named])

    def build(self, *words: str) -> str:
        """The command that builds this index."""
        return self.anvil("build", *words, options=("--docs", "--index", "--config", "--provider"))

    def at(self, folder: Path, command: str) -> str:
        """A command that has to run in another folder."""
        return command if folder == Path.cwd() else f"{program.line(['cd', str(folder)])} && {command}"


def _shown(value: str) -> str:
    return addresses.spelled_without_secrets(value) if "://" in value and addresses.is_remote(value) else value


def find(docs: str | None, index: str | None, config: str | None, provider: str | None) -> Place:
    """The project that the options name, as :func:`anvil.open` would find it. What cannot be read is kept as the
    place's problem."""
    options = {"--docs": docs, "--index": index, "--config": config, "--provider": provider}
    given = tuple(
        (option, value)
        for option, value in options.items()
        if value is not None and not addresses.is_unknown(value)  # which may hold a password, and helps nobody
    )
    try:
        settled, base = load_config(config, {"docs": docs, "index": index, "embedding.provider": provider})
    except ConfigError as error:
        named: dict[str, Any] = {}
        if docs is not None:
            named["docs"] = os.path.abspath(docs)
        if index is not None and not addresses.is_unknown(index):
            named["index"] = index if addresses.is_remote(index) else os.path.abspath(index)
        if provider is not None:
            named["embedding"] = replace(Config().embedding, provider=provider)
        return Place(replace(Config(), **named), Path.cwd(), str(error), given)
    return Place(settled, base, given=given)
