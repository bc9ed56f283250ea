"""The real MkDocs builds a site, and the site carries its index."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import anvil
from anvil.store import checking
from tests.conftest import PAGES, write
from tests.surfaces.programs import environment

pytest.importorskip("mkdocs")
CONFIG = "site_name: Lighthouse\nplugins:\n  - search\n  - anvil:\n      embedding: {provider: none}\n"


@pytest.fixture
def site(tmp_path: Path) -> Path:
    write(tmp_path / "docs", PAGES)
    (tmp_path / "mkdocs.yml").write_text(CONFIG, encoding="utf-8")
    return tmp_path


def mkdocs(folder: Path, code: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict"], cwd=folder,
        env={**environment(), "PYTHONWARNINGS": "ignore", "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    return done.stderr


def test_the_site_carries_its_index(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "4 pages" in mkdocs(site)
    index = site / "site" / "anvil" / "index.db"
    checking.check(index)
    monkeypatch.chdir(site / "site")
    with anvil.open(index=index, provider="none") as opened:
        assert opened.search("silence at night").results[0].metadata.file_path == "guides/alerts.md"
    first = index.read_bytes()
    mkdocs(site)
    assert index.read_bytes() == first
    assert sorted(path.name for path in index.parent.iterdir()) == ["index.db", "index.json"]


def test_a_page_that_cannot_be_indexed_fails_a_strict_build(site: Path) -> None:
    (site / "docs" / "latin.md").write_bytes("# Müll\n".encode("latin-1"))
    assert "latin.md" in mkdocs(site, code=1)


def test_it_can_be_switched_off(site: Path) -> None:
    (site / "mkdocs.yml").write_text(CONFIG + "      enabled: false\n", encoding="utf-8")
    mkdocs(site)
    assert not (site / "site" / "anvil").exists() and not (site / ".anvil").exists()
