"""The features that all toolsets share: errors as values, arrays, free objects, tools that write, routes, health."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import pytest
from anyio.from_thread import start_blocking_portal
from mcp import Client
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from anvil.errors import NotFound
from anvil.server.logs import ProgressReporter
from anvil.server.mcp_app import running_app
from anvil.server.tool_calls import ThreadBridge
from anvil.server.toolset import Parameter, RunningToolset, Tool, Toolset
from tests.support.mcp_servers import Speaker


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
    Tool(
        "put",
        "Put",
        "",
        (NAME, Parameter("about", "", "object")),
        Thing,
        lambda s, given: s.put(**given),
        writes=True,
        idempotent=True,
    ),
    Tool(
        "take",
        "Take",
        "",
        (NAME,),
        Thing,
        lambda s, given: s.take(**given),
        writes=True,
        destructive=True,
        open_world=True,
    ),
)


def routes(bridge: ThreadBridge) -> list[Route]:
    async def count(_: Request) -> JSONResponse:
        return JSONResponse({"count": await bridge.call("count", lambda shelf: len(shelf.things))})

    return [Route("/count", count)]


def health(shelf: Shelf) -> dict[str, Any]:
    return {"status": "degraded" if "glass" in shelf.things else "ok", "things": len(shelf.things)}


VALUES = Toolset("shelf", "A shelf", "A shelf of things.", TOOLS, health, routes, errors_as_values=True)
ASKED = Tool("take.plainly", "Take", "", (NAME,), Thing, lambda s, given: s.take(**given))
PLAIN = Toolset("plain", "A plain shelf", "The same, plainly.", (ASKED,), health)


@pytest.fixture
def shelf() -> Shelf:
    return Shelf()


@pytest.fixture
def speaker(shelf: Shelf) -> Iterator[Speaker]:
    with ExitStack() as stack:
        portal = stack.enter_context(start_blocking_portal())
        served = [RunningToolset(VALUES, shelf), RunningToolset(PLAIN, shelf)]
        app = stack.enter_context(portal.wrap_async_context_manager(running_app(served, ProgressReporter())))
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
    [
        ({"name": "cup"}, "There is no cup."),
        ({}, "name parameter is required"),
        ({"name": 3}, "must be a string"),
        ({"size": 3}, "no parameter 'size'"),
        ({"name": "glass"}, "failed inside the server (RuntimeError)"),
    ],
)
def test_errors_as_values_or_as_messages(speaker: Speaker, arguments: dict[str, Any], told: str) -> None:
    speaker.ok("put", name="glass")
    result = speaker.call("take", **arguments)
    value = result.structured_content
    assert result.is_error and value["status"] == "error" and told in value["error"]
    assert json.loads(result.content[0].text) == value
    result = speaker.call("take.plainly", **arguments)
    assert result.is_error and result.structured_content is None and told in result.content[0].text


def test_routes_and_health_over_http(shelf: Shelf) -> None:
    from anvil.server.http_options import HttpOptions
    from anvil.server.http_transport import application
    from anvil.server.mcp_app import App

    shelf.put("jug", None)

    def client(*surfaces: Toolset) -> TestClient:
        app = App([RunningToolset(each, shelf) for each in surfaces], ProgressReporter())
        guarded = application(app, HttpOptions(token="t0ken"))
        return TestClient(guarded, base_url="http://localhost")

    with client(VALUES) as one:
        assert one.get("/count").status_code == 401
        assert one.get("/count", headers={"Authorization": "Bearer t0ken"}).json() == {"count": 1}
        assert one.get("/health").json() == {"status": "ok", "things": 1}
    shelf.put("glass", None)
    with client(VALUES, PLAIN) as both:
        found = both.get("/health")
        assert found.status_code == 200 and found.json()["status"] == "degraded"
        assert found.json()["shelf"] == found.json()["plain"] == {"status": "degraded", "things": 2}
