"""Vectors taken over from an index that is already published."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

import anvil
from anvil.fetch.settings import FetchOptions
from anvil.settings.schema import Config
from tests.conftest import PAGES, write
from tests.support import mkdocs_sites as sites
from tests.support.sigstore import Sigstore

pytest.importorskip("mkdocs")
plugin = pytest.importorskip("mkdocs_anvil.plugin")
LOCAL = {"embedding": {"provider": "local"}}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(autouse=True)
def no_other_vectors(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user's cache of vectors would make ``previous`` unnecessary, and these tests with it."""
    monkeypatch.setenv("ANVIL_EMBEDDING_CACHE", "false")


@pytest.fixture
def deployed(tmp_path: Path) -> Iterator[tuple[Path, str]]:
    """A folder, and the address that serves it."""
    folder = tmp_path / "deployed"
    folder.mkdir()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    yield folder, f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()
    thread.join()


def fresh(site: Path, previous: object) -> Path:
    """The site as a new machine has it: its sources, and no index kept from before."""
    for folder in (".anvil", "site"):
        shutil.rmtree(site / folder, ignore_errors=True)
    return sites.make(site, {}, anvil={**LOCAL, "previous": previous})


def test_vectors_come_from_the_deployed_site_or_a_file(tmp_path: Path, deployed: tuple[Path, str]) -> None:
    folder, url = deployed
    site = sites.make(tmp_path / "site", PAGES, anvil=LOCAL)
    assert " 0 passages embedded" not in sites.build(site)
    shutil.copytree(site / "site", folder, dirs_exist_ok=True)
    shutil.copy(site / "site/anvil/index.db", site / "old.db")
    first = (site / "site/anvil/index.db").read_bytes()
    for previous in (url, ["old.db"]):
        fresh(site, previous)
        assert "4 pages, 0 passages embedded" in sites.build(site, "--strict")
        assert (site / "site/anvil/index.db").read_bytes() == first
    fresh(site, url)
    (site / "anvil.toml").write_text("[fetch]\nrequire_attestation = true\n", encoding="utf-8")
    said = sites.build(site)
    assert "The previous index is not used" in said and "must have an attestation" in said
    assert " 0 passages embedded" not in said


def test_a_published_one_must_be_attested_where_that_is_required(
    tmp_path: Path, deployed: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, url = deployed
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    write(tmp_path / "docs", {"index.md": "# Home\n\nText.\n"})
    index = folder / "index.db"
    with anvil.open(tmp_path / "docs", index, provider="none") as opened:
        opened.index()
        model = opened.provider.digest
    sigstore = Sigstore()
    root = str(sigstore.write_root(tmp_path))
    options = FetchOptions(require_attestation=True, attested_by="acme/docs", trusted_root=root)
    config = Config(tables={"fetch": options})
    address = f"{url}index.db"
    assert plugin.reusable([address], tmp_path, model, Config())[1] == []
    files, (warning,) = plugin.reusable([address], tmp_path, model, config)
    assert files == [] and "it has no attestation" in warning
    write(folder, {"index.db.sigstore.json": json.dumps(sigstore.bundle(index.read_bytes(), "mallory/docs"))})
    assert "built by mallory/docs, not by acme/docs" in plugin.reusable([address], tmp_path, model, config)[1][0]
    write(folder, {"index.db.sigstore.json": json.dumps(sigstore.bundle(index.read_bytes(), "acme/docs"))})
    files, warnings = plugin.reusable([address, str(index)], tmp_path, model, config)  # a file is one's own
    assert len(files) == 2 and warnings == []


def test_one_that_is_of_no_use_is_named_and_the_index_built_all_the_same(
    tmp_path: Path, deployed: tuple[Path, str]
) -> None:
    folder, url = deployed
    site = sites.make(tmp_path / "site", {"index.md": "# Home\n\nText.\n"})
    sites.build(site)
    shutil.copytree(site / "site/anvil", folder / "words")
    (folder / "short").mkdir()
    (folder / "short/index.db").write_bytes((site / "site/anvil/index.db").read_bytes()[:6000])
    previous = [f"{url}none/", f"{url}short/index.db", f"{url}words/", "missing.db", "http://127.0.0.1:9/"]
    said = sites.build(fresh(site, previous))
    assert said.count("The previous index") == len(previous)
    assert f"There is no index at {url}none" in said, said
    assert "words" in said and "of another model, none" in said
    assert "1 page, 1 passage embedded" in said
    sites.build(fresh(site, ""), "--strict")  # a variable that is not set
    sites.build(fresh(site, "missing.db"), "--strict", code=1)
