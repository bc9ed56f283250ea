"""A server on loopback that has packages, and the client that asks it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from anvil.dependencies import package_registry
from anvil.http.client import HttpClient
from tests.support.index_server import Server, serving


@pytest.fixture
def server() -> Iterator[Server]:
    """Without packages."""
    with serving() as server:
        yield server


@pytest.fixture
def http() -> Iterator[HttpClient]:
    """With the limits of a package registry."""
    with HttpClient(package_registry.LIMITS) as http:
        yield http
