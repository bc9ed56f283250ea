"""A page with a line of 700 kB, such as a minified file or a data URI makes it: every tool answers in a short time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from anvil.context import tools as context
from anvil.library import tools as library
from anvil.server import docs_toolset as docs
from anvil.server.toolset import ServeRequest, Toolset
from tests.conftest import PAGES, write
from tests.e2e.mcp.test_stdio import INITIALIZE, INITIALIZED, Pipe, call
from tests.support.index_server import Answer, Server

SOME_TEXT = "needle word ß İ data:aGVsbG8+ "
LINE_LENGTH = 700_000
LINES = {"words": SOME_TEXT * (LINE_LENGTH // len(SOME_TEXT)), "no words": "a" * LINE_LENGTH}
MAX_CPU_S = 1
"""Processor time of the slowest call; one that reads the line again for each match takes minutes."""

Arguments = dict[str, Any]
QUESTIONS: dict[str, list[Arguments]] = {
    "search_docs": [
        {"query": "needle word"},
        {"query": "needle", "max_chars": 9_000_000},
        {"query": "a" * LINE_LENGTH},
    ],
    "get_page": [{"file_path": "001-x/spec.md"}],
    "get_section": [{"file_path": "001-x/spec.md", "heading_path": "Long > Text", "include_children": True}],
    "grep_docs": [
        {"pattern": "a"},
        {"pattern": "ss"},
        *({"pattern": each, "regex": True, "context": 3} for each in ("a", ".", "x*", r"\C", "(a?){500}z", "é|ß")),
    ],
    "list_pages": [{}],
    "get_status": [{}],
    "report_page": [{"file_path": "001-x/spec.md", "problem": "wrong"}],
    "context.get": [{}],
    "artifacts.list": [{"content": True}],
    "artifacts.get": [{"path": "specs/001-x/spec.md"}],
    "search.query": [{"query": "needle word"}],
    "tasks.open": [{"status": "all"}],
    "health.status": [{}],
    "ingest_file": [{"path": "{folder}/001-x/spec.md"}],
    "ingest_content": [{"content": "{line}", "source": "a.md"}],
    "ingest_folder": [{"folder": "{folder}"}],
    "ingest_url": [{"url": "{url}"}],
    "search": [{"query": "needle word"}],
    "list_documents": [{}],
    "list_libraries": [{}],
    "get_document": [{"doc_id": "{document}"}],
    "update_document": [{"doc_id": "{document}", "metadata": {"a": "b"}}],
    "delete_document": [{"doc_id": "{document}"}],
    "server_info": [{"check_path": "{folder}/001-x/spec.md"}],
}


def test_every_tool_is_asked() -> None:
    tools = [*docs.TOOLS, *docs.TOOLSET.optional, *context.TOOLSET.tools, *library.TOOLSET.tools]
    assert {tool.name for tool in tools} == set(QUESTIONS)


@pytest.fixture(scope="module", params=LINES)
def project(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    place, line = tmp_path_factory.mktemp("line"), LINES[request.param]
    write(
        place,
        {
            "specs/001-x/spec.md": f"# Long\n\n## Text\n\nIt is short.\n- [ ] {line}\n",
            "context.json": "{}\n",
            "anvil.toml": "[context]\nmax_file_size_bytes = 5_000_000\n",
        },
    )
    return place, line


def ask_all(toolset: Toolset, target: Any, filled: Callable[[str], str]) -> None:
    for tool in (*toolset.tools, *toolset.optional):
        for question in QUESTIONS[tool.name]:
            given = {key: filled(value) if isinstance(value, str) else value for key, value in question.items()}
            began = time.process_time()
            assert tool.bind(given)(target) is not None
            assert time.process_time() - began < MAX_CPU_S, f"{tool.name} {str(question)[:80]}"


def test_tools_over_documentation(project: tuple[Path, str]) -> None:
    place, _ = project
    options = ServeRequest(str(place / "specs"), str(place / "index.db"), provider="none", watch=False)
    opened = docs.open(options, lambda *_: None)
    try:
        ask_all(docs.TOOLSET, opened, str)
    finally:
        opened.close()


def test_tools_over_a_repository(project: tuple[Path, str]) -> None:
    opened = context.open(ServeRequest(root=str(project[0]), provider="none", watch=False), lambda *_: None)
    try:
        opened.start()
        until = time.monotonic() + 30
        while not opened.artifacts() and time.monotonic() < until:
            time.sleep(0.05)
        ask_all(context.TOOLSET, opened, str)
    finally:
        opened.close()


def test_tools_of_a_library(project: tuple[Path, str], tmp_path: Path) -> None:
    options = ServeRequest(library_index=str(tmp_path / "l.db"), provider="none", allow_private_urls=True)
    opened = library.open(options, lambda *_: None)
    place, line = project
    web = Server().start()
    web.answers["/page.txt"] = Answer(line.encode(), headers={"Content-Type": "text/plain; charset=utf-8"})

    def filled(text: str) -> str:
        if text == "{document}":
            return str(opened.ingest_content(line, "again.md").doc_id)
        for name, value in {"folder": str(place / "specs"), "line": line, "url": f"{web.url}/page.txt"}.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    try:
        ask_all(library.TOOLSET, opened, filled)
    finally:
        opened.close()
        web.stop()


def test_eight_cancelled_calls_leave_the_server_answering(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", {**PAGES, "long.md": f"# L\n\n{LINES['no words']}\n"})
    pipe = Pipe(docs)
    pipe.send(INITIALIZE, INITIALIZED, call(1, "search_docs", query="alert"))
    while pipe.read()["id"] != 1:
        pass
    for number in range(2, 10):
        pipe.send(call(number, "grep_docs", pattern="x*", regex=True))
        pipe.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}})
    began = time.monotonic()
    pipe.send(call(10, "search_docs", query="alert"))
    while pipe.read()["id"] != 10:
        pass
    assert time.monotonic() - began < 20
    pipe.end()
