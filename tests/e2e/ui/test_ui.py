"""The playground without a browser: its files, its headers, its answers, who gets them, and how it is started."""

from __future__ import annotations

import http.client
import json
import os
import re
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from importlib import resources
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

import anvil
from anvil.formats.data_formats import compact
from anvil.server.playground import FILES, MAX_QUERY_CHARS
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.mcp_servers import Process, connected
from tests.support.programs import complaint

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
TOKEN = "t0ken+of/the~page=="
ALERTS = "guides/alerts.md"


@pytest.fixture(scope="module")
def docs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("ui")
    with anvil.open(write(place / "docs", PAGES), place / "index.db") as opened:
        opened.index()
    return place / "docs"


@pytest.fixture(scope="module")
def server(docs: Path) -> Iterator[Process]:
    """A server with the page, and the real model."""
    with mcp_servers.over_http(docs, docs.parent / "index.db", "--ui") as server:
        yield server


def get(server: Process, path: str, method: str = "GET", **headers: str) -> tuple[int, dict[str, str], str]:
    """Status, headers and body of a request."""
    connection = http.client.HTTPConnection(server.url.split("/")[2], timeout=30)
    try:
        connection.request(method, path, headers={name.replace("_", "-"): value for name, value in headers.items()})
        response = connection.getresponse()
        named = {name.lower(): value for name, value in response.getheaders()}
        return response.status, named, response.read().decode()
    finally:
        connection.close()


def answer(server: Process, name: str, expected: int = 200, /, **parameters: Any) -> Any:
    """The JSON that an endpoint answers. Its headers must be those of the page."""
    status, headers, body = get(server, f"/ui/api/{name}?{urlencode(parameters)}")
    assert status == expected, body
    assert headers["content-type"] == "application/json"
    guarded(headers)
    return json.loads(body)


def guarded(headers: dict[str, str]) -> None:
    assert headers["content-security-policy"] == POLICY
    assert headers["x-content-type-options"] == "nosniff" and headers["referrer-policy"] == "no-referrer"
    assert headers["cache-control"] == "no-store"
    assert not [name for name in headers if name.startswith("access-control")]


SEVERAL = """
[embedding]
provider = "none"
[collections.docs]
docs = "docs"
[[collections.bakery]]
index = "bakery.db"
version = "1.9"
[[collections.bakery]]
index = "bakery.db"
version = "1.10"
"""
BAKERY = {
    "index.md": "# Bakery\n\nAn oven, and [bread](bread.md).\n",
    "bread.md": "# Bread\n\n## Sourdough\n\nFeed the sourdough at night, and check it in the morning.\n",
}


@contextmanager
def several_collections(folder: Path) -> Iterator[Process]:
    """A server with the page, over a folder of documents and two versions of another index."""
    with anvil.open(write(folder / "bakery", BAKERY), folder / "bakery.db", "none") as opened:
        opened.index()
    with anvil.open(write(folder / "docs", PAGES), provider="none") as opened:
        opened.index()
    write(folder, {"anvil.toml": SEVERAL})
    with mcp_servers.listening(mcp_servers.program("--ui"), folder) as server:
        yield server


# --- the page --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", FILES)
def test_each_part_of_the_page_is_served_under_its_policy(server: Process, name: str) -> None:
    status, headers, body = get(server, f"/ui/{name}")
    file, kind = FILES[name]
    assert status == 200 and headers["content-type"].split(";")[0] == kind
    assert body == (resources.files("anvil.server") / "ui" / file).read_text(encoding="utf-8")
    guarded(headers)
    assert get(server, f"/ui/{name}", "POST")[0] == 405


def test_all_parts_are_served_and_nothing_else(server: Process) -> None:
    there = {each.name for each in (resources.files("anvil.server") / "ui").iterdir()}
    assert there == {file for file, _ in FILES.values()}
    for path in ("/ui/nothing.js", "/ui/../guard.py", "/ui/%2e%2e/guard.py", "/ui/ui/app.js", "/ui/api/nothing"):
        assert get(server, path)[0] == 404, path
    status, headers, _ = get(server, "/ui")
    assert status == 307 and headers["location"] == "/ui/"
    assert "The playground is at http://127.0.0.1:" in server.log()


