"""What is said when no place has the documentation of a package."""

from __future__ import annotations

from pathlib import Path

import pytest

from anvil.dependencies import package_names
from anvil.dependencies.attempts import AttemptLog
from anvil.dependencies.ecosystems import Dependency
from anvil.fetch.fetched_cache import CacheUnwritable

KNOWN = [Dependency("pypi", "fastapi", "0.115.0", True, "uv.lock")]


@pytest.mark.parametrize(
    ("typed", "command"),
    [
        ("fastapi", "anvil deps add fastapi --repository URL"),
        ("other==1.0", "anvil deps add other==1.0 --repository URL"),
        ("other@1.0", "anvil deps add other@1.0 --repository URL"),
    ],
)
def test_the_command_names_the_package_as_it_can_be_found_again(typed: str, command: str) -> None:
    assert AttemptLog().failure(package_names.find_dependency(KNOWN, typed)).endswith(command)


def test_a_cache_that_cannot_be_written_ends_the_search() -> None:
    log = AttemptLog()
    with pytest.raises(CacheUnwritable), log.attempt("package", "node_modules"):
        raise CacheUnwritable(Path("cache"), PermissionError(13, "Permission denied"))
    assert not log.attempts
