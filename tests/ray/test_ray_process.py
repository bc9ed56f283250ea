"""How the process connects to a cluster, and what it tells of an error, without Ray."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

from anvil.ray import ray_process


@pytest.mark.parametrize(
    ("address", "variable", "target"),
    [
        ("ray://local", "ray://b:1", "local"),
        ("ray://a:10001", "ray://b:1", "ray://a:10001"),
        ("ray://auto", "ray://b:1", "ray://b:1"),
        ("ray://auto", "", "auto"),  # None would start a cluster on this machine
    ],
)
def test_the_cluster_of_an_address(monkeypatch: pytest.MonkeyPatch, address: str, variable: str, target: str) -> None:
    calls: list[Any] = []
    library = SimpleNamespace(init=lambda address, **_: calls.append(address), shutdown=lambda: calls.append("end"))
    monkeypatch.setitem(sys.modules, "ray", library)
    monkeypatch.setenv("RAY_ADDRESS", variable)
    with ray_process._connection(address) as ray:
        assert ray is library
    assert calls == [target, "end"]


def test_an_aborted_connection_is_tried_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    def init(address: str, **_: Any) -> None:
        calls.append(address)
        raise ConnectionAbortedError

    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(init=init, shutdown=lambda: None))
    with pytest.raises(ConnectionAbortedError), ray_process._connection("ray://a:10001"):
        pass
    assert calls == ["ray://a:10001"] * 3


def test_400_characters_of_an_error_are_told() -> None:
    assert ray_process._brief(ValueError("a\n b" + "c" * 500)) == f"ValueError: a b{'c' * 397}"
    assert ray_process._brief(ValueError()) == "ValueError"
