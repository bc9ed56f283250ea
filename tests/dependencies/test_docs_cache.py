"""The collections that ``anvil.lock`` adds to a project."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

import anvil
from anvil.api import open_project
from anvil.dependencies import anvil_lock, docs_cache
from anvil.dependencies.docs_cache import locked_collections
from anvil.dependencies.values import LockedDocs
from anvil.errors import ArtifactMissing, BuildError, ConfigError
from anvil.requests import OpenRequest
from anvil.system import safe_files

ENTRY = LockedDocs("pypi", "click", "8.1.7", "site", "https://click.dev/", "a" * 64, "b" * 64)


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(safe_files, "user_cache", lambda: tmp_path / "cache")


def test_each_entry_is_a_collection_of_its_version(tmp_path: Path) -> None:
    assert locked_collections(tmp_path) == ()
    npm = replace(ENTRY, ecosystem="npm", sha256="c" * 64)
    ui = replace(ENTRY, ecosystem="npm", name="@acme/ui", version="1.0.0")
    anvil_lock.write_lock(tmp_path, [ENTRY, npm, ui])
    found = {each.label: each.index for each in locked_collections(tmp_path)}
    assert set(found) == {"click@8.1.7", "npm-click@8.1.7", "@acme/ui@1.0.0"}
    assert found["npm-click@8.1.7"] == str(tmp_path / "cache/deps/objects" / f"{'c' * 64}.db")


def test_a_name_that_is_taken_has_its_ecosystem_in_front(tmp_path: Path) -> None:
    anvil_lock.write_lock(tmp_path, [ENTRY, replace(ENTRY, ecosystem="npm"), replace(ENTRY, name="docs")])
    labels = {each.label for each in locked_collections(tmp_path, taken={"click", "docs"})}
    assert labels == {"pypi-click@8.1.7", "npm-click@8.1.7", "pypi-docs@8.1.7"}


def test_an_index_that_was_built_here_may_have_other_bytes(tmp_path: Path) -> None:
    built = replace(ENTRY, source="repository", tag="v8", commit="d" * 40, folder="docs", anvil_version="0.1.0")
    anvil_lock.write_lock(tmp_path, [built])
    docs_cache.cache().note(docs_cache.name(built), "e" * 64)
    (collection,) = locked_collections(tmp_path)
    assert collection.index is not None and Path(collection.index).stem == "e" * 64


def test_a_file_that_was_not_built_for_an_entry_is_not_its_index(tmp_path: Path) -> None:
    built = replace(ENTRY, source="repository", tag="v8", commit="d" * 40, folder="docs", anvil_version="0.1.0")
    anvil_lock.write_lock(tmp_path, [ENTRY, replace(built, version="9")])
    download = docs_cache.cache().folder / "objects" / f"{ENTRY.sha256}.db"
    download.parent.mkdir(parents=True)
    download.touch()
    first, second = (Path(str(each.index)) for each in locked_collections(tmp_path))
    assert first == download and not second.exists()


def test_a_damaged_lock_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "anvil.lock").write_text("version = [", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"anvil\.lock cannot be used"):
        locked_collections(tmp_path)


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege")
def test_a_lock_that_is_a_link_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("version = 1\n", encoding="utf-8")
    (tmp_path / "anvil.lock").symlink_to(tmp_path / "other")
    with pytest.raises(BuildError, match="is a link"):
        anvil_lock.write_lock(tmp_path, [ENTRY])


def test_documentation_that_is_not_here_is_fetched_by_a_command(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "own.md").write_text("# Install\n\nInstall it with pip.\n", encoding="utf-8")
    anvil_lock.write_lock(tmp_path, [ENTRY])
    (tmp_path / "anvil.toml").write_text('docs = "docs"\n[embedding]\nprovider = "none"\n', encoding="utf-8")
    with anvil.open(config=tmp_path / "anvil.toml", collections=["docs", "click"]) as opened:
        found = opened.search("install")
        assert [hit.metadata.file_path for hit in found.results] == ["own.md"]
        advice = (
            "click@8.1.7 cannot answer: The documentation of click 8.1.7 is not on this machine. Run 'anvil deps sync'."
        )
        assert advice in found.freshness.notes
    with pytest.raises(ArtifactMissing, match=r"click 8\.1\.7 is not on this machine\. Run 'anvil deps sync'"):
        open_project(OpenRequest(config=str(tmp_path / "anvil.toml"), collections=("click",)))
