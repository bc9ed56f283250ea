"""From a file into Milvus: whole, once, and never half."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import astuple
from pathlib import Path
from types import SimpleNamespace

import pytest

from anvil.build.builder import build
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import ArtifactMissing, ArtifactRejected, FetchError, FormatTooNew
from anvil.index_file import verify
from anvil.milvus import export as exporting
from anvil.milvus import milvus_collections, milvus_reader
from anvil.milvus.milvus_client import Client
from anvil.requests import BuildRequest
from anvil.settings import index_url
from anvil.settings.schema import ChunkingOptions
from anvil.text.link_popularity import links_of
from tests.conftest import PAGES, write
from tests.support.milvus import Words, built, hasty, pages  # noqa: F401

pytestmark = pytest.mark.usefixtures("hasty")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    made = Client(index_url.milvus("milvus+lite:lite.db/docs"), tmp_path)
    yield made
    made.close()


def export(index: Path, client: Client) -> exporting.Exported:
    return exporting.export(index, client, grace=0)


STRANGE = {
    'it\'s "50%" or document > 0.md': "# Quotes ' \" % \\ {x}\n\nA page whose name is an expression: wombat.\n",
    "a\\b.md": "# Backslash\n\nAnother page, of numbats.\n",
    "中文/文档.md": "# 配置\n\n服务器的配置文件在这里。\n",
    "long.md": "# Long\n\n" + "".join(f"ärmel-{n} " for n in range(9000)) + "\n",
    "empty.md": "",
    "edition.md": "---\nversion: '1.2'\nlanguage: de\n---\n# Ausgabe\n\nEine Seite mit Version und Sprache.\n",
    "links.md": '# Links\n\nSee [the numbats](a%5Cb.md), [文档](中文/文档.md), [such][a]\n\n[a]: long.md "title"\n',
}


def test_all_that_a_file_says_is_said_by_milvus(tmp_path: Path, client: Client) -> None:
    write(tmp_path / "docs", {**PAGES, **STRANGE})
    index = tmp_path / "index.db"
    build(WorkingTree(tmp_path / "docs"), index, Words(), ChunkingOptions(max_chunk_size=100_000))
    told: list[str] = []
    done = exporting.export(index, client, lambda stage, *_: told.append(stage), grace=0)
    with verify.open_checked(index) as file:
        there = milvus_reader.open_current(client)
        assert (done.outcome, done.pages, done.chunks, done.digest) == (
            "exported",
            file.counts()["documents"],
            file.counts()["chunks"],
            file.meta()["digest"],
        )
        assert there.meta() == file.meta() and there.counts() == file.counts()
        assert there.blob_ids() == file.blob_ids() and there.times() == file.times()
        assert list(there.documents()) == list(file.documents())
        assert list(there.documents("guides")) == list(file.documents("guides")) != []
        empty = {entry.id: (0, 0) for entry in there.pages.values() if not entry.chunks}
        assert there.page_sizes() == {**file.page_sizes(), **empty} and empty
        rows = [row for row, _ in file.chunk_documents()]
        assert there.chunks(rows) == file.chunks(rows) and there.searched_text(rows) == file.searched_text(rows)
        for document in file.documents():
            assert there.document(document.file_path) == document
            assert there.page_chunks(document.id) == file.page_chunks(document.id)
            assert there.sections(document.id) == file.sections(document.id)
            headings = file.top_headings([document.id]).get(document.id, ())
            assert there.top_headings([document.id]) == {document.id: headings}
        ids = [document.id for document in file.documents()]
        assert list(there.chunks_of_pages(ids)) == list(file.chunks_of_pages(ids))
        links = there.links()
        assert list(links) == [page._replace(digest=b"") for page in file.addresses()]
        links_of_file = links_of(file.addresses(), file.page_texts())
        assert {page.id: found for page, found in links.items() if found} == {
            id_: ls for id_, ls in links_of_file.items() if ls
        }
        assert max(map(len, links.values())) == 3
        vocabulary = dict(file.vocabulary())
        assert there.frequencies(vocabulary) == vocabulary and there.frequencies(["nowhere"]) == {"nowhere": 0}
        owners, vectors = there.vectors(rows)
        windows, own = file.window_vectors()
        order = windows.argsort()
        assert (owners == windows[order] >> 12).all() and (vectors == own[order]).all() and len(vectors) > len(rows)
        assert there.document("nowhere.md") is None and there.average_length() == file.average_length()
    assert any(
        len(chunk.content.encode()) > milvus_collections.MAX_TEXT_BYTES
        for chunk in there.page_chunks(there.pages["long.md"].id)
    )
    assert told


def test_the_same_file_again_is_nothing_to_do(tmp_path: Path, client: Client) -> None:
    index = built(tmp_path, PAGES)
    first, collections = export(index, client), sorted(client.ask("list_collections"))
    again = export(index, client)
    assert (first.outcome, again.outcome) == ("exported", "unchanged") and first.generation == again.generation
    assert sorted(client.ask("list_collections")) == collections
    assert len(collections) == 4


def test_a_newer_file_takes_the_place_of_the_older(tmp_path: Path, client: Client) -> None:
    older = export(built(tmp_path, PAGES), client)
    newer = export(built(tmp_path, {**PAGES, "new.md": "# New\n\nA new page on dugongs.\n"}), client)
    assert newer.outcome == "exported" and newer.generation != older.generation
    assert milvus_collections.existing(client) == {newer.generation}
    assert "new.md" in milvus_reader.open_current(client).pages


def test_the_same_file_is_written_anew_where_some_of_it_is_gone(tmp_path: Path, client: Client) -> None:
    index = built(tmp_path, PAGES)
    made = export(index, client).generation
    client.ask("drop_collection", f"{made}_pages")
    assert export(index, client).outcome == "exported"
    assert export(index, client).outcome == "unchanged" and milvus_collections.existing(client) == {made}
    assert set(milvus_reader.open_current(client).pages) == set(PAGES)


def test_an_export_leaves_what_another_has_pointed_readers_at(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second begins and ends while the first leaves its forerunner to whoever is reading it."""
    export(built(tmp_path, PAGES), client)
    first = built(tmp_path, {**PAGES, "new.md": "# New\n\nA new page on dugongs.\n"}, name="first.db")
    second = built(tmp_path, {**PAGES, "newer.md": "# Newer\n\nA page on wombats.\n"}, name="second.db")
    meanwhile: list[exporting.Exported] = []

    def sleep(seconds: float) -> None:
        if seconds:
            meanwhile.append(export(second, client))

    monkeypatch.setattr(exporting, "time", SimpleNamespace(sleep=sleep, monotonic=time.monotonic))
    assert exporting.export(first, client, grace=1).outcome == "exported"
    assert [each.outcome for each in meanwhile] == ["exported"]
    assert (
        milvus_collections.current_generation(client) == meanwhile[0].generation
        and "newer.md" in milvus_reader.open_current(client).pages
    )
    assert export(second, client).outcome == "unchanged"


