"""Names of packages, as users type them."""

from __future__ import annotations

import pytest

from anvil.core.dependencies import names
from anvil.errors import ConfigError
from anvil.models.dependencies import Dependency

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
    ],
)
def test_what_a_name_means(text: str, expected: Dependency) -> None:
    assert names.matching(KNOWN, text) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("click", "is a package of npm and pypi here. Write npm:click."),
        ("semver", "is locked at several versions: 6.3.1, 7.0.0"),
        ("fastap", "Did you mean fastapi?"),
        ("zzz", "write pypi:zzz==VERSION"),
        ("zzz==1", "Say where it is from: pypi:zzz==1"),
        ("bare", "No lockfile has the version of bare"),
        ("../etc", "is not the name of a package"),
        ("fastapi==\x1b[31m", "does not end in a version"),
    ],
)
def test_names_that_mean_nothing_or_too_much(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as error:
        names.matching(KNOWN, text)
    assert message in str(error.value)


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
    ],
)
def test_an_index_of_another_version(stated: str, version: str, is_other: bool) -> None:
    assert names.is_other_version(stated, version) is is_other
