"""Commands with an index that has an attestation of who built it, or must have one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from tests.conftest import PAGES, write
from tests.support.in_process import complaint, printed, program
from tests.support.index_server import Answer, Server, serving
from tests.support.repositories import isolated
from tests.support.sigstore import COMMIT, Sigstore

__all__ = ["isolated"]

BESIDE = "/anvil/index.db.sigstore.json"


@pytest.fixture(scope="module")
def sigstore() -> Sigstore:
    return Sigstore()


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    with anvil.open(write(folder / "docs", PAGES), folder / "index.db", "none") as opened:
        opened.index()
    return folder / "index.db"


@pytest.fixture
def published(index: Path, sigstore: Sigstore) -> Iterator[Server]:
    """A site with an index that ``acme/docs`` built."""
    with serving() as server:
        server.publish(index)
        server.json(BESIDE, sigstore.bundle(index.read_bytes()))
        yield server


@pytest.fixture
def here(tmp_path: Path, sigstore: Sigstore, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, of a user who trusts the Sigstore of the tests."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("ANVIL_FETCH_TRUSTED_ROOT", str(sigstore.write_root(tmp_path)))
    monkeypatch.setenv("ANVIL_EMBEDDING_PROVIDER", "none")
    folder = tmp_path / "here"
    folder.mkdir()
    return folder


def test_pull_says_who_built_the_index(published: Server, here: Path) -> None:
    told = program("pull", published.url, "--to", "docs.db", cwd=here).stdout
    workflow = ".github/workflows/docs.yml@refs/heads/main"
    assert f"Its attestation is valid: built by acme/docs, {workflow}, commit {COMMIT[:12]}.\n" in told
    assert printed("pull", published.url, "--to", "docs.db", cwd=here)["attestation"] == {
        "repository": "acme/docs",
        "workflow": workflow,
        "commit": COMMIT,
        "run": "https://github.com/acme/docs/actions/runs/1/attempts/1",
    }
    del published.answers[BESIDE]
    published.answers["/other/index.db"] = published.answers["/anvil/index.db"]
    published.answers["/other/index.json"] = published.answers["/anvil/index.json"]
    quiet = program("pull", f"{published.url}/other/", "--to", "none.db", cwd=here)
    assert "ttestation" not in quiet.stderr


def test_pull_insists_on_who_must_have_built_it(published: Server, here: Path, index: Path, sigstore: Sigstore) -> None:
    program("pull", published.url, "--to", "docs.db", "--attested-by", "acme/docs", cwd=here)
    line = ("pull", published.url, "--to", "docs.db", "--attested-by")
    message = complaint(*line, "acme/handbook", cwd=here, code=1)
    assert "acme/handbook must have built it: it was built by acme/docs, not by acme/handbook." in message
    assert "--attested-by is not a place on GitHub. Name an owner" in complaint(
        *line, "https://github.com/acme", cwd=here
    )
    assert printed(*line, "other", cwd=here, code=1)["outcome"] == "refused"
    published.json(BESIDE, sigstore.bundle(b"another index"))
    (here / "docs.db").unlink()
    assert "of another file than the index" in complaint(*line, "evil", cwd=here, code=1)
    assert not (here / "docs.db").exists()


def test_the_configuration_insists(published: Server, here: Path) -> None:
    write(here, {"anvil.toml": "[fetch]\nrequire_attestation = true\n"})
    line = ("pull", published.url, "--to", "docs.db")
    assert "nothing says who must have built it. Name the repository with attested_by" in complaint(*line, cwd=here)
    write(here, {"anvil.toml": '[fetch]\nrequire_attestation = true\nattested_by = "acme/docs"\n'})
    assert "built by acme/docs" in program(*line, cwd=here).stdout
    write(here, {"anvil.toml": '[fetch]\nattested_by = "acme"\n'})
    assert "built by acme/docs" in program(*line, cwd=here).stdout
    write(here, {"anvil.toml": '[fetch]\nattested_by = "evil/docs"\n'})
    assert "it was built by acme/docs, not by evil/docs" in complaint(*line, cwd=here, code=1)
    assert "built by acme/docs" in program(*line, "--attested-by", "acme", cwd=here).stdout
    write(here, {"anvil.toml": '[fetch]\nattested_by = "https://github.com/acme/docs"\n'})
    assert "fetch.attested_by is not a place on GitHub. Name an owner" in complaint(*line, cwd=here)


def test_a_checkout_cannot_choose_whom_to_trust(
    published: Server, here: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("ANVIL_FETCH_TRUSTED_ROOT")
    write(here, {"anvil.toml": '[fetch]\ntrusted_root = "../trusted_root.json"\n'})
    line = ("pull", published.url, "--to", "docs.db")
    assert "sets fetch.trusted_root, which turns off a protection" in complaint(*line, cwd=here)
    assert "built by acme/docs" in program(*line, "--config", "anvil.toml", cwd=here).stdout
    monkeypatch.setenv("ANVIL_FETCH_TRUSTED_ROOT", str(tmp_path / "none.json"))
    published.json(BESIDE, {"verificationMaterial": {"tlogEntries": [{}]}})
    write(here, {"anvil.toml": ""})
    assert "none.json cannot be used (No such file or directory)" in complaint(*line, cwd=here)


def test_a_search_in_a_published_index_insists_too(published: Server, here: Path, index: Path) -> None:
    write(here, {"anvil.toml": f'index = "{published.url}/"\n[fetch]\nattested_by = "acme/docs"\n'})
    assert printed("search", "alerts", cwd=here)["results"]
    write(here, {"anvil.toml": f'index = "{published.url}/"\n[fetch]\nattested_by = "evil/docs"\n'})
    assert "it was built by acme/docs, not by evil/docs" in complaint("search", "alerts", cwd=here)


def test_a_collection_has_a_builder_of_its_own(published: Server, here: Path) -> None:
    table = f'[collections.handbook]\nindex = "{published.url}/"\nattested_by = "%s"\n'
    write(here, {"anvil.toml": '[fetch]\nattested_by = "evil/docs"\n' + table % "acme/docs"})
    assert printed("search", "alerts", "--collection", "handbook", cwd=here)["results"]
    write(here, {"anvil.toml": table % "acme/handbook"})
    message = complaint("search", "alerts", "--collection", "handbook", cwd=here)
    assert "it was built by acme/docs, not by acme/handbook" in message
    write(here, {"anvil.toml": table % "acme/docs/x"})
    assert "collections.handbook.attested_by is not a place on GitHub" in complaint("search", "alerts", cwd=here)


def test_an_index_that_is_replaced_by_one_of_another_is_not_served(
    published: Server, here: Path, index: Path, sigstore: Sigstore, tmp_path: Path
) -> None:
    write(here, {"anvil.toml": f'index = "{published.url}/"\n[fetch]\nattested_by = "acme/docs"\n'})
    printed("search", "alerts", cwd=here)
    other = tmp_path / "other.db"
    with anvil.open(write(tmp_path / "evil", {"index.md": "# Evil\n\nSend me your alerts.\n"}), other, "none") as made:
        made.index()
    (tmp_path / "renamed").mkdir()
    renamed = other.rename(tmp_path / "renamed" / "index.db")
    published.publish(renamed)
    published.answers[BESIDE] = Answer(json.dumps(sigstore.bundle(renamed.read_bytes(), "evil/docs")).encode())
    found = json.loads(program("search", "alerts", "--json", cwd=here).stdout)
    assert {hit["metadata"]["file_path"] for hit in found["results"]} <= set(PAGES)
    assert any("it was built by evil/docs, not by acme/docs" in note for note in found["freshness"]["notes"])
