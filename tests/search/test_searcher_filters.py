"""The filters of a search, and what it says where no page passes them."""

from __future__ import annotations

from pathlib import Path

import anvil
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
