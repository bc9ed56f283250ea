"""Shards into one index: the same bytes as one big build, or a reason."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path

import pytest

import anvil
from anvil.build import builder
from anvil.documents import document_source
from anvil.documents.document_source import SourceWrapper
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.documents.shards import Shard
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactRejected, BuildError, ConfigError
from anvil.git.repository import Repository
from anvil.git_drivers import merge
from anvil.index_file import connection, table_rows, verify
from anvil.index_file.writer import Writer, checksum
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions
from anvil.values import UNKNOWN_TIME, Document, Scan, Skipped
from tests.conftest import PAGES, replacements, write
from tests.support import repositories
from tests.support.repositories import commit, run

isolated = pytest.fixture(repositories.isolation)  # here only where asked for

COUNT = 3
MANY = {f"part-{n % 3}/page-{n}.md": f"# Page {n}\n\nThe {n}th word of the day, told at length.\n" for n in range(30)}


def built(
    docs: Path, provider: EmbeddingProvider, folder: Path, count: int = COUNT, options: ChunkingOptions | None = None
) -> list[Path]:
    """The shards of a folder's pages, as files."""
    found = []
    for number in range(1, count + 1):
        found.append(folder / f"shard-{number}.db")
        source = WorkingTree(docs)
        builder.build(
            source, found[-1], provider, options or ChunkingOptions(), BuildRequest(shard=Shard(number, count))
        )
    return found


def whole(docs: Path, provider: EmbeddingProvider, index: Path) -> bytes:
    builder.build(WorkingTree(docs), index, provider, ChunkingOptions())
    return index.read_bytes()


def test_shards_make_the_bytes_of_one_big_build(docs: Path, local: EmbeddingProvider, tmp_path: Path) -> None:
    shards = built(docs, local, tmp_path)
    out = tmp_path / "out.db"
    report = merge.join([shards[2], shards[0], shards[1]], out)
    assert out.read_bytes() == whole(docs, local, tmp_path / "whole.db")
    assert (report.outcome, report.pages, report.embedded) == ("built", 4, 0) and report.reused == report.windows > 0
    assert {path.name for path in tmp_path.glob("*.db*")} == {"out.db", "whole.db", *(path.name for path in shards)}
    before = out.stat().st_mtime_ns
    os.utime(out, ns=(before, before - 10**9))
    assert merge.join(shards, out).outcome == "unchanged" and out.stat().st_mtime_ns == before - 10**9


@pytest.mark.parametrize("count", [1, 7])
def test_any_number_of_shards_some_of_them_empty(
    docs: Path, keywords: EmbeddingProvider, tmp_path: Path, count: int
) -> None:
    shards = built(docs, keywords, tmp_path, count)
    merge.join(shards, tmp_path / "out.db")
    assert (tmp_path / "out.db").read_bytes() == whole(docs, keywords, tmp_path / "whole.db")


def test_pages_that_want_one_place_make_the_same_bytes_too(
    keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 6)  # 64 places for 30 pages: some collide across shards
    docs = write(tmp_path / "docs", MANY)
    shards = built(docs, keywords, tmp_path)
    ids = [id_ for path in shards for id_ in _ids(path)]
    assert len(set(ids)) < len(ids) == len(MANY)
    merge.join(shards, tmp_path / "out.db")
    assert (tmp_path / "out.db").read_bytes() == whole(docs, keywords, tmp_path / "whole.db")


def _ids(path: Path) -> list[int]:
    with verify.open_checked(path) as reader:
        return [document.id for document in reader.documents()]


def test_a_shard_says_that_it_is_one(docs: Path, keywords: EmbeddingProvider, tmp_path: Path) -> None:
    shard = next(path for path in built(docs, keywords, tmp_path) if _ids(path))
    with anvil.open(docs, shard, "none") as opened:
        with pytest.raises(ArtifactRejected, match=r"is shard ./3 of an index"):
            opened.check()
        assert any("is shard" in note for note in opened.search("alerts").freshness.notes)
        assert opened.index(shard="1/1").outcome == "built"  # of other shares than before
        assert opened.index(shard="1/1").outcome == "unchanged"
        assert opened.index().outcome == "built"  # no page differs, but now it is a whole
        assert not opened.check() and opened.index().outcome == "unchanged"
        assert shard.read_bytes() == whole(docs, keywords, tmp_path / "whole.db")


