"""Questions: each answer is of the pages as they are now, and has the fields of the contract."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import anvil
from anvil.errors import ConfigError, NotFound, SourceError
from tests.conftest import PAGES, write
from tests.support.programs import environment as program_environment

NIGHT = "guides/alerts.md"
CALLS: dict[str, Callable[[anvil.Anvil], Any]] = {
    "search": lambda a: a.search("zebra", mode="keyword").results[0].content,
    "get_page": lambda a: "".join(chunk.content for chunk in a.get_page(NIGHT).chunks),
    "get_section": lambda a: a.get_section(NIGHT, "Alerts > Zebra").content,
    "list_pages": lambda a: " ".join(h for page in a.list_pages().pages for h in page.headings),
    "get_status": lambda a: "Zebra" * a.get_status().index.stale.changed,
}


@pytest.fixture
def opened(docs: Path) -> Iterator[anvil.Anvil]:
    """The four pages, indexed without vectors."""
    with anvil.open(docs, provider="none") as found:
        found.index()
        yield found


def edit(docs: Path) -> None:
    write(docs, {NIGHT: PAGES[NIGHT] + "\n## Zebra\n\nZebra: a section that was not there when the index was built.\n"})


def names(value: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(value) if not field.metadata.get("several")}


@pytest.mark.parametrize("call", CALLS)
def test_every_question_sees_an_edit_and_the_artifact_is_not_touched(
    opened: anvil.Anvil, docs: Path, call: str
) -> None:
    assert not opened.search("zebra", mode="keyword").results
    before, stat = opened.index_path.read_bytes(), opened.index_path.stat()
    edit(docs)
    assert "Zebra" in CALLS[call](opened)
    assert opened.index_path.read_bytes() == before
    assert opened.index_path.stat().st_mtime_ns == stat.st_mtime_ns and opened.index_path.stat().st_ino == stat.st_ino
    assert sorted(path.name for path in opened.index_path.parent.iterdir()) == [".gitignore", "index.db"]


@pytest.mark.parametrize("call", [name for name in CALLS if name != "get_status"])
def test_every_question_sees_an_edit_after_a_build(opened: anvil.Anvil, docs: Path, call: str) -> None:
    opened.list_pages()
    edit(docs)
    assert opened.index().outcome == "built"
    assert "Zebra" in CALLS[call](opened)
    assert opened.get_status().index.stale == anvil.status.StaleCounts(0, 0, 0)


@pytest.mark.parametrize("call", [name for name in CALLS if name != "get_status"])
def test_the_first_question_of_another_object_sees_the_edit_too(docs: Path, opened: anvil.Anvil, call: str) -> None:
    edit(docs)
    with anvil.open(docs, provider="none") as other:
        assert "Zebra" in CALLS[call](other)


def test_pages_that_come_go_and_move(opened: anvil.Anvil, docs: Path) -> None:
    (docs / "install.md").unlink()
    (docs / "guides/checks.md").rename(docs / "questions.md")
    write(docs, {"new/page.md": "# Quagga\n\nA new page.\n"})
    expected = sorted({*PAGES, "questions.md", "new/page.md"} - {"install.md", "guides/checks.md"})
    status = opened.get_status()
    assert status.index.stale == anvil.status.StaleCounts(changed=0, added=2, removed=2)
    assert status.index.total_pages == 4
    assert [page.file_path for page in opened.list_pages().pages] == expected
    assert opened.search("quagga").results[0].metadata.file_path == "new/page.md"
    assert opened.search("DEC-0054").results[0].metadata.file_path == "questions.md"
    with pytest.raises(NotFound):
        opened.get_page("install.md")
    (docs / "new/page.md").unlink()
    assert not opened.search("quagga", mode="keyword").results


def test_a_filter_that_was_used_before_sees_pages_that_come_and_go(opened: anvil.Anvil, docs: Path) -> None:
    def found(glob: str = "later/**") -> list[str]:
        return [hit.metadata.file_path for hit in opened.search("zebra", file_filter=glob).results]

    assert found() == []
    write(docs, {"later/stripes.md": "# Stripes\n\nA zebra has stripes.\n"})
    assert found() == ["later/stripes.md"]
    for number in range(20):  # more than are kept
        assert found(f"none-{number}/**") == []
    assert found() == ["later/stripes.md"]
    (docs / "later/stripes.md").unlink()
    assert found() == []


def test_the_answer_says_what_was_refreshed(opened: anvil.Anvil, docs: Path) -> None:
    assert opened.search("alerts").freshness.refreshed == ()
    edit(docs)
    freshness = opened.search("alerts").freshness
    assert (freshness.checked, freshness.refreshed, freshness.commit) == ("working tree", (NIGHT,), None)
    assert opened.search("alerts").freshness.refreshed == ()


def test_vectors_follow_an_edit(docs: Path) -> None:
    with anvil.open(docs) as found:
        found.index()
        edit(docs)
        result = found.search("the zebra section that was not there", mode="semantic")
        assert "## Zebra" in result.results[0].content  # it is short, and merged with its neighbour
        assert result.freshness.pending_vectors == 0 and result.freshness.notes == ()


def test_an_artifact_replaced_by_another_process_is_picked_up(opened: anvil.Anvil, docs: Path) -> None:
    before = opened.get_status().index.artifact
    edit(docs)
    opened.list_pages()
    command = [sys.executable, "-m", "anvil", "build", "--docs", str(docs), "--provider", "none", "--quiet"]
    subprocess.run(command, check=True, timeout=60, env=program_environment())
    after = opened.get_status().index
    assert before and after.artifact and after.artifact.digest != before.digest
    assert after.stale.changed == 0 and "Zebra" in CALLS["search"](opened)


def test_an_index_alone_follows_its_file(opened: anvil.Anvil, docs: Path, tmp_path: Path) -> None:
    copy = tmp_path / "published.db"
    copy.write_bytes(opened.index_path.read_bytes())
    with anvil.open(index=copy, provider="none") as alone:
        assert not alone.search("zebra", mode="keyword").results
        edit(docs)
        opened.index()
        fresh = tmp_path / "fresh.db"
        fresh.write_bytes(opened.index_path.read_bytes())
        fresh.replace(copy)
        assert "Zebra" in CALLS["search"](alone)


def test_the_folder_may_go_and_come_back(opened: anvil.Anvil, docs: Path) -> None:
    opened.list_pages()
    docs.rename(docs.with_name("aside"))
    for call in CALLS.values():
        with pytest.raises(SourceError, match=str(docs)):
            call(opened)
    with pytest.raises(SourceError, match=str(docs)):
        opened.index()
    assert not docs.exists()
    docs.with_name("aside").rename(docs)
    edit(docs)
    assert "Zebra" in CALLS["search"](opened)


def test_what_is_closed_answers_no_more(docs: Path) -> None:
    found = anvil.open(docs, provider="none")
    found.index()
    found.close()
    found.close()
    calls: list[Callable[[anvil.Anvil], object]] = [*CALLS.values(), lambda a: a.index(), lambda a: a.check()]
    for call in calls:
        with pytest.raises(ConfigError, match=r"closed.*anvil.open"):
            call(found)


def test_eight_threads_ask_while_pages_change(opened: anvil.Anvil, docs: Path) -> None:
    failures: list[BaseException] = []
    start = threading.Barrier(9)

    def ask() -> None:
        try:
            start.wait()
            for _ in range(6):
                page = opened.get_page(NIGHT)
                assert "".join(chunk.content for chunk in page.chunks).startswith("# Alerts")
                assert opened.search("silence at night").results[0].metadata.file_path == NIGHT
                assert opened.list_pages().total_pages == 4
                assert opened.get_section(NIGHT, "Alerts > E-mail").content.startswith("## E-mail")
                assert opened.get_status().index.total_pages == 4
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    start.wait()
    for number in range(6):
        (docs / "new.tmp").write_text(PAGES[NIGHT] + f"\n## Number {number}\n\nText.\n")
        (docs / "new.tmp").replace(docs / NIGHT)
        if number == 3:
            opened.index()
    for thread in threads:
        thread.join(60)
    assert failures == [] and not any(thread.is_alive() for thread in threads)
    assert opened.get_section(NIGHT, "Alerts > Number 5").content == "## Number 5\n\nText.\n"


def test_a_search_while_another_process_builds_sees_one_state_or_the_other(opened: anvil.Anvil, tmp_path: Path) -> None:
    copy = tmp_path / "published.db"
    copy.write_bytes(opened.index_path.read_bytes())
    many = write(tmp_path / "many", {f"{i}.md": f"# Page {i}\n\nAlerts on page {i}.\n" for i in range(300)})
    where = ["--docs", str(many), "--index", str(copy)]
    command = [sys.executable, "-m", "anvil", "build", *where, "--provider", "none"]
    seen = []
    with anvil.open(index=copy, provider="none") as alone:
        before = alone.search("alerts").total_chunks
        with subprocess.Popen([*command, "--quiet"], env=program_environment()) as process:
            while process.poll() is None:
                seen.append(alone.search("alerts").total_chunks)
        assert process.returncode == 0
        after = alone.search("alerts").total_chunks
    assert after == 300 and set(seen) <= {before, after}


def test_results_have_the_fields_of_the_contract(opened: anvil.Anvil) -> None:
    result = opened.search("alerts")
    assert names(result) >= {"results", "total_chunks", "query_ms"} and result.query_ms > 0
    assert names(result.results[0]) >= {"content", "score", "metadata"}
    chunk = {
        "file_path",
        "heading_path",
        "heading_level",
        "last_modified",
        "char_count",
        "start_line",
        "end_line",
        "url",
    }
    assert names(result.results[0].metadata) == chunk
    page = opened.get_page("install.md")
    assert names(page) == {"file_path", "title", "last_modified", "total_chars", "chunks", "sections", "next_offset"}
    assert names(page.chunks[0]) == {"content", "heading_path", "heading_level", "char_count", "ordinal"}
    section = opened.get_section("install.md", "Install")
    assert names(section) == {"content", "metadata", "title", "next_offset"}
    assert names(section.metadata) == chunk
    listed = opened.list_pages()
    assert names(listed) == {"pages", "total_pages", "notes", "next_offset"} and listed.notes is None
    assert names(listed.pages[0]) == {
        "file_path",
        "title",
        "headings",
        "chunk_count",
        "total_chars",
        "last_modified",
        "url",
    }
    status = opened.get_status()
    assert names(status) == {"server", "index", "embedding", "git"}
    assert names(status.server) == {"version", "uptime_seconds", "docs_root"}
    assert names(status.index) == {
        "total_pages",
        "total_chunks",
        "last_indexed",
        "db_path",
        "db_size_bytes",
        "artifact",
        "stale",
        "pending_vectors",
        "newest_document",
    }
    assert names(status.index.artifact) == {"origin", "digest", "commit", "built_at", "distance", "note"}
    assert names(status.index.stale) == {"changed", "added", "removed"}
    assert names(status.embedding) == {"model", "dimensions", "provider"}
    for value in (result, page, section, listed, status):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(value, next(iter(names(value))), None)


@pytest.mark.parametrize("limit", [float("nan"), -0.1, 1.5])
def test_a_least_confidence_is_a_share(opened: anvil.Anvil, limit: float) -> None:
    with pytest.raises(ConfigError, match="Use a value from 0 to 1"):
        opened.search("silence at night", min_confidence=limit)


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (lambda docs: anvil.open(docs=cast(Any, 5)), "docs of open must be a string, a path or None, not int: 5."),
        (
            lambda docs: anvil.open(provider=cast(Any, b"none")),
            "provider of open must be a string or None, not bytes: b'none'.",
        ),
        (lambda docs: anvil.open(docs=""), "In the options given: docs is empty"),
        (lambda docs: anvil.open(index=""), "In the options given: index is empty. Name the index file"),
        (lambda docs: docs.search("x", top_k="5"), "top_k of search must be a whole number, not str: '5'."),
        (lambda docs: docs.search("x", top_k=2.5), "top_k of search must be a whole number, not float: 2.5."),
        (lambda docs: docs.search("x", True), "top_k of search must be a whole number, not bool: True."),
        (lambda docs: docs.search(5), "query of search must be a string, not int: 5."),
        (lambda docs: docs.search("x", min_confidence="high"), "min_confidence of search must be a number or None"),
        (lambda docs: docs.get_page(None), "file_path of get_page must be a string, not NoneType: None."),
        (lambda docs: docs.grep("x", regex="yes"), "regex of grep must be True or False, not str: 'yes'."),
        (lambda docs: anvil.open_library(index=cast(Any, 3)), "index of open_library must be a string, a path or None"),
    ],
)
def test_an_argument_of_a_wrong_type_is_named(opened: anvil.Anvil, call: Callable[[Any], object], told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        call(opened)
    assert told in str(caught.value)


def test_arguments_that_python_takes_for_numbers_are_taken(opened: anvil.Anvil) -> None:
    assert opened.search("alerts", top_k=np.int64(1), min_confidence=0).results == opened.search("alerts", 1).results
    with pytest.raises(TypeError, match="unexpected keyword"):
        opened.search("alerts", top=3)  # type: ignore[call-arg]
