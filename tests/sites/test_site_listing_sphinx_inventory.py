"""Second names in ``objects.inv``."""

from __future__ import annotations

import zlib

import pytest

from anvil.sites import site_listing

HEAD = b"# Sphinx inventory version 2\n# Project: x\n# Version: 1\n# The rest of this file is compressed using zlib.\n"
ENTRIES = """\
beacon.Lamp py:class 1 api.html#$ -
beacon.lamps.Lamp py:class -1 api.html#beacon.Lamp -
beacon py:module 0 api/index.html#module-$ -
a name with spaces js:function 1 deep/page.html#a.name -
beacon.x py:data 1 api/index.html#x Title with words
wick std:label -1 api.html#id1 Wick
nothing here
"""


def test_second_names_lead_to_anchors() -> None:
    assert site_listing.aliases(HEAD + zlib.compress(ENTRIES.encode())) == {
        "api": {"beacon.lamps.Lamp": "beacon.Lamp"},
        "deep/page": {"a name with spaces": "a.name"},
    }


@pytest.mark.parametrize(
    "data", [b"", HEAD, HEAD + b"no zlib", b"# Sphinx inventory version 1\n", HEAD + zlib.compress(b"\xff\xfe\n" * 9)]
)
def test_a_file_of_another_form_has_none(data: bytes) -> None:
    assert site_listing.aliases(data) == {}


def test_an_inventory_that_grows_when_it_is_unpacked_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site_listing, "MAX_BYTES", 1_000_000)
    monkeypatch.setattr(site_listing, "MAX_INVENTORY_BYTES", 5_000_000)
    filler = b"a" * site_listing.MAX_INVENTORY_BYTES + b"\n"
    assert site_listing.aliases(HEAD + zlib.compress(ENTRIES.encode() + filler, 1)).keys() == {"api", "deep/page"}
    assert site_listing.aliases(HEAD + zlib.compress(filler + ENTRIES.encode(), 1)) == {}
