"""Shards: shares of the pages that are disjoint, complete, stable and about even; and joined, the same bytes as one big
build, or a reason."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as some

import anvil
from anvil.build import builder
from anvil.build.shards import Shard, join
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import EmbeddingProvider
from anvil.errors import AnvilError, ArtifactRejected, BuildError, ConfigError
from anvil.index_file import connection, table_rows, verify
from anvil.index_file.writer import Writer, checksum
from anvil.requests import BuildRequest
from anvil.settings.schema import ChunkingOptions
from tests.conftest import replacements, write

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
            source, found[-1], provider, options or ChunkingOptions(), BuildRequest(shard=f"{number}/{count}")
        )
    return found


def whole(docs: Path, provider: EmbeddingProvider, index: Path) -> bytes:
    builder.build(WorkingTree(docs), index, provider, ChunkingOptions())
    return index.read_bytes()


@given(some.text(), some.integers(1, 999))
def test_every_path_has_one_shard(path: str, count: int) -> None:
    assert [Shard(number, count).holds(path) for number in range(1, count + 1)].count(True) == 1


def test_the_shares_are_about_even_and_stay() -> None:
    paths = [f"guides/chapter-{number // 20}/page-{number}.md" for number in range(4_000)]
    shares = Counter(next(n for n in range(1, 9) if Shard(n, 8).holds(path)) for path in paths)
    assert all(430 <= share <= 570 for share in shares.values()), shares  # 500, give or take three deviations
    assert [Shard(n, 3).holds("guides/alerts.md") for n in (1, 2, 3)] == [True, False, False]  # a promise to caches
    assert Shard(2, 3).holds("bytes-\udcff.md") in (True, False)


@pytest.mark.parametrize("text", ["3/8", "1/1", "999/999"])
def test_a_shard_is_written_as_it_is_read(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "3/0", "03/8", "3 / 8", "-1/8", "1/1000", "3/8\n", "٣/٨"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="3/8"):
        Shard.parse(text)


def test_shards_make_the_bytes_of_one_big_build(docs: Path, local: EmbeddingProvider, tmp_path: Path) -> None:
    shards = built(docs, local, tmp_path)
    out = tmp_path / "out.db"
    report = join([shards[2], shards[0], shards[1]], out)
    assert out.read_bytes() == whole(docs, local, tmp_path / "whole.db")
    assert (report.outcome, report.pages, report.embedded) == ("built", 4, 0) and report.reused == report.windows > 0
    assert {path.name for path in tmp_path.glob("*.db*")} == {"out.db", "whole.db", *(path.name for path in shards)}
    before = out.stat().st_mtime_ns
    os.utime(out, ns=(before, before - 10**9))
    assert join(shards, out).outcome == "unchanged" and out.stat().st_mtime_ns == before - 10**9


@pytest.mark.parametrize("count", [1, 7])
def test_any_number_of_shards_some_of_them_empty(
    docs: Path, keywords: EmbeddingProvider, tmp_path: Path, count: int
) -> None:
    shards = built(docs, keywords, tmp_path, count)
    join(shards, tmp_path / "out.db")
    assert (tmp_path / "out.db").read_bytes() == whole(docs, keywords, tmp_path / "whole.db")


def test_pages_that_want_one_place_make_the_same_bytes_too(
    keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(table_rows, "DOCUMENT_BITS", 6)  # 64 places for 30 pages: some collide across shards
    docs = write(tmp_path / "docs", MANY)
    shards = built(docs, keywords, tmp_path)
    ids = [id_ for path in shards for id_ in _ids(path)]
    assert len(set(ids)) < len(ids) == len(MANY)
    join(shards, tmp_path / "out.db")
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
        with pytest.raises(BuildError, match=r"shard 1/2 .*\. Name another file with index\. .* use force\."):
            opened.index(shard="1/2")
        with pytest.raises(BuildError, match=r"with --index\. .* use --force\."):
            builder.build(WorkingTree(docs), shard, keywords, ChunkingOptions(), BuildRequest(shard="1/2"))
        assert shard.read_bytes() == (tmp_path / "whole.db").read_bytes()
        assert opened.index(shard="1/2", force=True).outcome == "built"


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
    for parts, reason in cases:
        with pytest.raises(AnvilError, match=reason):
            join(parts, out)
    with pytest.raises(ConfigError, match="one of the shards"):
        join(shards, shards[0])
    assert out.read_bytes() == before
    with pytest.raises(BuildError):
        join(shards, tmp_path / "whole.db" / "below" / "out.db")


def test_a_page_in_the_wrong_shard_is_refused(docs: Path, keywords: EmbeddingProvider, tmp_path: Path) -> None:
    shards = built(docs, keywords, tmp_path, 2)
    _relabel(shards[0], "2/2")
    _relabel(shards[1], "1/2")
    with pytest.raises(ArtifactRejected, match="of another"):
        join(shards, tmp_path / "out.db")
    _relabel(shards[0], "0/2")
    with pytest.raises(ArtifactRejected, match="impossible values for shard"):
        join(shards, tmp_path / "out.db")


def _relabel(index: Path, shard: str) -> None:
    """As somebody might who edits files by hand, the checksum too."""
    handle = connection.open_scratch(index)
    Writer(handle).set_meta({"shard": shard})
    Writer(handle).set_meta({"checksum": checksum(handle)})
    handle.close()


def test_a_whole_is_not_open_when_another_takes_its_place(
    docs: Path, keywords: EmbeddingProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out.db"
    join(built(docs, keywords, tmp_path), out)
    write(docs, {"more.md": "# More\n"})
    seen = replacements(out, monkeypatch)
    assert join(built(docs, keywords, tmp_path), out).outcome == "built" and seen == [0]
