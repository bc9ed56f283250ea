"""A build keeps the artifact's promises: same bytes, no needless write, only new text embedded, nothing lost."""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import sqlite3
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.build import builder, shards
from anvil.build.report import BuildReport
from anvil.documents import document_source
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import Embedded, EmbeddingProvider, Vector, create_provider
from anvil.errors import ArtifactRejected, BuildError, FormatTooNew, SourceError
from anvil.index_file import connection as connections
from anvil.index_file import publish, table_rows, verify
from anvil.index_file.manifests import SETTINGS
from anvil.library import library_file
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions, Config, EmbeddingSettings, SourceOptions
from anvil.values import Document, Skipped
from tests.conftest import PAGES, replacements, write
from tests.support import repositories
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation)  # here only where asked for


class Counting:
    """The real model, its calls counted; texts that hold ``refuse`` fail."""

    def __init__(self, inner: EmbeddingProvider, refuse: str = "", digest: str = "") -> None:
        self.inner = inner
        self.refuse = refuse
        self.name, self.model, self.server, self.dimensions = inner.name, inner.model, inner.server, inner.dimensions
        self.digest = digest or inner.digest
        self.max_tokens, self.scripts, self.passages = inner.max_tokens, inner.scripts, inner.passages
        self.texts: list[str] = []

    def warm(self) -> None:
        pass

    def token_spans(self, texts: Sequence[str]) -> list[list[tuple[int, int]]]:
        return self.inner.token_spans(texts)

    def embed(self, texts: Sequence[str]) -> Embedded:
        self.texts += texts
        made = self.inner.embed(texts)
        failed = {i: "refused" for i, text in enumerate(texts) if self.refuse and self.refuse in text}
        return Embedded(made.vectors, failed)

    def embed_query(self, text: str) -> Vector:
        return self.inner.embed_query(text)

    def close(self) -> None:
        pass


def make(
    docs: Path, index: Path, provider: EmbeddingProvider, options: ChunkingOptions | None = None, **more: Any
) -> BuildReport:
    source = WorkingTree(docs, SourceOptions())
    return builder.build(source, index, provider, options or ChunkingOptions(), BuildRequest(**more))


