"""Every edge of the tools' contract, and bad input, through the protocol: over a pipe and over streamable HTTP."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPError

import anvil
from anvil.server.toolset import Parameter, ServeRequest, validated
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.mcp_servers import Speaker

LONG = "# Long\n\n" + "".join(f"## Part {n}\n\n" + f"Number {n} of the pump. " * 60 + "\n\n" for n in range(60))
MORE = {
    "epics/one.md": "# One\n\nThe pump is green.\n",
    "epics/two.md": "---\ntitle: Second\n---\n\nThe pump is blue.\n",
    "epics-old/x.md": "# X\n\nThe pump is old.\n",
    "long.md": LONG,
    "big.md": "# Big\n\n" + "A paragraph about the compressor and its oil.\n\n" * 400 + "## Tail\n\nThe end.\n",
    "café.md": "# Café\n\nCoffee.\n",
}


@pytest.fixture(scope="module", params=["stdio", "http"])
def speaker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Speaker]:
    place = tmp_path_factory.mktemp("edges")
    docs = write(place / "docs", PAGES | MORE)
    (place / "secret.md").write_text("# Secret\n\nNobody reads this.\n")
    if hasattr(os, "symlink"):
        os.symlink(place / "secret.md", docs / "link.md")
        os.symlink(place, docs / "out")
    with ExitStack() as stack:
        if request.param == "stdio":
            found = mcp_servers.over_stdio(docs, None, "--provider", "none")
        else:
            server = stack.enter_context(mcp_servers.over_http(docs, None, "--provider", "none"))
            found = mcp_servers.connected(server.url)
        speaker = stack.enter_context(found)
        while speaker.ok("get_status")["index"]["total_pages"] < len(PAGES | MORE):
            pass  # the first build
        yield speaker


@pytest.mark.parametrize("query", ["", "   ", "\n", None])
def test_a_blank_query_is_refused(speaker: Speaker, query: Any) -> None:
    assert speaker.refused("search_docs", query=query) == "query parameter is required"


def test_missing_parameters_are_named(speaker: Speaker) -> None:
    assert speaker.refused("search_docs") == "query parameter is required"
    assert speaker.refused("get_page") == "file_path parameter is required"
    assert speaker.refused("get_section", file_path="index.md") == "heading_path parameter is required"


@pytest.mark.parametrize(
    ("top_k", "count"),
    [(-5, 1), (0, 1), (1, 1), (3.0, 3), (20, 20), (21, 20), (10**9, 20), (3.7, 3), (0.5, 1), ("3", 3), ("-1", 1)],
)
def test_top_k_is_clamped(speaker: Speaker, top_k: Any, count: int) -> None:
    assert len(speaker.ok("search_docs", query="pump", top_k=top_k, max_chars=10**9)["results"]) == count


def test_true_and_false_are_read_from_text() -> None:
    parameters = (Parameter("regex", "", "boolean", False),)
    for given, expected in (("true", True), ("false", False), (True, True), (None, False)):
        assert validated("grep_docs", parameters, {"regex": given}) == {"regex": expected}


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("search_docs", {"query": "pump", "top_k": "abc"}, "top_k of search_docs must be an integer, not a string."),
        ("search_docs", {"query": "pump", "top_k": True}, "top_k of search_docs must be an integer, not a boolean."),
        ("search_docs", {"query": ["pump"]}, "query of search_docs must be a string, not an array."),
        ("search_docs", {"query": "pump", "file_filter": 1}, "file_filter of search_docs must be a string"),
        ("search_docs", {"query": "pump", "mode": "best"}, "mode of search_docs must be one of hybrid, semantic"),
        ("search_docs", {"query": "pump", "limit": 3}, "search_docs has no parameter 'limit'; it takes query, top_k"),
        ("get_page", {"file_path": {}}, "file_path of get_page must be a string, not an object."),
        ("get_section", {"file_path": "a", "heading_path": "b", "include_children": "yes"}, "must be a boolean"),
        ("get_status", {"verbose": True}, "get_status has no parameter 'verbose'; it takes no parameters."),
    ],
)
def test_wrong_arguments_are_a_result_that_a_model_can_correct(
    speaker: Speaker, tool: str, arguments: dict[str, Any], told: str
) -> None:
    message = speaker.refused(tool, **arguments)
    assert told in message and message.count(". ") == 0 and message.endswith(".")


def test_an_unknown_tool_is_refused_with_the_known_ones(speaker: Speaker) -> None:
    assert "search_docs" in speaker.refused("delete_everything")


def test_file_filter_narrows_before_ranking(speaker: Speaker) -> None:
    def paths(glob: str, top_k: int = 20) -> set[str]:
        found = speaker.ok("search_docs", query="pump", file_filter=glob, top_k=top_k)
        return {hit["metadata"]["file_path"] for hit in found["results"]}

    assert paths("epics/*") == {"epics/one.md", "epics/two.md"}
    assert paths("**/one.md") == {"epics/one.md"}
    assert paths("long.md") == {"long.md"}
    assert paths("epics-old/*", 1) == {"epics-old/x.md"}
    assert speaker.ok("search_docs", query="pump", file_filter="epics/*")["total_chunks"] == 2
    for folder in ("epics", "epics/", "/epics", "./epics/"):  # as list_pages takes it
        assert paths(folder) == {"epics/one.md", "epics/two.md"}
        listed = speaker.ok("list_pages", prefix=folder)["pages"]
        assert [page["file_path"] for page in listed] == ["epics/one.md", "epics/two.md"]
        lines = speaker.ok("grep_docs", pattern="pump", path=folder)["matches"]
        assert {match["file_path"] for match in lines} == paths(folder)
    unfiltered = speaker.ok("search_docs", query="pump", top_k=20)
    for everything in ("", "/", ".", "./"):
        found = speaker.ok("search_docs", query="pump", top_k=20, file_filter=everything)
        assert found["results"] == unfiltered["results"] and found.get("freshness") == unfiltered.get("freshness")
        assert found["total_chunks"] == unfiltered["total_chunks"]


def test_a_folder_with_hundreds_of_pages_is_listed_in_parts(tmp_path: Path) -> None:
    heading = "## A heading that is as long as headings are\n"
    write(tmp_path / "docs", {f"part-{i % 7}/page-{i:04}.md": f"# Page {i}\n\n{heading}" for i in range(403)})
    with anvil.open(tmp_path / "docs", provider="none") as opened:
        opened.index()  # a server on a busy machine would list some of the pages while it builds
    with mcp_servers.with_options(ServeRequest(docs=str(tmp_path / "docs"), provider="none")) as speaker:
        listed: list[str] = []
        offset: int | None = 0
        answers = 0
        while offset is not None:
            answer = speaker.ok("list_pages", offset=offset)
            assert len(json.dumps(answer, separators=(",", ":"))) < 17_000 and answer["total_pages"] == 403
            assert len(answer["pages"]) > 50 or "next_offset" not in answer
            listed += [page["file_path"] for page in answer["pages"]]
            offset, answers = answer.get("next_offset"), answers + 1
        assert listed == sorted(set(listed)) and len(listed) == 403 and 1 < answers < 9
        few = speaker.ok("list_pages", prefix="part-3", limit=3, offset=56)
        assert (len(few["pages"]), few["total_pages"]) == (2, 58) and "next_offset" not in few
        assert speaker.ok("list_pages", offset=5000) == {"pages": [], "total_pages": 403}
    with anvil.open(tmp_path / "docs", provider="none") as opened:
        assert len(opened.list_pages().pages) == 403


@pytest.mark.parametrize("glob", ["[", "[[", "**[", "{a", "\\", "../*", "\x00", "*" * 5000])
def test_a_malformed_glob_matches_nothing(speaker: Speaker, glob: str) -> None:
    found = speaker.ok("search_docs", query="pump", file_filter=glob)
    if glob.strip("*"):
        assert found["results"] == [] and found["total_chunks"] == 0


@pytest.mark.parametrize("budget", [-1, 0, 1, 500, 3000])
def test_the_budget_cuts_lower_ranks_and_keeps_their_number(speaker: Speaker, budget: int) -> None:
    whole = speaker.ok("search_docs", query="pump", top_k=8, max_chars=10**9)["results"]
    cut = speaker.ok("search_docs", query="pump", top_k=8, max_chars=budget)["results"]
    assert [hit["metadata"] for hit in cut] == [hit["metadata"] for hit in whole]
    if budget >= 500:
        assert sum(len(hit["content"]) for hit in cut) <= max(budget, len(cut) * 1500)
    shortened = [(short, long) for short, long in zip(cut, whole, strict=True) if short.get("truncated")]
    assert shortened
    for short, long in shortened:
        assert short["content"] in long["content"]
        section = speaker.ok(
            "get_section", file_path=long["metadata"]["file_path"], heading_path=long["metadata"]["heading_path"]
        )
        assert short["content"] in section["content"]


def test_equal_scores_keep_the_order_of_paths_and_places(speaker: Speaker) -> None:
    results = speaker.ok("search_docs", query="compressor oil", file_filter="big.md", top_k=20)["results"]
    places = [(-hit["score"], hit["metadata"]["file_path"], hit["metadata"]["start_line"]) for hit in results]
    assert places == sorted(places)


def test_a_book_as_query(speaker: Speaker) -> None:
    assert speaker.ok("search_docs", query="where is the pump? " * 52_000)["results"]


@pytest.mark.parametrize("query", ["\x00", '"', "AND OR NOT", "pump*", "NEAR(", "' OR 1=1 --", "\U0001f600", "é" * 10])
def test_any_text_is_a_query(speaker: Speaker, query: str) -> None:
    speaker.ok("search_docs", query=query)


def test_semantic_search_without_vectors_says_why(speaker: Speaker) -> None:
    assert "without vectors" in speaker.refused("search_docs", query="pump", mode="semantic")
    (note,) = speaker.ok("search_docs", query="pump")["freshness"]["notes"]
    assert "Semantic search is off" in note
    assert "freshness" not in speaker.ok("search_docs", query="pump", mode="keyword")


@pytest.mark.parametrize("path", ["epics/one.md", "/epics/one.md", "./epics/one.md", "epics/../epics/one.md"])
def test_spellings_of_a_path(speaker: Speaker, path: str) -> None:
    assert speaker.ok("get_page", file_path=path)["file_path"] == "epics/one.md"
    assert speaker.ok("get_section", file_path=path, heading_path="One")["metadata"]["file_path"] == "epics/one.md"


def test_an_absolute_path_inside_the_docs(speaker: Speaker) -> None:
    root = speaker.ok("get_status")["server"]["docs_root"]
    assert speaker.ok("get_page", file_path=f"{root}/epics/one.md")["title"] == "One"


@pytest.mark.parametrize(
    "path",
    [
        "../secret.md",
        "epics/../../secret.md",
        "/etc/passwd",
        "%2e%2e/secret.md",
        "..%2fsecret.md",
        "..\\secret.md",
        "C:\\secret.md",
        "\x00",
        "index.md\x00",
        "link.md",
        "out/secret.md",
        "",
        ".",
        "..",
        "/",
        "a" * 100_000,
        "\ufffe",
        "anvil://page/index.md",
        "~/secret.md",
        "file:///etc/passwd",
    ],
)
def test_no_path_leads_out(speaker: Speaker, path: str) -> None:
    for tool, more in (("get_page", {}), ("get_section", {"heading_path": "Secret"})):
        told = speaker.refused(tool, file_path=path, **more)
        assert "Nobody reads this" not in told and len(told) < 200 + 2 * len(path)
    assert speaker.ok("list_pages", prefix=path)["pages"] == [] or path in ("", ".", "/")
    found = speaker.ok("search_docs", query="Secret Nobody", file_filter=path)["results"]
    assert found == [] or path in ("", ".", "/")
    assert not any("secret.md" in hit["metadata"]["file_path"] for hit in found)
    from urllib.parse import quote

    for spelled in (path, quote(path, safe="")):
        with pytest.raises(MCPError) as raised:
            speaker.do("read_resource", f"anvil://page/{spelled}")
        assert raised.value.code == -32602


def test_unknown_pages_and_sections_name_the_nearest(speaker: Speaker) -> None:
    told = speaker.refused("get_page", file_path="guides/alert.md")
    assert told.startswith("No page found at path: guides/alert.md. Use list_pages to discover available pages.")
    assert "guides/alerts.md" in told
    told = speaker.refused("get_section", file_path="guides/alerts.md", heading_path="E-mails")
    assert told.startswith(
        "No section found at heading: E-mails in guides/alerts.md. Use get_page to see available sections."
    )
    assert "Closest: Alerts > E-mail" in told


def test_headings_are_compared_as_raw_strings(speaker: Speaker) -> None:
    assert speaker.ok("get_section", file_path="café.md", heading_path="Café")
    speaker.refused("get_section", file_path="café.md", heading_path="Cafe\u0301")
    speaker.refused("get_section", file_path="café.md", heading_path="CAFÉ")


def test_children_come_on_request(speaker: Speaker) -> None:
    page = {"file_path": "guides/alerts.md", "heading_path": "Alerts"}
    alone, family = speaker.ok("get_section", **page), speaker.ok("get_section", **page, include_children=True)
    assert "E-mail" not in alone["content"] and "## Escalation" in family["content"]
    assert family["content"] == PAGES["guides/alerts.md"]


def test_prefixes_are_folders(speaker: Speaker) -> None:
    expected = ["epics/one.md", "epics/two.md"]
    for prefix in ("epics", "epics/", "/epics", "./epics"):
        found = speaker.ok("list_pages", prefix=prefix)
        assert [page["file_path"] for page in found["pages"]] == expected and found["total_pages"] == 2
    assert speaker.ok("list_pages", prefix="nothing") == {"pages": [], "total_pages": 0}
    assert speaker.ok("list_pages", prefix=None)["total_pages"] == len(PAGES | MORE)


def test_titles(speaker: Speaker) -> None:
    titles = {page["file_path"]: page["title"] for page in speaker.ok("list_pages")["pages"]}
    assert titles["epics/two.md"] == "Second" and titles["epics/one.md"] == "One"


def test_resources_are_listed_in_parts(speaker: Speaker) -> None:
    first = speaker.do("list_resources")
    assert first.next_cursor is None and len(first.resources) == len(PAGES | MORE)
    rest = speaker.do("list_resources", cursor="epics/two.md").resources
    assert [each.name for each in rest][:2] == ["guides/alerts.md", "guides/checks.md"]
    assert any(each.uri == "anvil://page/caf%C3%A9.md" for each in first.resources)
    (content,) = speaker.do("read_resource", "anvil://page/caf%C3%A9.md").contents
    assert content.text == MORE["café.md"]


@pytest.mark.parametrize("uri", ["file:///etc/passwd", "anvil://other/x", "http://localhost/", "anvil://page/no.md"])
def test_unknown_resources(speaker: Speaker, uri: str) -> None:
    with pytest.raises(MCPError) as raised:
        speaker.do("read_resource", uri)
    assert raised.value.message and "Traceback" not in raised.value.message
