"""Pages that changed together with files of code before, from the history of the repository.

The unit is a step along the first parents of a commit: a commit, or a merged branch as a whole. Small steps count more
than large steps, and late steps more than early steps. Only the paths that matter are compared.
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
"""Changed files of code whose history is compared: the files with the most changed lines."""
HALF_LIFE_STEPS = 400
"""A step counts half as much as another that is so many steps later."""
MAX_PAGES_OF_STEP = 20
"""A step that changes more pages is a change of all pages, and is left out."""
MAX_FILES_OF_STEP = 100
"""A step that changes more files is left out, too."""
SMALL_FILES, SMALL_PAGES = 5, 3
"""Files and pages of a small step. In a larger step, each pair counts less, by the root of the ratio of the sizes."""
BOT = "[bot]"
"""The end of the names of programs at GitHub. Their commits, such as updates of dependencies, are left out."""
PRIOR_STEPS = 1.0
"""Steps without any page that are added for each file, because one joint change alone is weak evidence."""


@dataclass(frozen=True, slots=True)
class JointChange:
    """How often a page changed together with a file, or with a folder, whose path ends in ``/``.

    ``both``: steps that changed page and code. ``all``: steps that changed the code. ``share``: their ratio, 0 to 1,
    with steps weighted by age and size.
    """

    source: str
    both: int
    all: int
    share: float


@dataclass
class History:
    """The result of reading the history. ``joint``: page -> its joint changes with each file and folder, the strongest
    first. ``often``: page -> its changes, weighted by age. ``steps``: number of steps read."""

    joint: dict[str, tuple[JointChange, ...]] = field(default_factory=dict)
    often: dict[str, float] = field(default_factory=dict)
    steps: int = 0


def read(
    repository: Repository, start: str, files: Sequence[str], docs: str, is_page: Callable[[str], bool]
) -> History:
    """Read the history up to the commit ``start`` for these files of code and their folders.

    ``docs``: the documentation folder from the root, ``""`` for the root itself. ``is_page``: of a path in that folder.
    """
    sources = list(dict.fromkeys(files[:MAX_FILES]))
    folders = {posixpath.dirname(file) for file in sources} - {"", docs}
    sources += sorted(f"{folder}/" for folder in folders)
    source_weights: dict[str, float] = defaultdict(float)
    source_counts: dict[str, int] = defaultdict(int)
    pair_weights: dict[tuple[str, str], float] = defaultdict(float)
    pair_counts: dict[tuple[str, str], int] = defaultdict(int)
    often: dict[str, float] = defaultdict(float)
    history = History()
    for step in _steps(repository, start, sources, docs, is_page):
        history.steps += 1
        decay: float = 0.5 ** (history.steps / HALF_LIFE_STEPS)
        for source in step.touched:
            source_weights[source] += decay
            source_counts[source] += 1
        weight = decay / math.sqrt(max(1.0, step.size / SMALL_FILES) * max(1.0, len(step.pages) / SMALL_PAGES))
        for page in step.pages:
            often[page] += decay / len(step.pages)
            for source in step.touched:
                pair_weights[source, page] += weight
                pair_counts[source, page] += 1
    joint: dict[str, list[JointChange]] = defaultdict(list)
    for (source, page), weight in pair_weights.items():
        share = weight / (source_weights[source] + PRIOR_STEPS)
        joint[page].append(JointChange(source, pair_counts[source, page], source_counts[source], share))
    for page, pairs in sorted(joint.items()):
        history.joint[page] = tuple(sorted(pairs, key=lambda pair: (-pair.share, pair.source)))
    history.often = dict(sorted(often.items()))
    return history


class _Step(NamedTuple):
    """A step: the files and folders of code that it changed, the pages, and the number of all its changed files."""

    touched: Sequence[str]
    pages: Sequence[str]
    size: int


def _steps(
    repository: Repository, start: str, sources: Sequence[str], docs: str, is_page: Callable[[str], bool]
) -> Iterator[_Step]:
    """The steps up to a commit, the newest first. A step that changed too much is empty, but counts as a step."""
    paths = [docs, *(source.rstrip("/") for source in sources)]
    for new_commit, old_commit in pairwise(repository.steps(start, MAX_STEPS + 1, paths)):
        (author, new_root, (new_docs, *new)), (_, old_root, (old_docs, *old)) = new_commit, old_commit
        if author.endswith(BOT):
            continue
        touched = [source for source, old_id, new_id in zip(sources, old, new, strict=True) if old_id != new_id]
        pages: list[str] = []
        if old_docs != new_docs and new_docs is not None:
            pages = sorted(path for path in repository.changed(old_docs, new_docs) if is_page(path))
        is_large = len(pages) > MAX_PAGES_OF_STEP
        # To compare all files takes longest, so it is done only for steps that changed code and pages.
        size = len(repository.changed(old_root, new_root)) if touched and pages and not is_large else 0
        yield _Step((), (), 0) if is_large or size > MAX_FILES_OF_STEP else _Step(touched, pages, size)
