"""Write the held-out projects as a set of questions for ``benchmarks/retrieval.py``: no ranking was tuned on them.

    python scripts/held_out_eval.py CLONES OUT
    python benchmarks/retrieval.py OUT

CLONES and the projects are those of ``mine_pairs.py``. OUT gets ``corpora/<name>/`` with the pages of each held-out
project, and ``questions.jsonl``: the questions written for their passages, and the subjects of their commits with the
section that each changed. The kind of a question is ``task``, ``problem``, ``other words`` or ``commit``.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.values import SEPARATOR  # noqa: E402
from scripts import mine_pairs  # noqa: E402

MAX_COMMITS = 200
"""Of each project, so that one with a long history does not decide."""


def main() -> None:
    """Export the pages, write the questions."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("clones", type=Path)
    arguments.add_argument("out", type=Path)
    given = arguments.parse_args()
    questions = []
    seen: set[str] = set()
    for project in mine_pairs.projects("held-out"):
        corpus = str(project["name"]).replace("/", "+")
        repository = mine_pairs.repository_of(given.clones, project)
        for page in mine_pairs.pages(repository, project):
            file = given.out / "corpora" / corpus / page
            file.parent.mkdir(parents=True, exist_ok=True)
            text = mine_pairs.git(repository, "show", f"{project['commit']}:{page}")
            file.write_text(text, encoding="utf-8", newline="\n")
        pairs = list(mine_pairs.mine(given.clones, project, seen))
        commits = [pair for pair in pairs if pair.kind == "commit"]
        commits = random.Random(corpus).sample(commits, min(MAX_COMMITS, len(commits)))
        for pair in [pair for pair in pairs if pair.kind in mine_pairs.STYLES] + commits:
            heading = pair.header.split(SEPARATOR)[-1]
            question = {
                "corpus": corpus,
                "query": pair.query,
                "paths": [pair.page],
                "heading": heading,
                "kind": pair.kind,
            }
            questions.append(json.dumps(question, ensure_ascii=False) + "\n")
    (given.out / "questions.jsonl").write_text("".join(questions), encoding="utf-8", newline="\n")
    print(f"{given.out}: {len(questions)} questions")


if __name__ == "__main__":
    main()