def test_two_first_exports_end_with_the_one_that_was_last(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = built(tmp_path, PAGES, name="first.db"), built(tmp_path, pages(2), name="second.db")
    run = exporting._Export.run

    def overtaken(self: exporting._Export) -> None:
        monkeypatch.setattr(exporting._Export, "run", run)
        run(self)
        monkeypatch.setattr(milvus_collections, "remove_others", lambda *_: None)  # it did its part before
        assert export(second, client).outcome == "exported"
        monkeypatch.undo()

    monkeypatch.setattr(exporting._Export, "run", overtaken)
    last = export(first, client)
    assert last.outcome == "exported" and milvus_collections.existing(client) == {last.generation}
    assert set(milvus_reader.open_current(client).pages) == set(PAGES)


def test_an_export_that_breaks_off_leaves_the_old_one_answering(
    tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    older = export(built(tmp_path, PAGES), client)
    newer = built(tmp_path, {**PAGES, "new.md": "# New\n\nA new page on dugongs.\n"})
    for step in ("put", "finish"):
        with monkeypatch.context() as patched:
            patched.setattr(milvus_collections.Generation, step, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt()))
            with pytest.raises(KeyboardInterrupt):
                export(newer, client)
        assert len(milvus_collections.existing(client)) == 2
        assert (
            "new.md" not in milvus_reader.open_current(client).pages
            and milvus_collections.current_generation(client) == older.generation
        )
    assert export(newer, client).outcome == "exported"
    assert len(milvus_collections.existing(client)) == 1 and "new.md" in milvus_reader.open_current(client).pages


def test_rows_that_did_not_arrive_are_missed(tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    send = milvus_collections.Generation._send

    def losing(self: milvus_collections.Generation, kind: str) -> None:
        if kind == "chunks" and self._rows[kind]:
            self._rows[kind].pop()
            self.written[kind] += 1
        send(self, kind)

    monkeypatch.setattr(milvus_collections.Generation, "_send", losing)
    with pytest.raises(FetchError, match="Export again"):
        export(built(tmp_path, PAGES), client)
    assert milvus_collections.current_generation(client) is None


def test_a_name_that_is_somebody_elses_is_left_alone(tmp_path: Path, client: Client) -> None:
    index = built(tmp_path, PAGES)
    client.ask("create_collection", "docs", schema=milvus_collections.collection_schema("parts", 0))
    with pytest.raises(ArtifactRejected, match="Anvil did not create"):
        export(index, client)
    client.ask("drop_collection", "docs")
    client.ask("create_collection", "theirs", schema=milvus_collections.collection_schema("parts", 0))
    client.ask("create_alias", "theirs", "docs")
    with pytest.raises(ArtifactRejected, match="Anvil did not create"):
        export(index, client)
    assert client.ask("list_collections") == ["theirs"]


def test_what_is_not_there_not_whole_or_too_new_is_one_sentence_each(tmp_path: Path, client: Client) -> None:
    with pytest.raises(ArtifactMissing, match="anvil export --to"):
        milvus_reader.open_current(client)
    made = export(built(tmp_path, PAGES), client)
    row = milvus_collections.part(milvus_collections.ABOUT, 0)
    for said, error, words in (
        ({"layout": milvus_collections.LAYOUT + 1}, FormatTooNew, "newer Anvil"),
        ({"layout": 0}, ArtifactRejected, "old layout"),
        ({"layout": milvus_collections.LAYOUT, "meta": []}, ArtifactRejected, "an incomplete one"),
        ([], ArtifactRejected, "an incomplete one"),
    ):
        about = {"id": row, "text": f"1\n{json.dumps(said)}", "vector": [0.0, 0.0]}
        client.ask("upsert", f"{made.generation}_parts", [about])
        with pytest.raises(error, match=words):
            milvus_reader.open_current(client)
    client.ask("drop_collection", f"{made.generation}_parts")
    with pytest.raises(ArtifactRejected, match="an incomplete one"):
        milvus_reader.open_current(client)


def test_a_shard_is_no_index(tmp_path: Path, client: Client, keywords: EmbeddingProvider) -> None:
    write(tmp_path / "docs", PAGES)
    index = tmp_path / "shard.db"
    build(WorkingTree(tmp_path / "docs"), index, keywords, ChunkingOptions(), BuildRequest(shard="1/2"))
    with pytest.raises(ArtifactRejected, match="shard"):
        export(index, client)


def test_an_index_without_vectors_is_exported_too(tmp_path: Path, client: Client, keywords: EmbeddingProvider) -> None:
    done = export(built(tmp_path, pages(4), keywords), client)
    assert done.vectors == 0 and done.chunks > 0 and milvus_reader.open_current(client).counts()["vectors"] == 0


def test_pages_have_the_ids_that_the_file_gives_them(tmp_path: Path, client: Client) -> None:
    index = built(tmp_path, PAGES)
    done = export(index, client)
    with verify.open_checked(index) as file:
        rows = client.ask("query", f"{done.generation}_chunks", filter="", output_fields=["id"], limit=1000)
        assert sorted(row["id"] for row in rows) == sorted(row for row, _ in file.chunk_documents())
        assert [astuple(document) for document in file.documents()]
