"""Lint of the folder, of the staged tree and of a commit agree where nothing was changed, in projects of any shape."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

import anvil
from anvil.documents.git_tree import CommitTree, StagedTree
from anvil.lint.linter import LintReport
from anvil.settings.schema import Config
from tests.support.programs import ROOT
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]

PAGES = {
    "index.md": "# Start\n\n[a](guide/a.md#part) ![x](img/x.png) ![gone](img/gone.png) [g](gone.md) [s](../src.py)\n",
    "guide/a.md": '# A\n\n## Part\n\n[up](../index.md) ![x](../img/x.png) [e](/guide/a.md)\n\n--8<-- "part.txt"\n',
    "guide/lost.md": "# Lost\n\nText.\n",
    "img/x.png": "png",
}
MKDOCS = "site_name: S\nmarkdown_extensions: [pymdownx.snippets]\nnav: [index.md, guide/a.md]\n"
SHAPES: dict[str, tuple[str, dict[str, str]]] = {
    "mkdocs at the root": ("docs", {"mkdocs.yml": MKDOCS, "part.txt": "Part.\n"}),
    "mkdocs in a subfolder": ("tools/x/docs", {"tools/x/mkdocs.yml": MKDOCS}),
    "properdocs": ("docs", {"properdocs.yml": MKDOCS}),
    "documents at the root": ("", {}),
    "no generator": ("docs", {"README.md": "# R\n\n[lost](docs/guide/lost.md)\n"}),
    "website beside docs": (
        "docs",
        {"website/docusaurus.config.js": "module.exports = {presets: [{docs: {path: '../docs'}}]}\n"},
    ),
    "vitepress": ("docs", {"docs/.vitepress/config/shared.ts": "export default {}\n", "docs/public/y.png": "png"}),
    "hugo": ("content", {"hugo.toml": "title = 'x'\n", "static/z.png": "png"}),
    "another generator": ("docs", {"docs/conf.py": "pass\n"}),
}


def reports(docs: Path) -> list[LintReport]:
    with anvil.open(docs, index=docs / "none.db", provider="none", config=Config()) as opened:
        assert opened.folder
        options = opened.config.source
        staged = StagedTree(opened.folder, options)
        return [opened.lint(), opened.lint(staged), opened.lint(CommitTree(opened.folder, "HEAD", options))]


def made(root: Path, folder: str, others: Mapping[str, str]) -> Path:
    for path, text in {**{os.path.join(folder, path): text for path, text in PAGES.items()}, **others}.items():
        write(root / path, text)
    commit(root, "the project", at=1_700_000_100)
    return root / folder


@pytest.mark.parametrize("shape", SHAPES)
def test_folder_staged_tree_and_commit_agree(root: Path, shape: str) -> None:
    folder, staged, committed = reports(made(root, *SHAPES[shape]))
    assert folder.findings and folder == staged == committed
    missing = [found.message for found in folder.findings if "x.png" in found.message]
    assert missing == []  # the image is in git


def test_links_of_the_file_system_and_submodules(root: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    write(other / "guide.md", "# Guide\n")
    run(other, "init", "-q", "-b", "main")
    commit(other, "first", at=1_700_000_000)
    run(root, "submodule", "--quiet", "add", str(other), "vendored")
    write(root / "pictures/x.png", "png")
    (root / "docs/img").symlink_to("../pictures", target_is_directory=True)
    (root / "docs/nowhere").symlink_to("../gone", target_is_directory=True)
    (root / "docs/round").symlink_to("round", target_is_directory=True)
    write(root / "docs/a.md", "# A\n\n![x](img/x.png) ![y](img/y.png) ![z](nowhere/z.png) [g](../vendored/guide.md)\n")
    commit(root, "links", at=1_700_000_100)
    folder, staged, committed = (replace(report, notes=()) for report in reports(root / "docs"))
    assert folder == staged == committed
    assert [found.message.split("'")[1] for found in folder.findings if found.rule == "broken-link"] == [
        "img/y.png",
        "nowhere/z.png",
    ]


def test_what_is_staged_decides_and_not_what_is_on_disk(root: Path) -> None:
    docs = made(root, *SHAPES["mkdocs at the root"])
    (docs / "img/x.png").unlink()
    (root / "mkdocs.yml").unlink()
    folder, staged, committed = reports(docs)
    assert (folder.generator, staged.generator) == ("github", "mkdocs") and staged == committed
    assert [f.message for f in folder.findings if "x.png" in f.message] != []
    run(root, "add", "-A")
    assert reports(docs)[1] == reports(docs)[0]


def test_the_project_s_own_documentation(root: Path) -> None:
    run(root.parent, "clone", "-q", "--shared", str(ROOT), "own")
    folder, staged, committed = reports(root.parent / "own/docs")
    assert folder == staged == committed
    assert folder.generator == "mkdocs" and folder.at_least("warning") == ()
