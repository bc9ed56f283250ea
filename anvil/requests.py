"""Requests as values: a search, a search for exact lines, a build, an index to open; with checks of their arguments.

A request is made where it comes in: from the command line, a tool or Python. It is checked and clamped there, once, and
passed on whole. Its fields are the arguments of a method of the Python API, see :func:`takes`. The types of arguments
are checked at each call, so a wrong one gives an error of Anvil and not one from deep inside. A request is cancelled if
its caller disconnects.
"""

from __future__ import annotations

import functools
import inspect
import numbers
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import KW_ONLY, dataclass, field, fields
from types import FunctionType
from typing import TYPE_CHECKING, Any, Concatenate, Literal, ParamSpec, TypeVar

from anvil.errors import AnvilError, ConfigError
from anvil.settings.schema import Config, SearchOptions
from anvil.values import LOCK_TIMEOUT_S, Progress, silent
from anvil.wording import listed

if TYPE_CHECKING:
    from anvil.documents.document_source import DocumentSource
    from anvil.embedding.provider import Executor
    from anvil.results import Mode


TOP_K, MAX_RESULTS = 5, 20
"""Results of one search: by default, and at most."""
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
"""The values of :data:`anvil.results.Mode`. They are repeated here, because servers load that module later."""
_UNCONFIGURED = SearchOptions()  # made once, because each search of a server would check it again
_INTERNAL = {"internal": True}
"""The metadata of a field that callers of the Python API need not know."""


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """A search. ``top_k`` is clamped to 1..20. Raises :class:`ConfigError` for a blank query, an unknown mode, or a
    confidence that is not in 0..1."""

    query: str
    top_k: int = TOP_K
    file_filter: str | None = None
    """A glob over paths, applied before ranking."""
    max_chars: int | None = None
    """The budget for all contents together, most of which the likely ones get; None: ``more_chars`` and 800, and 100
    for each result."""
    mode: Mode = "hybrid"
    min_confidence: float | None = None
    """Results with a lower confidence are left out; None: as configured."""
    _: KW_ONLY
    collection: str | None = None
    """Only this collection, of several."""
    version: str | None = None
    """Only this version of a collection; in one index of a site, only pages of this version, such as ``1.2``."""
    language: str | None = None
    """Only pages of a site in this language, such as ``de``; not of several collections."""
    paths: Collection[str] | None = field(default=None, metadata=_INTERNAL)
    """Only these pages."""
    options: SearchOptions = field(default=_UNCONFIGURED, metadata=_INTERNAL)
    """The configuration of all searches; :class:`anvil.Anvil` sets it."""
    more_chars: int = field(default=0, metadata=_INTERNAL)
    """Added to the default budget: a reply with short names of fields has room for more text."""
    read_passages: bool = field(default=True, metadata=_INTERNAL)
    """Whether a hybrid search reads its best passages again, see :mod:`anvil.embedding.passages`."""

    def __post_init__(self) -> None:
        if not self.query.strip():
            raise ConfigError("query parameter is required")
        if self.mode not in MODES:
            raise ConfigError(f"Unknown mode {self.mode!r}. Use {listed(MODES, 'or')}.")
        if self.min_confidence is not None and not 0 <= self.min_confidence <= 1:
            raise ConfigError(f"min_confidence is {self.min_confidence}. Use a value from 0 to 1.")
        # Clamped and not refused: a model that asks for 50 results gets as many as it can.
        object.__setattr__(self, "top_k", min(max(self.top_k, 1), MAX_RESULTS))

    @property
    def filters_pages(self) -> bool:
        """Whether the search is about some pages only."""
        return bool(self.file_filter) or self.version is not None or self.language is not None


