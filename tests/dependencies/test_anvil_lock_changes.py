"""What ``anvil.lock`` is compared with."""

from __future__ import annotations

import json
from pathlib import Path

from anvil.dependencies import anvil_lock, anvil_lock_changes
from anvil.dependencies.ecosystems import Ecosystem
from anvil.dependencies.values import LockedDocs
from tests.conftest import write


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
