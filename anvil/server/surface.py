"""What a server offers is made of surfaces: some tools over one object that answers them. Plain data, no protocol.

``docs.py``, ``context.py`` ... each hold a :class:`Surface` named ``SURFACE``, and a function ``open`` that makes the
object behind it from what the command line said. One process serves any of them together.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anvil.models import Progress
from anvil.server.arguments import Parameter, checked

if TYPE_CHECKING:
    from starlette.routing import Route

    from anvil.server.crossing import Crossing

SURFACES = ("docs", "library", "context")
"""The surfaces there are, each a module of this package; the first is served when none is named."""


class Subject(Protocol):
    """The object that a surface's tools ask, from any thread: an :class:`anvil.Anvil`, a context ..."""

    def start(self, progress: Progress | None = None) -> None:
        """Begin, behind, what the first question would wait for; returns at once."""

    def close(self) -> None:
        """Stop what runs behind, and let go of files."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the command line said of the objects to open; None where it said nothing."""

    docs: str | None = None
    index: str | None = None
    config: str | None = None
    provider: str | None = None
    root: str | None = None
    watch: bool = True
    library_index: str | None = None
    allow_private_urls: bool = False
    transport: str = "stdio"


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool: what callers read, what it takes, what it returns, and what it does.

    ``result`` is a dataclass, or ``tuple[D, ...]`` of one for a tool that answers with an array. ``call`` is given
    the surface's object and the checked arguments by name. ``writes``: it changes something; ``destructive``: it may
    take away what was there; ``idempotent``: a second call like the first changes nothing more; ``open_world``: it
    reaches beyond this machine.
    """

    name: str
    title: str
    description: str
    parameters: tuple[Parameter, ...]
    result: Any
    call: Callable[[Any, dict[str, Any]], Any]
    writes: bool = False
    destructive: bool = False
    idempotent: bool = False
    open_world: bool = False

    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        found: dict[str, Any] = {
            "type": "object",
            "properties": {each.name: each.schema() for each in self.parameters},
        }
        required = [each.name for each in self.parameters if each.required]
        if required:
            found["required"] = required
        return found

    def prepared(self, given: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The call with its arguments checked.

        Raises :class:`ConfigError` or :class:`anvil.server.arguments.WrongArguments`.
        """
        values = checked(self.name, self.parameters, given)
        return lambda subject: self.call(subject, values)


def no_routes(crossing: Crossing) -> Sequence[Route]:
    """A surface that has nothing to offer over HTTP beyond its tools."""
    return ()


@dataclass(frozen=True, slots=True)
class Surface:
    """Tools that belong together.

    ``instructions`` are what models read first. ``health`` is asked in a thread, like a tool, for ``GET /health``: an
    object with ``status``, ``ok`` or ``degraded`` where it can answer. ``routes`` are further routes of the HTTP
    transport, made there; they reach the object through the crossing. ``open_paths`` are those among them that need no
    token. ``pages``: its object is an :class:`anvil.Anvil`, whose pages are resources. ``error_values``: an error is
    answered with the object ``{"status": "error", "error": message}``, as structured content and as text, not with the
    bare message.
    """

    name: str
    title: str
    instructions: str
    tools: tuple[Tool, ...]
    health: Callable[[Any], Mapping[str, Any]]
    routes: Callable[[Crossing], Sequence[Route]] = no_routes
    open_paths: tuple[str, ...] = ()
    pages: bool = False
    error_values: bool = False


@dataclass(frozen=True, slots=True)
class Served:
    """A surface, and the object that answers it."""

    surface: Surface
    subject: Any


@contextmanager
def opened(name: str, asked: Asked, progress: Progress) -> Iterator[Served]:
    """Open the object of a surface; it is closed with the context. Nothing slow happens before :meth:`Subject.start`.

    ``progress`` is told of long work. Raises :class:`AnvilError`.
    """
    module = importlib.import_module(f"anvil.server.{name}")
    subject: Subject = module.open(asked, progress)
    try:
        yield Served(module.SURFACE, subject)
    finally:
        subject.close()
