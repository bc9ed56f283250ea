"""What a server offers is made of toolsets: some tools over one object that answers them. Plain data, no protocol.

``docs.py``, ``context.py`` ... each hold a :class:`Toolset` named ``TOOLSET``, and a function ``open`` that makes the
object behind it from what the command line said. One process serves any of them together.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

from anvil.interfaces.mcp_server.arguments import Parameter, validated
from anvil.models.documents import Progress

if TYPE_CHECKING:
    from starlette.routing import Route

    from anvil.interfaces.mcp_server.threads import ThreadBridge

TOOLSET_NAMES = ("docs", "library", "context")
"""The toolsets there are, each a module of this package; the first is served when none is named."""


class Target(Protocol):
    """The object that a toolset's tools ask, from any thread: an :class:`anvil.Anvil`, a context ..."""

    def start(self, progress: Progress | None = None) -> None:
        """Begin, behind, what the first question would wait for; returns at once."""

    def close(self) -> None:
        """Stop what runs behind, and let go of files."""


@dataclass(frozen=True, slots=True)
class ServeOptions:
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
    the toolset's object and the validated arguments by name. ``writes``: it changes something; ``destructive``: it may
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

    def bind(self, given: Mapping[str, Any]) -> Callable[[Any], Any]:
        """The call with its arguments validated.

        Raises :class:`ConfigError` or :class:`anvil.interfaces.mcp_server.arguments.InvalidArguments`.
        """
        values = validated(self.name, self.parameters, given)
        return lambda target: self.call(target, values)


def no_routes(bridge: ThreadBridge) -> Sequence[Route]:
    """A toolset that has nothing to offer over HTTP beyond its tools."""
    return ()


@dataclass(frozen=True, slots=True)
class Toolset:
    """Tools that belong together, with what a server says and serves besides them.

    ``instructions`` are for the model. ``health`` answers ``GET /health``: it runs in a thread, like a tool, and gives
    an object whose ``status`` is ``ok`` or ``degraded``. ``routes`` makes further HTTP routes, which reach the target
    through the bridge; those in ``public_paths`` need no token. ``has_pages``: the target is an :class:`anvil.Anvil`,
    whose pages become resources. ``errors_as_values``: an error is answered with the object
    ``{"status": "error", "error": message}``, as structured content and as text, instead of the bare message.
    """

    name: str
    title: str
    instructions: str
    tools: tuple[Tool, ...]
    health: Callable[[Any], Mapping[str, Any]]
    routes: Callable[[ThreadBridge], Sequence[Route]] = no_routes
    public_paths: tuple[str, ...] = ()
    has_pages: bool = False
    errors_as_values: bool = False


@dataclass(frozen=True, slots=True)
class RunningToolset:
    """A toolset, and the object that answers it."""

    toolset: Toolset
    target: Any


@contextmanager
def open_toolset(name: str, asked: ServeOptions, progress: Progress) -> Iterator[RunningToolset]:
    """Open the object of a toolset; it is closed with the context. Nothing slow happens before :meth:`Target.start`.

    ``progress`` is told of long work. Raises :class:`AnvilError`.
    """
    module = importlib.import_module(f"anvil.interfaces.mcp_server.tools.{name}")
    target: Target = module.open(asked, progress)
    try:
        yield RunningToolset(module.TOOLSET, target)
    finally:
        target.close()
