"""The context tools through MCP clients, over stdio and HTTP, alone and beside the docs."""

from __future__ import annotations

import dataclasses
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from anvil.context.artifacts import Artifact
from anvil.context.context_queries import ContextOverview, Health, Match
from anvil.context.tasks import TaskItem
from anvil.server.toolset import RunningToolset
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.context_folders import CONTEXT_JSON, FILES
from tests.support.mcp_servers import Process, Speaker

TOOLS = {
    "context.get": ContextOverview,
    "artifacts.list": Artifact,
    "artifacts.get": Artifact,
    "search.query": Match,
    "tasks.open": TaskItem,
    "health.status": Health,
}
LISTS = {"artifacts.list", "search.query", "tasks.open"}
KNOWN = {path: text for path, text in FILES.items() if "/" in path}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return write(tmp_path / "ferry", {**FILES, "context.json": CONTEXT_JSON})


def line(root: Path, *flags: str) -> list[str]:
    return mcp_servers.program("--surface", "context", "--root", str(root), *flags)


@contextmanager
def served(root: Path, way: str, *flags: str) -> Iterator[Speaker]:
    with ExitStack() as stack:
        if way.startswith("stdio"):
            mode = "auto" if way.endswith("modern") else "legacy"
            yield stack.enter_context(mcp_servers.piped(line(root, *flags), root, mode))
        else:
            server = stack.enter_context(mcp_servers.listening(line(root, *flags), root.parent))
            yield stack.enter_context(mcp_servers.connected(server.url))


@pytest.fixture(params=["stdio", "stdio-modern", "http"])
def speaker(request: pytest.FixtureRequest, root: Path) -> Iterator[Speaker]:
    with served(root, request.param) as found:
        yield found


def health(server: Process) -> dict[str, Any]:
    connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=30)
    try:
        connection.request("GET", "/health")
        response = connection.getresponse()
        found: dict[str, Any] = json.loads(response.read())
        assert response.status == (503 if found["status"] == "error" else 200)
        return found
    finally:
        connection.close()


