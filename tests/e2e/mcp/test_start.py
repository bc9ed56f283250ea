"""While it runs: the first build, pages that change, who is told, and models that do not fit."""

from __future__ import annotations

import json
import re
import shutil
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.types import LoggingMessageNotification, ResourceListChangedNotification, ResourceUpdatedNotification

import anvil
from anvil.settings.schema import Config, EmbeddingSettings
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.mcp_servers import Speaker

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
"""What the newest revision of the protocol dropped is still used by most clients."""

MANY = {
    f"part{n}/page{m}.md": f"# Page {n} {m}\n\n" + f"The boiler {n}.{m} makes steam. " * 24
    for n in range(6)
    for m in range(10)
}


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    return write(tmp_path / "docs", PAGES)


@pytest.fixture(params=["stdio", "http"])
def edited(request: pytest.FixtureRequest, docs: Path) -> Iterator[Speaker]:
    """A server without file events on docs that the test edits."""
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
    flags = ("--provider", "none", "--no-watch")
    if request.param == "stdio":
        with mcp_servers.over_stdio(docs, docs.parent / "index.db", *flags) as speaker:
            yield speaker
    else:
        with (
            mcp_servers.over_http(docs, docs.parent / "index.db", *flags) as server,
            mcp_servers.connected(server.url) as speaker,
        ):
            yield speaker


def test_every_tool_answers_from_the_files_as_they_are(edited: Speaker, docs: Path) -> None:
    page, text = docs / "guides/alerts.md", PAGES["guides/alerts.md"]
    (docs.parent / "index.db").chmod(0o444)
    edited.ok("get_status")  # what the server reads when it starts is behind it
    time.sleep(0.5)

    def write_section(name: str) -> str:
        page.write_text(f"{text}\n## {name}\n\nA gong called {name} is struck.\n")
        return name

    name = write_section("Gong1")
    found = edited.ok("search_docs", query=name)
    assert f"A gong called {name} is struck." in found["results"][0]["content"]
    assert found["freshness"]["refreshed"] == ["guides/alerts.md"] and "checked" not in found["freshness"]
    name = write_section("Gong2")
    assert name in edited.ok("get_page", file_path="guides/alerts.md")["chunks"][-1]["content"]
    name = write_section("Gong3")
    assert name in edited.ok("get_section", file_path="guides/alerts.md", heading_path=f"Alerts > {name}")["content"]
    write(docs, {"new.md": "# New\n\nHere since now.\n"})
    assert "new.md" in [each["file_path"] for each in edited.ok("list_pages")["pages"]]
    (docs / "new.md").rename(docs / "newer.md")
    write_section("Gong4")
    status = edited.ok("get_status")
    assert status["index"]["stale"] == {"changed": 1, "added": 1, "removed": 1}
    assert status["index"]["total_pages"] == len(PAGES) + 1
    (docs / "newer.md").unlink()
    assert "No page found" in edited.refused("get_page", file_path="newer.md")
    (content,) = edited.do("read_resource", "anvil://page/guides/alerts.md").contents
    assert "Gong4" in content.text


def test_a_docs_folder_that_goes_and_returns(edited: Speaker, docs: Path) -> None:
    assert edited.ok("search_docs", query="alert")["results"]
    docs.rename(docs.with_name("away"))
    told = edited.call("search_docs", query="alert")
    assert "Traceback" not in told.content[0].text
    docs.with_name("away").rename(docs)
    assert edited.ok("search_docs", query="alert")["results"][0]["metadata"]["file_path"] == "guides/alerts.md"


@pytest.mark.parametrize("way", ["stdio", "memory", "sse"])
def test_subscribers_are_told(way: str, docs: Path) -> None:
    if way == "sse":
        with (
            mcp_servers.over_http(docs, None, "--provider", "none", transport="sse") as server,
            mcp_servers.connected(mcp_servers.over_sse(server.url)) as speaker,
        ):
            subscribed(speaker, docs)
    elif way == "stdio":
        with mcp_servers.over_stdio(docs, None, "--provider", "none") as speaker:
            subscribed(speaker, docs)
    else:
        with mcp_servers.in_memory(docs, None, "none") as speaker:
            subscribed(speaker, docs)


