import itertools
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from anvil.git.repository import Repository
from anvil.impact import co_change


class Past:
    """A history of steps, the newest first: each is the set of files that it changed. ``bots``: numbers of those by a
    program."""

    def __init__(self, *steps: set[str], bots: Collection[int] = ()) -> None:
        self._steps = steps
        self._bots = bots
        self._versions: dict[str, list[int]] = {}

    def _version(self, path: str, number: int) -> int:
        """How often a file, or one in a folder, has changed before step ``number`` from the end."""
        if path not in self._versions:
            inside = f"{path}/" if path else ""
            changes = [any(file == path or file.startswith(inside) for file in step) for step in self._steps]
            self._versions[path] = [0, *itertools.accumulate(reversed(changes))]
        return self._versions[path][len(self._steps) - number]

    def steps(self, start: str, limit: int, paths: Sequence[str]) -> Iterator[tuple[str, str, tuple[object, ...]]]:
        for number in range(min(limit, len(self._steps) + 1)):
            author = "renovate[bot]" if number in self._bots else "Robot"
            yield author, f"{number}", tuple(_Id(number, path, self._version(path, number)) for path in paths)

    def changed(self, old: object, new: object) -> set[str]:
        if isinstance(new, str):  # whole trees
            return self._steps[int(new)]
        assert isinstance(new, _Id)
        folder = f"{new.path}/"
        return {file.removeprefix(folder) for file in self._steps[new.step] if file.startswith(folder)}


@dataclass(frozen=True)
class _Id:
    """An id that knows its step, and is equal to that of another step with the same content."""

    step: int = field(compare=False)
    path: str
    version: int


def read(past: Past, *files: str) -> co_change.History:
    return co_change.read(cast("Repository", past), "HEAD", files, "docs", lambda path: path.endswith(".md"))


def test_pages_that_changed_with_a_file() -> None:
    past = Past(
        {"src/a.py", "docs/a.md"},
        {"src/b.py", "docs/b.md"},
        {"src/a.py"},
        {"src/a.py", "docs/a.md", "docs/image.png"},
    )
    history = read(past, "src/a.py")
    assert list(history.joint) == ["a.md", "b.md"], "the folder src/ changed with b.md"
    of_file = next(pair for pair in history.joint["a.md"] if pair.source == "src/a.py")
    assert (of_file.both, of_file.all) == (2, 3)
    assert 0.4 < of_file.share < 0.6
    assert [pair.source for pair in history.joint["b.md"]] == ["src/"]
    assert history.steps == 4
    assert history.often["a.md"] > history.often["b.md"]


def test_one_joint_change_says_less_than_many() -> None:
    once = read(Past({"a.py", "docs/a.md"}), "a.py").joint["a.md"][0].share
    often = read(Past(*[{"a.py", "docs/a.md"}] * 9), "a.py").joint["a.md"][0].share
    assert once < 0.6 < often


def test_old_steps_and_large_steps_count_less() -> None:
    both, other = {"a.py", "docs/a.md"}, {"a.py"}
    late = read(Past(both, *[other] * 800), "a.py").joint["a.md"][0].share
    early = read(Past(*[other] * 800, both), "a.py").joint["a.md"][0].share
    assert early < late
    large = {"a.py", "docs/a.md", *(f"x{number}.py" for number in range(60))}
    assert read(Past(large), "a.py").joint["a.md"][0].share < read(Past(both), "a.py").joint["a.md"][0].share


def test_after_400_steps_a_step_counts_half() -> None:
    history = read(Past({"a.py", "docs/new.md"}, *[{"a.py"}] * 399, {"a.py", "docs/old.md"}), "a.py")
    assert history.often["new.md"] == pytest.approx(2 * history.often["old.md"])


def test_commits_of_bots_are_no_steps() -> None:
    both, lock = {"a.py", "docs/a.md"}, {"a.py", "docs/log.md"}
    people = read(Past(both, both), "a.py")
    assert read(Past(lock, both, *[lock] * 9, both, lock, bots=[0, *range(2, 11), 12]), "a.py") == people
    assert people.steps == 2 and list(people.joint) == ["a.md"]


def test_steps_that_change_everything_say_nothing() -> None:
    pages = {f"docs/{number}.md" for number in range(30)}
    files = {f"{number}.py" for number in range(200)}
    assert read(Past({"a.py", *pages}), "a.py").joint == {}
    assert read(Past({"a.py", "docs/a.md", *files}), "a.py").joint == {}


def test_it_reads_a_bounded_history() -> None:
    past = Past(*[{"b.py"}] * 2100, {"a.py", "docs/a.md"})
    assert read(past, "a.py").joint == {}
    assert read(past, "a.py").steps == 2000
