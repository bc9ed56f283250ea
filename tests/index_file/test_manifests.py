"""What settings look like in the manifest of an index, and back."""

from __future__ import annotations

from anvil.index_file.manifests import recalled_site, recalled_weights, recorded_site, recorded_weights
from anvil.settings.schema import SiteOptions


def test_weights_survive_the_manifest_in_their_order() -> None:
    text = recorded_weights({"b/**": 0.5, "a": 2})
    assert text == '[["b/**",0.5],["a",2]]'
    assert list(recalled_weights(text).items()) == [("b/**", 0.5), ("a", 2)]
    assert recorded_weights({}) is None and recalled_weights(None) == {}


def test_the_address_and_the_rule_of_a_site_survive_the_manifest() -> None:
    site = SiteOptions("https://example.org/dócs/", "hugo", folder="site")
    text = recorded_site(site)
    assert text == '["https://example.org/d\\u00f3cs/","hugo"]'
    assert recalled_site(text) == SiteOptions("https://example.org/dócs/", "hugo")
    assert recorded_site(SiteOptions(rule="hugo")) is None and recalled_site(None) == SiteOptions()
