"""How often the right page is found in languages that the model knows and in others.

    python benchmarks/languages.py CLONE [--work FOLDER] [--details]

CLONE is a checkout of https://github.com/fastapi/fastapi: each ``docs/<language>/docs`` is indexed and asked the thirty
questions of ``languages.jsonl`` in its own language. Their page was chosen from the English question; the
translations of the questions were made by hand, without the pages at hand. Five more questions have no page: the last
columns say for how many of the five the reply says that nothing answers, and for how many of the thirty it says so
wrongly.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

from measuring import heading, table

import anvil
from anvil.results import Mode
from anvil.search.confidence import UNLIKELY

QUESTIONS = Path(__file__).with_suffix(".jsonl")
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")


def main() -> None:
    """Index, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clone", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--details", action="store_true", help="print each question and the rank of its page")
    given = parser.parse_args()
    questions = [json.loads(line) for line in QUESTIONS.read_text(encoding="utf-8").splitlines()]
    languages = sorted(set(questions[0]) - {"paths"})
    rows = []
    with contextlib.ExitStack() as opened_folder:
        work = given.work or Path(opened_folder.enter_context(tempfile.TemporaryDirectory()))
        work.mkdir(parents=True, exist_ok=True)
        for language in languages:
            docs = given.clone / "docs" / language / "docs"
            if not docs.is_dir():
                continue
            with anvil.open(docs, work / f"{language}.db") as opened:
                opened.index()
                for mode in MODES:
                    rows.append([language, mode, *measured(opened, questions, language, mode, given.details)])
    print(heading())
    print(table(("language", "mode", "hit@1", "hit@5", "MRR@10", "in five results", "warns", "warns wrongly"), rows))


def measured(
    opened: anvil.Anvil, questions: list[dict[str, Any]], language: str, mode: Mode, details: bool
) -> list[str]:
    """A row of the table."""
    ranks, replies, warned, wrongly = [], [], 0, 0
    for question in questions:
        found = opened.search(question[language], top_k=20, mode=mode)
        reply = opened.search(question[language], mode=mode)
        unlikely = (reply.confidence or 0.0) < UNLIKELY
        if not question["paths"]:
            warned += unlikely
            continue
        wrongly += unlikely
        pages = list(dict.fromkeys(hit.metadata.file_path for hit in found.results))
        rank = next((number for number, page in enumerate(pages, 1) if page in question["paths"]), 0)
        ranks.append(rank)
        replies.append(any(hit.metadata.file_path in question["paths"] for hit in reply.results))
        if details and mode == "hybrid":
            print(rank or "-", f"{reply.confidence}", question[language], *pages[:3], sep=" | ")
    shares = [statistics.mean(0 < rank <= most for rank in ranks) for most in (1, 5)]
    mrr = statistics.mean(1 / rank if 0 < rank <= 10 else 0.0 for rank in ranks)
    told = [f"{share:.2f}" for share in (*shares, mrr, statistics.mean(replies))]
    return [*told, f"{warned} of {len(questions) - len(ranks)}", f"{wrongly} of {len(ranks)}"]


if __name__ == "__main__":
    main()
