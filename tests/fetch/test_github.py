"""GitHub as it is documented, on loopback: which artifact is taken, what is refused, and what each failure says."""

from __future__ import annotations

import hashlib
import logging
import stat
import struct
import time
import zipfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.errors import AnvilError, ArtifactRejected, ConfigError, FetchError, Unreachable
from anvil.fetch import download
from anvil.fetch.fetch_index import FetchRequest, FetchResult, fetch
from anvil.fetch.fetched_cache import FetchedCache
from anvil.http.client import Limits
from anvil.index_file import publish
from anvil.system import safe_files
from tests.support.index_server import Answer, GitHub, Server, packed, serving
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures

NAME = "github:owner/repo#artifact:docs-index"
TOKEN = "ghp_THE-SECRET-TOKEN"


@pytest.fixture
def servers(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Server, Server]]:
    """The API and the host that signed URLs lead to."""
    with serving() as api, serving() as storage:
        monkeypatch.setenv("GITHUB_API_URL", api.url)
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        monkeypatch.delenv("GH_TOKEN", raising=False)
        yield api, storage


@pytest.fixture
def github(servers: tuple[Server, Server]) -> GitHub:
    return GitHub(*servers)


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., FetchResult]:
    usual: dict[str, Any] = {
        "cache": FetchedCache(tmp_path / "cache"),
        "limits": Limits(connect=2, answer=5, pause=5),
    }
    return lambda source=NAME, **more: fetch(source, FetchRequest(**usual | more))


def refused(
    get: Callable[..., FetchResult], source: str = NAME, kind: type[AnvilError] = FetchError, **more: object
) -> str:
    with pytest.raises(kind) as caught:
        get(source, **more)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and TOKEN not in message and "SECRET" not in message
    return message


def built(root: Path, text: str = "") -> dict[str, bytes]:
    """The index of the repository's docs at HEAD and its manifest, as an action uploads them. Each is built once for
    all tests: the same commit and text give the same bytes."""
    key = (run(root, "rev-parse", "HEAD"), text)
    if key not in _built:
        place = root.parent / f"built-{hashlib.sha256(text.encode()).hexdigest()[:8]}" / "index.db"
        write(root / "docs/a.md", f"# A\n\n{text}\n")
        with anvil.open(root / "docs", place, "none") as opened:
            opened.index()
        run(root, "checkout", "-q", "docs/a.md")
        beside = publish.write_manifest(place)
        _built[key] = {"index.db": place.read_bytes(), "index.json": beside.read_bytes()}
    return {**_built[key]}


_built: dict[tuple[str, str], dict[str, bytes]] = {}


@pytest.fixture
def history(root: Path) -> list[str]:
    """Five commits on main, oldest first; HEAD is the last."""
    commits = [run(root, "rev-parse", "HEAD")]
    for number in range(1, 5):
        write(root / "src.py", f"{number}\n")
        commits.append(commit(root, f"change {number}", at=1_700_000_000 + number))
    return commits


# --- which artifact ------------------------------------------------------------------------------------------


