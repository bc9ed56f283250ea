"""The tools through the protocol: one body of tests over stdio, streamable HTTP (both eras), SSE and in memory."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError

import anvil
from anvil.formats.data_formats import plain
from anvil.results import GrepResult, Page, PageList, SearchResult, SectionText
from anvil.server.docs_toolset import TOOLSET
from anvil.server.logs import ProgressReporter
from anvil.server.mcp_app import App
from anvil.server.toolset import RunningToolset
from anvil.status import Status
from anvil.values import ChunkMetadata
from tests.conftest import PAGES, write
from tests.support import in_process, mcp_servers
from tests.support.mcp_servers import Speaker

WAYS = ("memory", "memory-modern", "stdio", "stdio-modern", "http", "http-modern", "sse")
QUESTIONS = {
    "how do I get a warning before a TLS certificate expires?": "guides/checks.md",
    "messages at night": "guides/alerts.md",
    "dpkg": "install.md",
}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``docs`` and an index of them, built with the bundled model."""
    place = tmp_path_factory.mktemp("served")
    with anvil.open(write(place / "docs", PAGES), place / "index.db") as opened:
        opened.index()
    return place


@pytest.fixture(scope="module", params=WAYS)
def speaker(request: pytest.FixtureRequest, place: Path) -> Iterator[Speaker]:
    """A client of a server over the same docs and index, reached in each way."""
    way, _, modern = request.param.partition("-")
    mode = "auto" if modern else "legacy"
    docs, index = place / "docs", place / "index.db"
    with ExitStack() as stack:
        if way == "memory":
            found = mcp_servers.in_memory(docs, index, mode=mode)
        elif way == "stdio":
            found = mcp_servers.over_stdio(docs, index, mode=mode)
        else:
            server = stack.enter_context(mcp_servers.over_http(docs, index, transport=way))
            found = mcp_servers.connected(mcp_servers.over_sse(server.url) if way == "sse" else server.url, mode)
        yield stack.enter_context(found)


def test_texts_are_the_same_by_every_way_to_ask(speaker: Speaker, place: Path) -> None:
    def texts(result: Any) -> list[tuple[str, bool]]:
        return [(hit["content"], hit.get("truncated", False)) for hit in result["results"]]

    query = "check alert Lighthouse server"
    asked = texts(speaker.ok("search_docs", query=query))
    assert texts(speaker.ok("search_docs", query=query, max_chars=1300)) == asked
    assert texts(speaker.ok("search_docs", query=query, max_chars=None)) == asked
    with anvil.open(place / "docs", place / "index.db") as opened:
        for found in (opened.search(query), opened.search(query, max_chars=1300)):
            assert [(hit.content, hit.truncated) for hit in found.results] == asked
    given = ("search", "--docs", place / "docs", "--index", place / "index.db", query)
    assert texts(in_process.printed(*given)) == texts(in_process.printed(*given, "--max-chars", "1300")) == asked


def test_the_tool_list_is_the_contract(speaker: Speaker) -> None:
    tools = {tool.name: tool for tool in speaker.do("list_tools").tools}
    assert list(tools) == ["search_docs", "get_page", "get_section", "grep_docs", "list_pages", "get_status"]
    for tool in tools.values():
        assert tool.annotations.read_only_hint is True
        assert tool.output_schema["type"] == "object"
    # Some clients, such as those of Gemini's functions, take no list of types.
    assert tools["get_status"].output_schema["properties"]["git"] == {"anyOf": [{"type": "object"}, {"type": "null"}]}
    query = tools["search_docs"].input_schema
    assert query["required"] == ["query"]
    assert {name: each.get("default") for name, each in query["properties"].items()} == {
        "query": None,
        "top_k": 5,
        "file_filter": None,
        "max_chars": None,
        "mode": "hybrid",
    }
    assert query["properties"]["mode"]["enum"] == ["hybrid", "semantic", "keyword"]
    assert tools["get_page"].input_schema["required"] == ["file_path"]
    assert tools["get_section"].input_schema["required"] == ["file_path", "heading_path"]
    assert tools["get_section"].input_schema["properties"]["include_children"]["default"] is False
    assert {name: each.get("default") for name, each in tools["grep_docs"].input_schema["properties"].items()} == {
        "pattern": None,
        "path": None,
        "regex": False,
        "ignore_case": True,
        "word": False,
        "context": 0,
        "max_matches": 50,
        "offset": 0,
    }
    assert "required" not in tools["list_pages"].input_schema
    assert tools["get_status"].input_schema["properties"] == {}
    kinds = {
        "search_docs": SearchResult,
        "get_page": Page,
        "get_section": SectionText,
        "grep_docs": GrepResult,
        "list_pages": PageList,
        "get_status": Status,
    }
    for name, kind in kinds.items():
        always = [each.name for each in dataclasses.fields(kind) if not each.metadata.keys() & {"optional", "usual"}]
        assert tools[name].output_schema["required"] == always


