"""TOML that comes with a checkout: whatever it holds, it is read or refused in a short time."""

from __future__ import annotations

import time

import pytest

from anvil.formats import data_formats


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a." * 20_000 + "b = 1", "keys of too many parts"),
        ('"a,b".' * 20_000 + "b = 1", "keys of too many parts"),
        ("x = { y = '', " + "a." * 20_000 + "b = 1 }", "keys of too many parts"),
        ("[" + "a." * 5_000 + "b]\n" + "".join(f"x{n} = 1\n" for n in range(100_000)), "keys of too many parts"),
        ("a = " + "[" * 100_000, "nested too deeply"),
        ("a = " + "1" * 10_000, "too many digits"),
    ],
)
def test_what_would_take_long_is_refused_at_once(text: str, reason: str) -> None:
    began = time.process_time()
    with pytest.raises(ValueError, match=reason):
        data_formats.read_toml(text)
    assert time.process_time() - began < 1


def test_a_lockfile_with_long_lines_is_read() -> None:
    wheel = '{ url = "https://files.example/a.b.c/package-1.2.3-cp311.whl", hash = "sha256:0" }'
    text = "[[package]]\nname = 'a'\nfiles = [" + ", ".join([wheel] * 10) + "]\n\n"
    assert len(data_formats.read_toml(text * 1_000)["package"]) == 1_000
