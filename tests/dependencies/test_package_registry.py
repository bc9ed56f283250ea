"""The addresses of registries, and which hosts they may be on."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.dependencies import package_registry
from anvil.dependencies.ecosystems import ECOSYSTEMS, Registry
from anvil.dependencies.settings import DepsOptions
from anvil.errors import ConfigError, FetchError
from tests.support.index_server import Server


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for ecosystem in ECOSYSTEMS:
        for name in package_registry.variables(ecosystem):
            monkeypatch.delenv(name, raising=False)


def test_the_environment_names_the_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    assert package_registry.registries(DepsOptions())["pypi"] == Registry("https://pypi.org/simple/", True)
    monkeypatch.setenv("PIP_INDEX_URL", "https://reader:pass%40word@pypi.corp:8443/root/simple")
    ours = package_registry.registries(DepsOptions())["pypi"]
    assert (ours.url, ours.is_trusted) == ("https://pypi.corp:8443/root/simple/", True)
    assert ours.authorization == {"https://pypi.corp:8443": "Basic cmVhZGVyOnBhc3NAd29yZA=="}
    assert "word" not in repr(ours)
    assert package_registry.registries(DepsOptions(pypi_url="https://other.corp/"))["pypi"] == ours
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://first.corp/simple")
    assert package_registry.registries(DepsOptions())["pypi"].url == "https://first.corp/simple/"
    assert package_registry.registries(DepsOptions(npm_url="https://n.corp/npm"))["npm"] == Registry(
        "https://n.corp/npm/", False
    )
    monkeypatch.setenv("NPM_CONFIG_REGISTRY", "http://n.corp/")
    with pytest.raises(ConfigError, match="NPM_CONFIG_REGISTRY must be an https address"):
        package_registry.registries(DepsOptions())


def test_the_user_keeps_credentials_in_netrc(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "netrc").write_text("machine pypi.corp login reader password pass@word\ndefault login x password y\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    from_checkout = package_registry.registries(DepsOptions(pypi_url="https://pypi.corp/simple"))
    assert (from_checkout["pypi"].authorization, from_checkout["npm"].authorization) == ({}, {})
    monkeypatch.setenv("PIP_INDEX_URL", "https://pypi.corp/simple")
    ours = package_registry.registries(DepsOptions())["pypi"]
    assert ours.authorization == {"https://pypi.corp:443": "Basic cmVhZGVyOnBhc3NAd29yZA=="}
    (tmp_path / "netrc").write_text("machine pypi.corp nonsense\n")
    assert package_registry.registries(DepsOptions())["pypi"].authorization == {}


def test_a_registry_of_a_checkout_must_be_public(server: Server) -> None:
    options = DepsOptions(pypi_url=f"{server.url}/simple/")
    policy = package_registry.policy(options, package_registry.registries(options))
    with pytest.raises(FetchError, match="this machine, which a package may not name"):
        policy.check(f"{server.url}/simple/lib/")
