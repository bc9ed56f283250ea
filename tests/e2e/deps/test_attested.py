"""``anvil deps`` with indexes that have an attestation of who built them, or must have one."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from anvil._version import __version__
from anvil.dependencies import anvil_lock
from anvil.dependencies.docs_cache import cache, find
from anvil.dependencies.values import DocsSource
from tests.e2e.deps.test_deps import answers, forget_cache, index, locked, project, server, surroundings
from tests.support.dependency_servers import publish_wheel, repository, wheel
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Server
from tests.support.repositories import isolated, run
from tests.support.sigstore import Sigstore

__all__ = ["isolated", "project", "server", "surroundings"]

SITE = "/beacon/1.0/anvil/"
BESIDE = f"{SITE}index.db.sigstore.json"


@pytest.fixture(scope="module")
def sigstore() -> Sigstore:
    return Sigstore()


@pytest.fixture(autouse=True)
def trust(sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The Sigstore of the tests is trusted, and no other machine can be reached."""
    monkeypatch.setenv("ANVIL_FETCH_TRUSTED_ROOT", str(sigstore.write_root(tmp_path)))
    for name in ("HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")


@pytest.fixture
def site(server: Server, tmp_path: Path, sigstore: Sigstore) -> Server:
    """The index of ``beacon`` 1.0.0 on its site, attested by the repository in its metadata."""
    urls = {"Documentation": f"{server.url}/beacon/", "Source": "https://github.com/acme/beacon"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", urls=urls))
    file = tmp_path / "published" / "index.db"
    file.parent.mkdir()
    file.write_bytes(index(tmp_path))
    server.publish(file, SITE)
    server.json(BESIDE, sigstore.bundle(file.read_bytes(), "acme/beacon"))
    return server


def require(project: Path) -> None:
    (project / "anvil.toml").write_text("[fetch]\nrequire_attestation = true\n", encoding="utf-8")


def test_the_lock_records_who_built_an_index(project: Path, site: Server, tmp_path: Path) -> None:
    told = program("deps", "add", "beacon", cwd=project).stdout
    assert "Its attestation is valid: built by acme/beacon." in told
    (entry,) = locked(project)
    assert (entry.source, entry.attested_by) == ("site", "acme/beacon")
    assert 'attested_by = "acme/beacon"\n' in (project / "anvil.lock").read_text(encoding="utf-8")
    assert printed("deps", "sync", cwd=project)["packages"][0]["docs"]["attested_by"] == "acme/beacon"
    assert program("deps", "sync", cwd=project).stdout.endswith(" By anvil.lock it was built by acme/beacon.\n")
    forget_cache(tmp_path)
    del site.answers[BESIDE]
    assert "fetched" in program("deps", "sync", cwd=project).stdout  # its SHA-256 is locked, and none is required
    assert answers(entry, "beacon") == "index.md"


def test_where_it_is_required_sync_verifies_again(
    project: Path, site: Server, tmp_path: Path, sigstore: Sigstore
) -> None:
    require(project)
    program("deps", "add", "beacon", cwd=project)
    asked = len(site.requests)
    assert "is up to date" in program("deps", "sync", cwd=project).stdout
    assert len(site.requests) == asked  # with all at hand nothing is asked
    forget_cache(tmp_path)
    program("deps", "sync", cwd=project)
    forget_cache(tmp_path)
    bundle = site.answers.pop(BESIDE)
    assert "it has no attestation" in complaint("deps", "sync", cwd=project, code=1)
    site.answers[BESIDE] = bundle
    lock = (project / "anvil.lock").read_text(encoding="utf-8")
    (project / "anvil.lock").write_text(lock.replace('"acme/beacon"', '"evil/beacon"'), encoding="utf-8")
    assert "built by acme/beacon, not by evil/beacon" in complaint("deps", "sync", cwd=project, code=1)
    (project / "anvil.lock").write_text(lock.replace('attested_by = "acme/beacon"\n', ""), encoding="utf-8")
    message = complaint("deps", "sync", cwd=project, code=1)
    assert "anvil.lock does not say who built it" in message and "run: anvil deps update beacon" in message
    assert "updated" in program("deps", "update", "beacon", cwd=project).stdout
    assert (project / "anvil.lock").read_text(encoding="utf-8") == lock


def test_what_is_not_attested_is_not_taken_where_it_is_required(
    project: Path, site: Server, sigstore: Sigstore, tmp_path: Path
) -> None:
    require(project)
    site.json(BESIDE, sigstore.bundle((tmp_path / "published/index.db").read_bytes(), "evil/beacon"))
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "it was built by evil/beacon, not by acme/beacon" in done.stdout
    assert not (project / "anvil.lock").exists()


def test_where_it_is_not_required_a_wrong_one_is_a_note(
    project: Path, site: Server, sigstore: Sigstore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = site.answers[BESIDE]
    site.json(BESIDE, sigstore.bundle((tmp_path / "published/index.db").read_bytes(), "evil/beacon"))
    done = program("deps", "add", "beacon", cwd=project)
    assert "beacon: Its attestation is not valid: it was built by evil/beacon" in done.stderr
    assert locked(project)[0].attested_by is None
    site.answers[BESIDE] = right
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "sigstore", None)
        done = program("deps", "add", "beacon", cwd=project)
        assert "[attest]" in done.stderr and locked(project)[0].attested_by is None
        require(project)
        assert "[attest]" in complaint("deps", "add", "beacon", cwd=project)
        (project / "anvil.toml").unlink()
    program("deps", "add", "beacon", cwd=project)
    assert locked(project)[0].attested_by == "acme/beacon"


def test_documentation_that_is_built_here_needs_no_attestation(project: Path, server: Server, tmp_path: Path) -> None:
    require(project)
    upstream = repository(tmp_path / "git" / "beacon", {"docs/index.md": "# Beacons\n\nThey send signals.\n"})
    line = ("deps", "add", "beacon", "--repository", upstream.as_uri())
    program(*line, cwd=project)
    assert "is up to date" in program("deps", "sync", cwd=project).stdout
    assert locked(project)[0].attested_by is None
    pages = {"beacon/docs/index.md": b"# Beacons\n\nPages that a package carries are indexed here.\n"}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", pages))
    (project / "anvil.lock").unlink()
    program("deps", "add", "beacon", cwd=project)
    assert (locked(project)[0].source, locked(project)[0].attested_by) == ("package", None)
    forget_cache(tmp_path)
    program("deps", "sync", cwd=project)


def test_an_index_in_a_package_has_its_attestation_beside_it(
    project: Path, server: Server, tmp_path: Path, sigstore: Sigstore
) -> None:
    carried = index(tmp_path)
    urls = {"Source": "https://github.com/acme/beacon"}
    files = {"beacon/docs.anvil.db": carried}
    beside = {"beacon/docs.anvil.db.sigstore.json": json.dumps(sigstore.bundle(carried, "acme/beacon")).encode()}
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", {**files, **beside}, urls))
    require(project)
    assert "built by acme/beacon" in program("deps", "add", "beacon", cwd=project).stdout
    forget_cache(tmp_path)
    program("deps", "sync", cwd=project)
    publish_wheel(server, "beacon", "1.0.0", wheel("beacon", "1.0.0", files, urls))
    forget_cache(tmp_path)
    assert "it has no attestation" in complaint("deps", "sync", cwd=project, code=1)
    done = program("deps", "add", "beacon", "--explain", cwd=project, code=1)
    assert "beacon/docs.anvil.db of beacon 1.0.0 is refused" in done.stdout


def test_a_locked_index_whose_attestation_was_not_verified_does_not_answer(
    project: Path, site: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    program("deps", "add", "beacon", cwd=project)
    assert printed("search", "beacon", cwd=project)["results"]
    lock = (project / "anvil.lock").read_text(encoding="utf-8")
    (project / "anvil.lock").write_text(lock.replace('attested_by = "acme/beacon"\n', ""), encoding="utf-8")
    assert printed("search", "beacon", cwd=project)["results"]
    require(project)
    assert "Run 'anvil deps sync'." in complaint("search", "beacon", cwd=project)
    program("deps", "update", "beacon", cwd=project)
    assert printed("search", "beacon", cwd=project)["results"]


def test_a_kept_folder_remembers_that_an_attestation_was_verified(project: Path, site: Server, tmp_path: Path) -> None:
    require(project)
    program("deps", "add", "beacon", cwd=project)
    keep = ("ci", "deps", "--keep", tmp_path / "kept")
    program(*keep, cwd=project)
    forget_cache(tmp_path)
    site.stop()
    assert "dependencies-fetched: 0" in program(*keep, cwd=project).stdout
    assert printed("search", "beacon", cwd=project)["results"]


@pytest.mark.parametrize("is_refused_before", [False, True])
@pytest.mark.parametrize("source", ["repository", "package"])
def test_a_download_that_a_lock_calls_built_here_is_not_taken(
    source: DocsSource, is_refused_before: bool, project: Path, site: Server, tmp_path: Path
) -> None:
    program("deps", "add", "beacon", cwd=project)
    (entry,) = locked(project)
    del site.answers[BESIDE]
    if is_refused_before:
        forget_cache(tmp_path)
    upstream = repository(tmp_path / "git" / "beacon", {"docs/index.md": "# Beacons\n\nThe real ones.\n"})
    publish_wheel(site, "beacon", "2.0.0", wheel("beacon", "2.0.0", {"beacon/docs/a.md": b"# Real\n"}))
    of_repository: dict[str, str] = {"tag": "v1.0.0", "commit": run(upstream, "rev-parse", "HEAD"), "folder": "docs"}
    forged = replace(
        entry,
        version="2.0.0",
        source=source,
        url=upstream.as_uri(),
        anvil_version=__version__,
        attested_by=None,
        **(of_repository if source == "repository" else {"commit": None}),
    )
    anvil_lock.write_lock(project, [entry, forged])
    require(project)
    told = program("deps", "sync", cwd=project, code=1).stderr
    assert "beacon 2.0.0 is refused: anvil.lock has the digest" in told
    assert (cache().folder / "objects" / f"{entry.sha256}.db").is_file()
    assert find(cache(), forged) is None
    assert "Run 'anvil deps sync'." in complaint("search", "beacon", "--collection", "beacon@2.0.0", cwd=project)


def test_an_index_built_from_another_repository_does_not_stand_for_a_known_one(
    project: Path, server: Server, tmp_path: Path
) -> None:
    known = repository(tmp_path / "git" / "beacon", {"docs/index.md": "# Beacons\n\nThe real ones.\n"})
    other = repository(tmp_path / "git" / "other", {"docs/index.md": "# Beacons\n\nFalse ones.\n"})
    program("deps", "add", "beacon", "--repository", other.as_uri(), cwd=project)
    (entry,) = locked(project)
    forged = replace(entry, version="2.0.0", url=known.as_uri())
    anvil_lock.write_lock(project, [entry, forged])
    told = program("deps", "sync", cwd=project, code=1).stderr
    assert "beacon 2.0.0 cannot be fetched or built." in told and "v1.0.0" in told
    assert find(cache(), entry) is not None and find(cache(), forged) is None


@pytest.mark.parametrize("value", ['"a/b/c"', '"https://github.com/a/b"', "7", '""'])
def test_a_lock_with_another_value_is_damaged(project: Path, site: Server, value: str) -> None:
    program("deps", "add", "beacon", cwd=project)
    lock = (project / "anvil.lock").read_text(encoding="utf-8")
    (project / "anvil.lock").write_text(lock.replace('"acme/beacon"', value), encoding="utf-8")
    assert "'attested_by' of entry 1 is missing or wrong" in complaint("deps", "sync", cwd=project)