def test_a_session_with_every_tool(speaker: Speaker, root: Path) -> None:
    """One test for all tools, because a server process is slow to start."""
    tools = {tool.name: tool for tool in speaker.do("list_tools").tools}
    assert list(tools) == list(TOOLS)
    for name, kind in TOOLS.items():
        assert tools[name].annotations.read_only_hint is True
        schema = tools[name].output_schema
        rows = schema["properties"]["result"]["items"] if name in LISTS else schema
        assert list(rows["properties"]) == [each.name for each in dataclasses.fields(kind)]
    assert speaker.server_info.title == "Anvil context"
    assert speaker.client.server_capabilities.resources is None

    context = speaker.ok("context.get")
    assert context["context"] == json.loads(CONTEXT_JSON)
    assert context["inventory"]["artifacts"] == {
        "spec": 2,
        "plan": 1,
        "tasks": 1,
        "checklist": 1,
        "template": 1,
        "decision": 1,
        "generic": 3,
    }
    assert context["inventory"]["tasks"] == {"open": 5, "done": 5} and context["notes"] == []

    listed = speaker.ok("artifacts.list")
    assert [each["path"] for each in listed] == sorted(KNOWN)
    specs = speaker.ok("artifacts.list", type="spec")
    assert [(each["id"], each["title"]) for each in specs] == [
        ("spec-001-booking", "Booking a crossing"),
        ("spec-002-timetable", "Timetable"),
    ]
    for each in listed:
        by_id, by_path = speaker.ok("artifacts.get", id=each["id"]), speaker.ok("artifacts.get", path=each["path"])
        assert by_id == by_path == {**each, "content": FILES[each["path"]]}
    assert "spec-001-booking" in speaker.refused("artifacts.get", id="spec-001-boking")
    assert "id or path" in speaker.refused("artifacts.get")

    found = speaker.ok("search.query", query="gangway")
    assert {"architecture/overview.md", "specs/001-booking/spec.md", "specs/002-timetable/spec.md"} == {
        each["artifactPath"] for each in found
    }
    assert [each["score"] for each in found] == sorted((each["score"] for each in found), reverse=True)
    assert len({each["chunkId"] for each in found}) == len(found)
    assert "gangway" in found[0]["content"].lower()
    only = speaker.ok("search.query", query="gangway", type="spec", top_k=1)
    assert len(only) == 1 and only[0]["type"] == "spec"
    assert speaker.ok("search.query", query="albatross") == []
    assert "query" in speaker.refused("search.query", query=" ")

    tasks = speaker.ok("tasks.open")
    assert [(each["artifactPath"], each["line"], each["status"]) for each in tasks] == [
        ("specs/001-booking/checklists/requirements.md", 4, "open"),
        *(("specs/001-booking/tasks.md", line, "open") for line in (6, 7, 12, 14)),
    ]
    lines = FILES["specs/001-booking/tasks.md"].splitlines()
    for each in speaker.ok("tasks.open", status="all", path="specs/001-booking/tasks.md"):
        box = "[ ]" if each["status"] == "open" else "[x]"
        assert box in lines[each["line"] - 1].lower() and each["text"].replace("`", "") in lines[
            each["line"] - 1
        ].replace("`", "")
    assert len(speaker.ok("tasks.open", status="done")) == 5
    parts = [speaker.ok("tasks.open", limit=2, offset=offset) for offset in range(0, 8, 2)]
    assert [len(part) for part in parts] == [2, 2, 1, 0] and [task for part in parts for task in part] == tasks
    assert speaker.ok("tasks.open", limit=0) == tasks[:1], "a number out of range is clamped"
    assert speaker.ok("tasks.open", limit=2**70) == tasks

    status = speaker.ok("health.status")
    assert status["status"] == "ok" and status["artifacts"] == len(listed) and status["embeddings"] == 0
    assert status["tasks"] == {"open": 5, "done": 5} and status["errors"] == 0 and status["uptimeSeconds"] >= 0
    assert status["chunks"] == context["inventory"]["chunks"]

    write(root, {"architecture/new.md": "# New\n\nA walrus, and\n\n- [ ] T900 feed it\n"})
    (root / "specs/notes.md").unlink()
    assert [each["artifactPath"] for each in speaker.ok("search.query", query="walrus")] == ["architecture/new.md"]
    assert [each["text"] for each in speaker.ok("tasks.open", path="architecture")] == ["T900 feed it"]
    paths = [each["path"] for each in speaker.ok("artifacts.list", type="generic")]
    assert "architecture/new.md" in paths and "specs/notes.md" not in paths
    assert "No artifact" in speaker.refused("artifacts.get", path="specs/notes.md")


def test_health_is_the_same_over_http(root: Path) -> None:
    with mcp_servers.listening(line(root), root.parent) as server, mcp_servers.connected(server.url) as speaker:
        while (told := speaker.ok("health.status"))["lastIngestion"] is None:  # the first run is under way
            time.sleep(0.05)
        found = health(server)
        assert found.keys() == told.keys()
        assert {**found, "uptimeSeconds": 0} == {**told, "uptimeSeconds": 0}
        connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=30)
        write(root, {"specs/003-new/spec.md": "# New\n"})
        connection.request("POST", "/ingest")
        run = json.loads(connection.getresponse().read())
        connection.close()
        assert run["added"] == 1 and run["artifacts"] == len(KNOWN) + 1
        state = json.loads((root / ".context/index/state.json").read_text(encoding="utf-8"))
        assert "specs/003-new/spec.md" in state["hashes"]


def test_the_first_answer_does_not_wait_for_the_greeting_or_the_model(root: Path) -> None:
    write(root, {"mcp.config.json": '{"embeddings": {"provider": "local"}}'})
    with served(root, "stdio") as speaker:
        found = speaker.ok("search.query", query="who administers the database?")
        assert found[0]["artifactPath"] == "architecture/adr/0001-use-sqlite.md"
        end = time.monotonic() + 60
        while speaker.ok("health.status")["embeddings"] == 0:
            assert time.monotonic() < end
            time.sleep(0.2)
        found = speaker.ok("search.query", query="why is there no server for the data?")
        assert found[0]["artifactPath"] == "architecture/adr/0001-use-sqlite.md"


def test_it_reads_again_at_the_interval(root: Path) -> None:
    write(root, {"mcp.config.json": '{"refreshIntervalSeconds": 1}'})
    log = root / ".context/index/ingestion.log"
    with served(root, "stdio"):
        end = time.monotonic() + 30
        while not log.exists() or len(log.read_text(encoding="utf-8").splitlines()) < 2:
            assert time.monotonic() < end
            time.sleep(0.1)
    assert {json.loads(each)["artifacts"] for each in log.read_text(encoding="utf-8").splitlines()} == {len(KNOWN)}