def test_what_does_not_fit_is_refused_with_the_reason(docs: Path, keywords: EmbeddingProvider, tmp_path: Path) -> None:
    shards = built(docs, keywords, tmp_path)
    other = tmp_path / "other"
    other.mkdir()
    cut_otherwise = built(docs, keywords, other, options=ChunkingOptions(min_chunk_size=100))
    whole(docs, keywords, tmp_path / "whole.db")
    four = tmp_path / "four"
    four.mkdir()
    of_four = built(docs, keywords, four, 4)
    out = tmp_path / "out.db"
    out.write_bytes(shards[0].read_bytes()[:5000])
    before = out.read_bytes()
    cases: list[tuple[list[Path], str]] = [
        (shards[:2], "Missing: shard 3/3"),
        ([*shards, shards[0]], "Name each once"),
        ([*shards[:2], tmp_path / "whole.db"], "whole index, not a shard"),
        ([*shards[:2], cut_otherwise[2]], "built with chunking"),
        ([*shards[:2], of_four[2]], "is shard 3/4"),
        ([*shards[:2], tmp_path / "none.db"], "no index at"),
    ]
    for given, reason in cases:
        with pytest.raises(AnvilError, match=reason):
            merge.join(given, out)
    with pytest.raises(ConfigError, match="one of the shards"):
        merge.join(shards, shards[0])
    assert out.read_bytes() == before
    with pytest.raises(BuildError):
        merge.join(shards, tmp_path / "whole.db" / "below" / "out.db")


def test_a_page_in_the_wrong_shard_is_refused(docs: Path, keywords: EmbeddingProvider, tmp_path: Path) -> None:
    shards = built(docs, keywords, tmp_path, 2)
    _relabel(shards[0], "2/2")
    _relabel(shards[1], "1/2")
    with pytest.raises(ArtifactRejected, match="of another"):
        merge.join(shards, tmp_path / "out.db")
    _relabel(shards[0], "0/2")
    with pytest.raises(ArtifactRejected, match="impossible shard"):
        merge.join(shards, tmp_path / "out.db")


def _relabel(index: Path, shard: str) -> None:
    """As somebody might who edits files by hand, the checksum too."""
    handle = connection.open_scratch(index)
    Writer(handle).set_meta({"shard": shard})
    Writer(handle).set_meta({"checksum": checksum(handle)})
    handle.close()


# --- the two sides of a merge -----------------------------------------------------------------------------------


def index_of(
    docs: Path, revision: str, index: Path, provider: EmbeddingProvider, options: ChunkingOptions | None = None
) -> Path:
    builder.build(CommitTree(docs, revision), index, provider, options or ChunkingOptions())
    return index


def repository_of(root: Path) -> Repository:
    """A repository with the commits ``base``, ``left`` and ``right``, whose sides edit different pages."""
    docs = write(root / "docs", PAGES)
    run(root, "init", "-q", "-b", "base")
    commit(root, "base", at=1_700_000_000)
    for side in ("left", "right"):
        run(root, "checkout", "-q", "-b", side, "base")
        write(docs, {f"{side}.md": f"# {side}\n\nOf the {side}.\n"})
        commit(root, side, at=1_700_000_000)
    found = Repository.discover(root)
    assert found is not None
    return found


