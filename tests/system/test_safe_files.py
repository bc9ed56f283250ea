"""Writing in a folder where somebody else may have left links, pipes and folders; and the cache of one user."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as some

import anvil
from anvil.errors import BuildError, ConfigError
from anvil.fetch.fetched_cache import FetchedCache
from anvil.system import safe_files
from tests.conftest import linked


@pytest.mark.parametrize("mode", ["w", "a", "x"])
def test_a_file_is_written_as_ever(tmp_path: Path, mode: str) -> None:
    file = tmp_path / "file"
    if mode != "x":
        file.write_text("old")
        file.chmod(0o600)
    with open(file, mode, encoding="utf-8", opener=safe_files.opener) as opened:
        opened.write("new")
    assert file.read_text() == {"w": "new", "a": "oldnew", "x": "new"}[mode]
    if mode == "x":
        (tmp_path / "plain").write_text("")
        assert file.stat().st_mode == (tmp_path / "plain").stat().st_mode
    elif os.name != "nt":
        assert file.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("flags", [os.O_TRUNC, os.O_APPEND, os.O_EXCL])
@pytest.mark.parametrize("kind", ["a link", "a dangling link", "a link to a folder", "a folder", "a pipe"])
def test_nothing_else_is_written_to(tmp_path: Path, flags: int, kind: str) -> None:
    flags |= os.O_WRONLY | os.O_CREAT
    file, away = tmp_path / "file", tmp_path / "away"
    if kind == "a link":
        away.write_text("mine")
    elif kind == "a link to a folder":
        away.mkdir()
    if "link" in kind:
        linked(file, away)
    elif kind == "a folder":
        file.mkdir()
    elif hasattr(os, "mkfifo"):
        os.mkfifo(file)
    else:
        pytest.skip("there are no pipes here")
    with pytest.raises(BuildError, match="is a link" if "link" in kind else f"is {kind}"):
        safe_files.opener(os.fspath(file), flags)
    assert not away.exists() or away.is_dir() or away.read_text() == "mine"


def test_a_link_that_comes_after_the_look_is_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not hasattr(os, "O_NOFOLLOW"):
        pytest.skip("this system cannot be asked")
    linked(tmp_path / "file", tmp_path / "away")
    monkeypatch.setattr(safe_files, "regular_file", lambda path: None)
    with pytest.raises(OSError):
        safe_files.opener(os.fspath(tmp_path / "file"), os.O_WRONLY | os.O_CREAT)
    assert not (tmp_path / "away").exists()


def test_a_replaced_file_is_whole_and_its_link_gone(tmp_path: Path) -> None:
    (tmp_path / "away").write_text("mine")
    linked(tmp_path / "file", tmp_path / "away")
    with pytest.raises(BuildError, match="is a link"):
        safe_files.write_file(tmp_path / "file", "a\nb\n")
    safe_files.write_file(tmp_path / "file", "a\nb\n", replace=True)
    assert (tmp_path / "file").read_bytes() == b"a\nb\n" and not (tmp_path / "file").is_symlink()
    assert (tmp_path / "away").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["away", "file"]


def test_a_file_with_the_same_content_keeps_its_time(tmp_path: Path) -> None:
    file = tmp_path / "file"
    safe_files.update_file(file, b"text")
    os.utime(file, (1, 1))
    safe_files.update_file(file, b"text")
    assert file.stat().st_mtime == 1
    for content in (b"another", b"short", b"long text that is longer"):
        safe_files.update_file(file, content)
        assert file.read_bytes() == content
        assert file.stat().st_mtime > 1


def test_what_is_no_file_is_never_the_same(tmp_path: Path) -> None:
    away = tmp_path / "away"
    away.write_bytes(b"text")
    linked(tmp_path / "file", away)
    with pytest.raises(BuildError, match="is a link"):
        safe_files.update_file(tmp_path / "file", b"text")
    safe_files.update_file(tmp_path / "file", b"text", replace=True)
    assert not (tmp_path / "file").is_symlink()
    (tmp_path / "folder").mkdir()
    with pytest.raises(BuildError, match="is a folder"):
        safe_files.update_file(tmp_path / "folder", b"text")


def test_a_file_that_cannot_be_written_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    file.chmod(0o640)

    def refused(source: Path, target: Path) -> None:
        raise PermissionError("in use")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", refused)
        patched.setattr(safe_files, "_RENAME_ATTEMPTS", 2)
        patched.setattr(safe_files, "_RENAME_PAUSE_S", 0)
        with pytest.raises(PermissionError):
            safe_files.write_file(file, b"new")
    assert file.read_text() == "old" and list(tmp_path.iterdir()) == [file]
    safe_files.write_file(file, b"new")
    assert file.read_text() == "new" and (os.name == "nt" or file.stat().st_mode & 0o777 == 0o640)


def test_a_folder_may_be_a_link_inside(tmp_path: Path) -> None:
    (tmp_path / "in/real").mkdir(parents=True)
    linked(tmp_path / "in/link", tmp_path / "in/real")
    linked(tmp_path / "in/out", tmp_path)
    for name in ("link", "real", "not-yet"):
        safe_files.ensure_inside_parent(tmp_path / "in" / name)
    with pytest.raises(BuildError, match="leads out"):
        safe_files.ensure_inside_parent(tmp_path / "in/out")


OURS = "/docs.anvil.db binary"
TEXTS = some.lists(some.sampled_from(["*.png binary", "# of ours", "", "*.md text", f"{OURS} eol=lf"])).flatmap(
    lambda lines: some.sampled_from(["\n", "\r\n"]).map(lambda ending: "".join(each + ending for each in lines))
)


@given(TEXTS)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_line_that_was_added_is_taken_out_again(tmp_path: Path, text: str) -> None:
    file = tmp_path / "attributes"
    file.write_bytes(text.encode())
    assert safe_files.set_line(file, OURS, present=True) and not safe_files.set_line(file, OURS, present=True)
    added = file.read_bytes().decode()
    assert added.startswith(text) and added.splitlines()[-1] == OURS and added.count("\r\n") in (0, added.count("\n"))
    assert safe_files.set_line(file, OURS, present=False) and not safe_files.set_line(file, OURS, present=False)
    assert file.read_bytes().decode() == text if text else not file.exists()


def test_a_last_line_without_an_end_gets_one(tmp_path: Path) -> None:
    for text, added in (("*.png binary", f"*.png binary\n{OURS}\n"), ("a\r\nb", f"a\r\nb\r\n{OURS}\r\n")):
        (tmp_path / "file").write_bytes(text.encode())
        assert safe_files.set_line(tmp_path / "file", OURS, present=True)
        assert (tmp_path / "file").read_bytes().decode() == added


# --- folders of the user ---


@pytest.fixture
def shared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder around the cache, which several users may share."""
    if os.name == "nt":
        pytest.skip("users and modes of POSIX")
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda *_, **__: str(tmp_path / "shared" / "anvil"))
    return tmp_path / "shared"