def test_the_page_is_small_and_needs_no_leave_from_its_policy() -> None:
    folder = resources.files("anvil.server") / "ui"
    parts = {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}
    assert sum(map(len, parts.values())) < 80_000
    found: list[tuple[str, dict[str, str | None]]] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            found.append((tag, dict(attrs)))

    Tags().feed(parts["index.html"])
    for tag, attributes in found:
        assert tag != "style" and (tag != "script" or attributes.get("src"))
        assert not [name for name in attributes if name == "style" or name.startswith("on")]
    for name, part in parts.items():
        assert not re.search(r"(inner|outer|Adjacent)HTML|document\.write|\beval\b|new Function", part), name
        assert name.endswith(".svg") or not re.search(r"(?:src|import|url)\W{1,3}https?:", part), name


def test_without_being_asked_for_there_is_no_page(docs: Path) -> None:
    with mcp_servers.over_http(docs, docs.parent / "index.db", "--provider", "none") as server:
        for path in ("/ui/", "/ui", "/ui/app.js", "/ui/api/status"):
            assert get(server, path)[0] == 404
        assert "playground" not in server.log()


# --- its answers -----------------------------------------------------------------------------------------------


def assert_within(part: Any, whole: Any) -> None:
    """Whether all of ``part`` is in ``whole``: a list has the same number of items."""
    if isinstance(part, dict):
        assert part.keys() <= whole.keys()
        for key, value in part.items():
            assert_within(value, whole[key])
    elif isinstance(part, list):
        for value, other in zip(part, whole, strict=True):
            assert_within(value, other)
    else:
        assert part == whole


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "keyword"])
def test_search_shows_the_very_answer_of_the_tool_and_its_parts(server: Process, mode: str) -> None:
    query = "who is told when an alert is not acknowledged?"
    found = answer(server, "search", query=query, top_k=4, mode=mode)
    result = json.loads(found["text"])
    assert compact(result) == found["text"]
    with connected(server.url) as speaker:
        said = speaker.ok("search_docs", query=query, top_k=4, mode=mode)
    assert_within({**said, "query_ms": 0}, {**result, "query_ms": 0})  # the tool leaves out what is as usual
    assert result["results"][0]["metadata"]["file_path"] == ALERTS
    assert len(found["parts"]) == len(result["results"]) == 4
    for hit, parts in zip(result["results"], found["parts"], strict=True):
        assert sum(parts.values()) == pytest.approx(hit["score"], abs=3e-6)
    first = found["parts"][0]
    assert (first["words"] > 0) == (mode != "semantic") and (first["vectors"] > 0) == (mode != "keyword")
    assert {"alert", "acknowledges", "Alerts"} <= set(found["words"]) and "when" not in found["words"]


def test_filters_and_limits_are_those_of_the_tool(server: Process) -> None:
    found = json.loads(answer(server, "search", query="check", file_filter="guides/**", top_k=99)["text"])
    assert {hit["metadata"]["file_path"].split("/")[0] for hit in found["results"]} == {"guides"}
    assert found["total_chunks"] == 8
    assert len(json.loads(answer(server, "search", query="check", top_k="", mode="")["text"])["results"]) == 5


@pytest.mark.parametrize(
    ("name", "status", "parameters", "told"),
    [
        ("search", 400, {}, "query parameter is required"),
        ("search", 400, {"query": " "}, "query parameter is required"),
        ("search", 400, {"query": "x" * (MAX_QUERY_CHARS + 1)}, "Ask a shorter one"),
        ("search", 400, {"query": "x", "mode": "magic"}, "hybrid, semantic, keyword"),
        ("search", 400, {"query": "x", "top_k": "many"}, "must be an integer"),
        ("search", 400, {"query": "x", "top_k": "9" * 40}, "must be an integer"),
        ("search", 400, {"query": "x", "nothing": "1"}, "has no parameter 'nothing'"),
        ("page", 404, {"file_path": "guides/alert.md"}, ALERTS),
        ("page", 404, {"file_path": "../../etc/passwd"}, "outside"),
        ("section", 404, {"file_path": ALERTS, "heading_path": "Escalatio"}, "Alerts > Escalation"),
        ("section", 400, {"file_path": ALERTS, "heading_path": "Alerts", "include_children": "yes"}, "a boolean"),
    ],
)
def test_what_cannot_be_answered_says_why(
    server: Process, name: str, status: int, parameters: dict[str, str], told: str
) -> None:
    assert told in answer(server, name, status, **parameters)["error"]


