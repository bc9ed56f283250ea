"""Paths as SQLite takes them."""

from __future__ import annotations

import os
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath

import apsw
import pytest

import anvil
from anvil.errors import ArtifactRejected
from anvil.git.tracked_file import is_pointer
from anvil.index_file import connection
from tests.conftest import write


@pytest.mark.parametrize(
    ("path", "uri", "filename"),
    [
        (PurePosixPath("/srv/docs/index.db"), "file:/srv/docs/index.db", "/srv/docs/index.db"),
        (PurePosixPath("/srv/a b?c#d%41/é.db"), "file:/srv/a%20b%3Fc%23d%2541/%C3%A9.db", "/srv/a b?c#d%41/é.db"),
        (PureWindowsPath(r"C:\docs\index.db"), "file:C%3A/docs/index.db", "C:/docs/index.db"),
        (
            PureWindowsPath(r"\\server\share\docs\index.db"),
            "file:////server/share/docs/index.db",
            "//server/share/docs/index.db",
        ),
        (
            PureWindowsPath(r"\\?\UNC\server\share\i.db"),
            "file:////%3F/UNC/server/share/i.db",
            "//?/UNC/server/share/i.db",
        ),
        (PurePosixPath("//server/i.db"), "file:////server/i.db", "//server/i.db"),
    ],
)
def test_a_path_reaches_sqlite_as_it_is(path: PurePath, uri: str, filename: str) -> None:
    assert connection.uri(path) == f"{uri}?immutable=1"
    assert parsed(connection.uri(path)) == (filename, "1")


def parsed(uri: str) -> tuple[str, str | None]:
    """What SQLite makes of a URI: it hands file name and parameters to a file system, which tells them here."""
    found: list[tuple[str, str | None]] = []

    class Telling(apsw.VFS):
        def __init__(self) -> None:
            super().__init__("telling", "")

        def xFullPathname(self, name: str) -> str:
            return name

        def xOpen(self, name: str | apsw.URIFilename | None, flags: list[int]) -> apsw.VFSFile:
            assert isinstance(name, apsw.URIFilename)
            found.append((name.filename(), name.uri_parameter("immutable")))
            raise apsw.CantOpenError("seen")

    telling = Telling()
    with pytest.raises(apsw.CantOpenError):
        apsw.Connection(uri, flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI, vfs="telling")
    telling.unregister()
    return found[0]


def test_an_index_in_a_folder_with_any_name_is_opened(tmp_path: Path) -> None:
    docs = write(tmp_path / "100% a#b é" / "docs", {"a.md": "# A\n\nText.\n"})
    with anvil.open(docs, provider="none") as opened:
        opened.index()
    connection.open_artifact(docs / ".anvil/index.db").close()


def test_what_sqlite_does_not_understand_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "index.db"
    file.write_bytes(b"SQLite format 3\0")
    monkeypatch.setattr(connection, "uri", lambda path: "file://server/share/index.db")
    with pytest.raises(ArtifactRejected, match=r"index\.db cannot be opened \(.*authority"):
        connection.open_artifact(file)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes here")
def test_a_pipe_is_no_index_and_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "index.db")
    with pytest.raises(ArtifactRejected, match="is a pipe or a device"):
        connection.open_artifact(tmp_path / "index.db")
    assert not is_pointer(tmp_path / "index.db")