def become_another_user(monkeypatch: pytest.MonkeyPatch) -> str:
    """The number of a user who owns none of the files here."""
    number = os.geteuid() + 1
    monkeypatch.setattr(os, "geteuid", lambda: number)
    return str(number)


def test_what_another_user_made_is_not_used(shared: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert safe_files.user_cache() == shared / "anvil"
    safe_files.make_folder(safe_files.user_cache())
    assert safe_files.user_cache() == shared / "anvil"
    number = become_another_user(monkeypatch)
    assert safe_files.user_cache() == FetchedCache().folder.parent == shared / f"anvil-{number}"
    (shared / f"anvil-{number}").mkdir()  # by the first user, before the second one comes
    with pytest.raises(ConfigError, match=f"anvil-{number} belongs to another user"):
        safe_files.user_cache()


def test_what_all_users_may_write_to_is_not_used_and_what_a_group_may_write_to_is(shared: Path) -> None:
    safe_files.make_folder(shared / "anvil")
    (shared / "anvil").chmod(0o770)
    assert safe_files.user_cache() == shared / "anvil"
    (shared / "anvil").chmod(0o777)
    assert safe_files.user_cache() == shared / f"anvil-{os.geteuid()}"


def test_a_folder_that_a_group_may_write_to_is_not_private(shared: Path, tmp_path: Path) -> None:
    for mode, is_private in ((0o700, True), (0o755, True), (0o770, False), (0o707, False)):
        tmp_path.chmod(mode)
        assert safe_files.is_private(tmp_path) is is_private
    assert not safe_files.is_private(tmp_path / "missing")


def test_a_link_must_be_the_users_own(shared: Path) -> None:
    shared.mkdir()
    (shared / "elsewhere").mkdir(mode=0o700)
    for target in ("elsewhere", "missing"):
        (shared / "anvil").symlink_to(shared / target)
        assert safe_files.user_cache() == shared / "anvil"
        if os.geteuid() == 0:
            os.lchown(shared / "anvil", 1, 1)
            assert safe_files.user_cache() == shared / "anvil-0"
        (shared / "anvil").unlink()


def test_each_level_that_is_made_is_private_under_any_umask(shared: Path) -> None:
    before = os.umask(0)
    try:
        safe_files.make_folder(shared / "anvil" / "fetched" / "objects")
    finally:
        os.umask(before)
    made = [shared, *shared.rglob("*")]
    assert len(made) == 4 and {each.stat().st_mode & 0o777 for each in made} == {0o700}


def test_a_search_needs_no_cache(shared: Path, docs: Path) -> None:
    for name in ("anvil", f"anvil-{os.geteuid()}"):
        (shared / name).mkdir(parents=True)
        (shared / name).chmod(0o777)
    with anvil.open(docs, provider="local") as opened:
        opened.index()
        assert opened.search("lighthouse").results
    assert not list(shared.rglob("*/*"))
