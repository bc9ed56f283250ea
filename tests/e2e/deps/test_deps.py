"""``anvil deps`` with real parts: git over smart HTTP and ``file://``, an index of packages, a registry, a site."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.dependencies import anvil_lock, docs_cache
from anvil.dependencies.values import LockedDocs
from tests.support import repositories
from tests.support.dependency_servers import (
    git_server,
    metadata,
    publish_npm,
    publish_wheel,
    repository,
    tarball,
    wheel,
)
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Answer, Server, serving
from tests.support.repositories import isolated

__all__ = ["isolated"]

PAGE = "# Beacons\n\nA beacon sends a signal. Set `beacon.interval` to the seconds between two signals.\n"
DOCS: dict[str, str | bytes] = {
    "docs/index.md": PAGE,
    "docs/guide/setup.md": "# Setup\n\nRun `beacon init`.\n",
    "src/big.bin": b"\0" * 300_000,
}


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A cache of its own, keywords only, and servers of this machine allowed."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    monkeypatch.setenv("ANVIL_DEPS_ALLOW_PRIVATE_URLS", "true")
    for name in ("VIRTUAL_ENV", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_INDEX_URL", "NPM_CONFIG_REGISTRY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """The registries, which every test has, so that none is on the network."""
    with serving() as server:
        monkeypatch.setenv("ANVIL_DEPS_PYPI_URL", f"{server.url}/simple/")
        monkeypatch.setenv("ANVIL_DEPS_NPM_URL", f"{server.url}/npm/")
        yield server


@pytest.fixture
def project(tmp_path: Path, server: Server) -> Path:
    """A project that uses ``beacon`` 1.0.0."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "requirements.txt").write_text("beacon==1.0.0\n", encoding="utf-8")
    return folder


@pytest.fixture
def upstream(tmp_path: Path) -> Path:
    """The repository of ``beacon``."""
    return repository(tmp_path / "git" / "beacon", DOCS)


def locked(project: Path) -> list[LockedDocs]:
    return anvil_lock.parse((project / "anvil.lock").read_text(encoding="utf-8"), "anvil.lock")


def answers(entry: LockedDocs, question: str) -> str:
    """The page that answers from the cached index alone."""
    path = docs_cache.find(docs_cache.cache(), entry)
    assert path is not None
    with anvil.open(index=path, provider="none") as docs:
        return docs.search(question).results[0].metadata.file_path


def forget_cache(tmp_path: Path) -> None:
    import shutil

    shutil.rmtree(tmp_path / "cache")


@pytest.mark.parametrize("html", [False, True])
def test_an_index_without_metadata_files_has_them_in_the_wheel(
    project: Path, server: Server, upstream: Path, html: bool
) -> None:
    with git_server(upstream.parent) as git:
        data = wheel("beacon", "1.0.0", urls={"Source": f"{git}/beacon/.git"})
        publish_wheel(server, "beacon", "1.0.0", data, html, with_metadata=False)
        done = program("deps", "add", "beacon", "--explain", cwd=project)
        assert "beacon 1.0.0 added: 2 pages from docs of" in done.stdout and "+ metadata" in done.stdout
        assert len(server.asked("/files/beacon-1.0.0-py3-none-any.whl")) == 1
        assert program("deps", "add", "beacon", "--repository", f"{git}/beacon/.git", cwd=project).returncode == 0
    data = wheel("beacon", "1.0.0")[:-40]
    publish_wheel(server, "lamp", "1.0.0", wheel("lamp", "1.0.0"), html, with_metadata=False)
    server.answers["/files/lamp-1.0.0-py3-none-any.whl"] = Answer(data)
    assert "its bytes are not those" in complaint("deps", "add", "lamp==1.0.0", cwd=project, code=1)


