"""Answers from Milvus and a folder: never from text that moved on; and what happens when Milvus does."""

from __future__ import annotations

import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.build.row_updates import windows_of
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import Embedded
from anvil.errors import ArtifactMissing, ConfigError, NotFound, ProviderError, SourceError, Unreachable
from anvil.index_file.reader import Reader
from anvil.index_file.table_rows import quantized
from anvil.live import site_view
from anvil.live.memory_copy import ChunkVectors, MemoryCopy
from anvil.milvus import export as exporting
from anvil.milvus.milvus_client import Client
from anvil.milvus.milvus_index import MilvusCollection, MilvusMemoryCopy
from anvil.milvus.milvus_reader import LayeredReader
from anvil.project_indexes import IndexLocation
from anvil.requests import SearchRequest
from anvil.results import Mode
from anvil.settings import index_url
from tests.conftest import PAGES, write
from tests.support.milvus import Words, built, hasty, lite_server, pages  # noqa: F401

pytestmark = pytest.mark.usefixtures("hasty")
LITE = "milvus+lite:lite.db/docs"
MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")


@pytest.fixture(scope="module")
def once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with docs, their index, and a Milvus Lite file that holds it."""
    folder = tmp_path_factory.mktemp("exported")
    export(folder, built(folder, {**PAGES, **pages(6), "links.md": "# Links\n\n[Installing](install.md)\n"}))
    return folder


@pytest.fixture
def exported(once: Path, tmp_path: Path) -> Path:
    """That folder, copied: what is done to it is done to nobody else."""
    return Path(shutil.copytree(once, tmp_path / "work"))


def export(folder: Path, index: Path, source: str = LITE) -> None:
    client = Client(index_url.milvus(source), folder)
    exporting.export(index, client, grace=0)
    client.close()


@pytest.fixture
def copies(exported: Path) -> Iterator[tuple[MemoryCopy, MemoryCopy]]:
    """What answers from the file, and what answers from Milvus; both beside the folder."""
    remote = MilvusCollection(LITE, exported)
    there = MilvusMemoryCopy(remote, WorkingTree(exported / "docs"), Words())
    file = MemoryCopy(IndexLocation(exported / "index.db"), WorkingTree(exported / "docs"), Words())
    yield file, there
    file.close()
    there.close()
    remote.close()


def search(copy: MemoryCopy, query: str, mode: Mode = "hybrid", glob: str | None = None) -> Any:
    copy.refresh()
    return copy.searcher.search(SearchRequest(query, 5, glob, 12_000, mode))


def same(copies: tuple[MemoryCopy, MemoryCopy]) -> None:
    """Both say the same of every page, and find the same places."""
    file, there = copies
    assert there.refresh() == file.refresh()
    assert there.indexed == file.indexed and there.beyond_artifact == file.beyond_artifact
    assert [d.file_path for d in there.reader.documents()] == [d.file_path for d in file.reader.documents()]
    assert there.reader.identities() == file.reader.identities()
    counted = there.reader.counts()
    assert (counted["documents"], counted["chunks"]) == tuple(file.reader.counts()[n] for n in ("documents", "chunks"))
    for document in file.reader.documents():
        stands = there.reader.document(document.file_path)
        assert stands is not None and (stands.title, stands.blob_id) == (document.title, document.blob_id)
        assert there.reader.page_chunks(stands.id) == file.reader.page_chunks(document.id)
        assert there.reader.sections(stands.id) == file.reader.sections(document.id)
    factors = [
        {path: each.searcher.index.page_factors.usual.get(id_) for id_, path in each.reader.paths()} for each in copies
    ]
    assert factors[0] == factors[1]
    for mode in MODES:
        for query in ("zebra crossing walrus", "certificates expire", "quiet window", "alert"):
            for glob in (None, "guides/*") if query == "alert" else (None,):
                found, expected = (search(each, query, mode, glob) for each in (there, file))
                if mode == "keyword":
                    assert [place(hit) for hit in found.hits[:5]] == [place(hit) for hit in expected.hits[:5]]
                else:  # by vectors, near ties may fall otherwise
                    assert place(found.hits[0]) in [place(hit) for hit in expected.hits[:2]]
                assert found.total_chunks == expected.total_chunks


def place(hit: Any) -> tuple[str, str, str]:
    return hit.metadata.file_path, hit.metadata.heading_path, hit.content


def test_an_edit_an_addition_and_a_deletion_are_answered_from_the_files(
    exported: Path, copies: tuple[MemoryCopy, MemoryCopy]
) -> None:
    docs = exported / "docs"
    same(copies)
    with (docs / "guides/alerts.md").open("a", encoding="utf-8") as page:
        page.write("\n## Zebra crossing\n\nA walrus is told of each zebra that crosses the harbour at night.\n")
    write(docs, {"quokka.md": "# Quokka\n\nThe quokka smiles at the walrus, and at nobody else.\n"})
    write(docs, {"emu.md": "# Emu (deprecated)\n\nIt was fast.\n"})
    same(copies)
    assert "each zebra that crosses" in search(copies[1], "zebra crossing").hits[0].content
    assert search(copies[1], "quokka", "keyword").hits[0].metadata.file_path == "quokka.md"
    (docs / "guides/checks.md").unlink()
    same(copies)
    assert copies[1].reader.document("guides/checks.md") is None
    assert all("expires" not in hit.content for hit in search(copies[1], "TLS certificate expires").hits)
    write(docs, {"guides/alerts.md": PAGES["guides/alerts.md"]})  # as it was
    same(copies)
    assert search(copies[1], "zebra", "keyword").hits == ()


def test_links_of_edited_pages_come_and_those_of_masked_ones_go(
    exported: Path, copies: tuple[MemoryCopy, MemoryCopy]
) -> None:
    def links() -> dict[str, tuple[float, float]]:
        """Page -> how popular it is, and how much of "walrus" links say of it, where both indexes agree."""
        told = []
        for copy in copies:
            copy.refresh()
            found = copy.searcher.index.links
            ids = {page.file_path: page.id for page in copy.reader.documents()}
            told.append(
                {
                    path: (found.popularity(id_), found.coverage(id_, {"walrus": 1.0}, str.split))
                    for path, id_ in ids.items()
                }
                if found
                else {}
            )
        assert told[0] == told[1]
        return {path: of_page for path, of_page in told[1].items() if any(of_page)}

    docs, before = exported / "docs", links()
    assert "install.md" in before
    write(
        docs,
        {"quokka.md": "# Quokka\n\nThe [walrus](guides/alerts.md) and [what](new/page.md) is [left](install.md).\n"},
    )
    edited = links()
    assert edited["guides/alerts.md"][1] == 1 and edited["install.md"][0] > before["install.md"][0]
    write(docs, {"new/page.md": "# New\n", "links.md": "# No links\n"})
    assert links()["new/page.md"][0] > 0 and links()["install.md"] == before["install.md"]
    (docs / "quokka.md").unlink()
    assert "new/page.md" not in links()


def test_a_model_that_fails_keeps_no_text_back(exported: Path) -> None:
    class Failing(Words):
        def embed(self, texts: Sequence[str]) -> Embedded:
            raise ProviderError("The service is down.")

    docs, remote = exported / "docs", MilvusCollection(LITE, exported)
    copy = MilvusMemoryCopy(remote, WorkingTree(docs), Failing())
    copy.refresh()
    assert copy.reader.document("quokka.md") is None
    write(docs, {"quokka.md": "# Quokka\n\nThe quokka smiles.\n", "index.md": "# Second\n"})
    assert search(copy, "quokka", "keyword").hits[0].metadata.file_path == "quokka.md"
    assert (copy.failure, copy.pending) == ("The service is down.", 2)
    write(docs, {"index.md": PAGES["index.md"]})
    (docs / "quokka.md").unlink()
    copy.refresh()
    assert copy.reader.document("quokka.md") is None
    page = copy.reader.document("index.md")
    assert page is not None and page.title == "Lighthouse" and not copy.refresh()
    copy.close()
    remote.close()


def test_a_page_that_comes_has_no_id_of_another(exported: Path, copies: tuple[MemoryCopy, MemoryCopy]) -> None:
    """Ids are hashes of few bits: what comes must not answer for what stands."""
    write(exported / "docs", {f"new/{n}.md": f"# New {n}\n\nThe number {n} page.\n" for n in range(40)})
    same(copies)
    ids = [document.id for document in copies[1].reader.documents()]
    assert len(set(ids)) == len(ids)


def overlay(copy: MemoryCopy) -> Reader:
    """What is in memory above the export."""
    assert isinstance(copy.reader, LayeredReader)
    return copy.reader.above


def test_only_what_moved_on_is_in_memory(exported: Path, copies: tuple[MemoryCopy, MemoryCopy]) -> None:
    copy = copies[1]
    copy.refresh()
    assert not [*overlay(copy).documents()]
    write(exported / "docs", {"quokka.md": "# Quokka\n\nIt smiles.\n"})
    copy.refresh()
    above, artifact = overlay(copy), copy._artifact
    assert [d.file_path for d in above.documents()] == ["quokka.md"]
    assert artifact is not None
    assert site_view.compared(artifact, WorkingTree(exported / "docs")).added == ("quokka.md",)


def test_a_server_makes_the_vectors_behind_the_answers(exported: Path) -> None:
    remote = MilvusCollection(LITE, exported)
    copy = MilvusMemoryCopy(remote, WorkingTree(exported / "docs"), Words(), defer_vectors=True)
    write(exported / "docs", {"quokka.md": "# Quokka\n\nThe quokka smiles at the walrus.\n"})
    copy.refresh()
    assert copy.pending == 1
    rows = copy.pending_chunks(-1, 10)
    windows = windows_of(rows, Words())
    texts = [[window.text for window in each] for each in windows]
    vectors = [quantized(Words().embed(each).vectors) for each in texts]
    copy.save_vectors(list(map(ChunkVectors, rows, windows, vectors)))
    assert copy.pending == 0
    best = copy.searcher.search(SearchRequest("quokka smiles walrus", 1, None, 12_000, "semantic")).hits[0]
    assert best.metadata.file_path == "quokka.md"
    copy.close()
    remote.close()


def test_a_generation_that_is_exchanged_is_noticed_by_the_next_answer(exported: Path, keywords: Any) -> None:
    remote = MilvusCollection(LITE, exported)
    copy = MilvusMemoryCopy(remote, None, Words())
    assert search(copy, "dugong", "keyword").hits == ()
    before = copy.artifact_meta
    export(exported, built(exported, {"dugong.md": "# Dugong\n\nThe dugong grazes.\n"}))
    assert search(copy, "dugong", "keyword").hits[0].metadata.file_path == "dugong.md"
    assert copy.artifact_meta != before
    copy.close()
    remote.close()


def test_the_api_answers_from_milvus_alone(
    exported: Path, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    with anvil.open(index=f"milvus+lite:{exported}/lite.db/docs") as opened:
        found = opened.search("certificates expire", mode="keyword")
        assert found.freshness.checked is None and found.results[0].metadata.file_path == "guides/checks.md"
        assert opened.get_page("install.md").title == "Installing"
        assert opened.get_section("guides/alerts.md", "Alerts > E-mail").content.startswith("## E-mail")
        assert len(opened.list_pages().pages) == 11 and len(opened.list_pages("guides").pages) >= 2
        assert [page.file_path for page in opened.list_pages("install.md").pages] == ["install.md"]
        status = opened.get_status()
        assert status.index.artifact is not None
        assert status.index.db_path == status.index.artifact.origin == opened.origin
        with pytest.raises(NotFound, match=r"install\.md"):
            opened.get_page("instal.md")
        with pytest.raises(ConfigError, match="index file"):
            opened.health()
        with pytest.raises(SourceError):
            opened.index()


def test_a_server_that_goes_away_is_said_to_be_and_asked_again(tmp_path: Path) -> None:
    index = built(tmp_path, PAGES)
    with lite_server(tmp_path) as port:
        source = f"milvus://127.0.0.1:{port}/docs"
        export(tmp_path, index, source)
        remote = MilvusCollection(source, tmp_path)
        copy = MilvusMemoryCopy(remote, None, Words())
        assert search(copy, "certificates expire").hits
    began = time.monotonic()
    with pytest.raises(Unreachable, match="does not respond"):
        search(copy, "certificates expire")
    assert time.monotonic() - began < 15
    with lite_server(tmp_path, port):
        end = time.monotonic() + 30
        while True:
            try:
                found = search(copy, "certificates expire")
                break
            except Unreachable:
                assert time.monotonic() < end
                time.sleep(0.2)
        assert found.hits[0].metadata.file_path == "guides/checks.md"
        copy.close()
        remote.close()


def test_a_collection_that_is_gone_is_named(exported: Path) -> None:
    remote = MilvusCollection(LITE, exported)
    copy = MilvusMemoryCopy(remote, None, Words())
    copy.refresh()
    remote.client.ask("drop_alias", "docs")
    with pytest.raises(ArtifactMissing, match="There is no index"):
        copy.refresh()
    copy.close()
    remote.close()