def test_the_tool_list_is_short(speaker: Speaker) -> None:
    result = speaker.do("list_tools")
    text = result.model_dump_json(by_alias=True, exclude_none=True, exclude={"meta"})  # no client shows a model that
    assert len(text) < 6500
    assert len(json.dumps(json.loads(text))) < 6500  # with a space after each comma and colon, too


def test_it_introduces_itself(speaker: Speaker) -> None:
    assert speaker.server_info.name == "anvil"
    assert speaker.server_info.version == anvil.__version__
    assert speaker.server_info.website_url == "https://anvil-docs.github.io/anvil/"
    icons = speaker.server_info.icons
    assert speaker.server_info.description and icons is not None and icons[0].mime_type == "image/svg+xml"
    instructions = speaker.instructions
    assert "search_docs" in instructions and instructions.count(". ") <= 5 and len(instructions) < 1400


def test_the_instructions_begin_with_what_the_documents_are_about(place: Path) -> None:
    about = 'These documents are about: "Lighthouse", "Installing", '
    with anvil.open(place / "docs", place / "index.db", "none", background=True) as opened:
        opened.list_pages()  # it is checked now, and need not be again
        running = RunningToolset.of(TOOLSET, opened)
        assert running.toolset.instructions.startswith(about)
        app = App([RunningToolset(TOOLSET, opened)], ProgressReporter())
        assert app.server.instructions == TOOLSET.instructions
        anyio.run(app.describe)
        assert app.server.instructions == running.toolset.instructions
    (place / "empty").mkdir(exist_ok=True)
    with anvil.open(place / "empty", place / "empty.db", "none", background=True) as opened:
        assert RunningToolset.of(TOOLSET, opened).toolset.instructions == TOOLSET.instructions
        app = App([RunningToolset(TOOLSET, opened)], ProgressReporter())
        anyio.run(app.describe)
        assert app.server.instructions == TOOLSET.instructions


@pytest.mark.parametrize("mode", ["hybrid", "keyword", "semantic"])
@pytest.mark.parametrize("question", QUESTIONS)
def test_search_answers_as_the_library_does(speaker: Speaker, place: Path, question: str, mode: Any) -> None:
    found = speaker.ok("search_docs", query=question, mode=mode, top_k=3)
    assert found["results"][0]["metadata"]["file_path"] == QUESTIONS[question]
    with anvil.open(place / "docs", place / "index.db") as opened:
        expected = opened.search(question, 3, mode=mode)
    assert found["results"] == [plain(hit, lean=True) for hit in expected.results]
    assert found["total_chunks"] == expected.total_chunks
    assert found["query_ms"] >= 0
    assert "freshness" not in found, "there is nothing to say"
    assert "null" not in json.dumps(found)
    pages: dict[str, float] = {}
    for hit in found["results"]:
        pages.setdefault(hit["metadata"]["file_path"], hit["score"])
    if mode == "hybrid":
        assert list(pages.values()) == sorted(pages.values(), reverse=True), "the best of each page, best first"
    always = {
        each.name for each in dataclasses.fields(ChunkMetadata) if not each.metadata.keys() & {"optional", "usual"}
    }
    assert set(found["results"][0]["metadata"]) == always | {"start_line", "end_line"}


def test_grep_finds_exact_lines_as_the_library_does(speaker: Speaker, place: Path) -> None:
    found = speaker.ok("grep_docs", pattern="CERTIFICATE", path="guides/*", context=1)
    assert found["total_matches"] == len(found["matches"]) > 0 and "next_offset" not in found
    for match in found["matches"]:
        lines = (place / "docs" / match["file_path"]).read_text(encoding="utf-8").splitlines()
        assert lines[match["line"] - 1] == match["text"] and "certificate" in match["text"].lower()
        section = speaker.ok("get_section", file_path=match["file_path"], heading_path=match["heading_path"])
        assert match["text"] in section["content"]
    assert speaker.ok("grep_docs", pattern=r"\bcert\w+", regex=True)["total_matches"] >= found["total_matches"]
    first = speaker.ok("grep_docs", pattern="e", max_matches=1)
    assert first["next_offset"] == 1 < first["total_matches"]
    assert "regular expression" in speaker.refused("grep_docs", pattern="(", regex=True)
    assert "list_pages" in speaker.refused("grep_docs", pattern="a", path="nope.md")