def subscribed(speaker: Speaker, docs: Path) -> None:
    settled(speaker)
    speaker.do("subscribe_resource", "anvil://page/install.md")
    speaker.heard.clear()
    write(docs, {"guides/checks.md": "# Checks\n\nNobody subscribed to this.\n", "install.md": "# Install\n\nAnew.\n"})
    speaker.ok("search_docs", query="install")
    updated = speaker.until(ResourceUpdatedNotification)
    assert str(updated.params.uri) == "anvil://page/install.md"
    write(docs, {"another.md": "# Another\n"})
    speaker.ok("list_pages")
    speaker.until(ResourceListChangedNotification)
    assert [str(each.params.uri) for each in speaker.heard if isinstance(each, ResourceUpdatedNotification)] == [
        "anvil://page/install.md"
    ]
    speaker.do("unsubscribe_resource", "anvil://page/install.md")
    speaker.heard.clear()
    write(docs, {"install.md": "# Install\n\nOnce more.\n", "third.md": "# Third\n"})
    speaker.ok("list_pages")
    speaker.until(ResourceListChangedNotification)
    assert not [each for each in speaker.heard if isinstance(each, ResourceUpdatedNotification)]


def settled(speaker: Speaker, pages: int = len(PAGES)) -> Any:
    """The status once the first build is over."""
    end = time.monotonic() + 60
    while time.monotonic() < end:
        status = speaker.ok("get_status")
        if status["index"]["artifact"] and status["index"]["total_pages"] == pages:
            return status
        time.sleep(0.1)
    raise AssertionError("the index was never built")


def test_file_events_tell_subscribers_by_themselves(docs: Path) -> None:
    with mcp_servers.over_stdio(docs, None, "--provider", "none") as speaker:
        settled(speaker)
        speaker.do("subscribe_resource", "anvil://page/install.md")
        time.sleep(1)  # the watcher begins
        for number in range(20):
            write(docs, {"install.md": f"# Install\n\nEdit {number}.\n"})
            try:
                speaker.until(ResourceUpdatedNotification, 1)
                return
            except AssertionError:
                continue
        raise AssertionError("no event came")


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_newer_clients_listen_on_a_stream(way: str, docs: Path) -> None:
    from mcp.server.subscriptions import ResourcesListChanged, ResourceUpdated

    def listening(speaker: Speaker) -> None:
        settled(speaker)

        async def hear() -> list[Any]:
            import anyio

            heard = []
            async with speaker.client.listen(
                resources_list_changed=True, resource_subscriptions=["anvil://page/install.md"]
            ) as stream:
                write(docs, {"install.md": "# Install\n\nAnew.\n", "another.md": "# Another\n"})
                await speaker.client.call_tool("list_pages", {})
                with anyio.move_on_after(20):
                    async for each in stream:
                        heard.append(each)
                        if len(heard) == 2:
                            break
            return heard

        heard = speaker.portal.call(hear)
        assert ResourceUpdated("anvil://page/install.md") in heard and ResourcesListChanged() in heard

    if way == "stdio":
        with mcp_servers.over_stdio(docs, None, "--provider", "none", mode="auto") as speaker:
            listening(speaker)
    else:
        with (
            mcp_servers.over_http(docs, None, "--provider", "none") as server,
            mcp_servers.connected(server.url, "auto") as speaker,
        ):
            listening(speaker)


