"""``anvil deps`` with input that is wrong, goes in circles, or is not there: servers, packages, lock files, names."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.dependencies import attempts, docs_cache
from anvil.dependencies import remote_repository as git_addresses
from anvil.index_file import publish
from tests.e2e.deps.test_deps import (
    PAGE,
    answers,
    forget_cache,
    index,
    locked,
    project,
    server,
    surroundings,
    upstream,
)
from tests.support import repositories
from tests.support.dependency_servers import publish_npm, publish_wheel, repository, tarball, wheel
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Answer, GitHub, Server, serving
from tests.support.repositories import isolated

__all__ = ["isolated", "project", "server", "surroundings", "upstream"]

REPOSITORY = "https://github.com/owner/repo"


@pytest.fixture
def github(monkeypatch: pytest.MonkeyPatch, upstream: Path) -> Iterator[GitHub]:
    """The API of GitHub for the repository of ``beacon``, which git fetches from this machine."""
    checked = git_addresses.checked

    def here(url: str, *more: Any) -> object:
        return checked(upstream.as_uri() if url == REPOSITORY else url, *more)

    monkeypatch.setattr(git_addresses, "checked", here)
    with serving() as api, serving() as storage:
        monkeypatch.setenv("GITHUB_API_URL", api.url)
        monkeypatch.setenv("GITHUB_TOKEN", "a-token")
        yield GitHub(api, storage)


def with_manifest(tmp_path: Path, data: bytes) -> dict[str, bytes]:
    """An index and its manifest, as the assets of a release."""
    file = tmp_path / "asset" / "index.db"
    file.parent.mkdir(exist_ok=True)
    file.write_bytes(data)
    return {"index.db": data, "index.json": publish.write_manifest(file).read_bytes()}


def of_version(tmp_path: Path, version: str) -> bytes:
    """An index that says of which version it is."""
    (tmp_path / "stated").mkdir(exist_ok=True)
    (tmp_path / "stated" / "index.md").write_text(PAGE, encoding="utf-8")
    file = tmp_path / "stated.db"
    program("build", "stated", "--index", file, "--docs-version", version, cwd=tmp_path)
    return file.read_bytes()


def two_versions(folder: Path, server: Server) -> None:
    """A project of npm that uses ``beacon`` 1.0.0, and 2.0.0 through another package."""
    for version in ("1.0.0", "2.0.0"):
        package = {"name": "beacon", "version": version}
        page = f"# Beacon {version}\n\nA signal of {version}.\n".encode()
        publish_npm(server, package, tarball(package, {"docs/index.md": page}))
    versions = {"beacon": "1.0.0", "x": "3.0.0", "x/node_modules/beacon": "2.0.0"}
    packages = {f"node_modules/{place}": {"version": version} for place, version in versions.items()}
    lock = {"lockfileVersion": 3, "packages": packages}
    (folder / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    (folder / "requirements.txt").unlink(missing_ok=True)


# --- releases --------------------------------------------------------------------------------------------------------


def test_an_index_among_the_assets_of_a_release(project: Path, server: Server, github: GitHub, tmp_path: Path) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls={"Source": REPOSITORY}))
    github.release("v1.0.0", with_manifest(tmp_path, of_version(tmp_path, "0.9.0")))
    done = program("deps", "add", "beacon", "--explain", cwd=project)
    assert "- release    github:owner/repo: its index is of version 0.9.0." in done.stdout
    assert locked(project)[0].source == "repository"
    github.release("v1.0.0", with_manifest(tmp_path, index(tmp_path)))
    done = program("deps", "update", "beacon", "--explain", cwd=project)
    assert "+ release    github:owner/repo: has an index\nbeacon 1.0.0 updated: 1 page" in done.stdout
    assert "The same version has other documentation now. It was from repository" in done.stderr
    (entry,) = locked(project)
    assert (entry.source, entry.url, entry.tag) == ("release", "github:owner/repo#release:v1.0.0", "v1.0.0")
    assert answers(entry, "signal") == "index.md"
    forget_cache(tmp_path)
    assert "beacon 1.0.0 fetched: 1 page" in program("deps", "sync", cwd=project).stdout
    github.release("v1.0.0", with_manifest(tmp_path, index(tmp_path, "# Other\n\nReplaced.\n")))
    assert "is up to date" in program("deps", "sync", cwd=project).stdout  # what was locked still answers
    forget_cache(tmp_path)
    assert "Its publisher replaced it, or the lock was changed" in program("deps", "sync", cwd=project, code=1).stderr
    message = program("deps", "update", "beacon", cwd=project).stderr
    assert f"other documentation now. It was from release {entry.url}" in message and entry.digest[:12] in message


def test_a_limited_api_is_said_and_the_repository_is_read(project: Path, server: Server, github: GitHub) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls={"Source": REPOSITORY}))
    limits = {"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1900000000"}
    github.api.json(f"{github.root}/releases/tags/v1.0.0", {"message": "rate limit"}, status=403, headers=limits)
    done = program("deps", "add", "beacon", cwd=project)
    assert locked(project)[0].source == "repository"
    assert "Its release could not be asked." in done.stderr and "limits the number of requests" in done.stderr
    assert "anvil deps add beacon --refresh" in done.stderr


# --- what packages carry, and what locks say -------------------------------------------------------------------------


@pytest.mark.parametrize(("number", "message"), [(99, "has format 99; this Anvil reads up to"), (1, "old format 1")])
def test_a_carried_index_of_another_format_makes_room_for_the_pages(
    project: Path, server: Server, tmp_path: Path, number: int, message: str
) -> None:
    file = tmp_path / "other.db"
    file.write_bytes(index(tmp_path))
    with sqlite3.connect(file) as handle:
        handle.execute(f"PRAGMA user_version = {number}")
    handle.close()
    carried = {"beacon/anvil/index.db": file.read_bytes(), "beacon/docs/index.md": PAGE.encode()}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", carried))
    done = program("deps", "add", "beacon", "--explain", cwd=project)
    assert message in done.stdout and "carries 1 page\n" in done.stdout
    (entry,) = locked(project)
    carried["beacon/anvil/index.db"] = index(tmp_path)  # one that can be read is not what was locked
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", carried))
    forget_cache(tmp_path)
    assert "fetched: 1 page" in program("deps", "sync", cwd=project).stdout
    assert answers(entry, "signal") == "beacon/docs/index.md"


def test_a_carried_index_of_another_version_is_passed_over(project: Path, server: Server, tmp_path: Path) -> None:
    stale = {"beacon/anvil/index.db": of_version(tmp_path, "0.9.0")}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", stale))
    message = program("deps", "add", "beacon", "--explain", cwd=project, code=1).stdout
    assert "its index is of version 0.9.0" in message and "carries" not in message
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"a.anvil.db": of_version(tmp_path, "v1.0")}))
    program("deps", "add", "beacon", cwd=project)
    assert locked(project)[0].source == "package"


def test_the_digest_of_a_lock_decides_and_not_the_version_that_its_index_states(
    project: Path, server: Server, tmp_path: Path
) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"a.anvil.db": index(tmp_path)}))
    program("deps", "add", "beacon", cwd=project)
    (entry,) = locked(project)
    stale = tmp_path / "stale.db"
    stale.write_bytes(of_version(tmp_path, "0.9.0"))
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"a.anvil.db": stale.read_bytes()}))
    described = publish.describe(stale)
    file = project / "anvil.lock"
    text = file.read_text(encoding="utf-8").replace(entry.digest, described.digest)
    file.write_text(text.replace(entry.sha256, described.sha256), encoding="utf-8")
    forget_cache(tmp_path)
    assert "beacon 1.0.0 fetched: 1 page" in program("deps", "sync", cwd=project).stdout


def test_why_a_sync_fails_is_a_sentence(project: Path, server: Server, tmp_path: Path) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"a.anvil.db": index(tmp_path)}))
    program("deps", "add", "beacon", cwd=project)
    forget_cache(tmp_path)
    server.answers["/simple/beacon/"] = Answer(
        json.dumps(
            {
                "meta": {"api-version": "1.1"},
                "name": "beacon",
                "files": [{"filename": "beacon-1.0.0.tar.gz", "url": "../../files/beacon-1.0.0.tar.gz", "hashes": {}}],
            }
        ).encode(),
        headers={"Content-Type": "application/vnd.pypi.simple.v1+json"},
    )
    message = program("deps", "sync", cwd=project, code=1).stderr
    assert "beacon 1.0.0 cannot be fetched or built. The registry has no wheel of it" in message


@pytest.mark.parametrize(
    ("stated", "place"), [("v1.00.0", "/beacon/"), ("1", "/beacon/1.0/"), ("latest", "/beacon/1.0/")]
)
def test_an_index_of_a_site_says_its_version_in_another_way(
    project: Path, server: Server, tmp_path: Path, stated: str, place: str
) -> None:
    urls = {"Documentation": f"{server.url}/beacon/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    for name, data in with_manifest(tmp_path, of_version(tmp_path, "1")).items():
        server.answers[f"/beacon/anvil/{name}"] = Answer(data)
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "is of version 1." in done.stdout  # nothing but the index says which release is there
    for name, data in with_manifest(tmp_path, of_version(tmp_path, stated)).items():
        server.answers[f"{place}anvil/{name}"] = Answer(data)
    program("deps", "add", "beacon", cwd=project)
    assert locked(project)[0].source == "site"


def test_a_lock_that_names_a_commit_of_somebody_else_is_refused(project: Path, upstream: Path, tmp_path: Path) -> None:
    """A server may send any commit that it has, as GitHub sends those of forks: digest and commit agree here."""
    add = ("deps", "add", "beacon", "--repository", upstream.as_uri())
    program(*add, cwd=project)
    (honest,) = locked(project)
    repositories.run(upstream, "checkout", "-q", "-b", "fork")
    repository(upstream, {"docs/index.md": "# Beacons\n\nPipe this into your shell.\n"}, "evil")
    program(*add, "--tag", "evil", cwd=project)
    (evil,) = locked(project)
    repositories.run(upstream, "tag", "--delete", "evil")
    file = project / "anvil.lock"
    text = file.read_text(encoding="utf-8")
    file.write_text(text.replace('tag = "evil"', 'tag = "v1.0.0"'), encoding="utf-8")
    forget_cache(tmp_path)
    message = program("deps", "sync", cwd=project, code=1).stderr
    assert f"is now the commit {(honest.commit or '')[:12]}, not {(evil.commit or '')[:12]}" in message
    file.write_text(text, encoding="utf-8")
    assert "does not have the tag evil any more" in program("deps", "sync", cwd=project, code=1).stderr
    file.write_text(text.replace('tag = "evil"\n', ""), encoding="utf-8")
    assert "has no tag, no commit or no folder" in complaint("deps", "sync", cwd=project)


def test_an_update_that_finds_the_same_version_replaced_says_so(project: Path, upstream: Path) -> None:
    add = ("deps", "add", "beacon", "--repository", upstream.as_uri())
    program(*add, cwd=project)
    repository(upstream, {"docs/index.md": "# Beacons\n\nAnother text.\n"}, "v1.0.0")
    done = program("deps", "update", "beacon", cwd=project)
    assert "beacon 1.0.0 updated" in done.stdout
    assert "The same version has other documentation now. It was from repository" in done.stderr


def test_an_update_that_finds_an_archive_replaced_says_so(project: Path, server: Server) -> None:
    two_versions(project, server)
    program("deps", "add", "beacon@1.0.0", cwd=project)
    package = {"name": "beacon", "version": "1.0.0"}
    publish_npm(server, package, tarball(package, {"docs/index.md": b"# Beacon\n\nReplaced.\n"}))
    done = program("deps", "update", "beacon@1.0.0", cwd=project)
    assert "The same version has other documentation now. It was from package" in done.stderr


# --- circles ---------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_pages_that_include_and_link_in_circles(project: Path, upstream: Path) -> None:
    links = {"loop": ".", "x.md": "y.md", "y.md": "x.md", "self.md": "self.md", "out.md": "../../../etc/passwd"}
    links |= {"one.md": "two.md", "two.md": "three.md", "three.md": "../other/real.md"}
    for name, target in links.items():
        os.symlink(target, upstream / "docs" / name)
    circle = {
        "docs/a.md": '# A\n\n--8<-- "docs/b.md"\n',
        "docs/b.md": '# B\n\n--8<-- "docs/a.md"\n--8<-- "docs/b.md"\n',
    }
    config = {"mkdocs.yml": "INHERIT: mkdocs.yml\n", "other/real.md": "# Real\n\nA lantern.\n"}
    repository(upstream, {**circle, **config}, "v1.0.0")
    done = program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    for name in ("self.md", "x.md", "y.md"):
        assert f"{name}: a symlink that leads to no file, or in a circle." in done.stderr
    assert "out.md: a symlink that leads out of the repository" in done.stderr
    assert answers(locked(project)[0], "lantern") in ("one.md", "two.md", "three.md")


def test_sites_and_lockfiles_that_name_themselves(project: Path, server: Server, tmp_path: Path) -> None:
    urls = {"Documentation": f"{server.url}/beacon/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    (project / "requirements.txt").write_text("-r requirements.txt\n-r more.txt\nbeacon==1.0.0\n", encoding="utf-8")
    (project / "more.txt").write_text("-r requirements.txt\n", encoding="utf-8")
    manifest = json.loads(with_manifest(tmp_path, index(tmp_path))["index.json"])
    server.json("/beacon/1.0/anvil/index.json", manifest | {"file": "index.json"})
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "offers a file of" in done.stdout  # the manifest, which is no index
    place = "/beacon/1.0.0/anvil/"
    server.answers[f"{place}index.json"] = Answer(b"", 302, {"Location": place})
    server.answers[place] = Answer(b"", 302, {"Location": f"{place}index.json"})
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "redirects more than 5 times" in done.stdout


# --- no network, and slow servers ------------------------------------------------------------------------------------


def test_without_a_network_what_is_locked_and_cached_answers(project: Path, server: Server, tmp_path: Path) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"beacon/anvil/index.db": index(tmp_path)}))
    program("deps", "add", "beacon", cwd=project)
    (project / "requirements.txt").write_text("beacon==1.0.0\nother==3\n", encoding="utf-8")
    before = (project / "anvil.lock").read_bytes()
    server.stop()
    assert "is up to date" in program("deps", "sync", cwd=project).stdout
    assert "is up to date" in program("deps", "update", cwd=project).stdout
    assert program("deps", "outdated", cwd=project).stdout == "anvil.lock is up to date.\n"
    assert "seconds between two signals" in program("search", "signal", cwd=project).stdout
    assert "in anvil.lock, from its package\n" in program("deps", cwd=project).stdout
    for name, shown in (("other", "other 3"), ("beacon", "beacon 1.0.0")):
        command = ("update",) if name == "beacon" else ("add",)
        message = program("deps", *command, name, cwd=project, code=1).stderr
        assert f"The documentation of {shown} could not be looked up. 127.0.0.1:" in message
        assert message.endswith("Check the network.\n")
    assert (project / "anvil.lock").read_bytes() == before
    forget_cache(tmp_path)
    message = program("deps", "sync", cwd=project, code=1).stderr
    assert message.startswith("anvil: beacon 1.0.0 cannot be fetched. 127.0.0.1:")
    listed = program("deps", cwd=project).stdout
    assert "in anvil.lock, from its package, not on this machine\n" in listed and "run: anvil deps sync" in listed
    assert [row["is_here"] for row in printed("deps", "--json", cwd=project)["dependencies"]] == [False, None]
    assert "beacon 1.0.0 is not on this machine. Run 'anvil deps sync'" in complaint("search", "signal", cwd=project)


def test_a_registry_that_fails(project: Path, server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    lines = "a==1\nb==1\nc==1\nd==1\n"
    (project / "requirements.txt").write_text(lines, encoding="utf-8")
    server.answers["/simple/a/"] = Answer(b"", 429, {"Retry-After": "7"})
    server.answers["/simple/b/"] = Answer(b"", 503)
    server.answers["/simple/c/"] = Answer(b"<html>Sign in</html>", headers={"Content-Type": "text/html"})
    told = program("deps", "add", "a", "b", "c", cwd=project, code=1).stderr.splitlines()
    assert told[0].endswith("limits the number of requests. Try again in 7 s.")
    assert told[1].endswith("has an error (status 503). Try again later.")
    assert "lists no file of c. Check that it is a package index." in told[2]
    monkeypatch.setattr(attempts, "SLOW_FAILURE_S", 0.0)
    server.requests.clear()
    told = program("deps", "add", "b", "c", "d", cwd=project, code=1).stderr.splitlines()
    assert len(told) == 3 and len(server.requests) == 1
    assert told[2].endswith("did not answer a moment ago, and is not asked again in this run.")


def test_a_site_that_fails_is_part_of_the_message(project: Path, server: Server) -> None:
    urls = {"Documentation": f"{server.url}/beacon/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    server.answers["/beacon/1.0.0/anvil/index.json"] = Answer(b"", 500)
    message = program("deps", "add", "beacon", cwd=project, code=1).stderr
    assert "Its metadata names no repository. Its site could not be asked: 127.0.0.1:" in message


# --- names -----------------------------------------------------------------------------------------------------------


def test_two_versions_of_one_package(project: Path, server: Server) -> None:
    two_versions(project, server)
    assert "beacon is locked at several versions: 1.0.0, 2.0.0" in complaint("deps", "add", "beacon", cwd=project)
    program("deps", "add", "beacon@1.0.0", "beacon@2.0.0", cwd=project)
    assert "A signal of 2.0.0" in program("search", "signal", cwd=project).stdout
    assert "A signal of 1.0.0" in program("search", "signal", "--collection", "beacon@1.0.0", cwd=project).stdout
    assert program("deps", "outdated", cwd=project).stdout == "anvil.lock is up to date.\n"
    lock = {"lockfileVersion": 3, "packages": {"node_modules/beacon": {"version": "2.0.0"}}}
    (project / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    assert "beacon 1.0.0: the project uses 2.0.0" in program("deps", "outdated", cwd=project, code=1).stdout
    told = program("deps", "update", cwd=project)
    assert told.stdout.startswith("beacon 1.0.0 removed from anvil.lock.\nbeacon 2.0.0 is up to date")
    assert [entry.version for entry in locked(project)] == ["2.0.0"]


@pytest.mark.parametrize("name", ["docs", "beacon"])
def test_a_package_does_not_hide_the_documentation_of_the_project_by_its_name(
    project: Path, server: Server, tmp_path: Path, name: str
) -> None:
    publish_wheel(server, name, "1.0.0", wheel(name, "1.0.0", {f"{name}/anvil/index.db": index(tmp_path)}))
    (project / "requirements.txt").write_text(f"{name}==1.0.0\n", encoding="utf-8")
    program("deps", "add", name, cwd=project)
    (project / "docs").mkdir()
    (project / "docs" / "own.md").write_text("# Own\n\nOur own signal.\n", encoding="utf-8")
    table = "" if name == "docs" else f"[collections.{name}]\n"
    (project / "anvil.toml").write_text(f'{table}docs = "docs"\n', encoding="utf-8")
    with anvil.open(config=project / "anvil.toml", collections="all") as opened:
        found = {hit.collection for hit in opened.search("signal").results}
    assert found == {name, f"pypi-{name}"}


def test_a_page_named_as_a_collection_is_a_page(project: Path, server: Server, tmp_path: Path) -> None:
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"beacon/anvil/index.db": index(tmp_path)}))
    program("deps", "add", "beacon", cwd=project)
    (project / "docs" / "beacon").mkdir(parents=True)
    (project / "docs" / "beacon" / "index.md").write_text("# How we use it\n\nCarefully.\n", encoding="utf-8")
    program("build", cwd=project)
    assert "Carefully" in program("show", "beacon/index.md", cwd=project).stdout
    assert "seconds between two signals" in program("show", "beacon:index.md", cwd=project).stdout
    assert "Carefully" in program("show", "docs:beacon/index.md", cwd=project).stdout
    assert docs_cache.find(docs_cache.cache(), locked(project)[0]) is not None
