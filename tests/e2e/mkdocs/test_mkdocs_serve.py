"""The real ``mkdocs serve``: an edit is in the served index with the rebuild, and little is done for it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import anvil
from tests.conftest import PAGES
from tests.support import mkdocs_sites as sites

pytest.importorskip("mkdocs")


WALRUS = "\n## Walrus\n\n" + "A walrus calls when a check fails at sea. " * 6 + "\n"


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No folder of this project is taken for that of a downloaded index."""
    monkeypatch.chdir(tmp_path)


def search(served: sites.Served, folder: Path, query: str) -> list[tuple[str, str | None]]:
    """(path, url) of what the served index, downloaded, finds."""
    copy = folder / "copy.db"
    copy.write_bytes(served.get("anvil/index.db"))
    with anvil.open(index=copy, provider="none") as opened:
        return [(hit.metadata.file_path, hit.metadata.url) for hit in opened.search(query, mode="keyword").results]


def test_an_edit_is_in_the_index_with_the_rebuild(tmp_path: Path) -> None:
    told = "import sys\ndef on_post_build(**_):\n    print('LOADED', 'onnxruntime' in sys.modules, file=sys.stderr)\n"
    site = sites.make(tmp_path, PAGES, told, {"embedding": {"provider": "local"}})
    sites.build(site)
    with sites.serve(site) as served:
        assert not any("LOADED True" in line for line in served.said)
        assert search(served, tmp_path, "walrus") == []
        before = served.digest()
        page = site / "docs/guides/alerts.md"
        page.write_text(page.read_text(encoding="utf-8") + WALRUS, encoding="utf-8")
        served.until(lambda: served.digest() != before)
        address = f"http://127.0.0.1:{served.port}/guides/alerts/#walrus"
        assert search(served, tmp_path, "walrus")[0] == ("guides/alerts.md", address)
        served.until(lambda: any("4 pages, 1 passage embedded" in line for line in served.said))
        (site / "docs/new.md").write_text("# New\n\nNarwhal.\n", encoding="utf-8")
        served.until(lambda: search(served, tmp_path, "narwhal") != [])
        (site / "docs/new.md").unlink()
        served.until(lambda: search(served, tmp_path, "narwhal") == [])
    with sites.index(site, ".anvil/site-docs.db") as reader:  # what is published is not touched by serving
        assert all((page.url or "").startswith(sites.SITE) for page in reader.documents())


def test_the_plugin_starts_no_rebuild_by_itself(tmp_path: Path) -> None:
    site = sites.make(tmp_path, PAGES)
    with sites.serve(site) as served:
        page = site / "docs/index.md"
        page.write_text(page.read_text(encoding="utf-8") + "\nMore.\n", encoding="utf-8")
        served.until(lambda: served.builds() == 2)
        with pytest.raises(AssertionError):
            served.until(lambda: served.builds() > 2, seconds=2)


def test_a_dirty_build_keeps_the_pages_that_it_passes_over(tmp_path: Path) -> None:
    site = sites.make(tmp_path, PAGES, anvil={"llms_txt": True})
    with sites.serve(site, "--dirty") as served:
        assert json.loads(served.get("anvil/index.json"))["pages"] == len(PAGES)
        before, full = served.digest(), served.get("llms-full.txt")
        page = site / "docs/guides/alerts.md"
        page.write_text(page.read_text(encoding="utf-8") + WALRUS, encoding="utf-8")
        served.until(lambda: served.digest() != before)
        assert json.loads(served.get("anvil/index.json"))["pages"] == len(PAGES)
        assert search(served, tmp_path, "walrus")[0][0] == "guides/alerts.md"
        assert search(served, tmp_path, "certificate")[0][0] == "guides/checks.md"
        assert served.get("llms-full.txt") == full and b"walrus" in served.get("guides/alerts/index.md")


def test_a_draft_is_shown_and_indexed_while_it_is_served(tmp_path: Path) -> None:
    site = sites.make(tmp_path, {"index.md": "# Home\n", "draft.md": "# Draft\n\nWalrus.\n"}, draft_docs="draft.md")
    sites.build(site, "--strict")
    assert list(sites.documents(site)) == ["index.md"]
    with sites.serve(site) as served:
        assert search(served, tmp_path, "walrus")[0][0] == "draft.md"
