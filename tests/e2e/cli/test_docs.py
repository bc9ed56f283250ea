"""``anvil docs``: Anvil's own documentation, from the index or the pages that the package carries."""

from __future__ import annotations

from pathlib import Path

import pygit2
import pytest
from hatchling.builders.wheel import WheelBuilder

from anvil.dependencies import package_files
from anvil.system import installation
from scripts import docs_index, project
from tests.support.in_process import complaint, printed, program


@pytest.fixture(scope="module")
def own_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return docs_index.write(tmp_path_factory.mktemp("own") / "index.db", provider="none")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def test_it_answers_from_the_index_in_the_package(own_index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "OWN_INDEX", own_index)
    done = program("docs", "documentation", "of", "my", "dependencies", "in", "anvil.lock", "sync")
    assert "guides/dependencies.md:" in done.stdout and "/guides/dependencies/#" in done.stdout
    result = printed("docs", "--top-k", "1", "--json", "keep the index fresh")
    assert len(result["results"]) == 1


def test_an_installed_package_carries_the_pages() -> None:
    """They are in the wheel that ``pip install .`` builds, which has no index."""
    wheel = WheelBuilder(str(project.ROOT))
    carried_files = {file.distribution_path for file in wheel.recurse_selected_project_files()}
    assert {"anvil/own_docs/index.md", "anvil/own_docs/guides/sites.md", "anvil/api.py"} <= carried_files
    assert not [path for path in carried_files if path.startswith("docs/") or "own_docs/assets" in path]


def test_it_answers_inside_an_environment_that_the_repository_around_it_ignores(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    docs = tmp_path / ".venv" / "anvil" / "own_docs"
    docs.mkdir(parents=True)
    (docs / "index.md").write_text("# Lighthouse\n\nIt watches servers.\n", encoding="utf-8")
    (tmp_path / ".gitignore").write_text(".venv/\n", encoding="utf-8")
    pygit2.init_repository(str(tmp_path))
    monkeypatch.setattr(installation, "OWN_INDEX", tmp_path / "none.db")
    monkeypatch.setattr(installation, "OWN_DOCS", (docs,))
    assert "index.md:" in program("docs", "watches servers").stdout


def test_a_checkout_answers_from_its_pages(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "OWN_INDEX", tmp_path / "none.db")
    monkeypatch.setattr(installation, "OWN_DOCS", (tmp_path / "own_docs", tmp_path))
    assert "does not carry its documentation" in complaint("docs", "question")
    (tmp_path / "index.md").write_text("# Lighthouse\n\nIt watches servers.\n", encoding="utf-8")
    assert "index.md:" in program("docs", "watches servers").stdout
    (built,) = tmp_path.rglob("own-docs/index.db")
    data = bytearray(built.read_bytes())
    data[60:64] = (1).to_bytes(4, "big")  # user_version: the format
    built.write_bytes(data)
    assert "index.md:" in program("docs", "watches servers").stdout


def test_the_same_pages_give_the_same_bytes(own_index: Path, tmp_path: Path) -> None:
    again = docs_index.write(tmp_path / "index.db", provider="none")
    assert again.read_bytes() == own_index.read_bytes()
    assert package_files.carried_docs(["anvil/index.db"]).index == docs_index.INDEX.relative_to(project.ROOT).as_posix()