def test_pages_sections_and_lists_are_those_of_the_library(speaker: Speaker, place: Path) -> None:
    with anvil.open(place / "docs", place / "index.db") as opened:
        listed = json.loads(json.dumps(plain(opened.list_pages(), lean=True)))
        assert speaker.ok("list_pages") == listed
        for summary in listed["pages"]:
            path = summary["file_path"]
            page = speaker.ok("get_page", file_path=path)
            assert page == json.loads(json.dumps(plain(opened.get_page(path), lean=True)))
            text = "".join(chunk["content"] for chunk in page["chunks"])
            assert (place / "docs" / path).read_text(encoding="utf-8").endswith(text)
            for heading in opened.headings(path):
                section = speaker.ok("get_section", file_path=path, heading_path=heading)
                assert section == plain(opened.get_section(path, heading), lean=True)


def test_status_is_true(speaker: Speaker, place: Path) -> None:
    status = speaker.ok("get_status")
    assert status["server"]["version"] == anvil.__version__
    assert status["server"]["docs_root"] == str(place / "docs")
    assert status["index"]["total_pages"] == len(PAGES)
    assert status["index"]["stale"] == {"changed": 0, "added": 0, "removed": 0}
    assert status["index"]["pending_vectors"] == 0
    assert status["index"]["db_size_bytes"] == (place / "index.db").stat().st_size
    assert status["embedding"]["provider"] == "local" and status["embedding"]["dimensions"] == 384
    assert status["git"] is None


def test_nothing_is_offered_that_cannot_be_kept(speaker: Speaker) -> None:
    offered = speaker.client.server_capabilities
    assert offered.prompts is None
    is_lasting = offered.logging is not None
    assert offered.resources is not None and (offered.resources.subscribe or not is_lasting)
    if not offered.resources.subscribe:
        with pytest.raises((MCPError, MCPDeprecationWarning)):  # a client of today may refuse by itself
            speaker.do("subscribe_resource", "anvil://page/install.md")


def test_pages_are_resources(speaker: Speaker) -> None:
    listed = speaker.do("list_resources").resources
    assert [each.uri for each in listed] == [f"anvil://page/{path}" for path in sorted(PAGES)]
    assert listed[-1].title == "Installing" and listed[-1].mime_type == "text/markdown"
    templates = [each.uri_template for each in speaker.do("list_resource_templates").resource_templates]
    assert templates[0] == "anvil://page/{path}"
    (content,) = speaker.do("read_resource", "anvil://page/guides/alerts.md").contents
    assert content.text == PAGES["guides/alerts.md"]
    (content,) = speaker.do("read_resource", "anvil://page/guides%2Falerts.md#Alerts%20%3E%20E-mail").contents
    assert content.text.startswith("## E-mail\n") and "Silence" not in content.text


def test_paths_and_headings_are_completed(speaker: Speaker) -> None:
    from mcp.types import ResourceTemplateReference

    page = ResourceTemplateReference(uri="anvil://page/{path}")
    section = ResourceTemplateReference(uri="anvil://page/{file_path}{#heading_path}")

    def completed(ref: Any, name: str, typed: str, **known: str) -> list[str]:
        found: list[str] = speaker.do("complete", ref, {"name": name, "value": typed}, known).completion.values
        return found

    assert completed(page, "path", "") == sorted(PAGES)
    assert completed(page, "path", "gui") == ["guides/alerts.md", "guides/checks.md"]
    assert completed(section, "file_path", "ALERT") == ["guides/alerts.md"]
    assert completed(section, "heading_path", "night", file_path="guides/alerts.md") == ["Alerts > Silence at night"]
    assert completed(section, "heading_path", "SILENCE", file_path="guides/alerts.md") == ["Alerts > Silence at night"]
    assert completed(section, "heading_path", "", file_path="no.md") == []
    assert completed(section, "heading_path", "x") == []