@dataclass(frozen=True, slots=True)
class GrepRequest:
    """A search for lines that contain a text or match an expression. Numbers are clamped to their limits."""

    pattern: str
    path: str | None = None
    """A page, a folder or a glob; None for all pages, each in its newest version that matches."""
    regex: bool = False
    """Whether ``pattern`` is a regular expression of RE2, which has no look-around."""
    ignore_case: bool = True
    word: bool = False
    """Whether only matches count that have no letter, number or underscore next to them."""
    context: int = 0
    """Lines before and after each match."""
    max_matches: int = 50
    offset: int = 0
    """Matches to leave out before the first, such as ``next_offset`` of the answer before."""
    max_chars: int | None = 16_000
    """None: no limit, and lines are whole."""
    collection: str | None = None
    version: str | None = None

    def __post_init__(self) -> None:
        for name, least in (("context", 0), ("max_matches", 1), ("offset", 0)):
            object.__setattr__(self, name, max(least, getattr(self, name)))
        if self.max_chars is not None:
            object.__setattr__(self, "max_chars", max(1, self.max_chars))


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """A build of one index."""

    force: bool = False
    """Read and embed all pages again. If the provider fails, the old vector stays."""
    previous: Sequence[str | os.PathLike[str]] = ()
    """Further indexes whose vectors may be reused: paths, or one path."""
    source: DocumentSource | None = None
    """Other documents than those of the working tree, such as the staged ones."""
    shard: str | None = None
    """Only the pages of this shard, such as ``3/8``, for :func:`anvil.build.shards.join`; the manifest names it."""
    executor: str | None = None
    """The address of a cluster that embeds the texts, such as ``ray://head:10001``."""
    version: str | None = None
    """The version of the software that the pages describe, such as ``1.2.0``, which ``anvil deps`` reads. An index that
    is unchanged keeps its own."""
    _: KW_ONLY
    workers: Executor | None = field(default=None, metadata=_INTERNAL)
    """Embeds the texts; None: the cluster of ``executor``, else this process."""
    named: Callable[[str], str] = field(default="--{}".format, metadata=_INTERNAL)
    """As :meth:`OpenRequest.named`."""
    progress: Progress = silent
    """Of this build. Without it, a build of :class:`anvil.Anvil` uses that of the opened index."""
    lock_timeout_s: float = field(default=LOCK_TIMEOUT_S, metadata=_INTERNAL)

    def __post_init__(self) -> None:
        kinds = (str, os.PathLike)
        paths = (self.previous,) if isinstance(self.previous, kinds) else self.previous  # a text is a sequence, too
        if not isinstance(paths, Sequence) or not all(isinstance(path, kinds) for path in paths):
            raise ConfigError(f"previous must be a path or several, not {type(paths).__name__}: {paths!r:.80}.")
        object.__setattr__(self, "previous", tuple(paths))


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """The index to open; the arguments of :func:`anvil.open`. None: as configured."""

    docs: str | None = None
    index: str | None = None
    config: str | None = None
    provider: str | None = None
    collections: tuple[str, ...] | Literal["all"] | None = None
    site: str | None = None
    site_url: str | None = None
    progress: Progress = silent
    background: bool = False
    watch: bool = False
    build_first: bool = True
    settings: Config | None = None
    """The configuration itself, instead of the file ``config``."""
    keys: Mapping[str, Any] = field(default_factory=dict)
    """Dotted keys of the configuration -> values that replace those in the file; None: not given."""
    docs_in_git: bool = False
    """Whether the documents are those of a commit or the staged ones. The work tree may then lack their folder."""
    from_python: bool = False
    """Whether it is a call from Python, in which an option is an argument."""

    def named(self, option: str) -> str:
        """The name of an option for its caller: ``--docs``, in Python ``docs``."""
        return option if self.from_python else f"--{option}"

    @property
    def names_index(self) -> bool:
        """Whether one index is named, by itself or by the folder or site that it is built from."""
        return self.docs is not None or self.index is not None or self.site is not None


# --- types of arguments ----------------------------------------------------------------------------------

