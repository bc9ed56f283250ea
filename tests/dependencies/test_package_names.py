"""Names of packages, as users type them."""

from __future__ import annotations

import pytest

from anvil.dependencies import package_names
from anvil.dependencies.ecosystems import Dependency
from anvil.errors import ConfigError

KNOWN = [
    Dependency("pypi", "fastapi", "0.115.0", True),
    Dependency("pypi", "click", "8.1.7"),
    Dependency("npm", "click", "1.0.0"),
    Dependency("npm", "@acme/ui", "2.0.0", True),
    Dependency("npm", "semver", "6.3.1"),
    Dependency("npm", "semver", "7.0.0"),
    Dependency("pypi", "bare", None, True),
]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("FastAPI", Dependency("pypi", "fastapi", "0.115.0", True)),
        ("fastapi==0.100.0", Dependency("pypi", "fastapi", "0.100.0", True, "the command line")),
        ("npm:click", Dependency("npm", "click", "1.0.0")),
        ("@acme/ui", Dependency("npm", "@acme/ui", "2.0.0", True)),
        ("@acme/ui@1.0.0", Dependency("npm", "@acme/ui", "1.0.0", True, "the command line")),
        ("semver@6.3.1", Dependency("npm", "semver", "6.3.1", False, "the command line")),
        ("pypi:unknown==1.0", Dependency("pypi", "unknown", "1.0", False, "the command line")),
        ("Un_known==1.0", Dependency("pypi", "un-known", "1.0", False, "the command line")),
        ("unknown@1.0.0", Dependency("npm", "unknown", "1.0.0", False, "the command line")),
        ("npm:unknown==1.0.0", Dependency("npm", "unknown", "1.0.0", False, "the command line")),
    ],
)
def test_what_a_name_means(text: str, expected: Dependency) -> None:
    assert package_names.find_dependency(KNOWN, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("click", "is a package of npm and pypi here. Write npm:click."),
        ("semver", "is locked at several versions: 6.3.1, 7.0.0. Name one, such as semver@7.0.0."),
        ("fastap", "No lockfile has fastap from a registry, and it is not installed. Did you mean fastapi?"),
        ("zzz", "To take it anyway, write npm:zzz@VERSION or pypi:zzz==VERSION; from Git, with --repository URL."),
        ("github.com/a/b", "is not the name of a package. Write NAME, NAME==VERSION or npm:NAME."),
        ("@acme/other==1", "'@acme/other' is not the name of a package of pypi."),
        ("bare", "No lockfile has the version of bare"),
        ("../etc", "is not the name of a package"),
        ("fastapi==\x1b[31m", "does not end in a version"),
    ],
)
def test_names_that_mean_nothing_or_too_much(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        package_names.find_dependency(KNOWN, text)
    assert message in str(error.value) and not str(error.value).endswith("?.")


@pytest.mark.parametrize(
    ("stated", "version", "is_other"),
    [
        ("1.2.0", "1.2.0", False),
        ("v1.2", "1.2.0", False),
        ("1.2.0", "1.2", False),
        ("1.2.0-rc.1", "1.2.0rc1", False),
        ("1.2.0+abc", "1.2.0", False),
        ("1.2.0", "1.20", True),
        ("0.9", "1.0", True),
        ("latest", "1.0", False),
        ("2024.01", "2024.1", False),
        ("2024.1", "2024.01.0", False),
        ("2024.10", "2024.1", True),
        ("1.9", "1.9.3", False),
        ("1", "1.9", False),
        ("1.x", "1.9.3", False),
        ("1.0", "1.9", True),
        ("1.9.3", "1.9", True),
        ("2.0.0", "2.0.0rc1", True),
        ("2", "2.1.0rc1", True),
        ("2.0.0rc1", "2.0.0", True),
        ("2.0.0-rc.01", "2.0.0c1", False),
        ("2.0.0rc1", "2.0.0rc2", True),
        ("2rc1", "2.1rc1", True),
        ("2.0a", "2.0.0-alpha.0", False),
        ("2.0.dev1", "2.0a1.dev1", True),
        ("3.0.0-canary.7", "3.0.0-canary.70", True),
        ("1.2", "1.2.0.post1", False),
        ("1.2.post1", "1.2.post2", True),
        ("1.2.post1", "1.2", True),
        ("2.0", "1!2.0", True),
        ("1!2.0", "1!2.0.0", False),
        ("1.2.0+cpu", "1.2.0+cuda", False),
        ("1.0", "abc", True),
        ("9" * 5000, "1.0", True),
    ],
)
def test_an_index_of_another_version(stated: str, version: str, is_other: bool) -> None:
    assert package_names.is_other_version(stated, version) is is_other


@pytest.mark.parametrize(
    ("stated", "is_same"),
    [("v1.9.03", True), ("1.9.3.0", True), ("1.9", False), ("1.9.3rc1", False), ("latest", False), ("", False)],
)
def test_one_version_written_in_several_ways(stated: str, is_same: bool) -> None:
    assert package_names.is_same_version(stated, "1.9.3") is is_same


def test_a_series_is_not_exactly_its_first_version() -> None:
    assert package_names.is_same_version("1.00.0", "1.0.0") and not package_names.is_same_version("1", "1.0.0")
    assert package_names.is_same_version("jammy", "jammy") and not package_names.is_same_version("latest", "jammy")