def test_the_first_build_does_not_keep_anybody_waiting(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", MANY | PAGES)
    with mcp_servers.over_http(docs, None) as server, mcp_servers.connected(server.url) as speaker:
        began = time.monotonic()
        first = speaker.ok("search_docs", query="an alert that nobody acknowledges")
        assert time.monotonic() - began < 20
        is_noted = any(
            "being built" in note or "being made" in note for note in first.get("freshness", {}).get("notes", [])
        )
        assert is_noted or "pending_vectors" not in first.get("freshness", {}), first  # a fast machine has built it
        status = settled(speaker, len(MANY | PAGES))
        assert status["embedding"]["provider"] == "local"
        last = speaker.ok("search_docs", query="an alert that nobody acknowledges")
        assert last["results"][0]["metadata"]["heading_path"] == "Alerts > Escalation"
        assert "freshness" not in last


@pytest.mark.parametrize("way", ["memory", "http"])
def test_progress_is_noted(way: str, tmp_path: Path) -> None:
    """The next call reads many pages that changed at once."""
    docs = write(tmp_path / "docs", PAGES)
    with ExitStack() as stack:
        if way == "memory":
            speaker = stack.enter_context(mcp_servers.in_memory(docs, None, "none"))
        else:
            server = stack.enter_context(mcp_servers.over_http(docs, None, "--provider", "none", "--no-watch"))
            speaker = stack.enter_context(mcp_servers.connected(server.url))
        settled(speaker)
        told: list[tuple[float, float | None, str | None]] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            told.append((done, total, message))

        write(docs, MANY)
        result = speaker.do("call_tool", "list_pages", {}, progress_callback=progress)
        assert result.structured_content["total_pages"] == len(MANY | PAGES)
        dones = [done for done, _, _ in told]
        assert told and dones == sorted(dones)
        assert any(message and f"of {len(MANY)}" in message for _, _, message in told)


def test_progress_is_logged_to_standing_clients(tmp_path: Path) -> None:
    with mcp_servers.in_memory(write(tmp_path / "docs", PAGES), None, "none") as speaker:
        settled(speaker)
        speaker.reporter._logged = 0.0  # as if the last line were long ago
        speaker.reporter("embedding", 60, 100)
        message = speaker.until(LoggingMessageNotification)
        assert message.params.level == "info" and message.params.data == "embedding 60 of 100"
        speaker.do("set_logging_level", "error")
        speaker.heard.clear()
        speaker.reporter._logged = 0.0
        speaker.reporter("embedding", 90, 100)
        speaker.ok("get_status")
        assert not [each for each in speaker.heard if isinstance(each, LoggingMessageNotification)]


def test_an_index_without_vectors_says_so(docs: Path) -> None:
    with anvil.open(docs, docs.parent / "index.db", "none") as opened:
        opened.index()
    with mcp_servers.over_stdio(docs, docs.parent / "index.db") as speaker:
        refused(speaker, "without vectors")
        assert speaker.ok("get_status")["embedding"]["provider"] == "none"


def test_an_index_of_another_model_says_so(docs: Path) -> None:
    index = docs.parent / "index.db"
    with anvil.open(docs, index) as opened:
        opened.index()
    with mcp_servers.over_stdio(docs, index, "--provider", "none") as speaker:
        refused(speaker, "all-MiniLM-L6-v2")


def test_an_index_of_a_model_with_another_digest_says_so(docs: Path, tmp_path: Path) -> None:
    """Made with a copy of the bundled model that reads no more than 128 tokens."""
    model = tmp_path / "model"
    shutil.copytree(Path(anvil.__file__).parent / "embedding" / "model", model)
    description = model / "model.json"
    known = json.loads(description.read_text(encoding="utf-8"))
    description.write_text(json.dumps(known | {"digest": "", "max_tokens": 128}), encoding="utf-8")
    index = tmp_path / "index.db"
    config = Config(embedding=EmbeddingSettings(model=str(model)))
    with anvil.open(docs, index, config=config) as opened:
        opened.index()
        theirs = opened.provider.digest
    with anvil.open(docs, index) as opened:
        assert opened.provider.digest != theirs
    with mcp_servers.over_stdio(docs, index) as speaker:
        refused(speaker, "Semantic search is off: the index was built with")


def refused(speaker: Speaker, reason: str) -> None:
    """Keyword search works, semantic is refused with the reason, hybrid degrades and says so."""
    assert reason in speaker.refused("search_docs", query="certificate", mode="semantic")
    keyword = speaker.ok("search_docs", query="certificate", mode="keyword")
    hybrid = speaker.ok("search_docs", query="certificate")
    assert keyword["results"] and hybrid["results"]
    assert any(reason in note for note in hybrid["freshness"]["notes"])
    assert not any(re.search("Semantic", note) for note in keyword.get("freshness", {}).get("notes", []))
