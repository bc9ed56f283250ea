"""How long ``anvil test`` takes: many questions over a folder, and a comparison with a baseline after some edits.

    python benchmarks/doc_tests.py FOLDER [--questions 500] [--copies 1] [--edits 5] [--mode hybrid]

FOLDER is a folder of Markdown. Its pages are copied, ``--copies`` times, into a repository in a temporary folder, where
they are indexed and committed. The questions are made of its headings. Then ``--edits`` pages are changed, and the
suite is asked again with ``--baseline main``. Times are those of whole processes, on as many CPUs as there are.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import anvil
from anvil.doc_tests.suite import MAX_ASK_CHARS, question_entry


def main() -> None:
    """Measure, and print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--questions", type=int, default=500)
    parser.add_argument("--copies", type=int, default=1)
    parser.add_argument("--edits", type=int, default=5)
    parser.add_argument("--mode", default="hybrid")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="anvil-bench-") as folder:
        root = Path(folder)
        for number in range(options.copies):
            shutil.copytree(
                options.folder, root / "docs" / f"set{number}", ignore=shutil.ignore_patterns(".*"), symlinks=True
            )
        with anvil.open(root / "docs") as opened:
            report = opened.index()
            suite = _suite(opened, options.questions)
        (root / "anvil-tests.toml").write_text(suite, encoding="utf-8")
        _git(root, "init", "-q", "-b", "main")
        _git(root, "add", "docs", "anvil-tests.toml")
        _git(root, "commit", "-q", "-m", "all")
        print(f"{report.pages:,} pages, {report.chunks:,} chunks, {suite.count('[[question]]'):,} questions, ", end="")
        print(f"{len(os.sched_getaffinity(0))} CPUs\n\n| command | wall | CPU |\n|---|--:|--:|")
        _measure(root, "test", "--mode", options.mode)
        edited = random.Random(1).sample(sorted((root / "docs").rglob("*.md")), options.edits)
        for page in edited:
            text = page.read_text(encoding="utf-8")
            page.write_text(text[: len(text) // 2] + "\n\nA new paragraph about something else.\n", encoding="utf-8")
        _measure(root, "test", "--mode", options.mode, "--baseline", "main")


def _suite(opened: anvil.Anvil, count: int) -> str:
    """Questions made of headings, each of which expects its page."""
    headings = [
        (section.heading_path.rpartition(" > ")[2], page.file_path)
        for page in opened.list_pages().pages
        for section in opened.get_page(page.file_path).sections
        if section.heading_level and len(section.heading_path) < MAX_ASK_CHARS
    ]
    chosen: dict[str, str] = {}
    for heading, path in random.Random(0).sample(headings, len(headings)):
        if len(chosen) < count and heading.casefold() not in map(str.casefold, chosen):
            chosen[heading] = path
    return "[suite]\nmin_hit = 0.0\n" + "".join(question_entry(heading, path) for heading, path in chosen.items())


def _measure(root: Path, *arguments: str) -> None:
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run([sys.executable, "-m", "anvil", *arguments, "-q"], cwd=root, capture_output=True, text=True)
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode > 1:
        sys.exit(done.stderr)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"| `anvil {' '.join(arguments)}` | {wall:.1f} s | {cpu:.1f} s |")
    print("\n".join(line for line in done.stdout.splitlines() if line.startswith("Compared")), file=sys.stderr)


def _git(root: Path, *arguments: str) -> None:
    names = ["-c", "user.name=A", "-c", "user.email=a@example.com"]
    subprocess.run(["git", *names, *arguments], cwd=root, check=True)


if __name__ == "__main__":
    main()
