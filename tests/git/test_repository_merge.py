"""Merging pages in memory: what git itself makes of the same branches."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from anvil.git.objects import blob_id
from anvil.git.repository import Repository
from tests.support.repositories import commit, isolated, root, run, write

__all__ = ["isolated", "root"]  # fixtures: pytest finds them by name

WORDS = ("anvil", "hammer", "tongs", "forge", "bellows", "quench", "temper", "ingot", "scale", "rivet", "chisel")


def page(chance: random.Random) -> list[str]:
    return [f"# {chance.choice(WORDS)}", *(" ".join(chance.choices(WORDS, k=12)) for _ in range(8))]


def edited(pages: dict[str, list[str]], chance: random.Random, side: str) -> dict[str, list[str]]:
    """What one side might make of the pages: paragraphs, moves, removals, new pages."""
    pages = {path: list(text) for path, text in pages.items()}
    for path in chance.sample(sorted(pages), 3):
        act = chance.choice(["edit", "edit", "edit", "move", "move and edit", "remove"])
        text = pages[path]
        if "edit" in act:
            text[chance.randrange(1, len(text))] = " ".join(chance.choices(WORDS, k=12))
        if act == "remove":
            del pages[path]
        elif "move" in act:
            pages[f"moved/{side}-{path}"] = pages.pop(path)
    return {**pages, f"{side}.md": page(chance)}


def tree(repository: Path, revision: str) -> dict[str, str]:
    listed = run(repository, "ls-tree", "-r", revision, "docs/").splitlines()
    return {line.split("\t")[1].removeprefix("docs/"): line.split()[2] for line in listed}


@pytest.mark.parametrize("seed", range(12))
def test_pages_are_merged_as_git_merges_them(root: Path, seed: int) -> None:
    chance = random.Random(seed)
    base = {f"page-{number}.md": page(chance) for number in range(8)}
    states = {"base": base, "left": edited(base, chance, "left"), "right": edited(base, chance, "right")}
    for branch, pages in states.items():
        run(root, "checkout", "-q", "-b", branch, "main" if branch == "base" else "base")
        run(root, "rm", "-rq", "docs")
        for path, text in pages.items():
            write(root / "docs" / path, "\n\n".join(text) + "\n")
        commit(root, branch, at=1_700_000_000)
    found, torn = _merge(root, *(tree(root, branch) for branch in states))
    git = subprocess.run(
        ["git", "-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", "left", "right"],
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    if git.returncode == 129:
        pytest.skip("git before 2.38 has no such merge-tree")
    assert git.returncode in (0, 1), git.stderr
    if git.returncode == 0:
        assert (found, torn) == (tree(root, git.stdout.strip()), ())
    else:
        assert torn and {each for each in found if each not in torn} <= set(tree(root, git.stdout.splitlines()[0]))


def test_a_page_with_the_attribute_union_has_the_lines_of_both_sides_as_gits_has(root: Path) -> None:
    write(root / ".gitattributes", "/docs/news/*.md merge=union\n")
    for branch, line in (("base", ""), ("left", "- of the left\n"), ("right", "- of the right\n")):
        run(root, "checkout", "-q", "-b", branch, "main" if branch == "base" else "base")
        write(root / "docs/news/log.md", f"# News\n\n{line}")
        commit(root, branch, at=1_700_000_000)
    found, torn = _merge(root, *(tree(root, branch) for branch in ("base", "left", "right")))
    run(root, "checkout", "-q", "left")
    run(root, "merge", "-q", "--no-edit", "right")
    assert (found, torn) == (tree(root, "HEAD"), ())
    assert (root / "docs/news/log.md").read_text() == "# News\n\n- of the left\n- of the right\n"


def test_one_side_is_kept_of_what_cannot_be_merged(root: Path) -> None:
    here = {}
    for name in ("first", "second", "third"):
        write(root / "docs" / f"{name}.md", f"# {name}\n")
        here[name] = blob_id(f"# {name}\n".encode())
    commit(root, "blobs", at=1_700_000_000)
    one, two, three, gone, lost = here["first"], here["second"], here["third"], "1" * 40, "2" * 40
    cases = {  # base, ours, theirs -> merged
        "both.md": ((one, two, three), two, True),
        "removed-here.md": ((one, None, three), three, True),
        "removed-there.md": ((one, two, None), two, True),
        "added-by-both.md": ((None, one, two), one, True),
        "alike.md": ((one, two, two), two, False),
        "mine.md": ((one, two, one), two, False),
        "yours.md": ((one, one, two), two, False),
        "yours-from-nowhere.md": ((gone, gone, two), two, False),
        "mine-to-nowhere.md": ((one, gone, one), gone, False),
        "yours-to-nowhere.md": ((one, one, gone), one, True),
        "nowhere.md": ((one, gone, lost), gone, True),
        "added-nowhere.md": ((None, None, gone), None, True),
        "gone.md": ((gone, None, gone), None, False),
    }
    sides = [{path: blob for path, (ids, _, _) in cases.items() if (blob := ids[side])} for side in range(3)]
    found, torn = _merge(root, *sides)
    assert found == {path: blob for path, (_, blob, _) in cases.items() if blob}
    assert torn == tuple(sorted(path for path, (_, _, unsettled) in cases.items() if unsettled))


def _merge(root: Path, *sides: dict[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    repository = Repository.discover(root)
    assert repository is not None
    base, ours, theirs = sides
    return repository.merge(base, ours, theirs, "docs")
