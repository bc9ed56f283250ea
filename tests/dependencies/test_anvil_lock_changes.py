"""What ``anvil.lock`` is compared with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from anvil.dependencies import anvil_lock, anvil_lock_changes
from anvil.dependencies.ecosystems import Ecosystem
from anvil.dependencies.values import LockedDocs
from anvil.errors import ConfigError
from tests.conftest import write


def test_ten_names_of_the_lock_are_named(tmp_path: Path) -> None:
    names = [f"p{number:02}" for number in range(12)]
    digest, url = "a" * 64, "https://a.example/"
    anvil_lock.write_lock(tmp_path, [LockedDocs("npm", name, "1", "site", url, digest, digest) for name in names])
    with pytest.raises(ConfigError) as raised:
        anvil_lock_changes.remove(tmp_path, ["other"])
    assert str(raised.value) == f"anvil.lock does not have other. It has {', '.join(names[:10])}."


def test_an_entry_of_another_registry_takes_no_version_of_a_package(tmp_path: Path) -> None:
    def entry(ecosystem: Ecosystem, version: str) -> LockedDocs:
        return LockedDocs(ecosystem, "semver", version, "site", "https://semver.dev/", "a" * 64, "b" * 64)

    rows = {
        "": {"dependencies": {"semver": "^7"}},
        "node_modules/semver": {"version": "7.0.0"},
        "node_modules/x/node_modules/semver": {"version": "6.0.0"},
    }
    write(tmp_path, {"package-lock.json": json.dumps({"packages": rows})})
    anvil_lock.write_lock(tmp_path, [entry("npm", "5.0.0"), entry("pypi", "7.0.0")])
    outdated = anvil_lock_changes.outdated(tmp_path)
    assert [(each.docs.ecosystem, each.current) for each in outdated] == [("npm", "7.0.0"), ("pypi", None)]
