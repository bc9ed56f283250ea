"""Archives that were damaged or made to do harm, beyond those that somebody thought of."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import anvil
from anvil.errors import ArtifactRejected
from anvil.fetch import download
from anvil.index_file import publish
from tests.conftest import write
from tests.support.index_server import packed


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and its manifest."""
    folder = tmp_path_factory.mktemp("made")
    write(folder / "docs", {"a.md": "# A\n\nSome text.\n"})
    with anvil.open(folder / "docs", folder / "index.db", "none") as opened:
        opened.index()
    publish.write_manifest(folder / "index.db")
    return folder


def contents(made: Path) -> dict[str, bytes]:
    return {name: (made / name).read_bytes() for name in ("index.db", "index.json")}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    flips=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), max_size=4),
    tail=st.lists(st.tuples(st.integers(1, 180), st.integers(0, 255)), max_size=3),
    cut=st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_a_damaged_archive_is_refused_or_gives_the_very_same_index(
    flips: list[tuple[float, int]], tail: list[tuple[int, int]], cut: float, made: Path, tmp_path: Path
) -> None:
    files = contents(made)
    whole = bytearray(packed(files))
    for place, value in flips:
        whole[int(place * len(whole))] = value
    for behind, value in tail:  # the table of contents stands there
        whole[-behind] = value
    (tmp_path / "archive.zip").write_bytes(bytes(whole[: int(cut * len(whole))]))
    try:
        path, published = download.unpack(tmp_path / "archive.zip", tmp_path / "out.db", 10_000_000, "there")
    except ArtifactRejected as error:
        assert str(error).endswith(".")
        return
    assert path == tmp_path / "out.db" and path.read_bytes() == files["index.db"]
    assert published is None or published.file == "index.db"
    assert {each.name for each in tmp_path.iterdir()} == {"archive.zip", "out.db"}


def test_a_table_of_contents_that_points_before_the_beginning_is_refused(made: Path, tmp_path: Path) -> None:
    whole = bytearray(packed(contents(made)))
    struct.pack_into("<L", whole, whole.rindex(b"PK\x05\x06") + 16, len(whole))  # where it says that it begins
    (tmp_path / "archive.zip").write_bytes(bytes(whole))
    with pytest.raises(ArtifactRejected, match="is refused"):
        download.unpack(tmp_path / "archive.zip", tmp_path / "out.db", 10_000_000, "there")


@pytest.mark.parametrize("comment", [b"", b"said at the end", b"x" * 65_535])
def test_a_second_table_of_contents_behind_the_one_looked_at_is_refused(
    made: Path, tmp_path: Path, comment: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = packed(contents(made) | {f"{number:05}": b"" for number in range(3_000)})
    at = whole.rindex(b"PK\x05\x06")
    *_, size, offset, _ = struct.unpack("<4s4H2LH", whole[at:])
    record = struct.pack("<4sQ2H2L4Q", b"PK\x06\x06", 44, 45, 45, 0, 0, 3_002, 3_002, size, offset)
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, at, 1)
    modest = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 2, 2, 100, 0, len(comment)) + comment
    archive = tmp_path / "archive.zip"
    archive.write_bytes(whole[:at] + record + locator + modest)
    with zipfile.ZipFile(archive) as opened:
        assert len(opened.infolist()) == 3_002  # what is read is not what the modest one says
    monkeypatch.setattr(zipfile, "ZipFile", None)  # nothing reads it
    with pytest.raises(ArtifactRejected, match="ZIP64"):
        download.unpack(archive, tmp_path / "out.db", 10_000_000, "there")


def test_as_uploads_are_packed(made: Path, tmp_path: Path) -> None:
    """Streamed, with sizes behind the data, and without a word on what kind of file it is."""
    import io

    class Stream(io.RawIOBase):
        """Cannot go back, as a connection cannot."""

        def __init__(self) -> None:
            self.whole = bytearray()

        def writable(self) -> bool:
            return True

        def write(self, block: Any) -> int:
            self.whole += bytes(block)
            return len(bytes(block))

    stream, files = Stream(), contents(made)
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, body in files.items():
            with archive.open(name, "w") as file:
                file.write(body)
    (tmp_path / "archive.zip").write_bytes(bytes(stream.whole))
    assert download.unpack(tmp_path / "archive.zip", tmp_path / "out.db", 10_000_000, "there")[1] is not None
    assert (tmp_path / "out.db").read_bytes() == files["index.db"]