def test_a_page_comes_with_its_sections(server: Process) -> None:
    found = answer(server, "page", file_path=ALERTS)
    whole = "".join(chunk["content"] for chunk in found["page"]["chunks"])
    assert whole == PAGES[ALERTS] and found["url"] is None
    assert [each["heading_path"] for each in found["sections"]][1:3] == ["Alerts > E-mail", "Alerts > Silence at night"]
    for each in found["sections"]:
        section = answer(server, "section", file_path=ALERTS, heading_path=each["heading_path"])
        assert section["content"] == whole[each["start"] : each["end"]]
    with_children = answer(server, "section", file_path=ALERTS, heading_path="Alerts", include_children="true")
    assert with_children["content"] == whole
    listed = answer(server, "pages")
    assert [page["file_path"] for page in listed["pages"]] == sorted(PAGES)
    assert [page["file_path"] for page in answer(server, "pages", prefix="guides")["pages"]] == [
        ALERTS,
        "guides/checks.md",
    ]


def test_health_is_that_of_the_text_that_is_answered_from(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, tmp_path / "index.db", "none") as opened:
        opened.index()
    with mcp_servers.over_http(docs, tmp_path / "index.db", "--provider", "none", "--ui") as server:
        found = answer(server, "health")
        assert found["stale"] == {"changed": [], "added": [], "removed": []} and found["not_compared"] is None
        assert found["health"]["pages"] == 4 and found["health"]["near_duplicates"] is None
        assert sum(bar["chunks"] for bar in found["health"]["chunk_sizes"]) == found["health"]["chunks"] == 13
        sizes = {page["file_path"]: page["chars"] for page in found["health"]["largest_pages"]}
        sizes |= {page["file_path"]: page["chars"] for page in found["health"]["smallest_pages"]}
        assert sizes["index.md"] == len(PAGES["index.md"]) and len(sizes) == 4
        assert found["status"]["index"]["artifact"]["digest"]

        write(docs, {"plain.md": "No heading here.\n", "empty.md": "", "copy.md": PAGES[ALERTS]})
        (docs / "install.md").unlink()
        found = answer(server, "health")
        assert found["stale"] == {
            "changed": [],
            "added": ["copy.md", "empty.md", "plain.md"],
            "removed": ["install.md"],
        }
        assert found["health"]["empty_pages"] == ["empty.md"] and found["health"]["without_headings"] == ["plain.md"]
        assert len(found["health"]["duplicates"]) == 4
    (tmp_path / "alone").mkdir()
    alone = mcp_servers.program("--index", str(tmp_path / "index.db"), "--provider", "none", "--ui")
    with mcp_servers.listening(alone, tmp_path / "alone") as server:
        assert "no documents to compare with" in answer(server, "health")["not_compared"]


# --- who gets them ---------------------------------------------------------------------------------------------


def test_several_collections_are_searched_at_once_and_read_one_by_one(tmp_path: Path) -> None:
    with several_collections(tmp_path) as server:
        labels = ["docs", "bakery@1.9", "bakery@1.10"]
        assert [each["label"] for each in answer(server, "collections")] == labels
        found = json.loads(answer(server, "search", query="check the sourdough", top_k=20)["text"])["results"]
        assert {(hit["collection"], hit.get("version")) for hit in found} == {("docs", None), ("bakery", "1.10")}
        old = json.loads(answer(server, "search", query="sourdough", collection="bakery@1.9")["text"])["results"]
        assert {hit["version"] for hit in old} == {"1.9"}
        paths = [page["file_path"] for page in answer(server, "pages", collection="bakery")["pages"]]
        assert paths == sorted(BAKERY)
        assert [page["file_path"] for page in answer(server, "pages")["pages"]] == sorted(PAGES)
        page = answer(server, "page", file_path="bread.md", collection="bakery@1.9")
        assert [section["title"] for section in page["sections"]] == ["Bread", "Sourdough"]
        section = answer(server, "section", file_path="bread.md", heading_path="Bread > Sourdough", collection="bakery")
        assert "Feed the sourdough" in section["content"]
        assert [each["name"] for each in answer(server, "status")["collections"]] == ["docs", "bakery", "bakery"]
        assert answer(server, "status", collection="bakery")["index"]["total_pages"] == len(BAKERY)
        assert answer(server, "health", collection="bakery")["health"]["pages"] == len(BAKERY)
        assert "There is no collection garden" in answer(server, "pages", 400, collection="garden")["error"]


