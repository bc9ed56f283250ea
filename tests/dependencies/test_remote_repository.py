"""Fetching part of a repository by the git program."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from anvil.dependencies import remote_repository
from anvil.dependencies.remote_repository import RemoteRepository
from anvil.errors import FetchError, GitError, Unreachable
from tests.support import repositories
from tests.support.dependency_servers import git_server, repository
from tests.support.index_server import Answer, serving
from tests.support.repositories import isolated

__all__ = ["isolated"]

FILES: dict[str, str | bytes] = {"docs/a.md": "# A\n", "docs/b.md": "# B\n", "src/code.bin": bytes(range(256)) * 2000}


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    return repository(tmp_path / "git" / "lib", FILES)


def test_only_wanted_blobs_are_fetched(upstream: Path) -> None:
    with git_server(upstream.parent) as git, RemoteRepository(f"{git}/lib/.git", ["http"]) as there:
        tags = there.tags()
        assert list(tags) == ["v1.0.0"]
        there.fetch(tags["v1.0.0"], "v1.0.0")
        tree = there.tree()
        assert set(tree) == set(FILES) and not any(there.has(entry.id) for entry in tree.values())
        there.fetch_blobs([tree["docs/a.md"].id, tree["docs/b.md"].id])
        assert there.repository().read_blob(tree["docs/a.md"].id) == b"# A\n"
        assert not there.has(tree["src/code.bin"].id)
        with pytest.raises(GitError, match="missing"):
            there.repository().read_blob(tree["src/code.bin"].id)
        assert remote_repository._size(there.folder) < 50_000
        folder = there.folder
    assert not folder.exists()


def test_a_commit_that_no_tag_has(upstream: Path) -> None:
    commit = repositories.run(upstream, "rev-parse", "HEAD")
    repository(upstream, {"docs/a.md": "# New\n"}, "v2.0.0")
    with git_server(upstream.parent) as git, RemoteRepository(f"{git}/lib/.git", ["http"]) as there:
        there.fetch(commit)
        assert "docs/a.md" in there.tree()
        with pytest.raises(FetchError, match=r"The tag v2.0.0 of .* is now the commit"):
            there.fetch("0" * 40, "v2.0.0")


def test_a_hook_s_environment_leads_nowhere_else(
    upstream: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "other"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    with RemoteRepository(upstream.as_uri(), ["file"]) as there:
        assert list(there.tags()) == ["v1.0.0"]
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("url", "protocols", "message"),
    [
        ("ext::sh -c 'touch pwned'", ["https"], "the protocols that are allowed are https"),
        ("file:///nowhere/at/all", ["file"], "There is no repository at file:///nowhere/at/all"),
        ("--upload-pack=touch pwned", ["file"], "no repository|cannot fetch"),
        ("https://reader:secret@127.0.0.1:9/x", ["https"], "https://127.0.0.1:9/x cannot be reached"),
    ],
)
def test_addresses_that_cannot_be_used(url: str, protocols: list[str], message: str, tmp_path: Path) -> None:
    os.chdir(tmp_path)
    with RemoteRepository(url, protocols) as there, pytest.raises(FetchError, match=message) as error:
        there.tags()
    assert "secret" not in str(error.value) and not (tmp_path / "pwned").exists()


def test_a_server_that_stalls_is_given_up(upstream: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    script = tmp_path / "slow"
    script.write_text("#!/bin/sh\nsleep 60\n")
    script.chmod(0o755)
    monkeypatch.setattr(remote_repository, "STALL_TIMEOUT_S", 0.2)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    with RemoteRepository("ssh://127.0.0.1/x", ["ssh"]) as there, pytest.raises(FetchError, match="sent nothing for"):
        there.tags()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
def test_a_connection_that_fails_is_no_wrong_address(
    upstream: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "ssh"
    script.write_text("#!/bin/sh\necho 'ssh: connect to host x port 22: Connection refused' >&2\nexit 255\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    with RemoteRepository("ssh://127.0.0.1/x", ["ssh"]) as there, pytest.raises(Unreachable, match="cannot be reached"):
        there.tags()
    with serving() as server:
        server.answers["/x/info/refs"] = Answer(b"", 503)
        with (
            RemoteRepository(f"{server.url}/x", ["http"]) as there,
            pytest.raises(Unreachable, match="Try again later"),
        ):
            there.tags()
        kind = {"Content-Type": "application/x-git-upload-pack-advertisement"}
        server.answers["/x/info/refs"] = Answer(b"001e# service=git-upload-pack\n0000", headers=kind, cuts=[20])
        with RemoteRepository(f"{server.url}/x", ["http"]) as there, pytest.raises(Unreachable, match="broke off"):
            there.tags()


def test_a_list_of_tags_has_a_limit(upstream: Path) -> None:
    """git prints the list at once, when it has all of it: the last bytes count, too."""
    commit = repositories.run(upstream, "rev-parse", "HEAD")
    tags = "".join(f"{commit} refs/tags/v{number:06}\n" for number in range(20_000))
    (upstream / ".git" / "packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted \n{tags}")
    with RemoteRepository(upstream.as_uri(), ["file"]) as there:
        assert len(there.tags()) == 20_001
    for _ in range(5):
        with (
            RemoteRepository(upstream.as_uri(), ["file"], max_bytes=1_000_000) as there,
            pytest.raises(
                FetchError, match=r"sends more than 1,000,000 bytes \(deps\.max_fetch_bytes\)\. Check the add"
            ),
        ):
            there.tags()


@pytest.mark.skipif(sys.platform != "linux", reason="the system has no limit of a program's memory")
def test_a_list_of_tags_without_end_does_not_fill_the_memory(
    upstream: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    script = tmp_path / "ssh"
    script.write_text(
        f"#!{sys.executable}\n"
        "import sys\n"
        "def line(text):\n"
        "    return b'%04x' % (len(text) + 4) + text\n"
        "sys.stdout.buffer.write(line(b'a' * 40 + b' HEAD\\0agent=git/2.39\\n'))\n"
        "tags = b''.join(line(b'a' * 40 + b' refs/tags/v%d\\n' % number) for number in range(1000))\n"
        "while True:\n"
        "    sys.stdout.buffer.write(tags)\n"
    )
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    monkeypatch.setattr(remote_repository, "STALL_TIMEOUT_S", 20)
    monkeypatch.setattr(remote_repository, "MAX_LIST_MEMORY_KB", 150_000)
    with (
        RemoteRepository("ssh://127.0.0.1/x", ["ssh"]) as there,
        pytest.raises(FetchError, match=r"ssh://127\.0\.0\.1/x lists more tags than git can hold in 150000 kB\. Check"),
    ):
        there.tags()


def test_a_refusal_is_no_failure_of_the_server(upstream: Path) -> None:
    """git says of both that the RPC failed, and that the server hung up."""
    for status, message in ((401, "needs credentials"), (403, r"refuses access \(status 403\)")):
        with (
            git_server(upstream.parent, refuses=status) as git,
            RemoteRepository(f"{git}/lib/.git", ["http"]) as there,
            pytest.raises(FetchError, match=message) as told,
        ):
            there.tags()
        assert not isinstance(told.value, Unreachable)
    with serving() as server:
        server.answers["/x/info/refs"] = Answer(b"", 403)
        with RemoteRepository(f"{server.url}/x", ["http"]) as there, pytest.raises(FetchError, match="refuses access"):
            there.tags()


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a shell script")
@pytest.mark.parametrize("prefix", ["", "remote: "])
def test_a_full_disk_is_said_where_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, prefix: str) -> None:
    script = tmp_path / "ssh"
    told = f"{prefix}fatal: write error: No space left on device\nfatal: early EOF\n"
    script.write_text(f"#!/bin/sh\nprintf '{told}' >&2\nexit 128\n")
    script.chmod(0o755)
    monkeypatch.setenv("GIT_SSH_COMMAND", str(script))
    with RemoteRepository("ssh://127.0.0.1/x", ["ssh"]) as there, pytest.raises(FetchError) as error:
        there.tags()
    is_here = not prefix
    assert isinstance(error.value, Unreachable) is not is_here
    assert ("The disk is full: git cannot write to" in str(error.value)) is is_here
    assert ("or set TMPDIR" in str(error.value)) is is_here


def test_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    with pytest.raises(FetchError, match="The program git is needed"):
        RemoteRepository("https://example.org/x", ["https"])
