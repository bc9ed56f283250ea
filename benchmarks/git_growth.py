"""What an index that is committed costs a repository: packed growth for each edit of one page.

    python benchmarks/git_growth.py [--docs FOLDER] [--pages 155] [--edits 10] [--provider local]

A repository is made in a temporary folder, with the pages and their index, vectors included. Then a sentence is put
into the middle of one page, the index of what is staged is built and both are committed, again and again, each time
another page; after each commit the repository is packed (``git gc``) and weighed. A second repository gets the same
edits without the index, so that what the index alone adds can be told. Without ``--docs`` the pages are those of the
npm package ``next`` (needs npm).
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import corpus
from measuring import anvil, heading, run, table

BAR = "2 %"
AUTHOR = {
    "GIT_AUTHOR_NAME": "A Writer",
    "GIT_AUTHOR_EMAIL": "writer@example.com",
    "GIT_COMMITTER_NAME": "A Writer",
    "GIT_COMMITTER_EMAIL": "writer@example.com",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
}


def git(repository: Path, *arguments: str, day: int = 0) -> None:
    """Run git, the clock standing at a given day."""
    when = f"{corpus.WRITTEN + day * 86_400} +0000"
    environment = {**os.environ, **AUTHOR, "GIT_AUTHOR_DATE": when, "GIT_COMMITTER_DATE": when}
    subprocess.run(["git", *arguments], cwd=repository, env=environment, check=True, capture_output=True)


def packed(repository: Path) -> int:
    """Bytes of the repository's objects when all are packed."""
    git(repository, "gc", "--quiet", "--prune=now")
    return sum(path.stat().st_size for path in (repository / ".git" / "objects").rglob("*") if path.is_file())


class Repository:
    """Pages in git, with or without their index."""

    def __init__(self, where: Path, found: dict[str, str], count: int, provider: str | None) -> None:
        self.where, self.provider = where, provider
        corpus.write(where / "docs", found, count)
        git(where, "init", "--quiet")
        (where / ".gitattributes").write_text("docs.anvil.db binary\n", encoding="utf-8")
        self.commit(0)

    def commit(self, day: int) -> int:
        """Commit the pages and, as the hook does it, the index of what is staged; packed bytes."""
        git(self.where, "add", "-A")
        if self.provider:
            named = ["--docs", "docs", "--index", "docs.anvil.db", "--provider", self.provider, "--quiet"]
            run(anvil("build", "--staged", *named), folder=self.where)
            git(self.where, "add", "-A")
        git(self.where, "commit", "--quiet", "-m", f"day {day}", day=day)
        return packed(self.where)

    def edit(self, day: int) -> int:
        """Put a sentence into the middle of one page, and commit; packed bytes."""
        pages = sorted((self.where / "docs").rglob("*.md*"))
        page = pages[(day * 37 + 11) % len(pages)]
        lines = page.read_text(encoding="utf-8").split("\n\n")
        lines.insert(len(lines) // 2, f"On day {day} somebody found a better word for what is said here.")
        page.write_text("\n\n".join(lines), encoding="utf-8")
        return self.commit(day)


def main() -> None:
    """Edit, commit, weigh, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=155)
    parser.add_argument("--edits", type=int, default=10)
    parser.add_argument("--provider", default="local", choices=["local", "none"])
    given = parser.parse_args()
    found = corpus.chosen(given.docs)
    with tempfile.TemporaryDirectory() as folder:
        plain, indexed = Path(folder, "plain"), Path(folder, "indexed")
        plain.mkdir()
        indexed.mkdir()
        print("first build ...", file=sys.stderr)
        text = Repository(plain, found, given.pages, None)
        both = Repository(indexed, found, given.pages, given.provider)
        before = packed(indexed) - packed(plain)
        grown, last = [], before
        for day in range(1, given.edits + 1):
            now = both.edit(day) - text.edit(day)
            grown.append(now - last)
            last = now
        artifact = (indexed / "docs.anvil.db").stat().st_size
    print(heading(given.edits))
    growth = {
        "growth an edit, median": statistics.median(grown),
        "growth an edit, least": min(grown),
        "growth an edit, most": max(grown),
        f"growth of all {given.edits} edits": last - before,
    }
    rows = [
        (f"artifact, {given.pages} pages, provider {given.provider}", f"{artifact / 1024:.0f} KiB", "", ""),
        ("artifact, packed", f"{before / 1024:.0f} KiB", f"{before / artifact * 100:.0f} %", ""),
        *(
            (name, f"{size / 1024:.1f} KiB", f"{size / artifact * 100:.2f} %", BAR if "median" in name else "")
            for name, size in growth.items()
        ),
    ]
    print(table(("what the index adds to the repository", "measured", "of the artifact", "bar"), rows))


if __name__ == "__main__":
    main()
