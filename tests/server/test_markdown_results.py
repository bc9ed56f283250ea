"""The answers of tools as Markdown."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.results import Place
from anvil.server.docs_toolset import TOOLSET
from anvil.server.markdown_results import in_markdown, render, rendered_hit, rendered_hits
from anvil.server.protocol import Answers
from anvil.server.toolset import RunningToolset
from tests.conftest import PAGES, write

LONG = "# Rope\n\n" + "".join(f"Paragraph {number} is of something else.\n\n" for number in range(60))
HITCHES = (
    "A timber hitch or a clove hitch begins a lashing of two spars.\n\n" + "A hitch holds. " * 20 + "\n\n"
    "Timber hitch\n------------\n\n    # a hitch for a log\n    haul the timber\n\n" + "A hitch holds. " * 20
)
KNOTS = "## Knots\n\nThe bowline is a knot.\n\n\n\n\nIt holds.\n"


@pytest.fixture(scope="module")
def opened(tmp_path_factory: pytest.TempPathFactory) -> Iterator[anvil.Anvil]:
    folder: Path = tmp_path_factory.mktemp("markdown")
    docs = write(
        folder / "docs", {**PAGES, "rope.md": f"{LONG}The euphroe spreads an awning.\n\n{KNOTS}", "hitches.md": HITCHES}
    )
    with anvil.open(docs, folder / "i.db", "none") as found:
        found.index()
        yield found


def running(opened: anvil.Anvil) -> RunningToolset:
    served = RunningToolset.of(TOOLSET, opened)
    return replace(served, toolset=in_markdown(served.toolset))


@pytest.fixture(scope="module")
def ask(opened: anvil.Anvil) -> Any:
    answers = Answers([running(opened)])

    def ask(name: str, **arguments: Any) -> str:
        result = answers.answer("tools/call", {"name": name, "arguments": arguments})
        assert list(result) == ["content", "isError", "resultType"], "it is sent once"
        ((kind, text),) = (tuple(part.values()) for part in result["content"])
        assert kind == "text" and isinstance(text, str)
        return text

    return ask


def test_tools_promise_no_structured_content(opened: anvil.Anvil) -> None:
    answers = Answers([running(opened)])
    tools = answers.answer("tools/list", {})["tools"]
    assert [tool["name"] for tool in tools] == [tool.name for tool in TOOLSET.tools]
    assert all("outputSchema" not in tool and "inputSchema" in tool for tool in tools)
    assert len(json.dumps(tools)) < 3000


def test_a_result_is_a_line_with_its_place_and_then_its_text(ask: Any) -> None:
    assert ask("search_docs", query="bowline", mode="keyword").split("\n") == [
        "rope.md#knots (lines 125-132) Rope > Knots [0.67]",
        "The bowline is a knot.",
        "",
        "It holds.",
    ]
    euphroe = ask("search_docs", query="euphroe awning", max_chars=40, mode="keyword")
    assert "rope.md#rope (line 123 of 1-124) Rope [" in euphroe
    assert euphroe.endswith("]\n…\nThe euphroe spreads an awning."), "behind it there is nothing but a blank line"
    assert ask("search_docs", query="zzz", mode="keyword") == "Nothing found."


def test_further_sections_and_notes_stand_below(ask: Any, opened: anvil.Anvil) -> None:
    result = opened.search("alert", 2)
    hit = next(hit for hit in result.results if hit.also)
    (place, *_) = hit.also or ()
    text = ask("search_docs", query="alert", top_k=2)
    assert f"\n#{place.anchor} (lines {place.start_line}-{place.end_line})\n" in text
    assert result.freshness.notes and text.endswith("\n\n" + "\n".join(result.freshness.notes))


def test_a_further_section_has_its_heading_where_the_anchor_has_other_words(opened: anvil.Anvil) -> None:
    hit = opened.search("alert", 1).results[0]
    for anchor, heading, line in (
        ("check-with-a-hook", "Check with a hook", "#check-with-a-hook (lines 3-4)"),
        ("--hardlink-bool", "`--hardlink` *bool*", "#--hardlink-bool (lines 3-4)"),
        ("id1", "Pack size", "#id1 (lines 3-4) Pack size"),
        ("v12", "v1.2", "#v12 (lines 3-4) v1.2"),
    ):
        further = Place(f"Title > {heading}", anchor, 3, 4, "Text.")
        assert rendered_hit(replace(hit, also=(further,))).endswith(f"\n{line}\nText.")
        named = replace(further, content="")
        shown = rendered_hit(replace(hit, also=(named, further, named)))
        assert shown.endswith(f"\n{line}\nText.\nAlso: {line}, {line}"), "those without text in one line"


def test_of_a_result_that_matches_far_less_well_only_the_line_is_shown(opened: anvil.Anvil) -> None:
    hit = replace(opened.search("alert", 1).results[0], score=0.8)
    near, far = replace(hit, score=0.61), replace(hit, score=0.59)
    shown = [each.count("\n") > 0 for each in rendered_hits([hit, near, far])]
    assert shown == [True, True, False], "three quarters of the best score"
    assert all(each.count("\n") for each in rendered_hits([hit, near, far], in_full=True))
    opposite, further = replace(hit, score=-0.1), replace(hit, score=-0.3)
    for hits, in_full in (([opposite, further], False), ([opposite, further], True), ([hit, further], True)):
        assert all(each.count("\n") for each in rendered_hits(hits, in_full=in_full)), "cosines may be negative"


def test_a_heading_is_not_repeated_and_the_beginning_of_a_page_has_an_address(ask: Any) -> None:
    timber = ask("search_docs", query="timber hitch", top_k=1)
    assert timber.split("\n")[1:3] == ["    # a hitch for a log", "    haul the timber"]
    assert "\nAlso: #(root) (lines 1-4)" in timber
    assert "clove hitch" in ask("get_section", file_path="hitches.md", heading_path="(root)")


def test_what_nothing_answers_is_said_first(opened: anvil.Anvil) -> None:
    result = opened.search("alerts at night", 2)
    unlikely = replace(result, results=tuple(replace(hit, confidence=0.01) for hit in result.results))
    assert render(unlikely).startswith(result.freshness.notes[0])


def test_other_answers(ask: Any, opened: anvil.Anvil) -> None:
    assert ask("get_section", file_path="rope.md", heading_path="knots") == (
        "rope.md (lines 125-132) Rope > Knots\n\n" + KNOTS.strip()
    )
    page = ask("get_page", file_path="rope.md")
    assert page.startswith("rope.md Rope (2,") and page.endswith(KNOTS.strip()) and LONG.strip() in page
    assert ask("grep_docs", pattern="bowline") == (
        "rope.md:127: The bowline is a knot. [Rope > Knots]\n\n1 line in 1 page"
    )
    assert ask("grep_docs", pattern="bowline", context=2).split("\n")[:3] == [
        "  ## Knots",
        "  ",
        "rope.md:127: The bowline is a knot. [Rope > Knots]",
    ]
    pages = ask("list_pages", limit=1)
    assert pages.split("\n")[0].count(" | ") == 2 and pages.endswith(
        f"{len(opened.list_pages().pages)} pages; next_offset 1"
    )
    assert json.loads(ask("get_status"))["index"]["total_pages"] == len(opened.list_pages().pages)


def test_a_long_page_and_a_long_section_come_in_parts(tmp_path: Path) -> None:
    section = "## Part {0}\n\n" + "A line of the part {0}.\n" * 1000
    text = "# Long\n\n" + "".join(section.format(number) + "\n" for number in range(4)) + "### Deep\n\nThe end.\n"
    docs = write(tmp_path / "docs", {"long.md": text, "short.md": "# Short\n\nText.\n"})
    with anvil.open(docs, tmp_path / "i.db", "none") as opened:
        answers = Answers([running(opened)])

        def read(name: str, **arguments: Any) -> tuple[str, int | None]:
            """The text without the line above and below it, and where the next part begins."""
            result = answers.answer("tools/call", {"name": name, "arguments": {"file_path": "long.md", **arguments}})
            text: str = result["content"][0]["text"]
            assert len(text) < 30_000 + 200
            body, _, more = text.rpartition("\n\nnext_offset ")
            return body or text, int(more) if body else None

        for call in ({"name": "get_page"}, {"name": "get_section", "heading_path": "Long", "include_children": True}):
            parts: list[str] = []
            more: int | None = 0
            while more is not None:
                part, more = read(**call, offset=more)
                assert part.startswith("long.md")
                parts.append(part.partition("\n\n")[2])
            seen = [line for line in "\n".join(parts).splitlines() if line]
            assert len(parts) > 2 and seen == [line for line in text.splitlines() if line]
        first = answers.answer("tools/call", {"name": "get_page", "arguments": {"file_path": "long.md"}})
        assert len(first["content"][0]["text"]) > 28_000
        short = answers.answer("tools/call", {"name": "get_page", "arguments": {"file_path": "short.md"}})
        assert short["content"][0]["text"] == "short.md Short (15 characters)\n\n# Short\n\nText."