def test_a_package_whose_metadata_names_a_repository_is_built_from_the_tag_of_its_version(
    project: Path, server: Server, upstream: Path, tmp_path: Path
) -> None:
    with git_server(upstream.parent) as git:
        publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls={"Source": f"{git}/beacon/.git"}))
        repository(upstream, {"docs/index.md": "# Beacons\n\nVersion two is different.\n"}, "v2.0.0")
        done = program("deps", "add", "beacon", "--explain", cwd=project)
        assert "beacon 1.0.0 added: 2 pages from docs of" in done.stdout
        assert "+ metadata" in done.stdout and "- package" in done.stdout and "+ repository" in done.stdout
        (entry,) = locked(project)
        assert (entry.source, entry.tag, entry.folder) == ("repository", "v1.0.0", "docs")
        assert entry.commit == repositories.run(upstream, "rev-parse", "v1.0.0^{commit}")
        assert answers(entry, "seconds between two signals") == "index.md"
        before = (project / "anvil.lock").read_bytes()
        forget_cache(tmp_path)
        assert "fetched: 2 pages" in program("deps", "sync", cwd=project).stdout
        assert answers(entry, "beacon init") == "guide/setup.md"
        assert "is up to date" in program("deps", "add", "beacon", cwd=project).stdout
        assert (project / "anvil.lock").read_bytes() == before
    assert "is up to date" in program("deps", "sync", cwd=project).stdout  # no server is there any more


def test_the_same_commit_gives_the_same_index(project: Path, upstream: Path, tmp_path: Path) -> None:
    add = ("deps", "add", "beacon", "--repository", upstream.as_uri())
    program(*add, cwd=project)
    first = locked(project)
    forget_cache(tmp_path)
    program(*add, cwd=project)
    assert locked(project) == first


def test_only_the_pages_travel(project: Path, upstream: Path) -> None:
    noise = random.Random(1).randbytes  # it cannot be compressed
    repository(upstream, {"src/data.bin": noise(4_000_000), "docs/video.bin": noise(2_000_000)}, "v1.0.0")
    (project / "anvil.toml").write_text("[deps]\nmax_fetch_bytes = 200000\n", encoding="utf-8")
    sent: list[int] = []
    with git_server(upstream.parent, sent=sent) as git:
        add = ("deps", "add", "beacon", "--repository", f"{git}/beacon/.git")
        program(*add, cwd=project)
        assert len(sent) > 3 and sum(sent) < 10_000
        repository(upstream, {"docs/log.md": noise(200_000).hex()}, "v1.0.0")
        message = program(*add, "--refresh", cwd=project, code=1).stderr
    assert "sends more than 200,000 bytes (deps.max_fetch_bytes). Raise the limit, or name a smaller folder" in message


def test_a_server_that_sends_everything_is_stopped_at_the_limit(project: Path, upstream: Path) -> None:
    (project / "anvil.toml").write_text("[deps]\nmax_fetch_bytes = 100000\n", encoding="utf-8")
    repository(upstream, {"src/noise.bin": random.Random(1).randbytes(3_000_000)}, "v1.0.0")
    repositories.run(upstream, "config", "uploadpack.allowFilter", "false")
    done = program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project, code=1)
    assert "sends more than 100,000 bytes (deps.max_fetch_bytes). Its server cannot send a part" in done.stderr
    assert not (project / "anvil.lock").exists()


def test_a_project_of_which_no_file_is_read_is_told_what_is(project: Path) -> None:
    (project / "base.txt").write_text("beacon==1.0.0\n", encoding="utf-8")
    (project / "requirements.txt").write_text("-c base.txt\n", encoding="utf-8")
    told = program("deps", "list", cwd=project).stdout
    assert "uv.lock" in told and "requirements*.txt, and what is installed in" in told


def test_a_missing_tag_names_the_closest(project: Path, upstream: Path) -> None:
    for tag in ("v1.1.0", "v9.0.0", "v1.0.1"):
        repository(upstream, {}, tag)
    message = program("deps", "add", "beacon==1.0.2", "--repository", upstream.as_uri(), cwd=project, code=1).stderr
    assert "There is no tag for 1.0.2 in" in message
    assert "The closest are v1.0.1, v1.0.0, " in message
    named = ("--repository", upstream.as_uri(), "--tag", "v1.0.1")
    program("deps", "add", "beacon==1.0.2", *named, cwd=project)
    assert locked(project)[0].named == ("repository", "tag")