# The keys are texts: to evaluate the annotations of all methods would import all that they name, at each start.
_TYPES: dict[str, tuple[type, str]] = {
    "str": (str, "a string"),
    "os.PathLike[str]": (os.PathLike, "a path"),
    "int": (numbers.Integral, "a whole number"),
    "float": (numbers.Real, "a number"),
    "bool": (bool, "True or False"),
    "Mapping[str, Any]": (Mapping, "a mapping"),
    "None": (type(None), "None"),
}
"""An annotation, as it is written -> its type, and its name in messages."""

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T")


def takes(kind: Callable[P, R]) -> Callable[[Callable[[S, R], T]], Callable[Concatenate[S, P], T]]:
    """A decorator for a method with one argument, a request of this ``kind``: its callers give the fields instead.

    Fields that are marked as internal are not in the signature that ``help`` shows.
    """

    def decorate(method: Callable[[S, R], T]) -> Callable[Concatenate[S, P], T]:
        @functools.wraps(method)
        def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
            try:
                request = kind(*args, **kwargs)
            except TypeError as error:  # Python's error, such as for an unknown argument, names the request
                raise TypeError(str(error).replace(constructor, method.__qualname__)) from None
            return method(self, request)

        constructor = f"{kind.__name__}.__init__"
        first = inspect.Parameter("self", inspect.Parameter.POSITIONAL_ONLY)
        internal = {field.name for field in fields(kind) if field.metadata.get("internal")}  # type: ignore[arg-type]
        shown = (parameter for name, parameter in inspect.signature(kind).parameters.items() if name not in internal)
        call.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
            [first, *shown], return_annotation=inspect.signature(method).return_annotation
        )
        return call

    return decorate


C = TypeVar("C", bound=type)
F = TypeVar("F", bound=Callable[..., Any])


def checks_arguments(cls: C) -> C:
    """Check the arguments of all public methods of a class; see :func:`checked`."""
    for name, method in list(vars(cls).items()):
        if not name.startswith("_") and isinstance(method, FunctionType):
            setattr(cls, name, checked(method))
    return cls


def checked(function: F) -> F:
    """The function, with a check that raises :class:`ConfigError` for an argument of another type than annotated.

    Annotations with other types than those of ``_TYPES`` are not checked.
    """
    signature = inspect.signature(function)
    annotations = {name: str(param.annotation).split(" | ") for name, param in signature.parameters.items()}
    expected = {
        name: [_TYPES[part] for part in parts]
        for name, parts in annotations.items()
        if all(part in _TYPES for part in parts)
    }

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            arguments = signature.bind(*args, **kwargs).arguments
        except TypeError:
            return function(*args, **kwargs)  # raises the usual error, for a name or number of arguments
        for name in expected.keys() & arguments.keys():
            value, kinds = arguments[name], expected[name]
            is_stray_bool = isinstance(value, bool) and not any(kind is bool for kind, _ in kinds)  # True is an int
            if is_stray_bool or not isinstance(value, tuple(kind for kind, _ in kinds)):
                choices = listed([each for _, each in kinds], "or")
                raise ConfigError(
                    f"{name} of {function.__name__} must be {choices}, not {type(value).__name__}: {value!r:.80}."
                )
        return function(*args, **kwargs)

    return call  # type: ignore[return-value]


# --- cancellation ----------------------------------------------------------------------------------------

WANTED: ContextVar[Callable[[], bool]] = ContextVar("wanted", default=lambda: True)
"""Whether the answer can still reach the caller of this context. A server sets it. Code that waited for a lock calls
:func:`still_wanted` before it starts, so a request of a client that disconnected costs nothing more."""


class Abandoned(AnvilError):
    """The call was cancelled, because its caller disconnected."""


def still_wanted() -> None:
    """Raise :class:`Abandoned` if the caller disconnected."""
    if not WANTED.get()():
        raise Abandoned("The caller of this request disconnected.")
