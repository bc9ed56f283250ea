"""What the confidence of results costs in a search.

    python benchmarks/confidence.py INDEX [--rounds 5]

INDEX is an index file with vectors. The functions that gather evidence and judge it are timed inside whole searches,
over the titles of its pages as questions. How good confidence is, ``scripts/fit_confidence.py`` prints.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from measuring import heading

import anvil
from anvil.search import confidence, ranking

MAX_QUESTIONS = 100


def main() -> None:
    """Ask, and print the milliseconds of a search and of its confidence."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", type=Path)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    spent: list[float] = []

    def timed(function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*values: Any) -> Any:
            started_at = time.perf_counter()
            try:
                return function(*values)
            finally:
                spent.append(time.perf_counter() - started_at)

        return call

    ranking._evidence = timed(ranking._evidence)
    ranking._cosine_pairs = timed(ranking._cosine_pairs)
    confidence.Fits.confidence = timed(confidence.Fits.confidence)  # type: ignore[method-assign]
    searches, costs = [], []
    with anvil.open(index=given.index) as opened:
        questions = [page.title for page in opened.list_pages().pages][:MAX_QUESTIONS]
        for text in questions * given.rounds:
            spent.clear()
            searches.append(opened.search(text).query_ms)
            costs.append(sum(spent) * 1000)
        chunks = opened.get_status().index.total_chunks
    print(heading())
    print("| chunks | search, ms, median | its confidence, ms, median | 99th percentile |\n|---|---|---|---|")
    highest = sorted(costs)[int(len(costs) * 0.99)]
    print(f"| {chunks} | {statistics.median(searches):.1f} | {statistics.median(costs):.3f} | {highest:.3f} |")


if __name__ == "__main__":
    main()
