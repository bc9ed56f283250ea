"""The project that ``anvil doctor`` examines, as options and configuration name it, and a finding about it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from anvil import project_indexes
from anvil.cli.options import option_values
from anvil.cli.output import relative
from anvil.errors import ConfigError
from anvil.formats import data_formats
from anvil.settings import index_url
from anvil.settings.configuration import configured, index_file, load_config, of_collection
from anvil.settings.schema import Config
from anvil.system import installation, safe_files

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.requests import OpenRequest


Verdict = Literal["ok", "note", "unseen", "wrong"]
"""The verdicts from best to worst. ``note``: nothing is broken. ``unseen``: the examination was not possible."""


class Finding(NamedTuple):
    """The result of one examination.

    ``text``: a sentence or two for people, without secrets. ``fix``: a shell command for the folder of the examination.
    After it the finding is ``ok``, or it installs something optional. None if nothing is to be done, or no command can
    do it. ``subject``: the key of the examination; empty until :func:`anvil.doctor.cli.examine` sets it.
    """

    verdict: Verdict
    text: str
    fix: str | None = None
    subject: str = ""


@dataclass(frozen=True)
class ExaminedProject:
    """A project. ``given``: option -> value, of the options that named it, without secrets. Printed commands repeat
    them."""

    config: Config
    base: Path
    """The folder of the configuration file, or without one the working folder."""
    problem: str | None = None
    """The reason why the configuration could not be read. Then :attr:`config` has the defaults."""
    given: Mapping[str, str] = field(default_factory=dict)
    other_folders: tuple[str, ...] = ()
    """The folders of further collections, which are not examined."""

    @property
    def folder(self) -> Path:
        """The documentation folder, which may not exist."""
        return self.base / self.config.docs

    @property
    def index(self) -> Path:
        """The index file, which may not exist. For a published index it is the file in the cache.

        Raises :class:`ConfigError` for an index :attr:`in_milvus`, which is not a file.
        """
        if not self.remote:
            return index_file(self.config, self.base)
        from anvil.fetch.auto_update import configured_updater

        head = self.folder if self.folder.is_dir() else self.base
        return configured_updater(self.config, self.base, head).path

    @property
    def remote(self) -> bool:
        """Whether the index is published elsewhere."""
        return index_url.is_remote(self.config.index or "")

    @property
    def in_milvus(self) -> bool:
        return index_url.is_milvus(self.config.index or "")

    @property
    def has_index(self) -> bool:
        """Whether there is an index. One in Milvus is assumed to exist, as the network is not used."""
        return self.in_milvus or self.index.exists()

    @cached_property
    def documents(self) -> DocumentSource:
        """The documents in the folder. Raises :class:`SourceError`."""
        from anvil.documents.working_tree import WorkingTree

        return WorkingTree(self.folder, self.config.source)

    def anvil(self, *words: str, options: tuple[str, ...] = ()) -> str:
        """The command of this ``anvil`` with ``words`` and the given ``options``."""
        option_words = [word for name in options if name in self.given for word in (f"--{name}", self.given[name])]
        return installation.line([*installation.own_command(), *words, *option_words])

    def build(self, *words: str) -> str:
        return self.anvil("build", *words, options=("docs", "index", "config", "provider"))

    def at(self, folder: Path, command: str) -> str:
        """A command that runs in ``folder``, for the working folder."""
        return command if folder == Path.cwd() else f"{installation.line(['cd', str(folder)])} && {command}"


Examination = Callable[[ExaminedProject], Iterator[Finding]]
"""An examination of the project. The dict ``EXAMINATIONS`` of its module has it under the subject of its findings."""


def examined_project(request: OpenRequest) -> ExaminedProject:
    """The project that a request names, as :func:`anvil.open` finds it. If its configuration cannot be read, the reason
    is :attr:`ExaminedProject.problem`."""
    given = option_values(request, "docs", "index", "config", "provider")
    places = {"docs": request.docs, "index": request.index, "embedding.provider": request.provider}
    try:
        loaded, base = load_config(request.config, places)
        others: tuple[str, ...] = ()
        if loaded.collections and request.index is None:
            loaded, others = _of_collection(loaded, base, is_named=request.docs is not None)
    except ConfigError as error:
        defaults = configured(Config(), {**places, "index": given.get("index")})
        return ExaminedProject(defaults, Path.cwd(), str(error), given)
    return ExaminedProject(loaded, base, given=given, other_folders=others)


def _of_collection(config: Config, base: Path, is_named: bool) -> tuple[Config, tuple[str, ...]]:
    """The configuration of one collection, and the folders of the others. It is the collection that commands for one
    folder open, or the one of the folder ``docs`` if that ``is_named``."""
    own = [collection for collection in project_indexes.of_project(config, base) if collection.docs is not None]
    folder = (base / config.docs).resolve()
    chosen = next((one for one in own if not is_named or (base / str(one.docs)).resolve() == folder), None)
    others = tuple(str(collection.docs) for collection in own if collection is not chosen)
    return (config if chosen is None or chosen.of_project else of_collection(config, chosen)), others


def read_yaml(file: Path) -> Any:
    """The value of a YAML file, with None for tags of other programs, such as ``!ENV``. Raises :class:`ConfigError`."""
    try:
        return data_formats.read_yaml(safe_files.text(file), "null")
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"{relative(file)} cannot be read: {' '.join(str(error).split())[:200]}. Correct it."
        ) from error
