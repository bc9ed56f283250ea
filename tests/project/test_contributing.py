"""The recipes in CONTRIBUTING.md, run as they stand there."""

from __future__ import annotations

import ast
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anvil
from anvil.build import builder
from anvil.documents.working_tree import WorkingTree
from anvil.embedding.provider import PROVIDERS, EmbeddingProvider, create_provider
from anvil.index_file import verify
from anvil.settings.schema import ChunkingOptions
from anvil.values import Skipped
from tests.conftest import PAGES, write

PAGE = Path(__file__).parents[2] / "CONTRIBUTING.md"


def run(heading: str) -> dict[str, Any]:
    """Run the Python of one recipe, block after block; its names."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    blocks = [block.partition("\n```\n")[0] for block in section.split("```python\n")[1:]]
    assert len(blocks) == 2
    names: dict[str, Any] = {"__name__": "recipe"}
    for block in blocks:
        exec(compile(ast.parse(block), PAGE.name, "exec", dont_inherit=True), names)
    return names


@pytest.fixture
def provider(docs: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> EmbeddingProvider:
    """The provider of the recipe, which has built an index of the pages."""
    monkeypatch.chdir(docs.parent)
    monkeypatch.setitem(PROVIDERS, "words", PROVIDERS["none"])  # put back afterwards
    monkeypatch.delitem(PROVIDERS, "words")
    run("Add an embedding provider")
    assert " passages embedded by words\n" in capsys.readouterr().out
    return create_provider("words", anvil.Config().embedding)


def test_the_new_provider_builds_and_answers(provider: EmbeddingProvider) -> None:
    with anvil.open("docs", "words.db", provider="words") as opened:
        assert opened.index().outcome == "unchanged"
        found = opened.search("certificate expires two weeks", mode="semantic")
        assert found.results[0].metadata.file_path == "guides/checks.md"
        assert found.results[0].score > 0.1


def test_the_new_provider_keeps_the_protocol(provider: EmbeddingProvider) -> None:
    texts = ["One text of words.", "", "Another, of other words, and longer."]
    embedded = provider.embed(texts)
    assert embedded.vectors.shape == (3, provider.dimensions) and embedded.vectors.dtype == np.float32
    assert np.linalg.norm(embedded.vectors, axis=1) == pytest.approx([1, 0, 1], abs=1e-6)
    assert np.array_equal(provider.embed_query(texts[0]), embedded.vectors[0])
    assert [len(spans) for spans in provider.token_spans(texts)] == [4, 0, 6]
    assert len(provider.digest) == 64
    provider.warm()
    provider.close()
    provider.close()


def archived(path: Path, files: dict[str, bytes]) -> None:
    """Write a zip archive; every file is of one day."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in files.items():
            archive.writestr(zipfile.ZipInfo(name, (2026, 1, 31, 9, 30, 0)), content)


def test_the_new_source_is_built_as_the_folder_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], keywords: EmbeddingProvider
) -> None:
    monkeypatch.chdir(tmp_path)
    archived(tmp_path / "docs.zip", {name: text.encode() for name, text in PAGES.items()})
    archive = run("Add a source")["Archive"]
    assert capsys.readouterr().out == f"built {len(PAGES)} pages from the archive\n"

    folder = WorkingTree(write(tmp_path / "docs", PAGES))
    assert archive(Path("docs.zip")).scan() == folder.scan()
    builder.build(folder, tmp_path / "folder.db", keywords, ChunkingOptions())
    digests = []
    for name in ("archive.db", "folder.db"):
        with verify.open_checked(tmp_path / name) as reader:
            digests.append(reader.meta()["digest"])
    assert digests[0] == digests[1]
    again = builder.build(archive(Path("docs.zip")), tmp_path / "archive.db", keywords, ChunkingOptions())
    assert again.outcome == "unchanged"
    with anvil.open(index=tmp_path / "archive.db") as opened:
        found = opened.search("quiet window").results[0].metadata
        assert (found.file_path, found.last_modified) == ("guides/alerts.md", "2026-01-31T09:30:00Z")


def test_the_new_source_leaves_out_what_is_no_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    archived(tmp_path / "docs.zip", {"index.md": b"# One\n"})
    archive = run("Add a source")["Archive"]
    archived(
        tmp_path / "docs.zip",
        {"b.md": b"\xff\xff", "a.md": b"# A\n", "large.md": b"x" * 100, "picture.png": b"\x89PNG"},
    )
    found = archive(Path("docs.zip"), limit=50)
    scan = found.scan()
    assert list(scan.entries) == ["a.md"] and {each.path for each in scan.skipped} == {"b.md", "large.md"}
    assert isinstance(found.read("b.md"), Skipped) and isinstance(found.read("none.md"), Skipped)
    assert found.read("a.md").blob_id == scan.entries["a.md"]


# --- change one capability -----------------------------------------------------------------------------------------


def imported(files: list[Path]) -> set[str]:
    """The packages that tests import, with those that their own modules in ``tests/`` import."""
    packages: set[str] = set()
    seen: set[Path] = set()
    while files:
        file = files.pop()
        if file in seen:
            continue
        seen.add(file)
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and node.module:
                names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
            packages |= {name.partition(".")[0] for name in names}
            own = [PAGE.parent / f"{name.replace('.', '/')}.py" for name in names if name.startswith("tests.")]
            files.extend(path for path in own if path.is_file())
    return packages - sys.stdlib_module_names - {"anvil", "tests"}


def test_one_capability_is_tested_with_the_packages_that_the_page_names() -> None:
    section = PAGE.read_text(encoding="utf-8").split("\n## Change one capability\n")[1].split("\n## ")[0]
    (installed,) = re.findall(r"^pip install -e \. (.+)$", section, re.MULTILINE)
    assert installed.split() == ["pytest", "pytest-xdist", "hypothesis"]
    folders = sorted(set(re.findall(r"tests/\w+", section)))
    assert len(folders) == 5 and "tests/lint" in folders
    of_anvil = {"apsw", "click", "numpy", "pygit2", "yaml"}  # come with Anvil itself
    for folder in folders:
        files = [*sorted((PAGE.parent / folder).rglob("*.py")), PAGE.parent / "tests/conftest.py"]
        assert len(files) > 1, folder
        assert imported(files) <= {"pytest", "hypothesis"} | of_anvil, folder
