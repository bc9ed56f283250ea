"""Which of some versions is the newest."""

from __future__ import annotations

import pytest

from anvil.formats.version_names import newest


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        (["1.9", "1.10", "1.2"], "1.10"),
        (["v2.0.0", "v1.9.9"], "v2.0.0"),
        (["2.0rc1", "1.9"], "1.9"),
        (["2.0-beta.1", "2.0-alpha.4"], "2.0-beta.1"),
        (["main", "0.1"], "0.1"),
        (["latest", "9.9"], "latest"),
        (["stable", "latest", "9.9"], "stable"),
        (["", "1.0"], "1.0"),
        (["develop", "main"], "main"),
    ],
)
def test_the_newest_version(versions: list[str], expected: str) -> None:
    assert newest(versions) == newest(versions[::-1]) == expected