def test_a_tag_that_moved_is_refused(project: Path, upstream: Path, tmp_path: Path) -> None:
    program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    repositories.run(upstream, "commit", "-q", "--amend", "-m", "another", at=1_800_000_000)
    repositories.run(upstream, "tag", "--force", "v1.0.0")
    repositories.run(upstream, "reflog", "expire", "--expire=now", "--all")
    repositories.run(upstream, "gc", "-q", "--prune=now")
    forget_cache(tmp_path)
    message = program("deps", "sync", cwd=project, code=1).stderr
    assert (
        "anvil: beacon 1.0.0 cannot be fetched or built. The tag v1.0.0" in message  # on a slow machine after progress
        and "is now the commit" in message
        and "anvil deps update" in message
    )


def test_a_lock_with_another_digest_is_refused(project: Path, upstream: Path, tmp_path: Path) -> None:
    program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    (entry,) = locked(project)
    file = project / "anvil.lock"
    file.write_text(file.read_text().replace(entry.digest, "0" * 64), encoding="utf-8")
    message = program("deps", "sync", cwd=project, code=1).stderr
    assert "is refused: anvil.lock has the digest 000000000000" in message
    forget_cache(tmp_path)
    assert "is refused" in program("deps", "sync", cwd=project, code=1).stderr


def test_credentials_are_those_of_git(project: Path, upstream: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with git_server(upstream.parent, password="sesame") as git:
        add = ("deps", "add", "beacon", "--repository", f"{git}/beacon/.git")
        assert "needs credentials" in program(*add, cwd=project, code=1).stderr
        helper = "!f() { echo username=reader; echo password=sesame; }; f"
        repositories.run(project, "config", "--global", "credential.helper", helper)
        done = program(*add, "--explain", cwd=project)
        assert "added: 2 pages" in done.stdout
        assert "sesame" not in done.stdout + done.stderr + (project / "anvil.lock").read_text()


@pytest.mark.parametrize("html", [False, True])
def test_a_wheel_that_carries_an_index(project: Path, server: Server, tmp_path: Path, html: bool) -> None:
    data = wheel("beacon", "1.0.0", {"beacon/anvil/index.db": index(tmp_path)})
    publish_wheel(server, "beacon", "1.0.0", data, html)
    assert "beacon 1.0.0 added: 1 page from" in program("deps", "add", "beacon", cwd=project).stdout
    (entry,) = locked(project)
    assert (entry.source, entry.anvil_version) == ("package", None)
    assert answers(entry, "seconds between two signals") == "index.md"
    forget_cache(tmp_path)
    assert "fetched: 1 page" in program("deps", "sync", cwd=project).stdout
    replaced = wheel("beacon", "1.0.0", {"beacon/anvil/index.db": index(tmp_path, "# Other\n\nReplaced.\n")})
    publish_wheel(server, "beacon", "1.0.0", replaced, html)
    forget_cache(tmp_path)
    assert "Its publisher replaced it" in program("deps", "sync", cwd=project, code=1).stderr


def test_pages_that_an_npm_package_carries(tmp_path: Path, server: Server) -> None:
    package = {"name": "@acme/beacon", "version": "2.1.0"}
    publish_npm(server, package, tarball(package, {"docs/index.md": PAGE.encode(), "README.md": b"# R\n"}))
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"@acme/beacon": "^2"}}), encoding="utf-8")
    lock = {"lockfileVersion": 3, "packages": {"node_modules/@acme/beacon": {"version": "2.1.0"}}}
    (tmp_path / "package-lock.json").write_text(json.dumps(lock), encoding="utf-8")
    program("deps", "add", "@acme/beacon", cwd=tmp_path)
    (entry,) = locked(tmp_path)
    assert (entry.ecosystem, entry.source) == ("npm", "package")
    assert answers(entry, "beacon") == "docs/index.md"


