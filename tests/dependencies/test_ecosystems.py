"""Each ecosystem of packages gives what :class:`anvil.dependencies.ecosystems.PackageEcosystem` names."""

from __future__ import annotations

from anvil.dependencies import ecosystems, npm_ecosystem, project_dependencies, python_ecosystem
from anvil.dependencies.ecosystems import ECOSYSTEMS, PackageEcosystem
from anvil.dependencies.settings import DepsOptions

MODULES: dict[str, PackageEcosystem] = {"npm": npm_ecosystem, "pypi": python_ecosystem}  # mypy compares them


def test_each_ecosystem_has_its_module_and_the_key_of_its_registry() -> None:
    assert {name: ecosystems.of(name) for name in ECOSYSTEMS} == MODULES
    for name in ECOSYSTEMS:
        assert getattr(DepsOptions(), f"{name}_url").startswith("https://")


def test_no_file_is_of_two_ecosystems() -> None:
    names = [name for module in MODULES.values() for name in (*module.PROJECT_FILES, *module.LOCKFILES)]
    assert len(names) == len(set(names)) == 14
    for name in (*names, "requirements-dev.txt", "pylock.dev.toml", "Cargo.lock"):
        assert sum(project_dependencies.reader(each, name) is not None for each in ECOSYSTEMS) <= 1
