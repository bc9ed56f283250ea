"""Archives of packages, also hostile ones: nothing of them is written, and what is wrong is one message."""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from anvil.dependencies import package_files
from anvil.dependencies.ecosystems import PackageArchive
from anvil.errors import ArtifactRejected, FetchError
from anvil.http.client import HttpClient, Limits
from tests.support.dependency_servers import tarball, wheel
from tests.support.index_server import Answer, serving


def zipped(path: Path, members: dict[str, bytes], attributes: int = 0, deflate: bool = False) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED if deflate else zipfile.ZIP_STORED) as opened:
        for name, data in members.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes
            info.compress_type = opened.compression
            opened.writestr(info, data)
    return path


def test_members_and_contents(tmp_path: Path) -> None:
    path = tmp_path / "p"
    path.write_bytes(wheel("lib", "1.0", {"lib/docs/a.md": b"# A\n"}))
    assert package_files.archive_members(path, "lib.whl")[-1] == "lib/docs/a.md"
    assert package_files.read_archive(path, "lib.whl", ["lib/docs/a.md"], 100) == {"lib/docs/a.md": b"# A\n"}
    path.write_bytes(tarball({"name": "lib"}, {"docs/a.md": b"# A\n"}))
    assert package_files.archive_members(path, "lib.tgz") == ["docs/a.md", "package.json"]
    assert package_files.read_archive(path, "lib.tgz", ["docs/a.md"], 100) == {"docs/a.md": b"# A\n"}
    with pytest.raises(ArtifactRejected, match="its documentation has more than 3 bytes"):
        package_files.read_archive(path, "lib.tgz", ["docs/a.md"], 3)


@pytest.mark.parametrize(
    ("kind", "block", "count", "reason"),
    [
        (tarfile.GNUTYPE_LONGNAME, b"a" * 50_000_000, 1, "a header in it has 50,000,000 bytes"),
        (tarfile.XHDTYPE, b"1" * 100_000, 1, "a header in it has 100,000 bytes"),
        (tarfile.XGLTYPE, b"15000 comment=" + b"1" * 14_985 + b"\n", 5, "many have too many"),
        (tarfile.GNUTYPE_LONGLINK, b"a" * 10, 5_000, "too many headers for one member"),
    ],
)
def test_headers_of_a_tarball_have_limits(tmp_path: Path, kind: bytes, block: bytes, count: int, reason: str) -> None:
    header = tarfile.TarInfo("package/x")
    header.type, header.size = kind, len(block)
    one = header.tobuf() + block + bytes(-len(block) % 512)
    (tmp_path / "p").write_bytes(gzip.compress(one * count + bytes(1024), 1))
    began = time.thread_time()
    tracemalloc.start()
    with pytest.raises(ArtifactRejected, match=reason):
        package_files.archive_members(tmp_path / "p", "lib.tgz")
    assert tracemalloc.get_traced_memory()[1] < 12_000_000
    tracemalloc.stop()
    assert time.thread_time() - began < 10


def test_paths_that_lead_out_and_links_are_not_members(tmp_path: Path) -> None:
    path = zipped(
        tmp_path / "p", {"../../docs/a.md": b"x", "/docs/b.md": b"x", "docs\\c.md": b"x", "docs/\x1b.md": b"x"}
    )
    assert package_files.archive_members(path, "lib.whl") == []
    linked = zipped(tmp_path / "l", {"docs/a.md": b"/etc/passwd"}, attributes=(stat.S_IFLNK | 0o777) << 16)
    assert package_files.archive_members(linked, "lib.whl") == []
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as opened:
        for kind, name in ((tarfile.SYMTYPE, "package/docs/a.md"), (tarfile.FIFOTYPE, "package/docs/b.md")):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            opened.addfile(member)
    (tmp_path / "t").write_bytes(buffer.getvalue())
    assert package_files.archive_members(tmp_path / "t", "lib.tgz") == []


@pytest.mark.parametrize("name", ["lib.whl", "lib.tgz"])
@pytest.mark.parametrize(
    "data", [b"", b"PK\x05\x06", b"\x1f\x8b", b"no archive at all" * 40, gzip.compress(b"x" * 5000, mtime=0)]
)
def test_what_is_no_archive(tmp_path: Path, name: str, data: bytes) -> None:
    path = tmp_path / "p"
    path.write_bytes(data)
    with pytest.raises(ArtifactRejected, match=f"The archive {name} is refused"):
        package_files.archive_members(path, name)


def test_archives_that_unpack_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bomb = zipped(tmp_path / "b", {"docs/a.md": b"\0" * 20_000_000}, deflate=True)
    with pytest.raises(ArtifactRejected, match="its documentation has more than 19,999,999 bytes"):
        package_files.read_archive(bomb, "lib.whl", ["docs/a.md"], 19_999_999)
    monkeypatch.setattr(package_files, "MAX_UNPACKED_BYTES", 1000)
    (tmp_path / "t").write_bytes(tarball({"name": "lib"}, {"docs/a.md": b"x" * 2000}))
    with pytest.raises(ArtifactRejected, match="unpacks to too much"):
        package_files.archive_members(tmp_path / "t", "lib.tgz")
    monkeypatch.setattr(package_files, "MAX_MEMBERS", 2)
    (tmp_path / "m").write_bytes(tarball({"name": "lib"}, {"a": b"", "b": b""}))
    with pytest.raises(ArtifactRejected, match="unpacks to too much"):
        package_files.archive_members(tmp_path / "m", "lib.tgz")


def test_a_member_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "p", "w") as opened, pytest.warns(UserWarning, match="Duplicate"):
        opened.writestr("docs/a.md", b"1")
        opened.writestr("docs/a.md", b"2")
    with pytest.raises(ArtifactRejected, match=r"'docs/a\.md' twice"):
        package_files.archive_members(tmp_path / "p", "lib.whl")


def test_downloads_are_compared_and_limited(tmp_path: Path) -> None:
    with serving() as server, HttpClient(Limits()) as http:
        server.answers["/p.whl"] = Answer(b"abc")
        url, target = f"{server.url}/p.whl", tmp_path / "p"
        sha = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        package_files.download(http, PackageArchive(url, "p.whl", f"sha256:{sha}"), target, 100)
        assert target.read_bytes() == b"abc"
        with pytest.raises(ArtifactRejected, match="not those that the registry names"):
            package_files.download(http, PackageArchive(url, "p.whl", f"sha256:{'0' * 64}"), target, 100)
        with pytest.raises(FetchError, match="more than 2 bytes"):
            package_files.download(http, PackageArchive(url, "p.whl", None), target, 2)
        with pytest.raises(FetchError, match="status 404"):
            package_files.download(http, PackageArchive(f"{url}x", "p.whl", None), target, 100)