def test_the_artifact_of_the_nearest_ancestor_is_taken(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    far, near = built(root, "far"), built(root, "near")
    github.artifact(history[2], packed(near), branch="feature", created="2026-01-01T00:00:00Z")
    github.artifact(history[0], packed(far), created="2026-02-02T00:00:00Z")
    github.artifact("e" * 40, packed(far), created="2026-03-03T00:00:00Z")
    found = get(head=root)
    assert found.path.read_bytes() == near["index.db"]
    assert (found.distance, found.commit, found.notes) == (2, history[4], ())  # built here, at HEAD
    assert found.origin == NAME
    again = get(head=root)
    assert not again.downloaded and again.distance == 2 and len(github.storage.requests) == 1


def test_head_moves_and_so_does_the_choice_without_fetching_twice(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    old, new = built(root, "old"), built(root, "new")
    github.artifact(history[1], packed(old))
    github.artifact(history[3], packed(new))
    assert get(head=root).path.read_bytes() == new["index.db"]
    run(root, "checkout", "-q", history[2])
    found = get(head=root)
    assert found.path.read_bytes() == old["index.db"] and found.distance == 1
    run(root, "checkout", "-q", "main")
    assert get(head=root).path.read_bytes() == new["index.db"]
    assert len(github.storage.requests) == 2


def test_without_an_ancestor_the_newest_of_the_default_branch_is_taken_and_says_so(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    files = built(root, "main")
    github.artifact("d" * 40, packed(files), branch="main", created="2026-01-05T00:00:00Z")
    github.artifact("e" * 40, packed(built(root, "older")), branch="main", created="2026-01-04T00:00:00Z")
    github.artifact("f" * 40, packed(built(root, "feature")), branch="feature", created="2026-01-06T00:00:00Z")
    found = get(head=root)
    assert found.path.read_bytes() == files["index.db"]
    assert found.notes == ("No artifact 'docs-index' is of an ancestor of HEAD; this is the newest of main.",)
    outside = get(head=None)
    assert outside.path.read_bytes() == files["index.db"] and outside.notes == () and outside.distance is None


def test_a_branch_or_a_commit_can_be_named(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    on_main, on_branch = built(root, "main"), built(root, "branch")
    github.artifact(history[4], packed(on_main))
    github.artifact(history[1], packed(on_branch), branch="topic/x")
    assert get("github:owner/repo@topic/x#artifact:docs-index", head=root).path.read_bytes() == on_branch["index.db"]
    by_commit = f"github:owner/repo@{history[1][:9]} artifact:docs-index"
    assert get(by_commit).path.read_bytes() == on_branch["index.db"]
    assert "of nowhere" in refused(get, "github:owner/repo@nowhere#artifact:docs-index")


def test_what_a_fork_uploads_is_passed_over(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    ours, theirs = built(root, "ours"), built(root, "theirs")
    github.artifact(history[4], packed(theirs), fork=True, created="2026-05-05T00:00:00Z")
    github.artifact(history[1], packed(ours))
    assert get(head=root).path.read_bytes() == ours["index.db"]
    assert get(head=None).path.read_bytes() == ours["index.db"]


def test_all_pages_are_looked_through(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    files = built(root, "ancestor")
    github.page = 2
    github.artifact(history[3], packed(files), created="2026-01-01T00:00:00Z")
    for number in range(5):
        github.artifact(f"{number}" * 40, packed(files), created=f"2026-02-0{number + 1}T00:00:00Z")
    found = get(head=root)
    assert found.distance == 1
    listed = [each for each in github.api.requests if "actions/artifacts?" in each.path]
    assert [each.path.rpartition("page=")[2] for each in listed] == ["100", "2", "3"]
    assert all(each.headers["Authorization"] == f"Bearer {TOKEN}" for each in listed)


def test_a_nearer_artifact_that_has_expired_is_named(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult]
) -> None:
    github.artifact(history[1], packed(built(root, "kept")))
    github.artifact(history[3], packed(built(root, "gone")), expired=True)
    found = get(head=root)
    assert found.distance == 3 and found.notes == (f"A nearer artifact, of commit {history[3][:7]}, has expired.",)


def test_two_clones_at_different_commits_do_not_get_into_each_others_way(
    github: GitHub, root: Path, history: list[str], get: Callable[..., FetchResult], tmp_path: Path
) -> None:
    github.artifact(history[4], packed(built(root, "new")))
    github.artifact(history[0], packed(built(root, "old")))
    other = tmp_path / "other"
    run(root, "worktree", "add", "-q", "--detach", str(other), history[0])
    here, there = get(head=root), get(head=other / "docs")
    assert here.path != there.path and here.manifest.sha256 != there.manifest.sha256


# --- failures, each in its own words -------------------------------------------------------------------------


def test_an_artifact_that_has_expired(github: GitHub, get: Callable[..., FetchResult]) -> None:
    github.artifact("a" * 40, b"", expired=True)
    told = "The artifact 'docs-index' of owner/repo, commit aaaaaaa, expired on 2026-04-01."
    assert refused(get) == f"{told} Run the workflow again, or raise its retention-days."


def test_an_artifact_that_expires_before_it_is_downloaded(github: GitHub, get: Callable[..., FetchResult]) -> None:
    number = github.artifact("a" * 40, b"zip")
    github.api.answers[f"{github.root}/actions/artifacts/{number}/zip"] = Answer(b"", 410)
    assert "has expired. Run the workflow again" in refused(get)


def test_no_run_and_other_names(github: GitHub, root: Path, get: Callable[..., FetchResult]) -> None:
    assert "Run the workflow that uploads it" in refused(get)
    github.artifact("a" * 40, b"", name="coverage")
    assert refused(get) == "No run of owner/repo left an artifact 'docs-index'. There are: coverage."
    github.artifact("a" * 40, packed(built(root)), branch="topic")
    message = refused(get)
    assert "but of topic" in message and "github:owner/repo@BRANCH#artifact:docs-index" in message


@pytest.mark.parametrize(
    ("status", "headers", "token", "words"),
    [
        (401, {}, True, "does not accept the token"),
        (401, {}, False, "gives the artifact 'docs-index' to signed-in users only. Set GITHUB_TOKEN"),
        (403, {}, True, "actions: read"),
        (404, {}, True, "Check the name, and the token's permissions"),
        (404, {}, False, "whether it needs a GITHUB_TOKEN"),
        (403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1900000000"}, True, "at 2030-03-17T17:46:40Z."),
        (429, {"Retry-After": "61"}, False, "again in 61 s. Set GITHUB_TOKEN"),
        (403, {"Retry-After": "60"}, True, "again in 60 s."),
        (500, {}, True, "has an error (status 500)"),
        (418, {}, True, "answered with status 418"),
    ],
)
def test_each_status_has_its_next_step(
    status: int,
    headers: dict[str, str],
    token: bool,
    words: str,
    github: GitHub,
    get: Callable[..., FetchResult],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    github.api.answers = {f"{github.root}/actions/artifacts": Answer(b'{"message": "no"}', status, headers)}
    if not token:
        monkeypatch.delenv("GITHUB_TOKEN")
        monkeypatch.setenv("PATH", "")  # no gh
    message = refused(get)
    assert words in message
    limited = status in (429, 500) or headers
    with pytest.raises(Unreachable if limited else FetchError):
        get()


def test_a_rate_limit_falls_back_to_what_was_fetched(
    github: GitHub, root: Path, get: Callable[..., FetchResult]
) -> None:
    github.artifact("a" * 40, packed(built(root)))
    first = get()
    github.api.answers = {
        f"{github.root}/actions/artifacts": Answer(b"", 403, {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "9"})
    }
    found = get()
    assert found.path == first.path and "limits the number of requests" in str(found.from_cache)


def test_an_answer_that_is_not_json_or_not_as_documented(github: GitHub, get: Callable[..., FetchResult]) -> None:
    github.api.answers[f"{github.root}/actions/artifacts"] = Answer(b"<html>maintenance")
    github.api.answers.pop(f"{github.root}/actions/artifacts?name=docs-index&per_page=100")
    assert "not JSON" in refused(get)
    run_ = {"repository_id": 1, "head_repository_id": 1, "head_sha": "x"}
    odd = [
        None,
        5,
        {},
        {"name": "docs-index"},
        {"name": "docs-index", "id": "1", "workflow_run": {}},
        {"name": "docs-index", "id": 1, "workflow_run": run_},
    ]
    github.api.json(f"{github.root}/actions/artifacts", {"artifacts": odd})
    assert "left an artifact" in refused(get)


# --- tokens --------------------------------------------------------------------------------------------------


def test_the_token_goes_to_the_api_and_nowhere_else(
    github: GitHub, root: Path, get: Callable[..., FetchResult], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    github.artifact("a" * 40, packed(built(root)))
    found = get()
    assert all(each.headers["Authorization"] == f"Bearer {TOKEN}" for each in github.api.requests)
    (blob,) = github.storage.requests
    assert blob.headers["Authorization"] is None and "SECRET-SIGNATURE" in blob.path
    texts = [repr(found), caplog.text]
    texts += [path.read_bytes().decode("latin-1") for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert not any(TOKEN in text or "SECRET" in text for text in texts)


def test_a_next_page_elsewhere_is_not_asked_for(github: GitHub, get: Callable[..., FetchResult], root: Path) -> None:
    with serving() as evil:
        listed = github.api.answers[f"{github.root}/actions/artifacts?name=docs-index&per_page=100"]
        listed.headers = {"Link": f'<{evil.url}/more>; rel="next"'}
        assert "Run the workflow that uploads it" in refused(get, head=root)
        assert evil.requests == []
        listed.headers = {"Link": '<https://[x/>; rel="next"'}
        assert "Run the workflow that uploads it" in refused(get, head=root)


@pytest.mark.parametrize(
    "url",
    [
        "http://ghe.example.com/api/v3",
        "https://user:pw@ghe.example.com",
        "ghe.example.com",
        "https://[x/",
        "https://ghe.example.com:abc",
    ],
)
def test_an_api_url_that_is_not_safe_is_refused(
    url: str, monkeypatch: pytest.MonkeyPatch, get: Callable[..., FetchResult]
) -> None:
    monkeypatch.setenv("GITHUB_API_URL", url)
    assert "GITHUB_API_URL" in refused(get, kind=ConfigError)


def test_the_token_comes_from_the_environment_or_gh(
    github: GitHub, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def used() -> str | None:
        github.api.requests.clear()
        refused(get)
        return github.api.requests[0].headers["Authorization"]

    monkeypatch.delenv("GITHUB_TOKEN")
    monkeypatch.setenv("GH_TOKEN", "other")
    assert used() == "Bearer other"
    monkeypatch.delenv("GH_TOKEN")
    program = tmp_path / "bin" / "gh"
    write(program, '#!/bin/sh\n[ "$*" = "auth token --hostname 127.0.0.1" ] && echo of-gh\n')
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", str(program.parent))
    assert used() == "Bearer of-gh"
    write(program, "#!/bin/sh\necho nothing >&2; exit 1\n")
    assert used() is None


# --- archives ------------------------------------------------------------------------------------------------


def test_a_broken_download_of_an_archive_goes_on_with_a_new_signed_url(
    github: GitHub, root: Path, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(download, "RETRY_DELAY_S", 0.0)
    files = built(root)
    number = github.artifact("a" * 40, packed(files))
    github.storage.answers[f"/blobs/{number}?sig=SECRET-SIGNATURE"].cuts = [1_000, 500]
    assert get().path.read_bytes() == files["index.db"]
    assert [each.headers["Range"] for each in github.storage.requests] == [None, "bytes=1000-", "bytes=1500-"]
    assert len(github.api.asked(f"{github.root}/actions/artifacts/{number}/zip")) == 3


def test_the_apis_digest_decides(github: GitHub, root: Path, get: Callable[..., FetchResult]) -> None:
    github.artifact("a" * 40, packed(built(root)), digest="0" * 64)
    assert "its SHA-256 is" in refused(get, kind=ArtifactRejected)


def test_without_a_digest_the_archive_is_known_by_its_number(
    github: GitHub, root: Path, get: Callable[..., FetchResult]
) -> None:
    github.artifact("a" * 40, packed(built(root)), digest=None)
    assert get().downloaded and not get().downloaded
    assert len(github.storage.requests) == 1


def declared(data: bytes, size: int) -> bytes:
    """An archive whose only member claims another size, in both of its headers."""
    changed = bytearray(data)
    local, central = changed.index(b"PK\x03\x04"), changed.index(b"PK\x01\x02")
    struct.pack_into("<L", changed, local + 22, size)
    struct.pack_into("<L", changed, central + 24, size)
    return bytes(changed)


def crowd() -> bytes:
    whole = BytesIO()
    with zipfile.ZipFile(whole, "w") as archive:
        for number in range(3000):
            archive.writestr(f"{number}.db", b"")
    return whole.getvalue()


def encrypted(data: bytes) -> bytes:
    changed = bytearray(data)
    changed[changed.index(b"PK\x03\x04") + 6] |= 1
    changed[changed.index(b"PK\x01\x02") + 8] |= 1
    return bytes(changed)


@pytest.mark.parametrize(
    ("archive", "words"),
    [
        (lambda files: packed({"../index.db": files["index.db"]}), "it holds the path '../index.db'"),
        (lambda files: packed({"/etc/index.db": files["index.db"]}), "it holds the path '/etc/index.db'"),
        (lambda files: packed({"..\\index.db": files["index.db"]}), "it holds the path"),
        (lambda files: packed({"C:index.db": files["index.db"]}), "it holds the path 'C:index.db'"),
        (lambda files: packed({"docs/index.db": files["index.db"]}), "it holds the path 'docs/index.db'"),
        (lambda files: packed({"index.db": b"/etc/passwd"}, link="index.db"), "is not a regular file"),
        (lambda files: packed({**files, "run.sh": b"rm -rf /"}), "more than an index and its manifest"),
        (lambda files: packed({"index.db": files["index.db"], "run.sh": b""}), "instead of one index"),
        (lambda files: packed({"index.json": files["index.json"]}), "instead of one index"),
        (lambda files: packed({}), "instead of one index"),
        (lambda files: packed({"o.db": files["index.db"], "o.json": files["index.json"]}), "is of 'index.db'"),
        (lambda files: packed({**files, "index.json": b"{}"}), "is not the manifest of an index"),
        (lambda files: crowd(), "more than an index and its manifest"),
        (lambda files: declared(packed({"index.db": files["index.db"]}), 40_000), "is refused"),
        (lambda files: declared(packed({"index.db": files["index.db"]}), 9_000_000), "is refused"),
        (lambda files: declared(packed({"index.db": files["index.db"]}), 4_000_000_000), "bytes, and"),
        (lambda files: encrypted(packed({"index.db": files["index.db"]})), "is encrypted"),
        (lambda files: packed(files)[:-40], "it is not a ZIP file, or not all of it is there"),
        (lambda files: b"<!doctype html>", "it is not a ZIP file"),
        (lambda files: packed({"index.db": files["index.db"][:-4096]}), "is damaged"),
        (lambda files: packed({"index.db": b"not an index"}), "is not an Anvil index"),
    ],
)
def test_archives_that_are_not_what_they_should_be(
    archive: Callable[[dict[str, bytes]], bytes],
    words: str,
    github: GitHub,
    root: Path,
    get: Callable[..., FetchResult],
    tmp_path: Path,
) -> None:
    before = {path for path in tmp_path.rglob("*") if "cache" not in path.parts}
    files = built(root)
    github.artifact("a" * 40, archive(files))
    began = time.thread_time()
    assert words in refused(get, kind=ArtifactRejected)
    assert time.thread_time() - began < 3
    new = {path for path in tmp_path.rglob("*") if "cache" not in path.parts} - before
    assert not [path for path in new if "built-" not in str(path) and ".git" not in path.parts]
    left = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    assert left == []


def test_a_changed_byte_in_an_archive_is_noticed_without_any_digest(
    github: GitHub, root: Path, get: Callable[..., FetchResult]
) -> None:
    data = bytearray(packed({"index.db": built(root)["index.db"]}))
    data[len(data) // 2] ^= 0xFF  # of the index: behind it is the directory, with bytes of no effect
    github.artifact("a" * 40, bytes(data), digest=None)
    assert "is refused" in refused(get, kind=ArtifactRejected)


# --- releases ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digests", [True, False])
@pytest.mark.parametrize("tag", ["v1.0", "latest"])
def test_a_release_gives_its_index(
    tag: str, digests: bool, github: GitHub, root: Path, get: Callable[..., FetchResult]
) -> None:
    files = built(root)
    github.release("v1.0", {**files, "wheel.whl": b"x"}, digests=digests)
    found = get(f"github:owner/repo#release:{tag}", head=root)
    assert found.path.read_bytes() == files["index.db"] and found.distance == 0 and found.notes == ()
    assert not get(f"github:owner/repo#release:{tag}").downloaded
    assert all(each.headers["Authorization"] is None for each in github.storage.requests)


def test_a_release_without_a_manifest_and_without_a_digest_says_so(
    github: GitHub, root: Path, get: Callable[..., FetchResult]
) -> None:
    github.release("v1", {"index.db": built(root)["index.db"]}, digests=False)
    found = get("github:owner/repo#release:v1")
    assert "without a manifest" in found.notes[0]
    assert not get("github:owner/repo#release:v1").downloaded


def test_releases_that_do_not_fit(github: GitHub, root: Path, get: Callable[..., FetchResult]) -> None:
    assert "does not show the release 'v9' of owner/repo" in refused(get, "github:owner/repo#release:v9")
    github.release("v1", {"wheel.whl": b"x"})
    assert "holds wheel.whl. Attach index.db" in refused(get, "github:owner/repo#release:v1")
    files = built(root)
    github.release("v2", {**files, "index.db": files["index.db"] + b"x"})
    assert "Attach both together" in refused(get, "github:owner/repo#release:v2", ArtifactRejected)
    github.release("v3", {**files, "index.db": files["index.db"][:-1] + b"x"}, digests=False)
    assert "its SHA-256 is" in refused(get, "github:owner/repo#release:v3", ArtifactRejected)


def test_a_file_of_the_cache_is_what_was_published(github: GitHub, root: Path, get: Callable[..., FetchResult]) -> None:
    files = built(root)
    github.artifact("a" * 40, packed(files))
    found = get()
    assert safe_files.sha256(found.path) == found.manifest.sha256 == hashlib.sha256(files["index.db"]).hexdigest()
