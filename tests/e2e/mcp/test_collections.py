"""Several collections behind one server; and that a project with one of them sees no difference."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from mcp.shared.exceptions import MCPDeprecationWarning, MCPError
from mcp.types import ResourceUpdatedNotification

import anvil
from anvil.server import docs_toolset
from anvil.server.toolset import ServeRequest
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.collections_of_pages import KITCHEN, project_with
from tests.support.mcp_servers import Speaker

OPTIONS = ServeRequest(provider="none", watch=False)
SEVERAL = """
[collections.docs]
docs = "docs"
[[collections.bakery]]
index = "bakery.db"
version = "1.9"
[[collections.bakery]]
index = "bakery.db"
version = "1.10"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of documents, and an index of others."""
    project_with(tmp_path, monkeypatch, {"bakery.db": KITCHEN})
    with anvil.open(tmp_path / "docs", provider="none") as opened:
        opened.index()
    return tmp_path


def everything(speaker: Speaker) -> list[Any]:
    """All that a client sees, without what measures time."""

    def plain(value: Any) -> Any:
        text = value if isinstance(value, str) else value.model_dump_json(by_alias=True)
        found = json.loads(text)
        for part in (found, found.get("structuredContent") or {}):
            part.pop("query_ms", None)
            part.get("server", {}).pop("uptime_seconds", None)
        for block in found.get("content") or ():
            block.pop("text", None)  # the same as the structured content
        return found

    calls = [
        ("search_docs", {"query": "sourdough certificate"}),
        ("get_page", {"file_path": "guides/alerts.md"}),
        ("get_section", {"file_path": "install.md", "heading_path": "Install > Linux"}),
        ("list_pages", {}),
        ("get_status", {}),
        ("get_page", {"file_path": "nothing.md"}),
        ("get_page", {"file_path": "install.md", "collection": "docs"}),
    ]
    return [
        plain(speaker.do("list_tools")),
        plain(speaker.do("list_resources")),
        plain(speaker.do("list_resource_templates")),
        plain(speaker.do("read_resource", "anvil://page/install.md")),
        speaker.instructions,
        *(plain(speaker.call(tool, **arguments)) for tool, arguments in calls),
        *(speaker.call(tool, **arguments).content[0].text for tool, arguments in calls[1:4]),
    ]


def test_with_one_collection_nothing_changes(project: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        before = everything(speaker)
    (project / "anvil.toml").write_text('[collections.docs]\ndocs = "docs"\n', encoding="utf-8")
    with mcp_servers.with_options(OPTIONS) as speaker:
        assert everything(speaker) == before
    (project / "anvil.toml").write_text(SEVERAL, encoding="utf-8")
    with mcp_servers.with_options(ServeRequest(provider="none", watch=False, collections=("docs",))) as speaker:
        assert everything(speaker) == before
    text = json.dumps(before)
    assert '"version": {' not in text and '"collection' not in text and docs_toolset.INSTRUCTIONS in text


@pytest.fixture
def several(project: Path) -> Path:
    (project / "anvil.toml").write_text(SEVERAL, encoding="utf-8")
    return project


def test_the_tools_take_a_collection_and_a_version(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        result = speaker.do("list_tools")
        tools = {tool.name: tool for tool in result.tools}
        for name in ("search_docs", "list_pages", "get_page", "get_section"):
            assert list(tools[name].input_schema["properties"])[-2:] == ["collection", "version"]
        assert not tools["get_status"].input_schema["properties"]
        assert len(json.dumps(json.loads(result.model_dump_json(by_alias=True, exclude_none=True)))) < 6500
        assert "docs (this project's own), bakery (1.10 or 1.9)" in speaker.instructions


def test_results_say_where_they_are_from(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        hit = speaker.ok("search_docs", query="sourdough")["results"][0]
        assert (hit["collection"], hit["version"]) == ("bakery", "1.10")
        hit = speaker.ok("search_docs", query="journalctl")["results"][0]
        assert hit["collection"] == "docs" and "version" not in hit
        section = speaker.ok("get_section", file_path="bread.md", heading_path="Bread > Sourdough", version="1.9")
        assert (section["collection"], section["version"]) == ("bakery", "1.9")
        assert {page.get("collection") for page in speaker.ok("list_pages")["pages"]} == {"docs", "bakery"}
        listed = speaker.ok("get_status")["collections"]
        assert [(each["name"], each["version"], each["default"]) for each in listed] == [
            ("docs", None, True),
            ("bakery", "1.9", False),
            ("bakery", "1.10", True),
        ]


def test_errors_say_what_to_do(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        assert "Name one with collection." in speaker.refused("get_page", file_path="index.md")
        assert "give bread.md with collection bakery" in speaker.refused("get_page", file_path="bakery/bread.md")
        assert "Did you mean bakery?" in speaker.refused("search_docs", query="x", collection="bakry")


def test_a_long_list_goes_on_over_the_collections(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        whole = speaker.ok("list_pages")
        assert (len(whole["pages"]), whole["total_pages"], "next_offset" in whole) == (6, 6, False)
        first = speaker.ok("list_pages", limit=5)
        assert (len(first["pages"]), first["total_pages"], first["next_offset"]) == (5, 6, 5)
        rest = speaker.ok("list_pages", limit=5, offset=5)
        assert first["pages"] + rest["pages"] == whole["pages"] and "next_offset" not in rest
        assert len(speaker.ok("list_pages", collection="bakery")["pages"]) == 2


def test_resources_have_the_collection_in_their_uri(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        listed = speaker.do("list_resources").resources
        assert [str(each.uri) for each in listed] == [
            "anvil://collection/bakery@1.10/bread.md",
            "anvil://collection/bakery@1.10/index.md",
            *(f"anvil://collection/docs/{path}" for path in sorted(PAGES)),
        ]
        contents = speaker.do(
            "read_resource", "anvil://collection/bakery@1.9/bread.md#Bread%20%3E%20Sourdough"
        ).contents
        assert "Feed the sourdough" in contents[0].text
        assert "# Bread" in speaker.do("read_resource", "anvil://page/bread.md").contents[0].text
        with pytest.raises(MCPError, match="There is no collection nothing"):
            speaker.do("read_resource", "anvil://collection/nothing/bread.md")


def test_a_changed_page_is_announced_under_its_uri(several: Path) -> None:
    with mcp_servers.with_options(OPTIONS) as speaker:
        uri = "anvil://collection/docs/install.md"
        speaker.ok("search_docs", query="certificate")
        with pytest.warns(MCPDeprecationWarning):
            speaker.do("subscribe_resource", uri)
        write(several / "docs", {"install.md": "# Install\n\nZebra.\n"})
        assert speaker.ok("search_docs", query="zebra")["results"][0]["metadata"]["file_path"] == "install.md"
        assert str(speaker.until(ResourceUpdatedNotification).params.uri) == uri
