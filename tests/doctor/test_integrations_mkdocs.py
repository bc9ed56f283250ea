"""A MkDocs plugin that Zensical does not run: what shows it, and what `build`, `check` and `doctor` say."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.doctor import integrations
from tests.conftest import write
from tests.support.in_process import program

PLUGIN = "site_name: x\nplugins:\n  - search\n  - anvil\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    write(tmp_path, {"docs/index.md": "# Home\n\nText.\n", "mkdocs.yml": PLUGIN, "anvil.toml": NO_VECTORS})
    monkeypatch.chdir(tmp_path)
    return tmp_path


NO_VECTORS = '[embedding]\nprovider = "none"\n'


@pytest.mark.parametrize(
    ("file", "text", "evidence"),
    [
        ("zensical.toml", "[project]\n", "there is zensical.toml"),
        ("pyproject.toml", '[tool.poe.tasks]\nsite = "zensical serve"\n', "pyproject.toml runs it"),
        (
            ".github/workflows/docs.yml",
            "steps:\n  - run: zensical build --clean\n",
            ".github/workflows/docs.yml runs it",
        ),
        (".readthedocs.yaml", "build:\n  commands: [zensical build]\n", ".readthedocs.yaml runs it"),
        ("Makefile", "old:\n\tmkdocs build\nsite:\n\tzensical build\n", "Makefile runs it"),
    ],
)
def test_what_shows_that_zensical_builds_the_site(project: Path, file: str, text: str, evidence: str) -> None:
    assert integrations.unrun_plugin(project / "docs") is None
    write(project, {file: text})
    unrun = integrations.unrun_plugin(project / "docs")
    assert unrun is not None and unrun.evidence == evidence
    assert unrun.command == "zensical build && anvil build --site site --docs docs"


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("pyproject.toml", 'docs = ["zensical"]\n'),
        ("Makefile", "# zensical build\nsite:\n\tmkdocs build\n"),
        ("mkdocs.yml", "site_name: x\nplugins: [search]\n"),
        ("mkdocs.yml", "plugins: [\n"),
        (".github/workflows/docs.yml", "- run: zensical build && anvil build --site site\n"),
        (".github/workflows/docs.yml", "- run: mkdocs build --strict\n"),
        ("Makefile", "publish:\n\tmkdocs gh-deploy\n"),
        (".github/workflows/docs.yml", "- run: zensical build\n- uses: anvil-docs/anvil@v1\n  with:\n    site: site\n"),
    ],
)
def test_what_does_not(project: Path, file: str, text: str) -> None:
    if file == "mkdocs.yml":
        write(project, {"zensical.toml": "[project]\n"})
    write(project, {file: text})
    assert integrations.unrun_plugin(project / "docs") is None


def test_a_project_inside_a_repository(project: Path) -> None:
    """The workflow is at the root, and the configuration names other folders."""
    write(
        project,
        {".git/HEAD": "", "site/mkdocs.yml": f"docs_dir: pages\nsite_dir: out\n{PLUGIN}", "site/pages/a.md": "# A\n"},
    )
    write(project, {".github/workflows/docs.yml": "- run: cd site && zensical build\n"})
    unrun = integrations.unrun_plugin(project / "site/pages")
    assert unrun is not None and unrun.command == "zensical build && anvil build --site out --docs pages"
    (project / "mkdocs.yml").unlink()
    assert integrations.unrun_plugin(project / "docs") is None  # the search ends at the repository's root


def test_build_and_check_warn(project: Path) -> None:
    assert "Zensical" not in program("build").stderr
    write(project, {"zensical.toml": "[project]\n"})
    for command in ("build", "check"):
        result = program(command)
        assert "does not run the plugin" in result.stderr
        assert "zensical build && anvil build --site site --docs docs" in result.stderr


def test_the_doctor_names_the_line(project: Path) -> None:
    program("build")
    write(project, {"zensical.toml": "[project]\n"})
    result = program("doctor", code=1)
    assert "$ zensical build && anvil build --site site --docs docs" in result.stdout