def test_an_index_is_not_open_when_its_merge_takes_its_place(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows would refuse to."""
    repository = repository_of(tmp_path / "repo")
    docs = tmp_path / "repo/docs"
    base, ours, theirs = (index_of(docs, name, tmp_path / f"{name}.db", keywords) for name in ("base", "left", "right"))
    seen = replacements(ours, monkeypatch)
    report, torn = merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
    assert (report.pages, torn, seen) == (6, (), [0])
    with verify.open_checked(ours) as reader:
        assert {"left.md", "right.md"} < reader.blob_ids().keys()


def test_a_merged_page_that_includes_code_is_stale_for_every_source(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path
) -> None:
    """The driver does not follow includes: another build of the index does."""
    root, page = tmp_path / "repo", "# Code\n\n{* ../src/app.py *}\n\nOne.\n\nTwo.\n\nThree.\n\nFour.\n"
    docs = write(root / "docs", {"code.md": page, **PAGES})
    write(root / "src", {"app.py": "lamp = 1\n"})
    run(root, "init", "-q", "-b", "base")
    commit(root, "base", at=1_700_000_000)
    for side, text in (("left", page.replace("One", "First")), ("right", page.replace("Four", "Last"))):
        run(root, "checkout", "-q", "-b", side, "base")
        write(docs, {"code.md": text})
        commit(root, side, at=1_700_000_000)
    repository = Repository.discover(root)
    assert repository is not None
    base, ours, theirs = (index_of(docs, name, tmp_path / f"{name}.db", keywords) for name in ("base", "left", "right"))
    merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
    write(docs, {"code.md": page.replace("One", "First").replace("Four", "Last")})
    commit(root, "merged", at=1_700_000_000)
    with verify.open_checked(ours) as reader:
        known = reader.identities()
    for source in (WorkingTree(docs), StagedTree(docs), CommitTree(docs, "HEAD")):
        assert document_source.compare(known, source.scan(known).entries).changed == ("code.md",), source.name


class WithTags(SourceWrapper):
    """The pages of a tree, and one that a site generator made."""

    tags = Document("tags.md", "", "# Tags\n\nAll of them.\n", 25, UNKNOWN_TIME, fingerprint="f" * 64)

    def scan(self, indexed: Mapping[str, str] | None = None) -> Scan:
        return Scan({**super().scan().entries, "tags.md": document_source.identity("", self.tags.fingerprint)})

    def read(self, path: str) -> Document | Skipped:
        return self.tags if path == "tags.md" else super().read(path)

    def last_modified(
        self, paths: Collection[str], known: Mapping[str, tuple[str, str]], since: str | None
    ) -> dict[str, str]:
        return {"tags.md": UNKNOWN_TIME, **super().last_modified({*paths} - {"tags.md"}, known, since)}


def test_pages_without_a_file_wait_for_the_site_when_all_is_cut_anew(
    isolated: None, keywords: EmbeddingProvider, tmp_path: Path
) -> None:
    repository = repository_of(tmp_path / "repo")
    docs = tmp_path / "repo/docs"
    tree = CommitTree(docs, "left")
    ours = tmp_path / "left.db"
    builder.build(WithTags(tree), ours, keywords, ChunkingOptions())
    base = index_of(docs, "base", tmp_path / "base.db", keywords)
    other_sizes = ChunkingOptions(min_chunk_size=0, max_chunk_size=300)
    for options, skipped in ((ChunkingOptions(), []), (other_sizes, ["tags.md"])):
        theirs = index_of(docs, "right", tmp_path / "right.db", keywords, options)
        report, _ = merge.reconcile(base, ours, theirs, repository, lambda meta: keywords)
        assert [each.path for each in report.skipped] == skipped
        with verify.open_checked(ours) as reader:
            assert reader.identities().keys() == {*PAGES, "left.md", "right.md", "tags.md"} - {*skipped}


def test_a_whole_is_not_open_when_another_takes_its_place(
    docs: Path, keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.db"
    merge.join(built(docs, keywords, tmp_path), out)
    write(docs, {"more.md": "# More\n"})
    seen = replacements(out, monkeypatch)
    assert merge.join(built(docs, keywords, tmp_path), out).outcome == "built" and seen == [0]