def sha(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def age(docs: Path) -> None:
    """Give all files one old time, so that it is not the clock that decides."""
    for path in docs.rglob("*.md"):
        os.utime(path, (1_700_000_000, 1_700_000_000))


def only(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir() if path.is_file())


# --- same inputs, same bytes ------------------------------------------------------------------------------


def test_what_was_read_is_read_back(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    age(docs)
    report = make(docs, tmp_path / "i.db", local)
    assert (report.outcome, report.pages) == ("built", 4)
    assert report.changes.added == tuple(sorted(PAGES))
    with verify.open_checked(tmp_path / "i.db") as reader:
        for path, text in PAGES.items():
            document = reader.document(path)
            assert document and document.size == len(text.encode())
            assert document.last_modified == "2023-11-14T22:13:20Z"
            body = text.split("---\n")[-1].lstrip("\n") if path == "install.md" else text
            assert "".join(c.content for c in reader.page_chunks(document.id)).lstrip("\n") == body
        install = reader.document("install.md")
        assert install and install.title == "Installing"
        assert install.metadata == {"tags": ["start"], "title": "Installing"}
        meta = reader.meta()
        assert meta["embedding_model_digest"] == local.digest and meta["last_index_timestamp"] == "2023-11-14T22:13:20Z"


def test_the_same_folder_gives_the_same_bytes_wherever_it_lies(
    docs: Path, tmp_path: Path, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    age(docs)
    make(docs, tmp_path / "a.db", local)
    copy = tmp_path / "elsewhere" / "docs"
    for path in reversed(sorted(PAGES)):  # another order of creation, and so of listing
        write(copy, {path: PAGES[path]})
    age(copy)
    monkeypatch.setenv("TZ", "Pacific/Kiritimati")
    time.tzset() if hasattr(time, "tzset") else None
    make(copy, tmp_path / "b.db", local)
    assert sha(tmp_path / "a.db") == sha(tmp_path / "b.db")
    assert str(tmp_path).encode() not in (tmp_path / "a.db").read_bytes()


def test_step_by_step_or_at_once_the_bytes_are_the_same(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "a.db", local)
    (docs / "install.md").unlink()
    make(docs, tmp_path / "a.db", local)
    write(docs, {"index.md": PAGES["index.md"] + "\n## More\n\nNew text.\n", "new/page.md": "# New\n\nA new page.\n"})
    make(docs, tmp_path / "a.db", local)
    (docs / "guides/checks.md").rename(docs / "checks.md")
    age(docs)
    make(docs, tmp_path / "a.db", local)
    make(docs, tmp_path / "b.db", local)
    make(docs, tmp_path / "c.db", local, force=True)
    # times of pages that did not change by content are brought up to date by the next build that writes
    assert verify.open_checked(tmp_path / "a.db").meta()["digest"] == make(docs, tmp_path / "b.db", local).digest
    assert sha(tmp_path / "a.db") == sha(tmp_path / "b.db") == sha(tmp_path / "c.db")


def test_pages_whose_ids_collide_get_the_same_ids_in_any_order(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 3)
    many = {f"p{i}.md": f"# Page {i}\n\nText of page {i}.\n" for i in range(6)}
    shutil.rmtree(docs)
    write(docs, {path: many[path] for path in list(many)[3:]})
    age(docs)
    make(docs, tmp_path / "a.db", keywords)
    write(docs, many)
    age(docs)
    make(docs, tmp_path / "a.db", keywords)
    make(docs, tmp_path / "b.db", keywords)
    assert sha(tmp_path / "a.db") == sha(tmp_path / "b.db")
    with verify.open_checked(tmp_path / "a.db") as reader:
        for path, text in many.items():
            document = reader.document(path)
            assert document and "".join(c.content for c in reader.page_chunks(document.id)) == text


def test_the_file_stands_alone_and_any_sqlite_reads_it(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    folder = tmp_path / "out"
    make(docs, folder / "i.db", local)
    assert only(folder) == ["i.db"]
    with sqlite3.connect(folder / "i.db") as plain:
        found = plain.execute("SELECT heading_path FROM chunks_fts WHERE chunks_fts MATCH 'certificates'").fetchall()
        assert found == [("Checks > Certificates",)]
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    plain.close()


def test_an_index_that_grows_and_shrinks_is_laid_out_for_its_size(
    docs: Path, tmp_path: Path, local: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(docs, tmp_path / "a.db", local)
    with verify.open_checked(tmp_path / "a.db") as reader:
        monkeypatch.setattr(connections, "SMALL_CHARACTERS", reader.characters() + 1)
    write(docs, {"more.md": "# More\n\nThe quokka of a long page.\n"})
    age(docs)
    for name in ("a.db", "b.db"):
        report = make(docs, tmp_path / name, local)
        with verify.open_checked(tmp_path / name) as reader, anvil.open(index=tmp_path / name) as opened:
            assert reader.connection.pragma("page_size") == connections.LARGE.page_size
            assert opened.search("a quokka", mode="semantic").results[0].metadata.file_path == "more.md"
        assert report.embedded == 1 or name == "b.db"
    assert sha(tmp_path / "a.db") == sha(tmp_path / "b.db")
    (docs / "more.md").unlink()
    for name in ("a.db", "c.db"):
        make(docs, tmp_path / name, local)
    assert sha(tmp_path / "a.db") == sha(tmp_path / "c.db")
    with verify.open_checked(tmp_path / "a.db") as reader:
        assert reader.connection.pragma("page_size") == connections.SMALL.page_size


# --- no change, no write; only new text is embedded --------------------------------------------------------


def test_nothing_to_do_leaves_the_file_alone(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    index = tmp_path / "i.db"
    first = make(docs, index, local)
    os.utime(index, (1_600_000_000, 1_600_000_000))
    age(docs)  # other times, the same content
    provider = Counting(local)
    report = make(docs, index, provider)
    assert (report.outcome, report.digest, provider.texts) == ("unchanged", first.digest, [])
    assert index.stat().st_mtime == 1_600_000_000


def test_progress_ends_when_the_file_is_written(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    told: list[tuple[str, int, int]] = []
    make(docs, tmp_path / "i.db", keywords, progress=lambda *step: told.append(step))
    assert told[-2:] == [("writing", 0, 1), ("writing", 1, 1)]


def test_an_edited_section_embeds_its_own_windows_only(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "i.db", local)
    text = PAGES["guides/alerts.md"].replace("22:00 and 06:00", "21:00 and 07:00")
    write(docs, {"guides/alerts.md": text})
    provider = Counting(local)
    report = make(docs, tmp_path / "i.db", provider)
    assert report.embedded == len(provider.texts) == 1 and "21:00" in provider.texts[0]
    assert report.changes.changed == ("guides/alerts.md",)


def test_a_moved_page_embeds_nothing(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "i.db", local)
    (docs / "guides/alerts.md").rename(docs / "alarms.md")
    provider = Counting(local)
    report = make(docs, tmp_path / "i.db", provider)
    assert provider.texts == [] and report.reused > 0
    assert (report.changes.added, report.changes.removed) == (("alarms.md",), ("guides/alerts.md",))


def test_text_in_front_moves_what_follows(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "i.db", local)
    write(docs, {"guides/checks.md": "Read this before anything else.\n\n" + PAGES["guides/checks.md"]})
    provider = Counting(local)
    make(docs, tmp_path / "i.db", provider)
    assert len(provider.texts) == 1
    with verify.open_checked(tmp_path / "i.db") as reader:
        document = reader.document("guides/checks.md")
        assert document
        chunks = reader.page_chunks(document.id)
        assert [c.ordinal for c in chunks] == list(range(len(chunks))) and chunks[0].heading_path == "(root)"


def test_vectors_come_from_a_previous_index(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "old.db", local)
    (tmp_path / "broken.db").write_bytes(b"no index")
    provider = Counting(local)
    report = make(docs, tmp_path / "new.db", provider, previous=[tmp_path / "broken.db", tmp_path / "old.db"])
    assert provider.texts == [] and report.reused == report.windows
    assert len(report.reasons) == 1 and "broken.db" in report.reasons[0]
    assert sha(tmp_path / "new.db") == sha(tmp_path / "old.db")


def test_a_first_build_begins_from_a_previous_index(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, isolated: None
) -> None:
    run(tmp_path, "init", "-q", "-b", "main")
    commit(tmp_path, "pages", at=1_700_000_000)
    make(docs, tmp_path / "old.db", keywords)
    commit(tmp_path, "no page", at=1_700_000_100)
    report = make(docs, tmp_path / "new.db", keywords, previous=[tmp_path / "gone.db", tmp_path / "old.db"])
    assert (report.outcome, report.index_path, len(report.changes)) == ("built", str(tmp_path / "new.db"), 0)
    assert "gone.db" in report.reasons[0]
    assert sha(tmp_path / "new.db") == sha(tmp_path / "old.db"), "nothing changed: not even the commit it tells"
    write(docs, {"index.md": "# Other\n"})
    report = make(docs, tmp_path / "third.db", keywords, previous=[tmp_path / "old.db"])
    assert report.changes.changed == ("index.md",) and not report.changes.added
    make(docs, tmp_path / "scratch.db", keywords)
    assert sha(tmp_path / "third.db") == sha(tmp_path / "scratch.db")
    assert sorted(path.name for path in tmp_path.glob("*.db*")) == ["new.db", "old.db", "scratch.db", "third.db"]


def test_deleted_and_renamed_pages_are_pruned(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    make(docs, tmp_path / "i.db", keywords)
    shutil.rmtree(docs / "guides")
    make(docs, tmp_path / "i.db", keywords)
    with verify.open_checked(tmp_path / "i.db") as reader:
        assert set(reader.blob_ids()) == {"index.md", "install.md"}
        assert reader.connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'alert'").get == 0


def test_force_does_all_anew(docs: Path, tmp_path: Path, local: EmbeddingProvider, keywords: EmbeddingProvider) -> None:
    for provider in (local, keywords):
        make(docs, tmp_path / "i.db", provider)
        counting = Counting(provider)
        assert make(docs, tmp_path / "i.db", counting, force=True).outcome == "built"
        assert bool(counting.texts) == bool(provider.dimensions)


# --- changed settings ----------------------------------------------------------------------------------------


def test_another_model_keeps_the_text_and_says_so(
    docs: Path, tmp_path: Path, local: EmbeddingProvider, keywords: EmbeddingProvider
) -> None:
    make(docs, tmp_path / "i.db", local)
    other = Counting(local, digest="e" * 64)
    report = make(docs, tmp_path / "i.db", other)
    assert report.embedded == report.windows > 0
    assert local.digest[:12] in report.reasons[0] and "eeeeeeeeeeee" in report.reasons[0]
    report = make(docs, tmp_path / "i.db", keywords)
    assert report.windows == 0 and "to none" in report.reasons[0]
    make(docs, tmp_path / "i.db", local)
    make(docs, tmp_path / "b.db", local)
    assert sha(tmp_path / "i.db") == sha(tmp_path / "b.db")


def test_other_chunking_cuts_anew_and_reuses_what_it_can(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    make(docs, tmp_path / "i.db", local)
    options = ChunkingOptions(min_chunk_size=0)
    report = make(docs, tmp_path / "i.db", local, options)
    assert report.reasons == ("The chunking changed: all pages are cut again.",) and report.reused > 0
    make(docs, tmp_path / "b.db", local, options)
    assert sha(tmp_path / "i.db") == sha(tmp_path / "b.db")


# --- bad input, and nothing lost -------------------------------------------------------------------------------


def test_a_chunk_that_cannot_be_embedded_is_kept_named_and_tried_again(
    docs: Path, tmp_path: Path, local: EmbeddingProvider
) -> None:
    report = make(docs, tmp_path / "i.db", Counting(local, refuse="smtp_host"))
    assert [f.path for f in report.failed] == ["guides/alerts.md: Alerts > E-mail"]
    assert report.failed[0].reason == "refused"
    with verify.open_checked(tmp_path / "i.db") as reader:
        assert reader.meta()["needs_reembed"] == "1"
        assert reader.connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'smtp_host'").get == 1
    healed = make(docs, tmp_path / "i.db", local)
    assert (healed.outcome, healed.embedded) == ("built", 1)
    make(docs, tmp_path / "b.db", local)
    assert sha(tmp_path / "i.db") == sha(tmp_path / "b.db")


def test_force_keeps_the_vectors_that_cannot_be_made_now(docs: Path, tmp_path: Path, local: EmbeddingProvider) -> None:
    first = make(docs, tmp_path / "i.db", local)
    before = sha(tmp_path / "i.db")
    report = make(docs, tmp_path / "i.db", Counting(local, refuse=" "), force=True)
    assert (report.embedded, report.kept, report.failed) == (0, first.windows, ()) and report.nothing_embedded
    assert sha(tmp_path / "i.db") == before and f"{first.windows} passages could not be" in " ".join(report.reasons)
    some = make(docs, tmp_path / "i.db", Counting(local, refuse="smtp_host"), force=True)
    assert (some.kept, some.embedded, some.nothing_embedded) == (1, first.windows - 1, False)
    assert sha(tmp_path / "i.db") == before
    write(docs, {"new.md": "# New\n\nA page that was never embedded.\n"})
    fresh = make(docs, tmp_path / "i.db", Counting(local, refuse=" "), force=True)
    assert [each.path for each in fresh.failed] == ["new.md: New"] and fresh.kept == first.windows


def test_a_new_model_is_a_reason(
    docs: Path, tmp_path: Path, local: EmbeddingProvider, keywords: EmbeddingProvider
) -> None:
    make(docs, tmp_path / "i.db", local)
    other = make(docs, tmp_path / "i.db", Counting(local, digest="f" * 64))
    assert other.embedded == other.windows and len(other.reasons) == 1
    make(docs, tmp_path / "known.db", local)
    back = make(docs, tmp_path / "i.db", local, previous=[tmp_path / "known.db"])
    assert back.embedded == 0 and len(back.reasons) == 1 and "the text is kept." in back.reasons[0]
    assert len(make(docs, tmp_path / "i.db", keywords).reasons) == 1


def test_an_empty_folder_gives_an_empty_index(tmp_path: Path, local: EmbeddingProvider) -> None:
    (tmp_path / "docs").mkdir()
    report = make(tmp_path / "docs", tmp_path / "i.db", local)
    assert (report.outcome, report.pages, report.chunks) == ("built", 0, 0)
    assert make(tmp_path / "docs", tmp_path / "i.db", local).outcome == "unchanged"


def test_files_without_text_are_named_and_stay_out(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    (docs / "nul.md").write_bytes(b"# A\0B")
    (docs / "latin.md").write_bytes("# Müll".encode("latin-1"))
    (docs / "big.md").write_bytes(b"x" * 5_000_001)
    write(docs, {"blank.md": " \n\n", "empty.md": ""})
    report = make(docs, tmp_path / "i.db", keywords)
    assert {s.path for s in report.skipped} == {"nul.md", "latin.md", "big.md"}
    assert all(s.reason for s in report.skipped)
    assert report.pages == 6
    again = make(docs, tmp_path / "i.db", keywords)
    assert again.outcome == "unchanged" and again.skipped == report.skipped
    for name in ("install.md", "all.md"):  # a page that changed, and one that is new: they are named by path
        (docs / name).write_bytes(b"# A\0B")
    named = [s.path for s in make(docs, tmp_path / "i.db", keywords).skipped if s.path in ("install.md", "all.md")]
    assert named == ["all.md", "install.md"]


def test_a_page_of_too_many_chunks_is_named_and_stays_out(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "CHUNK_BITS", 4)
    options = ChunkingOptions(min_chunk_size=0, merge_short_sections=False)
    write(docs, {"just.md": "# Same\n\nThe quokka.\n" * 16, "long.md": "# Same\n\nThe axolotl.\n" * 17})
    read = Counted(WorkingTree(docs, SourceOptions()))
    report = builder.build(read, tmp_path / "i.db", keywords, options)
    assert report.pages == 5 and [each.path for each in report.skipped] == ["long.md"]
    assert "17 chunks, and a page may have 16" in report.skipped[0].reason
    assert read.paths.count("long.md") == 1  # no use in trying again
    with anvil.open(docs, tmp_path / "i.db", config=Config(chunking=options), provider="none") as opened:
        assert opened.search("quokka").results and not opened.search("axolotl").results
        write(docs, {"just.md": "# Same\n\nThe quokka.\n" * 17, "long.md": "# Same\n\nThe axolotl.\n"})
        assert opened.search("axolotl").results and not opened.search("quokka").results


@pytest.mark.usefixtures("isolated")
def test_a_commit_without_a_change_of_pages_builds_nothing(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider
) -> None:
    run(docs.parent, "init", "-q", "-b", "main")
    commit(docs.parent, "first", at=1_700_000_000)
    assert make(docs, tmp_path / "i.db", keywords).outcome == "built"
    write(docs.parent, {"other.txt": "x"})
    commit(docs.parent, "second", at=1_700_000_100)
    assert make(docs, tmp_path / "i.db", keywords).outcome == "unchanged"


def test_the_number_of_pages_is_remarked_on_when_it_changes(docs: Path, tmp_path: Path) -> None:
    def remarks() -> tuple[str, ...]:
        tree = WorkingTree(docs, SourceOptions())
        about_pages = "{} pages".format
        provider = create_provider("none", EmbeddingSettings())
        return builder.build(tree, tmp_path / "i.db", provider, ChunkingOptions(), about_pages=about_pages).reasons

    assert remarks() == ("4 pages",)
    write(docs, {"install.md": "# Other\n"})
    assert remarks() == ()
    (docs / "install.md").unlink()
    assert remarks() == ("3 pages",)


def test_a_repository_that_cannot_be_read_is_named_in_each_report(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider
) -> None:
    """Otherwise pages that git ignores would be in the index without a word."""
    write(docs, {".git": "gitdir: nowhere", ".gitignore": "secret.md", "secret.md": "secret"})
    for outcome in ("built", "unchanged"):
        report = make(docs, tmp_path / "i.db", keywords)
        assert report.outcome == outcome
        assert len(report.reasons) == 1 and str(docs) in report.reasons[0]
        assert "Files that git ignores are not left out. " in report.reasons[0]


@pytest.mark.parametrize("damage", ["truncate", "short", "empty", "pointer", "trigger"])
def test_a_damaged_index_is_replaced_with_a_reason(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, damage: str
) -> None:
    index = tmp_path / "i.db"
    make(docs, index, keywords)
    sound = sha(index)
    if damage == "truncate":
        index.write_bytes(index.read_bytes()[:20_000])
    elif damage == "short":
        index.write_bytes(index.read_bytes()[:71])
    elif damage == "empty":
        index.write_bytes(b"")
    elif damage == "pointer":
        index.write_bytes(b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 9\n")
    else:
        with sqlite3.connect(index) as plain:
            plain.execute("CREATE TRIGGER t AFTER DELETE ON chunks BEGIN SELECT 1; END")
        plain.close()
    report = make(docs, index, keywords)
    assert report.outcome == "built" and len(report.reasons) == 1 and sha(index) == sound


def somebodys_files(folder: Path) -> list[Path]:
    """Files that are no index, by their content, although any may be called so."""
    write(folder, {"notes.txt": "My notes.\n", "short.db": "x"})
    with contextlib.closing(sqlite3.connect(folder / "photos.db")) as other, other:
        other.execute("CREATE TABLE photos (name)")
    library_file.open_library(folder / "library.db", dict.fromkeys(SETTINGS, "0")).close()
    (folder / "folder.db").mkdir()
    return sorted(folder.iterdir())


@pytest.mark.parametrize("force", [False, True])
def test_what_is_no_index_is_never_replaced(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, force: bool
) -> None:
    files = somebodys_files(tmp_path / "theirs")
    make(docs, tmp_path / "i.db", keywords)
    shard = tmp_path / "shard.db"
    make(docs, shard, keywords, shard="1/1")
    acts: list[Callable[[Path], object]] = [
        lambda file: make(docs, file, keywords, force=force),
        lambda file: make(docs, file, keywords, force=force, previous=[tmp_path / "i.db"]),
        lambda file: shards.join([shard], file),
        lambda file: publish.place(tmp_path / "i.db", file),
    ]
    for file in files:
        before = file.read_bytes() if file.is_file() else b""
        for act in acts:
            with pytest.raises(BuildError, match=r"is not an Anvil index, and would be lost\. Name another file"):
                act(file)
            assert (file.read_bytes() if file.is_file() else b"") == before
    assert sorted((tmp_path / "theirs").iterdir()) == files


@pytest.mark.skipif(os.name == "nt", reason="links are not for everybody there")
def test_what_cannot_be_looked_at_is_not_replaced(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    link = tmp_path / "i.db"
    link.symlink_to(link)  # a file without the right to read it looks the same to all but root
    with pytest.raises(BuildError, match=r"cannot be read .* so it is not replaced"):
        make(docs, link, keywords)
    assert link.is_symlink()


def test_what_comes_while_a_build_runs_is_not_replaced(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    index = tmp_path / "i.db"

    def meanwhile(stage: str, done: int, total: int) -> None:
        index.write_text("My notes.")

    with pytest.raises(BuildError, match="would be lost"):
        make(docs, index, keywords, progress=meanwhile)
    assert index.read_text() == "My notes." and only(tmp_path) == ["i.db"]


def test_the_index_is_not_open_when_it_is_replaced(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows would refuse to."""
    index, previous = tmp_path / "i.db", tmp_path / "previous.db"
    make(docs, previous, keywords)
    seen = replacements(index, monkeypatch)
    assert make(docs, index, keywords, previous=[previous]).outcome == "built"  # a copy of it
    for force in (False, True):
        write(docs, {"more.md": f"# More\n\nText {force}.\n"})
        make(docs, index, keywords, force=force, previous=[previous, index])
    index.write_bytes(index.read_bytes()[:5000])
    make(docs, index, keywords, previous=[previous])
    assert seen == [0, 0, 0, 0]


def test_an_index_of_a_newer_anvil_is_replaced_by_force_only(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider
) -> None:
    index = tmp_path / "i.db"
    make(docs, index, keywords)
    with sqlite3.connect(index) as plain:
        plain.execute("PRAGMA user_version = 99")
    plain.close()
    newer = sha(index)
    with pytest.raises(FormatTooNew, match="Upgrade"):
        make(docs, index, keywords)
    assert sha(index) == newer
    assert make(docs, index, keywords, force=True).outcome == "built"


class Counted(document_source.SourceWrapper):
    """A source that notes which pages are read of it."""

    def __init__(self, inner: document_source.DocumentSource) -> None:
        super().__init__(inner)
        self.paths: list[str] = []

    def read(self, path: str) -> Document | Skipped:
        self.paths.append(path)
        return super().read(path)


class Restless(document_source.SourceWrapper):
    """A folder in which a page changes while it is read for the first time."""

    def __init__(self, inner: document_source.DocumentSource, page: Path, new_text: str) -> None:
        super().__init__(inner)
        self.page, self.new_text = page, new_text

    def read(self, path: str) -> Document | Skipped:
        found = super().read(path)
        if self.new_text:
            self.page.write_text(self.new_text, encoding="utf-8")
            self.new_text = ""
        return found


def test_a_change_during_the_first_build_is_picked_up(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    source = Restless(WorkingTree(docs), docs / "guides/alerts.md", "# Alerts\n\nWritten meanwhile.\n")
    builder.build(source, tmp_path / "i.db", keywords, ChunkingOptions())
    with verify.open_checked(tmp_path / "i.db") as reader:
        assert reader.connection.execute("SELECT count(*) FROM chunks_fts WHERE chunks_fts MATCH 'meanwhile'").get == 1
    assert make(docs, tmp_path / "i.db", keywords).outcome == "unchanged"


def test_a_file_that_vanishes_while_building_is_left_out(
    docs: Path, tmp_path: Path, keywords: EmbeddingProvider
) -> None:
    class Vanishing(document_source.SourceWrapper):
        def read(self, path: str) -> Document | Skipped:
            if path == "install.md":
                (docs / path).unlink(missing_ok=True)
            return super().read(path)

    source = Vanishing(WorkingTree(docs))
    report = builder.build(source, tmp_path / "i.db", keywords, ChunkingOptions())
    assert report.pages == 3 and [s.path for s in report.skipped] == ["install.md"]


def test_no_folder_is_an_error(tmp_path: Path, keywords: EmbeddingProvider) -> None:
    with pytest.raises(SourceError):
        make(tmp_path / "none", tmp_path / "i.db", keywords)
    (tmp_path / "file").write_text("x")
    with pytest.raises(SourceError):
        make(tmp_path / "file", tmp_path / "i.db", keywords)


def test_a_target_that_cannot_be_written_is_an_error(docs: Path, tmp_path: Path, keywords: EmbeddingProvider) -> None:
    (tmp_path / "taken").write_text("a file where a folder is wanted")
    with pytest.raises(BuildError, match="Choose another place for the index"):
        make(docs, tmp_path / "taken" / "i.db", keywords)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=400k", "tmpfs", str(place)], capture_output=True)
    if mounted.returncode:
        pytest.skip("a file system of a given size can only be made by root")
    yield place
    subprocess.run(["umount", str(place)], check=True)


def test_a_full_disk_costs_one_message_and_no_index(docs: Path, small_disk: Path, keywords: EmbeddingProvider) -> None:
    index = small_disk / "i.db"
    make(docs, index, keywords)
    before = index.read_bytes()
    for pages in (80, 600):  # what the second writes does not fit into the cache of SQLite
        write(docs, {f"more/{i}.md": f"# Page {i}\n\n" + f"word{i} " * 800 for i in range(pages)})
        with pytest.raises(BuildError, match="disk is full while writing"):
            make(docs, index, keywords)
        assert index.read_bytes() == before and only(small_disk) == ["i.db"]


def test_a_full_disk_of_temporary_files_is_named_as_such(
    docs: Path, small_disk: Path, tmp_path: Path, keywords: EmbeddingProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(docs, tmp_path / "i.db", keywords)
    write(docs, {f"more/{i}.md": f"# Page {i}\n\n" + f"word{i} " * 800 for i in range(80)})
    make(docs, tmp_path / "large.db", keywords)
    (small_disk / "other").write_bytes(bytes(390_000))
    monkeypatch.setenv("SQLITE_TMPDIR", str(small_disk))
    with pytest.raises(BuildError, match="The disk for temporary files is full"):
        make(docs, tmp_path / "i.db", keywords)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))  # as on a machine that has not checked it
    with pytest.raises(ArtifactRejected, match=r"large\.db could not be checked: the disk for temporary files is full"):
        verify.check(tmp_path / "large.db")


def test_windows_of_a_long_chunk_share_32_tokens(tmp_path: Path) -> None:
    """The end of one window and the start of the next are the same 32 tokens: a sentence at the cut is whole in one."""
    write(tmp_path / "docs", {"a.md": "# Long\n\n" + "anchor " * 700 + "\n"})  # "anchor " is one token
    with anvil.open(tmp_path / "docs", tmp_path / "index.db") as opened:
        opened.index()
    with contextlib.closing(sqlite3.connect(tmp_path / "index.db")) as connection:
        spans = connection.execute('SELECT start, "end" FROM windows ORDER BY id').fetchall()
    assert len(spans) >= 3
    shared = [end - start for (_, end), (start, _) in itertools.pairwise(spans)]
    assert {(characters + 1) // len("anchor ") for characters in shared} == {32}, shared


def test_text_in_a_script_that_the_model_does_not_read_makes_no_windows(tmp_path: Path) -> None:
    """Its tokens are single letters, which say nothing: 700 Korean words would be 2,100 tokens."""
    korean = "상태를 " * 700
    write(tmp_path / "docs", {"a.md": f"# 상태\n\n{korean}\n", "b.md": f"# useId\n\n{korean} `useId` makes a key.\n"})
    with anvil.open(tmp_path / "docs", tmp_path / "index.db") as opened:
        opened.index()
        assert opened.search("a unique key", mode="semantic").results[0].metadata.file_path == "b.md"
        assert opened.search("상태를", top_k=2).results, "words find it"
    with contextlib.closing(sqlite3.connect(tmp_path / "index.db")) as connection:
        assert connection.execute("SELECT count(*) FROM windows").fetchone() == (2,)
