"""What docs/reference/versioning.md promises of indexes from other versions, with real files."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import anvil
from anvil.build.report import BuildReport
from anvil.index_file import table_rows, verify
from anvil.library import library_file
from anvil.text import chunker, query
from tests.conftest import PAGES, write
from tests.support import mcp_servers
from tests.support.programs import complaint, program

DOCUMENTATION = Path(__file__).parents[2] / "docs"
PAGE = (DOCUMENTATION / "reference" / "versioning.md").read_text(encoding="utf-8")
UPGRADE = "Upgrade with 'pip install -U anvil-docs'."


def built(work: Path, provider: str = "none", name: str = "index.db") -> BuildReport:
    """Build an index of the pages in ``work`` beside them."""
    with anvil.open(work / "docs", work / name, provider) as opened:
        return opened.index()


def of_format(index: Path, version: int) -> bytes:
    """Make a file one of another format, as its header says it; the file's bytes."""
    content = bytearray(index.read_bytes())
    content[60:64] = version.to_bytes(4, "big")  # SQLite's user_version
    index.write_bytes(content)
    return bytes(content)


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """Pages, and an index of them by words."""
    write(tmp_path / "docs", PAGES)
    (tmp_path / "anvil.toml").write_text('index = "index.db"\n[embedding]\nprovider = "none"\n', encoding="utf-8")
    built(tmp_path)
    return tmp_path


# --- a newer format ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "--index", "index.db", "alerts"],
        ["search", "alerts"],
        ["check"],
        ["build"],
        ["status"],
        ["diff", "index.db", "index.db"],
    ],
)
def test_a_newer_format_is_refused_everywhere_and_left_alone(work: Path, arguments: list[str]) -> None:
    before = of_format(work / "index.db", table_rows.FORMAT_VERSION + 1)
    said = complaint(*arguments, cwd=work)
    assert f"has format {table_rows.FORMAT_VERSION + 1}; this Anvil reads up to {table_rows.FORMAT_VERSION}." in said
    assert said.endswith(UPGRADE)
    assert (work / "index.db").read_bytes() == before


def test_verify_says_no_to_a_newer_format(work: Path) -> None:
    of_format(work / "index.db", table_rows.FORMAT_VERSION + 1)
    assert complaint("verify", "index.db", cwd=work, code=1).endswith(UPGRADE)


def test_force_replaces_a_newer_format(work: Path) -> None:
    good = (work / "index.db").read_bytes()
    of_format(work / "index.db", table_rows.FORMAT_VERSION + 1)
    program("build", "--force", cwd=work)
    assert (work / "index.db").read_bytes() == good


def test_a_newer_format_is_no_cache_and_no_obstacle(work: Path) -> None:
    newer = work / "newer.db"
    newer.write_bytes((work / "index.db").read_bytes())
    of_format(newer, table_rows.FORMAT_VERSION + 1)
    (work / "index.db").unlink()
    done = program("build", "--previous", "newer.db", cwd=work)
    assert "newer.db has format" in done.stdout + done.stderr and (work / "index.db").exists()


def test_a_server_with_the_documents_is_not_stuck_by_a_newer_format(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    built(tmp_path, name="docs/.anvil/index.db")
    before = of_format(docs / ".anvil" / "index.db", table_rows.FORMAT_VERSION + 1)
    with mcp_servers.in_memory(docs, None, "none") as client:
        found = client.ok("search_docs", query="certificate expires")
        assert found["results"][0]["metadata"]["file_path"] == "guides/checks.md"
    assert (docs / ".anvil" / "index.db").read_bytes() == before


# --- an older format ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arguments", [["search", "--index", "old.db", "alerts"], ["diff", "old.db", "old.db"], ["verify", "old.db"]]
)
def test_an_older_format_is_not_read(work: Path, arguments: list[str]) -> None:
    (work / "index.db").rename(work / "old.db")
    before = of_format(work / "old.db", table_rows.FORMAT_VERSION - 1)
    (work / "anvil.toml").unlink()
    said = complaint(*arguments, cwd=work, code=1 if arguments[0] == "verify" else 2)
    assert f"it has the old format {table_rows.FORMAT_VERSION - 1}. Build it again" in said
    assert arguments[0] == "search" or "anvil build" not in said, "the file need not be one that is built here"
    assert (work / "old.db").read_bytes() == before


def test_a_build_makes_an_older_format_again(work: Path) -> None:
    good = (work / "index.db").read_bytes()
    of_format(work / "index.db", table_rows.FORMAT_VERSION - 1)
    assert "old format" in complaint("search", "alerts", cwd=work)  # a file that was named is for a build to replace
    said = program("build", cwd=work).stderr
    assert said.startswith("anvil: ") and f"old format {table_rows.FORMAT_VERSION - 1}. It was built again.\n" in said
    assert (work / "index.db").read_bytes() == good