# --- several surfaces --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_docs_and_context_in_one_process(way: str, root: Path) -> None:
    docs = write(root / "docs", PAGES)
    command = mcp_servers.program(
        "--surface", "docs, context", "--docs", str(docs), "--root", str(root), "--provider", "none"
    )
    with ExitStack() as stack:
        if way == "stdio":
            speaker = stack.enter_context(mcp_servers.piped(command, root))
        else:
            server = stack.enter_context(mcp_servers.listening(command, root.parent))
            speaker = stack.enter_context(mcp_servers.connected(server.url))
        names = [tool.name for tool in speaker.do("list_tools").tools]
        assert names[:6] == ["search_docs", "get_page", "get_section", "grep_docs", "list_pages", "get_status"]
        assert names[6:] == list(TOOLS)
        assert "search_docs" in speaker.instructions and "context.get" in speaker.instructions
        assert speaker.server_info.title == "Anvil"
        assert [each.title for each in speaker.do("list_resources").resources][-1] == "Installing"
        assert speaker.ok("search_docs", query="certificate")["results"]
        assert speaker.ok("search.query", query="certificate") == []
        assert len(speaker.ok("artifacts.list")) == len(KNOWN)
        assert speaker.ok("list_pages")["total_pages"] == len(PAGES)
        if way == "http":
            found = health(server)
            assert found["status"] == "ok"
            assert found["docs"]["pages"] == len(PAGES) and found["context"]["artifacts"] == len(KNOWN)


def test_a_surface_that_is_broken_is_told_by_health(root: Path) -> None:
    docs = write(root / "docs", PAGES)
    command = mcp_servers.program("--surface", "context,docs", "--docs", str(docs), "--root", str(root))
    with mcp_servers.listening([*command, "--provider", "none"], root.parent) as server:
        assert health(server)["status"] == "ok"
        docs.rename(root / "away")
        end = time.monotonic() + 20
        while (found := health(server))["status"] == "ok" and time.monotonic() < end:
            time.sleep(0.2)  # answers are remembered for a second
        assert found["status"] == "error" and found["docs"]["status"] == "error"
        assert found["context"]["status"] == "ok" and found["context"]["artifacts"] == len(KNOWN)


def test_the_greeting_of_any_choice_is_what_the_sdk_answers(root: Path) -> None:
    import anyio
    from mcp.shared.memory import create_client_server_memory_streams
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    from anvil.context import tools as context
    from anvil.context.context_queries import Context
    from anvil.context.settings import load_context
    from anvil.server import docs_toolset as docs
    from anvil.server.logs import ProgressReporter
    from anvil.server.mcp_app import App
    from anvil.server.page_resources import Resources
    from anvil.server.protocol import Answers
    from tests.e2e.mcp.test_stdio import INITIALIZE

    async def answered(parts: list[RunningToolset]) -> Any:
        app = App(parts, ProgressReporter())
        streams = create_client_server_memory_streams()
        async with streams as ((read, send), (server_read, server_write)), anyio.create_task_group() as tasks:
            tasks.start_soon(app.serve, server_read, server_write)
            await send.send(SessionMessage(jsonrpc_message_adapter.validate_python(INITIALIZE)))
            received = await read.receive()
            tasks.cancel_scope.cancel()
        assert isinstance(received, SessionMessage)
        return json.loads(received.message.model_dump_json(by_alias=True, exclude_unset=True))

    with Context(*load_context(root)) as opened:
        for surfaces in ([context.TOOLSET], [docs.TOOLSET, context.TOOLSET]):
            parts = [RunningToolset(each, opened) for each in surfaces]
            resources = Resources.of(parts)
            answers = Answers(parts, resources.methods if resources else None)
            assert answers.initialize(INITIALIZE["params"]) == anyio.run(answered, parts)["result"]


def test_an_unknown_surface_is_a_usage_error(root: Path) -> None:
    from tests.support.programs import complaint

    assert "There is no surface 'dox'" in complaint("serve", "--surface", "docs,dox", cwd=root)
