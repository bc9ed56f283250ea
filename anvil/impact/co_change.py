"""Pages that changed together with files of code before, from the history of the repository.

The unit is a step along the first parents of a commit: a commit, or a merged branch as a whole. Small steps say more
than large ones, and later steps more than earlier ones. Of each step only the paths that matter are compared.
"""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from anvil.git.repository import Repository

MAX_STEPS = 2_000
"""Steps of the history that are read."""
MAX_FILES = 40
"""Changed files of code whose history is compared, those with the most changed lines."""
HALF_LIFE_STEPS = 400
"""After so many steps, a step counts half."""
MAX_PAGES_OF_STEP = 20
"""A step that changes more pages is a renovation of all of them, and says nothing."""
MAX_FILES_OF_STEP = 100
"""A step that changes more files likewise."""
SMALL_FILES, SMALL_PAGES = 5, 3
"""Files and pages of a small step: of a larger one, each pair counts less, by the root of how much larger it is."""
BOT = "[bot]"
"""The end of the names of programs at GitHub: their commits, such as updates of dependencies, are no steps."""
PRIOR_STEPS = 1.0
"""Steps without any page that each file is thought to have had besides: one joint change alone says little."""


@dataclass(frozen=True, slots=True)
class Together:
    """How often a page changed together with a file, or with a folder, which ends in ``/``. ``both`` of ``all`` steps
    that changed the code; ``share``: the same, decayed and discounted, 0 to 1."""

    source: str
    both: int
    all: int
    share: float


@dataclass
class History:
    """What the steps say. ``joint``: page -> its :class:`Together` with each file and folder, the strongest first.
    ``often``: page -> its share of the changes of pages, decayed. ``steps``: number of steps that were read."""

    joint: dict[str, tuple[Together, ...]] = field(default_factory=dict)
    often: dict[str, float] = field(default_factory=dict)
    steps: int = 0


def read(past: Repository, start: str, files: Sequence[str], docs: str, is_page: Callable[[str], bool]) -> History:
    """What the history up to the commit ``start`` says of these files of code, and of the folders that they are in.

    ``docs``: the documentation folder from the root, ``""`` for the root itself. ``is_page``: whether a path from that
    folder is a page.
    """
    sources = list(dict.fromkeys(files[:MAX_FILES]))
    folders = {posixpath.dirname(file) for file in sources} - {"", docs}
    sources += sorted(f"{folder}/" for folder in folders)
    of_source: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    value_of: dict[tuple[str, str], float] = defaultdict(float)
    both: dict[tuple[str, str], int] = defaultdict(int)
    often: dict[str, float] = defaultdict(float)
    history = History()
    for step in _steps(past, start, sources, docs, is_page):
        history.steps += 1
        decay: float = 0.5 ** (history.steps / HALF_LIFE_STEPS)
        for source in step.touched:
            of_source[source] += decay
            count[source] += 1
        value = decay / math.sqrt(max(1.0, step.size / SMALL_FILES) * max(1.0, len(step.pages) / SMALL_PAGES))
        for page in step.pages:
            often[page] += decay / len(step.pages)
            for source in step.touched:
                value_of[source, page] += value
                both[source, page] += 1
    joint: dict[str, list[Together]] = defaultdict(list)
    for (source, page), value in value_of.items():
        share = value / (of_source[source] + PRIOR_STEPS)
        joint[page].append(Together(source, both[source, page], count[source], share))
    for page, pairs in sorted(joint.items()):
        history.joint[page] = tuple(sorted(pairs, key=lambda pair: (-pair.share, pair.source)))
    total = sum(often.values())
    history.often = {page: value / total for page, value in sorted(often.items())}
    return history


class _Step(NamedTuple):
    """A step: the files and folders of code that it changed, the pages, and how many files it changed in all."""

    touched: Sequence[str]
    pages: Sequence[str]
    size: int


def _steps(
    past: Repository, start: str, sources: Sequence[str], docs: str, is_page: Callable[[str], bool]
) -> Iterator[_Step]:
    """The steps up to a commit, the newest first. One that changed too much says nothing, and is empty here."""
    paths = [docs, *(source.rstrip("/") for source in sources)]
    for new_commit, old_commit in pairwise(past.steps(start, MAX_STEPS + 1, paths)):
        (author, new_root, (new_docs, *new)), (_, old_root, (old_docs, *old)) = new_commit, old_commit
        if author.endswith(BOT):
            continue
        touched = [source for source, old_id, new_id in zip(sources, old, new, strict=True) if old_id != new_id]
        pages: list[str] = []
        if old_docs != new_docs and new_docs is not None:
            pages = sorted(path for path in past.changed(old_docs, new_docs) if is_page(path))
        is_large = len(pages) > MAX_PAGES_OF_STEP
        # All files are compared for pairs of code and pages alone, because it takes longest.
        size = len(past.changed(old_root, new_root)) if touched and pages and not is_large else 0
        yield _Step((), (), 0) if is_large or size > MAX_FILES_OF_STEP else _Step(touched, pages, size)
