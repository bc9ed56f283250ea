"""What any surface can rely on: errors as values, arrays, free objects, tools that write, routes, health."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from mcp.shared.exceptions import MCPError
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from anvil.errors import NotFound
from anvil.server.announcing import Announcer
from anvil.server.arguments import Parameter
from anvil.server.crossing import Crossing
from anvil.server.running import running
from anvil.server.surface import Served, Surface, Tool
from tests.surfaces.serving import Speaker


class Shelf:
    """Things on a shelf: the object behind two surfaces."""

    def __init__(self) -> None:
        self.things: dict[str, Any] = {}

    def put(self, name: str, about: Mapping[str, Any] | None) -> Thing:
        self.things[name] = about or {}
        return Thing(name, self.things[name])

    def take(self, name: str) -> Thing:
        if name not in self.things:
            raise NotFound(f"There is no {name}.")
        if name == "glass":
            raise RuntimeError("it broke")
        return Thing(name, self.things.pop(name))

    def start(self, progress: object = None) -> None:
        """Nothing."""

    def close(self) -> None:
        """Nothing."""


@dataclass(frozen=True, slots=True)
class Thing:
    name: str
    about: Mapping[str, Any]


NAME = Parameter("name", "", required=True)
TOOLS = (
    Tool("things", "Things", "", (), tuple[Thing, ...], lambda s, _: tuple(Thing(*each) for each in s.things.items())),
    Tool("put", "Put", "", (NAME, Parameter("about", "", "object")), Thing, lambda s, given: s.put(**given),
         writes=True, idempotent=True),
    Tool("take", "Take", "", (NAME,), Thing, lambda s, given: s.take(**given), writes=True, destructive=True,
         open_world=True),
)  # fmt: skip


def routes(crossing: Crossing) -> list[Route]:
    async def count(_: Request) -> JSONResponse:
        return JSONResponse({"count": await crossing.ask("count", lambda shelf: len(shelf.things))})

    return [Route("/count", count)]


def health(shelf: Shelf) -> dict[str, Any]:
    return {"status": "degraded" if "glass" in shelf.things else "ok", "things": len(shelf.things)}


VALUES = Surface("shelf", "A shelf", "A shelf of things.", TOOLS, health, routes, error_values=True)
ASKED = Tool("take.plainly", "Take", "", (NAME,), Thing, lambda s, given: s.take(**given))
PLAIN = Surface("plain", "A plain shelf", "The same, plainly.", (ASKED,), health)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def speaker(shelf: Shelf) -> Iterator[Speaker]:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        served = [Served(VALUES, shelf), Served(PLAIN, shelf)]
        app = stack.enter_context(portal.wrap_async_context_manager(running(served, Announcer())))
        client = Client(app.server, mode="legacy")
        stack.enter_context(portal.wrap_async_context_manager(client))
        yield Speaker(portal, client)


def test_tools_say_what_they_do(speaker: Speaker) -> None:
    tools = {tool.name: tool.annotations for tool in speaker.do("list_tools").tools}
    assert list(tools) == ["things", "put", "take", "take.plainly"]
    assert tools["things"].read_only_hint is True and tools["things"].destructive_hint is None
    told = [(a.read_only_hint, a.destructive_hint, a.idempotent_hint, a.open_world_hint) for a in tools.values()]
    assert told[1:3] == [(False, False, True, False), (False, True, False, True)]


def test_arrays_and_free_objects_travel(speaker: Speaker) -> None:
    about = {"colour": "blue", "parts": [1, {"deep": None}]}
    assert speaker.ok("put", name="jug", about=about) == {"name": "jug", "about": about}
    result = speaker.call("things")
    assert json.loads(result.content[0].text) == [{"name": "jug", "about": about}]
    assert result.structured_content == {"result": [{"name": "jug", "about": about}]}


@pytest.mark.parametrize(
    ("arguments", "told"),
    [({"name": "cup"}, "There is no cup."), ({}, "name parameter is required"), ({"name": 3}, "must be a string"),
     ({"size": 3}, "no parameter 'size'"), ({"name": "glass"}, "failed inside the server (RuntimeError)")],
)  # fmt: skip
def test_errors_as_values_or_as_messages(speaker: Speaker, arguments: dict[str, Any], told: str) -> None:
    speaker.ok("put", name="glass")
    result = speaker.call("take", **arguments)
    value = result.structured_content
    assert result.is_error and value["status"] == "error" and told in value["error"]
    assert json.loads(result.content[0].text) == value
    try:
        result = speaker.call("take.plainly", **arguments)
        assert result.is_error and result.structured_content is None and told in result.content[0].text
    except MCPError as error:  # a call that does not fit the schema
        assert told in str(error)


def test_routes_and_health_over_http(shelf: Shelf) -> None:
    from anvil.server.app import App
    from anvil.server.guard import Access
    from anvil.server.http import application
    from anvil.server.stopping import Stopping

    shelf.put("jug", None)

    def client(*surfaces: Surface) -> TestClient:
        app = App([Served(each, shelf) for each in surfaces], Announcer())
        guarded = application(app, Access(token="t0ken"), Stopping())
        return TestClient(guarded, base_url="http://localhost")  # type: ignore[arg-type]

    with client(VALUES) as one:
        assert one.get("/count").status_code == 401
        assert one.get("/count", headers={"Authorization": "Bearer t0ken"}).json() == {"count": 1}
        assert one.get("/health").json() == {"status": "ok", "things": 1}
    shelf.put("glass", None)
    with client(VALUES, PLAIN) as both:
        found = both.get("/health")
        assert found.status_code == 200 and found.json()["status"] == "degraded"
        assert found.json()["shelf"] == found.json()["plain"] == {"status": "degraded", "things": 2}
