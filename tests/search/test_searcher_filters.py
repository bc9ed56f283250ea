"""The filters of a search, and what it says where no page passes them."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.search.candidates import FileIndex
from tests.conftest import PAGES, write


def test_a_filter_that_no_page_fits_is_said_with_the_closest_pages(tmp_path: Path) -> None:
    docs = write(tmp_path / "docs", PAGES)
    with anvil.open(docs, provider="none") as opened:
        nothing = opened.search("alerts", file_filter="guides/ALERT.md")
        assert not nothing.results
        assert nothing.freshness.notes[-1].startswith("No page matches guides/ALERT.md. Closest: guides/alerts.md")
        notes = opened.search("alerts", file_filter="guides/**").freshness.notes
        assert not any("No page" in note for note in notes)
        notes = opened.search("alerts", version="9", language="de").freshness.notes
        assert notes[-1] == "No page has the version 9 and the language de."


def test_a_search_in_a_site_is_of_one_language(tmp_path: Path) -> None:
    page = "<html lang={}><head><title>Alerts</title></head><body><main><h1>Alerts</h1><p>{}</p></main></body></html>"
    texts = {
        "alerts/index.html": page.format("en-GB", "Alerts of colour."),
        "fr/alertes/index.html": page.format("fr", "Les alertes, alerts."),
    }
    with anvil.open(site=write(tmp_path / "site", texts), provider="none") as opened:
        opened.index()

        def found(language: str | None) -> set[str]:
            return {hit.metadata.file_path for hit in opened.search("alerts", language=language).results}

        assert found(None) == {"alerts/index.html", "fr/alertes/index.html"}
        assert found("fr") == {"fr/alertes/index.html"}
        assert found("en") == found("en-GB") == {"alerts/index.html"}


def test_a_filter_is_compared_with_all_pages_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With 20,000 pages a selection takes up to 80 ms."""
    docs = write(tmp_path / "docs", {f"{version}/{page}": "# Alerts\n" for version in ("1.0", "2.0") for page in PAGES})
    made: list[str | None] = []
    select = FileIndex.select

    def recorded(index: FileIndex, file_filter: str | None, paths: Collection[str] | None) -> Any:
        made.append(file_filter)
        return select(index, file_filter, paths)

    monkeypatch.setattr(FileIndex, "select", recorded)
    with anvil.open(docs, provider="none") as opened:
        filters: list[dict[str, Any]] = [{"version": "1.0"}, {"file_filter": "1.0/**"}, {}]
        for options in filters:
            opened.search("alerts", **options)
            count = len(made)
            opened.search("other alerts", **options)
            assert len(made) == count
        (docs / "1.0/more.md").write_text("# Alerts of an edit\n")
        paths = {hit.metadata.file_path for hit in opened.search("edit", file_filter="1.0/**").results}
        assert "1.0/more.md" in paths
