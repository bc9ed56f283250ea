"""The user's cache of vectors: what it gives back, what it refuses, and that a broken file costs nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import apsw
import pytest

from anvil.index_file import vector_cache
from anvil.index_file.vector_cache import VectorCache, text_key

DIMENSIONS = 8


def row(number: int) -> bytes:
    """An int8 vector with its peak, another one for each number."""
    return bytes([127, *number.to_bytes(7, "big")])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "vectors.db"


@pytest.fixture
def cache(path: Path) -> VectorCache:
    return VectorCache("model", DIMENSIONS, path)


def test_a_vector_comes_back_for_its_model_and_text_only(cache: VectorCache, path: Path) -> None:
    cache.put({text_key("one"): row(1), text_key("two"): row(2)})
    assert cache.get([text_key("two"), text_key("three")]) == {text_key("two"): row(2)}
    assert VectorCache("model", DIMENSIONS, path).get([text_key("one")]) == {text_key("one"): row(1)}
    assert VectorCache("another", DIMENSIONS, path).get([text_key("one")]) == {}


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE vectors SET vector = substr(vector, 2)",
        "UPDATE vectors SET vector = zeroblob(12)",
        "UPDATE vectors SET vector = (SELECT o.vector FROM vectors AS o WHERE o.key <> vectors.key LIMIT 1)",
        "UPDATE vectors SET vector = 'text'",
        "UPDATE vectors SET vector = NULL",
    ],
)
def test_a_value_that_was_changed_is_not_used(cache: VectorCache, path: Path, damage: str) -> None:
    keys = [text_key("one"), text_key("two")]
    written = {key: row(number) for number, key in enumerate(keys)}
    cache.put(written)
    with apsw.Connection(str(path)) as handle:
        try:
            handle.execute(damage)
        except apsw.ConstraintError:
            handle.execute("UPDATE vectors SET vector = 7")
    handle.close()
    vectors = VectorCache("model", DIMENSIONS, path).get(keys)
    assert len(vectors) < 2 and vectors.items() <= written.items()
    cache.put({keys[0]: row(5)})
    assert cache.get(keys[:1]) == {keys[0]: row(5)}


@pytest.mark.parametrize("content", [b"not a database", b"SQLite format 3\0" + b"\xff" * 5000])
def test_a_damaged_file_is_begun_again_by_the_next_process(path: Path, content: bytes) -> None:
    path.parent.mkdir()
    path.write_bytes(content)
    first = VectorCache("model", DIMENSIONS, path)
    assert first.get([text_key("one")]) == {}
    first.put({text_key("one"): row(1)})
    second = VectorCache("model", DIMENSIONS, path)
    second.put({text_key("one"): row(1)})
    assert second.get([text_key("one")]) == {text_key("one"): row(1)}


def test_another_programs_database_is_left_alone(path: Path) -> None:
    path.parent.mkdir()
    with apsw.Connection(str(path)) as handle:
        handle.pragma("application_id", 7)
        handle.execute("CREATE TABLE theirs (a)")
    handle.close()
    before = path.read_bytes()
    cache = VectorCache("model", DIMENSIONS, path)
    cache.put({text_key("one"): row(1)})
    assert cache.get([text_key("one")]) == {} and path.read_bytes() == before


def test_a_folder_that_cannot_be_made_costs_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = VectorCache("model", DIMENSIONS, tmp_path / "file" / "vectors.db")
    cache.put({text_key("one"): row(1)})
    assert cache.get([text_key("one")]) == {}


def test_what_was_used_least_recently_leaves_first(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = VectorCache("model", DIMENSIONS, path, max_bytes=120_000)
    keys = [text_key(str(number)) for number in range(4000)]
    monkeypatch.setattr(vector_cache, "_today", lambda: 1)
    cache.put(dict.fromkeys(keys[:500], row(1)))
    monkeypatch.setattr(vector_cache, "_today", lambda: 2)
    assert len(cache.get(keys[:100])) == 100
    for day, first in enumerate(range(500, 4000, 500), 3):
        monkeypatch.setattr(vector_cache, "_today", lambda day=day: day)
        cache.put(dict.fromkeys(keys[first : first + 500], row(2)))
    kept = cache.get(keys)
    assert len(kept) < 4000 and set(keys[3500:]) <= set(kept)
    assert len(set(keys[:100]) & set(kept)) >= len(set(keys[100:500]) & set(kept))
    assert path.stat().st_size < 400_000


def test_an_eighth_leaves_when_there_is_too_much(path: Path) -> None:
    cache = VectorCache("model", DIMENSIONS, path, max_bytes=1)
    keys = [text_key(str(number)) for number in range(800)]
    cache.put(dict.fromkeys(keys, row(1)))
    assert len(cache.get(keys)) == 800 - 101


def test_many_processes_write_at_once(path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from anvil.index_file import vector_cache\n"
        "from anvil.index_file.vector_cache import *\n"
        "vector_cache.BUSY_TIMEOUT_MS = 60_000\n"  # on a busy machine the cache gives up, and loses a vector
        "cache = VectorCache('model', 8, Path(sys.argv[1]))\n"
        "for number in range(40):\n"
        "    text = f'{sys.argv[2]} {number}'; cache.put({text_key(text): bytes([127] + [number] * 7)})\n"
    )
    # SQLite does not wait where two processes turn on write-ahead logging at once: one of them loses a vector.
    VectorCache("model", DIMENSIONS, path).put({text_key("first"): row(1)})
    writers = [subprocess.Popen([sys.executable, "-c", script, str(path), str(number)]) for number in range(3)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    keys = [text_key(f"{writer} {number}") for writer in range(3) for number in range(40)]
    assert len(VectorCache("model", DIMENSIONS, path).get(keys)) == 120


def test_it_holds_up_to_512_mb(cache: VectorCache) -> None:
    assert cache._max_bytes == 536_870_912
