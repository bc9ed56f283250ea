"""The collections of a project, and the choice among them."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.dependencies import anvil_lock, docs_cache
from anvil.dependencies.values import LockedDocs
from anvil.errors import ConfigError
from anvil.project_indexes import answering_version, chosen, of_project
from anvil.settings.configuration import configure
from anvil.settings.schema import Collection

FASTAPI = Collection("fastapi", index="https://example.org/", version="0.139")
OLDER = Collection("fastapi", index="https://example.org/old/", version="0.99")
OWN = Collection("docs", docs="docs", of_project=True)
FOR_FASTAPI = {"fastapi": {"index": "https://example.org/", "version": "0.139"}}


def labels(tmp_path: Path, **table: object) -> list[str]:
    return [collection.label for collection in of_project(configure(table), tmp_path)]


def test_a_project_without_the_table_has_its_own_docs(tmp_path: Path) -> None:
    assert of_project(configure({}), tmp_path) == (OWN,)
    published = configure({"index": "https://example.org/"})
    assert of_project(published, tmp_path) == (Collection("docs", index="https://example.org/", of_project=True),)


def test_its_own_docs_come_before_the_collections(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert labels(tmp_path, collections=FOR_FASTAPI) == ["docs", "fastapi@0.139"]


def test_a_package_takes_the_name_of_no_collection_with_a_folder_or_without_a_version(tmp_path: Path) -> None:
    names, site, digest = ("click", "fastapi", "rich"), "https://a.example/", "a" * 64
    entries = [LockedDocs("pypi", name, "1.0", "site", site, digest, digest) for name in names]
    anvil_lock.write_lock(tmp_path, entries)
    tables = {"click": {"docs": "c", "version": "2"}, "rich": {"index": "https://r.example/"}, **FOR_FASTAPI}
    found = labels(tmp_path, collections=tables)
    assert {"click@2", "pypi-click@1.0", "rich", "pypi-rich@1.0", "fastapi@0.139", "fastapi@1.0"} == {*found}


def test_its_own_docs_are_there_once(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert labels(tmp_path, collections={**FOR_FASTAPI, "docs": {"docs": "site"}}) == ["docs", "fastapi@0.139"]
    assert labels(tmp_path, collections={"guide": {"docs": "./docs"}}) == ["guide"]


def test_a_project_without_docs_has_only_its_collections(tmp_path: Path) -> None:
    assert labels(tmp_path, collections=FOR_FASTAPI) == ["fastapi@0.139"]


def test_the_configuration_goes_over_the_lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked = (Collection("fastapi", index="/cache/1.db", version="0.139"), Collection("uv", index="/cache/2.db"))
    (tmp_path / "anvil.lock").touch()
    monkeypatch.setattr(docs_cache, "locked_collections", lambda base, options, taken: locked)
    found = of_project(configure({"collections": FOR_FASTAPI}), tmp_path)
    assert [(each.label, each.index) for each in found] == [
        ("fastapi@0.139", "https://example.org/"),
        ("uv", "/cache/2.db"),
    ]


def test_collections_are_chosen_by_name_or_by_name_and_version() -> None:
    every = (OWN, OLDER, FASTAPI)
    assert chosen(every, None) == every
    assert chosen(every, ["fastapi", "docs"]) == every
    assert chosen(every, ["fastapi@0.99"]) == (OLDER,)
    with pytest.raises(ConfigError, match=r"There is no collection fastpai\. Did you mean fastapi\?"):
        chosen(every, ["fastpai"])
    with pytest.raises(ConfigError, match=r"There is no collection zzz\. There are: docs, fastapi\."):
        chosen(every, ["zzz"])


def test_the_default_version_answers_else_the_newest() -> None:
    assert answering_version([OLDER, FASTAPI]) == FASTAPI
    configured = Collection("fastapi", index="x.db", version="0.50", default=True)
    assert answering_version([OLDER, configured, FASTAPI]) == configured
