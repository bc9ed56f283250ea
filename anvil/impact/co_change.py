"""Pages that changed together with files of code before, from the history of the repository.

The unit is a step along the first parents of a commit: a commit, or a merged branch as a whole. Small steps say more than
large ones, and later steps more than earlier ones. Of each step only the folders that matter are compared.
"""

from __future__ import annotations

import math
import posixpath
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from anvil.git.objects import Trees

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
PRIOR_STEPS = 2.0
"""Steps without any page that each file is thought to have had besides: one joint change alone says little."""


class Step(NamedTuple):
    """A step of the history: the root tree before it (None for the first) and after it."""

    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Together:
    """How often a page changed together with a file or folder of code. ``both`` of ``all`` steps that changed the code;
    ``share``: the same, decayed and discounted, 0 to 1."""

    source: str
    both: int
    all: int
    share: float


@dataclass
class History:
    """What the steps say. ``joint``: page -> its strongest :class:`Together` for a file or folder, the strongest first.
    ``often``: page -> the share of the steps with pages that changed it, decayed. ``steps``: number of steps read."""

    joint: dict[str, tuple[Together, ...]] = field(default_factory=dict)
    often: dict[str, float] = field(default_factory=dict)
    steps: int = 0


def read(
    steps: Iterable[Step],
    trees: Trees,
    files: Collection[str],
    docs: str,
    is_page: Callable[[str], bool],
    check: Callable[[], None] = lambda: None,
) -> History:
    """What the history says of these files of code, and of the folders that have them.

    ``docs``: the documentation folder from the root, ``""`` for the root itself. ``is_page``: whether a path from that
    folder is a page. ``check`` is called for each step, and may raise to cancel.
    """
    sources = list(dict.fromkeys(list(files)[:MAX_FILES]))
    folders = list(dict.fromkeys(folder for file in sources if (folder := posixpath.dirname(file)) and folder != docs))
    of_source: dict[str, float] = defaultdict(float)
    count: dict[str, int] = defaultdict(int)
    together: dict[tuple[str, str], list[float]] = defaultdict(lambda: [0.0, 0.0])
    often: dict[str, float] = defaultdict(float)
    history = History()
    all_often = 0.0
    for number, step in enumerate(steps):
        check()
        history.steps = number + 1
        if step.before is None or step.before == step.after:
            continue
        touched = _touched(trees, step, sources, folders)
        old, new = trees.folder(step.before, docs), trees.folder(step.after, docs)
        pages: list[str] = []
        if old != new and new is not None:
            pages = sorted(path for path in trees.changed(old, new) if is_page(path))
        if not touched and not pages:
            continue
        decay = 0.5 ** (number / HALF_LIFE_STEPS)
        if len(pages) > MAX_PAGES_OF_STEP:
            continue
        size = 1
        if touched:
            size = len(trees.changed(step.before, step.after))
            if size > MAX_FILES_OF_STEP:
                continue
        # A step of many files says less of each pair; that it says of a file at all is counted in the same way.
        value = decay / math.sqrt(max(1.0, size / 5))
        for source in touched:
            of_source[source] += value
            count[source] += 1
        if pages:
            all_often += decay
        for page in pages:
            often[page] += decay / len(pages)
            for source in touched:
                pair = together[source, page]
                pair[0] += value / math.sqrt(max(1.0, len(pages) / 3))
                pair[1] += 1
    by_page: dict[str, list[Together]] = defaultdict(list)
    for (source, page), (value, both) in together.items():
        share = value / (of_source[source] + PRIOR_STEPS * _recent(count[source]))
        by_page[page].append(Together(source, int(both), count[source], share))
    history.joint = {
        page: tuple(sorted(each, key=lambda pair: (-pair.share, pair.source))) for page, each in sorted(by_page.items())
    }
    history.often = {page: value / all_often for page, value in sorted(often.items())}
    return history


def _recent(steps: int) -> float:
    """The weight of a step of the prior: less where much is known."""
    return 0.5 if steps else 1.0


def _touched(trees: Trees, step: Step, files: Collection[str], folders: Collection[str]) -> list[str]:
    """The files and folders among these that a step changed."""
    assert step.before is not None
    changed = []
    differing: dict[str, bool] = {}
    for folder in folders:
        differing[folder] = trees.folder(step.before, folder) != trees.folder(step.after, folder)
        if differing[folder]:
            changed.append(f"{folder}/")
    inside = [file for file in files if differing.get(posixpath.dirname(file), True)]
    if inside:
        before, after = trees.entries(step.before, inside), trees.entries(step.after, inside)
        changed += [file for file in inside if before[file] != after[file]]
    return changed


def shares(history: History) -> Mapping[str, float]:
    """Page -> how often it changed at all, for a comparison."""
    return history.often
