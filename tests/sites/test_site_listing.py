"""Addresses in sitemaps, also in those that were made to cost time."""

from __future__ import annotations

import time

import pytest

from anvil.sites import site_listing


def test_as_much_of_a_sitemap_is_read_as_its_standard_allows() -> None:
    assert site_listing.MAX_BYTES == 50_000_000


def test_addresses_are_read_in_order() -> None:
    data = b"""<urlset><url><loc>
      https://x.example/a/?b=1&amp;c=2
    </loc></url><url><LOC><![CDATA[https://x.example/b]]></LOC></url><url><loc></loc></url>
    <url><loc> <![CDATA[ https://x.example/c ]]> </loc></url></urlset>"""
    addresses = ["https://x.example/a/?b=1&c=2", "https://x.example/b", "https://x.example/c"]
    assert site_listing.locations(data) == addresses


@pytest.mark.parametrize(
    "data",
    [
        b"<loc>" * 1_000_000,
        b"<loc>" + b" " * 5_000_000,
        b"<loc> " * 1_000_000 + b" " * 1_000_000,
        b"<loc><![CDATA[" * 300_000,
        b"<loc>" + b"x" * 5_000_000 + b"</loc>",
        b"<loc>   <![CDATA[   " * 200_000,
    ],
    ids=range(6),
)
def test_a_sitemap_that_was_made_to_cost_time(data: bytes) -> None:
    began = time.process_time()
    assert site_listing.locations(data) == []
    assert time.process_time() - began < 10