def test_an_index_that_the_documentation_site_publishes(project: Path, server: Server, tmp_path: Path) -> None:
    urls = {"Documentation": f"{server.url}/beacon/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    file = tmp_path / "published" / "index.db"
    file.parent.mkdir()
    file.write_bytes(index(tmp_path))
    server.publish(file, "/beacon/anvil/")  # it does not say of which version it is
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "does not say of which version it is" in done.stdout
    server.publish(file, "/beacon/1.0/anvil/")
    program("deps", "add", "beacon", cwd=project)
    (entry,) = locked(project)
    assert (entry.source, entry.url) == ("site", f"{server.url}/beacon/1.0/anvil/index.json")
    file.write_bytes(index(tmp_path, "# Other\n\nReplaced by its publisher.\n"))
    server.publish(file, "/beacon/1.0/anvil/")
    assert "is up to date" in program("deps", "sync", cwd=project).stdout  # what was locked still answers
    forget_cache(tmp_path)
    assert "Its publisher replaced it" in program("deps", "sync", cwd=project, code=1).stderr


def test_an_index_that_says_of_which_version_it_is(project: Path, server: Server, tmp_path: Path) -> None:
    urls = {"Documentation": f"{server.url}/beacon/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.md").write_text(PAGE, encoding="utf-8")
    build = ("build", "docs", "--index", "site/index.db", "--manifest", "--docs-version")
    (tmp_path / "site").mkdir()
    for version in ("0.9.0", "1.0.0"):
        assert "unchanged" not in program(*build, version, cwd=tmp_path).stdout
        for name in ("index.db", "index.json"):
            server.answers[f"/beacon/anvil/{name}"] = Answer((tmp_path / "site" / name).read_bytes())
        done = program("deps", "add", "beacon", "--explain", cwd=project, code=int(version != "1.0.0"))
        assert ("is of version 0.9.0" in done.stdout) == (version == "0.9.0")
    assert locked(project)[0].source == "site"
    before = (tmp_path / "site/index.db").read_bytes()
    program("build", "docs", "--index", "site/index.db", cwd=tmp_path)  # nothing changed, and nothing is written
    assert (tmp_path / "site/index.db").read_bytes() == before


def index(tmp_path: Path, page: str = PAGE) -> bytes:
    folder = tmp_path / "carried"
    (folder / "docs").mkdir(parents=True, exist_ok=True)
    (folder / "docs/index.md").write_text(page, encoding="utf-8")
    with anvil.open(folder / "docs", folder / "index.db", provider="none") as docs:
        docs.index()
    return (folder / "index.db").read_bytes()


def test_what_is_no_index_is_said_and_the_next_source_is_tried(project: Path, server: Server, upstream: Path) -> None:
    with git_server(upstream.parent) as git:
        (upstream.parent / "beacon.git").symlink_to(upstream / ".git")
        urls = {"Source": f"{git}/beacon.git"}
        publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {"beacon/anvil/index.db": b"SQLite?"}, urls))
        done = program("deps", "add", "beacon", "--explain", cwd=project)
    assert "The index of beacon 1.0.0 is not an Anvil index" in done.stdout
    assert locked(project)[0].source == "repository"


