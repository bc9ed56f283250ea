"""Shares of the pages: disjoint, complete, stable, about even."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as some

from anvil.documents.shards import Shard
from anvil.errors import ConfigError


@given(some.text(), some.integers(1, 999))
def test_every_path_has_one_shard(path: str, count: int) -> None:
    assert [Shard(number, count).holds(path) for number in range(1, count + 1)].count(True) == 1


def test_the_shares_are_about_even_and_stay() -> None:
    paths = [f"guides/chapter-{number // 20}/page-{number}.md" for number in range(4_000)]
    shares = Counter(next(n for n in range(1, 9) if Shard(n, 8).holds(path)) for path in paths)
    assert all(430 <= share <= 570 for share in shares.values()), shares  # 500, give or take three deviations
    assert [Shard(n, 3).holds("guides/alerts.md") for n in (1, 2, 3)] == [True, False, False]  # a promise to caches
    assert Shard(2, 3).holds("bytes-\udcff.md") in (True, False)


@pytest.mark.parametrize("text", ["3/8", "1/1", "999/999"])
def test_a_shard_is_written_as_it_is_read(text: str) -> None:
    assert str(Shard.parse(text)) == text


@pytest.mark.parametrize("text", ["", "3", "0/8", "9/8", "3/0", "03/8", "3 / 8", "-1/8", "1/1000", "3/8\n", "٣/٨"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="3/8"):
        Shard.parse(text)
