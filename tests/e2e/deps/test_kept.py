"""``anvil ci deps --keep``: the folder that a CI job keeps between runs, with what the lock names and nothing else."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from anvil.dependencies import docs_cache
from tests.e2e.deps.test_deps import answers, forget_cache, locked, project, server, surroundings, upstream
from tests.support.dependency_servers import repository
from tests.support.in_process import program
from tests.support.repositories import isolated

__all__ = ["isolated", "project", "server", "surroundings", "upstream"]


def files(folder: Path) -> set[str]:
    """All files below a folder."""
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def moved(project: Path, upstream: Path, tmp_path: Path) -> Path:
    """The kept folder of a run with ``beacon`` 1.0.0, after which the lock has 2.0.0. The user's cache has both."""
    program("deps", "add", "beacon", "--repository", upstream.as_uri(), cwd=project)
    kept = tmp_path / "kept"
    program("ci", "deps", "--keep", kept, cwd=project)
    repository(upstream, {"docs/index.md": "# Beacons\n\nNew in two.\n"}, "v2.0.0")
    (project / "requirements.txt").write_text("beacon==2.0.0\n", encoding="utf-8")
    program("deps", "update", cwd=project)
    return kept


def test_what_the_lock_does_not_name_is_removed(project: Path, moved: Path) -> None:
    own = docs_cache.cache().folder
    (before,) = (moved / "objects").iterdir()
    (moved / "sources" / ("0" * 32)).mkdir(parents=True)  # as a restored cache of an older program has it
    (moved / "names" / ("0" * 64)).write_text("found", encoding="utf-8")
    (moved / "objects" / "notes.txt").write_text("mine", encoding="utf-8")
    shared = files(own)
    program("ci", "deps", "--keep", moved, cwd=project)
    (entry,) = locked(project)
    assert files(moved / "objects") == {f"{entry.sha256}.db", "notes.txt"} and not before.exists()
    assert len(files(moved / "names")) == 1 and files(moved / "sources") == set()
    assert not (moved / "sources" / ("0" * 32)).exists()
    assert files(own) == shared and f"objects/{before.name}" in shared


def test_the_kept_folder_serves_without_a_server(project: Path, moved: Path, upstream: Path, tmp_path: Path) -> None:
    program("ci", "deps", "--keep", moved, cwd=project)
    forget_cache(tmp_path)
    shutil.rmtree(upstream)
    done = program("ci", "deps", "--keep", moved, cwd=project)
    assert "dependencies-fetched: 0" in done.stdout
    assert answers(locked(project)[0], "new in two") == "index.md"


def test_after_a_failure_the_kept_folder_is_as_it_was(
    project: Path, moved: Path, upstream: Path, tmp_path: Path
) -> None:
    before = files(moved)
    forget_cache(tmp_path)
    shutil.rmtree(upstream)
    program("ci", "deps", "--keep", moved, cwd=project, code=1)
    assert before and files(moved) == before


def test_the_cache_of_the_user_is_not_cleared(project: Path, moved: Path) -> None:
    own = docs_cache.cache().folder
    before = files(own)
    for folder in (own, own.parent, own.parent / "fetched"):
        done = program("ci", "deps", "--keep", folder, cwd=project, code=2)
        assert "which other projects share. Name another folder with --keep." in done.stdout
    assert files(own) == before


def test_a_kept_folder_that_cannot_be_written(project: Path, moved: Path) -> None:
    shutil.rmtree(moved)
    moved.write_text("a file", encoding="utf-8")
    done = program("ci", "deps", "--keep", moved, cwd=project, code=2)
    assert f"{moved} cannot be written" in done.stdout