def test_a_single_index_has_no_collections(server: Process) -> None:
    assert answer(server, "collections") == []
    for name, given in (("search", {"query": "x"}), ("pages", {}), ("status", {}), ("health", {})):
        assert answer(server, name, 400, collection="docs", **given)["error"].startswith("There is one collection.")


def test_with_a_token_the_page_is_open_and_what_it_asks_is_not(docs: Path) -> None:
    flags = ("--provider", "none", "--ui", "--log-level", "debug")
    with mcp_servers.over_http(docs, docs.parent / "index.db", *flags, ANVIL_TOKEN=TOKEN) as server:
        for name in FILES:
            assert get(server, f"/ui/{name}")[0] == 200
        for name in ("status", "pages", "health", "search?query=alert"):
            assert get(server, f"/ui/api/{name}")[0] == 401
            assert get(server, f"/ui/api/{name}", Authorization="Bearer wrong")[0] == 401
            assert get(server, f"/ui/api/{name}", Authorization=f"Bearer {TOKEN}")[0] == 200
        assert get(server, f"/ui/api/status?token={TOKEN}")[0] == 401, "it is no part of an address"
        assert TOKEN not in server.log()


def test_foreign_hosts_and_origins_get_nothing(server: Process) -> None:
    for path in ("/ui/", "/ui/app.js", "/ui/api/status"):
        assert get(server, path, Host="evil.example")[0] == 403
        assert get(server, path, Origin="https://evil.example")[0] == 403
        assert get(server, path, Origin="null")[0] == 403


# --- how it is started -----------------------------------------------------------------------------------------


def test_it_goes_with_http_and_with_the_documents_only(docs: Path) -> None:
    assert "Add --transport http, or run 'anvil ui'." in complaint("serve", "--docs", docs, "--ui")
    told = complaint("serve", "--docs", docs, "--ui", "--transport", "http", "--surface", "context")
    assert "--surface docs" in told


def opened_ui(docs: Path, *flags: str, **variables: str) -> subprocess.Popen[str]:
    line = [sys.executable, "-W", "error::ResourceWarning", "-m", "anvil", "ui", "--docs", str(docs), *flags]
    return subprocess.Popen(
        line,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=mcp_servers.environment(**variables),
        cwd=docs.parent,
    )


@pytest.mark.skipif(os.name == "nt", reason="the stand-in for a browser is a shell script")
@pytest.mark.parametrize("token", [None, TOKEN])
def test_anvil_ui_says_where_and_opens_the_browser_without_the_token(
    docs: Path, tmp_path: Path, token: str | None
) -> None:
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\nprintf "%s" "$1" > {opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    variables = {"BROWSER": str(browser), **({"ANVIL_TOKEN": token} if token else {})}
    process = opened_ui(docs, "--provider", "none", **variables)
    try:
        assert process.stdout is not None
        address = process.stdout.readline().strip()
        plain, _, fragment = address.partition("#")
        assert re.fullmatch(r"http://127\.0\.0\.1:\d+/ui/", plain)
        assert fragment == ("token=t0ken%2Bof%2Fthe~page%3D%3D" if token else "")
        end = time.monotonic() + 20
        while not opened.exists() and time.monotonic() < end:
            time.sleep(0.05)
        assert opened.read_text() == plain
    finally:
        process.terminate()
        said, logged = process.communicate(timeout=20)
    assert process.returncode == 0 and said == "" and TOKEN not in logged
    assert logged.startswith("Starting the playground.")


def test_anvil_ui_leaves_the_browser_alone_when_told(docs: Path, tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    process = opened_ui(docs, "--provider", "none", "--no-browser", BROWSER=f"touch {opened} %s")
    try:
        assert process.stdout is not None and process.stdout.readline().startswith("http://127.0.0.1:")
        time.sleep(0.5)
    finally:
        process.terminate()
        process.communicate(timeout=20)
    assert process.returncode == 0 and not opened.exists()
