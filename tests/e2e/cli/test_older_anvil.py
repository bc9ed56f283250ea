"""An index of the older Anvil where this one puts its own: questions leave it alone, a build replaces it."""

from __future__ import annotations

import sqlite3
import time
from pathlib import Path

import pytest

import anvil
from tests.conftest import write
from tests.support import mcp_servers, older_anvil
from tests.support.in_process import complaint, printed, program

REFUSAL = "is an index of the older Anvil, which is not read."
NOTE = f"{REFUSAL} 'anvil build' replaces it."


@pytest.fixture(params=[False, True], ids=["closed", "killed"])
def index(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The older index, in the documentation of a project that has the provider none."""
    write(tmp_path, {"docs/tides.md": "# Tides\n\nHigh water is at noon.\n", "docs/lamps.md": "# Lamps\n\nOil.\n"})
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    path = tmp_path / "docs" / ".anvil" / "index.db"
    older_anvil.write_index(path, killed=request.param)
    return path


def test_questions_are_answered_from_the_documents(index: Path, tmp_path: Path) -> None:
    before = index.read_bytes()
    found = printed("search", "high water", cwd=tmp_path)
    assert [hit["metadata"]["file_path"] for hit in found["results"]] == ["tides.md"]
    assert [note for note in found["freshness"]["notes"] if "older" in note] == [
        f"{index} {NOTE} This answer is from the documents."
    ]
    done = program("search", "high water", cwd=tmp_path)
    assert done.stderr.count("older Anvil") == 1 and "being built" not in done.stderr
    assert "tides.md" in program("list", cwd=tmp_path).stdout
    assert "High water" in program("show", "tides.md", cwd=tmp_path).stdout
    assert "tides.md:3" in program("grep", "noon", cwd=tmp_path).stdout
    assert printed("status", cwd=tmp_path)["index"]["total_pages"] == 2
    assert NOTE in complaint("check", cwd=tmp_path)
    with anvil.open(tmp_path / "docs", provider="none") as docs:
        write(tmp_path, {"docs/new.md": "# New\n\nA quagga.\n"})
        (hit,) = docs.search("quagga").results
        assert hit.metadata.file_path == "new.md"
    assert index.read_bytes() == before


@pytest.mark.parametrize("force", [(), ("--force",)])
def test_a_build_replaces_it_and_says_so(index: Path, tmp_path: Path, force: tuple[str, ...]) -> None:
    done = program("build", *force, cwd=tmp_path)
    assert "docs/.anvil/index.db is an index of the older Anvil" in done.stderr and "Built" in done.stdout
    assert sorted(file.name for file in index.parent.iterdir()) == [".gitignore", "index.db"]
    program("verify", index)
    assert "older" not in program("search", "high water", cwd=tmp_path).stderr
    assert "fresh" in program("check", cwd=tmp_path).stdout
    with sqlite3.connect(index) as handle:  # no log of the old file is read as one of the new
        assert handle.execute("SELECT count(*) FROM documents").fetchone() == (2,)
    handle.close()


def test_a_server_answers_and_replaces_it(index: Path, tmp_path: Path) -> None:
    deadline = time.monotonic() + 30
    with mcp_servers.in_memory(tmp_path / "docs", None, "none") as speaker:
        found = speaker.ok("search_docs", query="high water")
        assert [hit["metadata"]["file_path"] for hit in found["results"]] == ["tides.md"]
        while speaker.ok("search_docs", query="high water")["freshness"]["notes"][1:]:
            assert time.monotonic() < deadline, "it is never built"
            time.sleep(0.05)
    program("verify", index)
    assert "fresh" in program("check", cwd=tmp_path).stdout


def test_one_that_is_named_is_refused_by_questions_and_replaced_by_a_build(index: Path, tmp_path: Path) -> None:
    named = ("--docs", tmp_path / "docs", "--index", index)
    assert REFUSAL in complaint("search", "high water", *named, cwd=tmp_path)
    assert "older Anvil" in program("build", *named, cwd=tmp_path).stderr
    assert "tides.md" in program("search", "high water", *named, cwd=tmp_path).stdout


def test_other_databases_with_tables_of_these_names_stay(tmp_path: Path) -> None:
    write(tmp_path, {"docs/tides.md": "# Tides\n"})
    index = tmp_path / "docs" / ".anvil" / "index.db"
    index.parent.mkdir()
    with sqlite3.connect(index) as handle:
        handle.executescript("CREATE TABLE chunks (chunk_id); CREATE TABLE anvil_meta (key, value);")
    handle.close()
    before = index.read_bytes()
    assert "is not an Anvil index, and would be lost" in complaint("build", "--provider", "none", cwd=tmp_path)
    assert index.read_bytes() == before
