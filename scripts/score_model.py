"""How well a model finds passages of projects that it was not trained on: MRR@10 over pages, by vectors alone.

    python scripts/score_model.py PAIRS.jsonl MODEL [MODEL...] [--questions 300]

PAIRS.jsonl comes from ``mine_pairs.py --split held-out`` (or ``other``). MODEL is a folder as ``convert_model.py``
writes it. The questions of a project are a sample of its pairs of the kinds heading, link and commit; the candidates
are their passages and a sample of the others. The last lines compare each model with the first one: the mean
difference, and its 95 % interval by resampling the questions 2,000 times.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections import defaultdict
from pathlib import Path

import numpy
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.embedding.local import LocalProvider  # noqa: E402
from anvil.settings.schema import EmbeddingSettings  # noqa: E402

MAX_CANDIDATES = 1500
KINDS = ("heading", "link", "commit")
RESAMPLES = 2000

Pair = dict[str, str]


def main() -> None:
    """Score each model, print a table."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("pairs", type=Path)
    arguments.add_argument("models", nargs="+")
    arguments.add_argument("--questions", type=int, default=300, help="of each project")
    given = arguments.parse_args()
    by_project: dict[str, list[Pair]] = defaultdict(list)
    with given.pairs.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            by_project[pair["project"]].append(pair)
    scores: dict[str, list[float]] = {}
    kinds: list[str] = []
    for model in given.models:
        provider = LocalProvider(EmbeddingSettings(model=model))
        rows = [row for pairs in by_project.values() for row in score(provider, pairs, given.questions)]
        kinds = [kind for kind, _ in rows]
        scores[model] = [value for _, value in rows]
        means = [f"{kind} {numpy.mean([v for k, v in rows if k == kind]):.3f}" for kind in KINDS if kind in kinds]
        print(
            f"{model}: {len(rows)} questions, MRR@10 {numpy.mean(scores[model]):.3f} ({', '.join(means)})", flush=True
        )
    chance = numpy.random.default_rng(0)
    first = numpy.array(scores[given.models[0]])
    for model in given.models[1:]:
        gain = numpy.array(scores[model]) - first
        resampled = gain[chance.integers(0, len(gain), (RESAMPLES, len(gain)))].mean(1)
        low, high = numpy.percentile(resampled, [2.5, 97.5])
        print(f"{model}: {gain.mean():+.3f} [{low:+.3f}, {high:+.3f}]")


def score(provider: LocalProvider, pairs: list[Pair], questions: int) -> list[tuple[str, float]]:
    """(kind, reciprocal rank of the page) of each question of one project."""
    chance = random.Random(0)
    asked = [pair for pair in pairs if pair["kind"] in KINDS]
    asked = chance.sample(asked, min(questions, len(asked)))
    texts = {passage(pair): pair["page"] for pair in asked}
    others = {passage(pair): pair["page"] for pair in pairs if pair["kind"] in KINDS}
    for text in chance.sample(sorted(others), min(len(others), MAX_CANDIDATES)):
        if len(texts) < MAX_CANDIDATES:
            texts.setdefault(text, others[text])
    pages = numpy.array(list(texts.values()))
    candidates = vectors(provider, list(texts))
    queries = vectors(provider, [pair["query"] for pair in asked])
    found = []
    for pair, likeness in zip(asked, queries @ candidates.T, strict=True):
        order = list(dict.fromkeys(pages[numpy.argsort(-likeness, kind="stable")[:200]]))[:10]
        found.append((pair["kind"], 1 / (order.index(pair["page"]) + 1) if pair["page"] in order else 0.0))
    return found


def passage(pair: Pair) -> str:
    """The text that is embedded."""
    return f"{pair['header']}\n{pair['body'][:700]}"


def vectors(provider: LocalProvider, texts: list[str]) -> NDArray[numpy.float32]:
    """One row for each text."""
    return numpy.array(provider.embed(texts).vectors, dtype=numpy.float32)


if __name__ == "__main__":
    main()