def test_a_question_makes_an_older_format_again_at_its_usual_place(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    index = docs / ".anvil" / "index.db"
    write(tmp_path, {"anvil.toml": 'embedding.provider = "none"\n'})
    for _ in range(2):
        program("search", "alerts", cwd=tmp_path)
        good = index.read_bytes()
        of_format(index, table_rows.FORMAT_VERSION - 1)
    program("search", "alerts", cwd=tmp_path)
    assert index.read_bytes() == good


# --- the same format, from another version -----------------------------------------------------------------------


def test_another_version_of_anvil_reads_it_and_leaves_it(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (work / "index.db").unlink()
    with monkeypatch.context() as older:
        older.setattr("anvil.build.builder.__version__", "0.0.1")
        digest = built(work).digest
    before = (work / "index.db").read_bytes()
    with verify.open_checked(work / "index.db") as reader:
        assert reader.meta()["anvil_version"] == "0.0.1"
    report = built(work)
    assert report.outcome == "unchanged" and report.digest == digest
    assert (work / "index.db").read_bytes() == before
    (work / "index.db").unlink()
    assert built(work).digest == digest  # the version is no part of it


def test_pages_of_an_older_chunker_are_read_and_cut_again_with_their_vectors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "docs", {name: PAGES[name] for name in ("index.md", "install.md")})
    with monkeypatch.context() as older:
        older.setattr(chunker, "CHUNKER_VERSION", chunker.CHUNKER_VERSION - 1)
        first = built(tmp_path, "local")
    assert first.embedded
    with anvil.open(index=tmp_path / "index.db") as alone:
        assert alone.search("which port?").results
    again = built(tmp_path, "local")
    assert (again.outcome, again.embedded, again.reused) == ("built", 0, first.windows)
    assert again.reasons and again.digest != first.digest
    assert built(tmp_path, "local").outcome == "unchanged"


def test_an_index_of_another_model_answers_by_words_and_is_embedded_again(
    work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built(work, "local", "vectors.db")
    with anvil.open(index=work / "vectors.db", provider="none") as alone:
        found = alone.search("certificate")
        assert found.results and any("Semantic search is off" in note for note in found.freshness.notes)
    monkeypatch.setenv("ANVIL_EMBEDDING_CACHE", "false")
    again = built(work, "local")
    assert (again.outcome, again.reused) == ("built", 0) and again.embedded


def test_a_library_of_an_older_format_is_refused_and_not_changed(tmp_path: Path) -> None:
    file = tmp_path / "library.db"
    with anvil.open_library(file, provider="none") as library:
        library.ingest_content("# Text\n\nOf a note.\n", "note.md")
    of_format(file, library_file.FORMAT_VERSION - 1)
    content = file.read_bytes()
    refused = pytest.raises(anvil.AnvilError, match="has the old library format")
    with anvil.open_library(file, provider="none") as library, refused:
        library.search("note")
    assert file.read_bytes() == content


def test_a_library_of_a_newer_format_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "library.db"
    with anvil.open_library(file, provider="none") as library:
        library.ingest_content("# Text\n\nOf a note.\n", "note.md")
    of_format(file, library_file.FORMAT_VERSION + 1)
    refused = pytest.raises(anvil.AnvilError, match="has library format")
    with anvil.open_library(file, provider="none") as library, refused as error:
        library.search("note")
    assert str(error.value).endswith(UPGRADE)


# --- the page says so --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("row", "now"),
    [
        ("format", table_rows.FORMAT_VERSION),
        ("chunker", chunker.CHUNKER_VERSION),
        ("terms", query.TERMS_VERSION),
        ("library format", library_file.FORMAT_VERSION),
    ],
)
def test_the_page_names_the_numbers(row: str, now: int) -> None:
    assert re.search(rf"^\| {row} \| [^|]+ \| {now} \|", PAGE, re.MULTILINE)


def test_the_page_of_the_index_file_names_the_format() -> None:
    page = (DOCUMENTATION / "reference" / "artifact.md").read_text(encoding="utf-8")
    assert f"| `format_version` | {table_rows.FORMAT_VERSION} |" in page
    assert f"now {table_rows.FORMAT_VERSION}." in page


def test_the_page_names_the_pythons_that_the_package_claims() -> None:
    from scripts import project

    minors = [int(found[1]) for each in project.table()["classifiers"] if (found := re.search(r":: 3\.(\d+)$", each))]
    assert f"Python 3.{min(minors)} to 3.{max(minors)}, on Linux, macOS and Windows." in PAGE
