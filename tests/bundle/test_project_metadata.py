"""Which project a bundle is of."""

from __future__ import annotations

from pathlib import Path

from anvil.bundle.agents_md import BundledProject
from anvil.bundle.project_metadata import find_project


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def test_the_nearest_metadata_counts(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", '[project]\nname = "whole"\nversion = "1.0"\n')
    put(tmp_path / "packages/a/package.json", '{"name": "@acme/a", "version": "2.1.0"}')
    assert find_project(tmp_path / "packages/a/dist", tmp_path) == BundledProject("@acme/a", "2.1.0", "@acme/a")
    assert find_project(tmp_path / "packages/b", tmp_path) == BundledProject("whole", "1.0", "whole")
    assert find_project(tmp_path.parent / "elsewhere", tmp_path) == BundledProject("whole", "1.0", "whole")


def test_the_root_of_a_workspace_of_npm_is_no_package(tmp_path: Path) -> None:
    put(
        tmp_path / "package.json",
        '{"name": "@acme/monorepo", "version": "0.0.0", "private": true, "workspaces": ["a"]}',
    )
    put(tmp_path / "a/package.json", '{"name": "@acme/a", "version": "2.1.0"}')
    assert find_project(tmp_path / "dist", tmp_path) == BundledProject(tmp_path.name)
    assert find_project(tmp_path / "a/dist", tmp_path) == BundledProject("@acme/a", "2.1.0", "@acme/a")
    put(tmp_path / "package.json", '{"name": "app", "version": "1.0.0", "private": true}')
    assert find_project(tmp_path / "dist", tmp_path) == BundledProject("app", "1.0.0", "app")
    put(tmp_path / "pnpm-workspace.yaml", "packages: [a]")
    assert find_project(tmp_path / "dist", tmp_path) == BundledProject(tmp_path.name)


def test_metadata_that_cannot_be_used(tmp_path: Path) -> None:
    put(tmp_path / "pyproject.toml", "[project\n")
    put(tmp_path / "package.json", '{"name": "a\\nb"}')
    assert find_project(tmp_path, tmp_path) == BundledProject(tmp_path.name)
    put(tmp_path / "Cargo.toml", '[package]\nname = "crate"\nversion.workspace = true\n')
    assert find_project(tmp_path, tmp_path) == BundledProject("crate")


def test_a_name_longer_than_200_bytes_is_none(tmp_path: Path) -> None:
    put(tmp_path / "package.json", f'{{"name": "{"é" * 100}", "version": "{"v" * 201}"}}')
    assert find_project(tmp_path / "dist", tmp_path) == BundledProject("é" * 100, None, "é" * 100)
    put(tmp_path / "package.json", f'{{"name": "{"é" * 101}"}}')
    assert find_project(tmp_path / "dist", tmp_path) == BundledProject(tmp_path.name)