def test_metadata_that_names_a_private_address_is_not_followed(
    project: Path, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    urls = {"Source": "https://127.0.0.1:9/o/r.git", "Documentation": "https://127.0.0.1:9/docs/"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    monkeypatch.delenv("ANVIL_DEPS_ALLOW_PRIVATE_URLS")
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert done.stdout.count("is this machine, which a package may not name") == 2
    assert "ANVIL_DEPS_ALLOW_PRIVATE_URLS" in done.stderr


@pytest.mark.parametrize(
    "url", ["file:///etc", "ext::sh -c id", "http://example.org/r.git", "-u/x", "ssh://-oProxyCommand=x/r"]
)
def test_a_repository_of_another_scheme_is_not_fetched(
    project: Path, monkeypatch: pytest.MonkeyPatch, url: str
) -> None:
    monkeypatch.delenv("ANVIL_DEPS_ALLOW_PRIVATE_URLS")
    program("deps", "add", "beacon", "--repository", url, cwd=project, code=1)
    assert not (project / "anvil.lock").exists()


def test_a_checkout_cannot_allow_private_addresses(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANVIL_DEPS_ALLOW_PRIVATE_URLS")
    (project / "anvil.toml").write_text("[deps]\nallow_private_urls = true\n", encoding="utf-8")
    assert "turns off a protection" in complaint("deps", "add", "beacon", cwd=project)


def test_a_lockfile_that_moved_is_outdated_and_updated(project: Path, upstream: Path) -> None:
    program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    assert program("deps", "outdated", cwd=project).stdout == "anvil.lock is up to date.\n"
    repository(upstream, {"docs/index.md": "# Beacons\n\nNew in two.\n"}, "v2.0.0")
    (project / "requirements.txt").write_text("beacon==2.0.0\n", encoding="utf-8")
    assert "beacon 1.0.0: the project uses 2.0.0" in program("deps", "outdated", cwd=project, code=1).stdout
    assert "beacon 2.0.0 updated" in program("deps", "update", cwd=project).stdout
    assert [entry.version for entry in locked(project)] == ["2.0.0"]
    assert "beacon 2.0.0 removed" in program("deps", "remove", "beacon", cwd=project).stdout
    assert locked(project) == []
    assert "does not have beacon" in complaint("deps", "remove", "beacon", cwd=project)


def test_the_list_reads_this_machine_alone(project: Path, server: Server) -> None:
    site = project / ".venv/lib/python3.11/site-packages"
    info = site / "beacon-1.0.0.dist-info"
    info.mkdir(parents=True)
    (project / ".venv/pyvenv.cfg").write_text("home = /usr\n", encoding="utf-8")
    urls = {"Repository": "https://github.com/acme/beacon"}
    (info / "METADATA").write_text(metadata("beacon", "1.0.0", urls), encoding="utf-8")
    (project / "requirements.txt").write_text("beacon==1.0.0\nother==3\n", encoding="utf-8")
    assert program("deps", cwd=project).stdout.splitlines() == [
        "beacon 1.0.0  pypi  repository https://github.com/acme/beacon",
        "other 3       pypi  not installed here",
        "2 packages, 0 in anvil.lock.",
    ]
    rows: Any = printed("deps", "--json", cwd=project)
    assert [row["direct"] for row in rows["dependencies"]] == [True, True]
    assert server.requests == []


def test_an_installed_npm_package_needs_no_lockfile_and_no_network(tmp_path: Path, server: Server) -> None:
    package = tmp_path / "node_modules/@acme/beacon"
    page = "---\ntitle: Lamp\nurl: https://beacon.example/lamp/\n---\n\nThe beacon has a lamp.\n"
    for name, text in {
        "package.json": json.dumps({"name": "@acme/beacon", "version": "2.1.0"}),
        "AGENTS.md": "Read docs.\n",
        "docs/lamp.md": page,
        "docs/examples/mirror.md": "# Mirror\n",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text, encoding="utf-8")
    (tmp_path / "package.json").write_text(json.dumps({"dependencies": {"@acme/beacon": "^2", "other": "1"}}), "utf-8")
    assert program("deps", cwd=tmp_path).stdout.splitlines() == [
        "@acme/beacon 2.1.0  npm   carries 2 pages in docs",
        "other (no version)  npm   not installed here",
        "2 packages, 0 in anvil.lock.",
    ]
    program("deps", "add", "@acme/beacon", cwd=tmp_path)
    (hit,) = printed("search", "beacon lamp", "--top-k", "1", "--json", cwd=tmp_path)["results"]
    assert (hit["metadata"]["file_path"], hit["metadata"]["url"]) == ("docs/lamp.md", "https://beacon.example/lamp/")
    assert server.requests == []


def test_the_cache_is_shared_between_projects(project: Path, upstream: Path, tmp_path: Path) -> None:
    add = ("deps", "add", "beacon", "--repository", upstream.as_uri())
    program(*add, cwd=project)
    other = tmp_path / "other"
    other.mkdir()
    (other / "requirements.txt").write_text("beacon==1.0.0\n", encoding="utf-8")
    upstream.rename(tmp_path / "gone")
    assert "it was found here before" in program(*add, "--explain", cwd=other).stdout
    assert (other / "anvil.lock").read_bytes() == (project / "anvil.lock").read_bytes()
    assert len(list((docs_cache.cache().folder / "objects").iterdir())) == 1


def test_a_damaged_cache_is_fetched_again(project: Path, upstream: Path) -> None:
    program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    (file,) = (docs_cache.cache().folder / "objects").iterdir()
    file.chmod(0o644)
    file.write_bytes(file.read_bytes()[:-100])
    assert "fetched" in program("deps", "sync", cwd=project).stdout


def test_names_that_cannot_be_looked_up(project: Path) -> None:
    assert "Did you mean beacon?" in complaint("deps", "add", "becon", cwd=project)
    assert "is not the name of a package" in complaint("deps", "add", "a b", cwd=project)
    assert "There is no anvil.lock" in complaint("deps", "sync", cwd=project)
