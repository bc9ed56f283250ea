"""Fit the confidence of search results, and print how well it holds on documentation that it was not fitted to.

    python scripts/fit_confidence.py EVAL [--work FOLDER] [--dry-run]

EVAL holds questions, ``*.jsonl`` with ``corpus`` and ``query`` in each line, and the documents of ``corpora/<name>/``.
Every question is asked of every corpus. Of its own corpus it is one that has an answer, of the others one that has
none; corpora of one family answer each other's questions, so these pairs are left out. As people also search for one
or two words, some short headings of each corpus are asked likewise, but not of a corpus that has all words in one
section. The fit is a logistic regression over :func:`anvil.search.confidence.features` of the first result. It is
written to ``anvil/search/confidence.json``, where fits of other models stay; the same indexes give the same
bytes. The model is the one of ``embedding.model``.

The table leaves out one corpus at a time, its documents and its questions, and asks the fit of the rest about it. AUC:
how often a question of the corpus has a higher confidence than one that is foreign to it. ECE: by how much confidence
and the share of answered questions differ in ten bins of equal width; "even": answered and foreign ones count the same
in all, "pairs": each pair counts one. Confidence of a question: the highest of the first five results. The last row is
of the headings.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

import anvil
from anvil.search import confidence
from anvil.search.confidence import Fit, MatchEvidence
from anvil.text.query import parse_query
from anvil.values import SEPARATOR

FAMILIES = ({"vite", "vitepress"}, {"hugo", "vitepress"}, {"eslint", "prettier", "ruff"})
"""Corpora of which one may well answer questions of another: a tool and what is made of it, two generators of sites,
linters and formatters."""
ANSWERED = 0.25
"""The share of questions with an answer that confidence assumes, between that of the pairs, one in eight, and one half:
its error is about the same for both."""
HEADINGS, MAX_HEADING_WORDS = 15, 4
"""Headings of each corpus with one word, two words and so on."""
HEADINGS_SHARE = 0.25
"""The share of the headings in the fit."""
HELD = 0.35
"""A section with all words of a heading, and at least this share of a perfect match, may be what was meant."""
RESULTS = 5
L2 = 1.0
"""Strength of the penalty on squared coefficients of standardised features."""
DIGITS = 3
BINS = 10
OUTPUT = Path(confidence.__file__).with_name(confidence.FILE)
Floats = NDArray[np.float64]


class Pair(NamedTuple):
    """A question, asked of a corpus: the evidence of the first results. ``heading``: it is one of a page."""

    asked_of: str
    own: str
    heading: bool
    results: tuple[MatchEvidence, ...]

    @property
    def answered(self) -> bool:
        """Whether the corpus is the one that the question was asked about."""
        return self.asked_of == self.own


def main() -> None:
    """Index, ask, fit, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, default=Path("retrieval-work"), help="where the indexes are kept")
    parser.add_argument("--dry-run", action="store_true", help="print the tables, write nothing")
    given = parser.parse_args()
    files = sorted(given.eval.glob("*.jsonl"))
    questions = [json.loads(line) for file in files for line in file.read_text(encoding="utf-8").splitlines()]
    asked = [(question["corpus"], question["query"], False) for question in questions]
    corpora = sorted({corpus for corpus, _, _ in asked})
    for corpus in corpora:
        with anvil.open(given.eval / "corpora" / corpus, given.work / f"{corpus}.db", "local") as opened:
            opened.index()
            asked += [(corpus, text, True) for text in short_headings(opened)]
    pairs: dict[str, list[Pair]] = {"hybrid": [], "keyword": []}
    model = {"name": "", "digest": ""}
    for corpus in corpora:
        with anvil.open(given.eval / "corpora" / corpus, given.work / f"{corpus}.db", "local") as opened:
            model = {"name": opened.provider.model, "digest": opened.provider.digest}
            for own, text, heading in asked:
                if own != corpus and are_family(own, corpus):
                    continue
                hybrid = opened.explain(text, RESULTS).evidence
                if own != corpus and heading and any(e.words > HELD and not e.unknown for e in hybrid):
                    continue
                keyword = opened.explain(text, RESULTS, mode="keyword").evidence
                pairs["hybrid"].append(Pair(corpus, own, heading, hybrid))
                pairs["keyword"].append(Pair(corpus, own, heading, keyword))
    print("| corpus | questions | AUC | ECE, even | ECE, pairs | AUC, words only | ECE, even | ECE, pairs |")
    print("|---|---|---|---|---|---|---|---|")
    held_out = {mode: leaving_one_out(of_mode, corpora) for mode, of_mode in pairs.items()}
    for corpus in [*corpora, "all", "headings"]:
        chosen = [judged.of(corpus) for judged in held_out.values()]
        count = chosen[0].answered.sum()
        cells = [cell for judged in chosen for cell in measured(judged)]
        print(f"| {corpus} | {count} | {' | '.join(cells)} |")
    print("\n| line | answered below it | foreign below it | words only: answered | foreign |\n|---|---|---|---|---|")
    for line in (0.05, 0.1, 0.15, 0.2, 0.3, 0.5, 0.7):
        cells = [cell for judged in held_out.values() for cell in below(judged.of("all"), line)]
        print(f"| {line} | {' | '.join(cells)} |")
    origin = {
        "script": "scripts/fit_confidence.py",
        "questions": {file.name: len(file.read_text(encoding="utf-8").splitlines()) for file in files},
        "corpora": corpora,
        "families": [sorted(family) for family in FAMILIES],
        "headings_share": HEADINGS_SHARE,
        "answered": ANSWERED,
    }
    words, vectors = (asdict(fitted(pairs[mode], mode == "hybrid")) for mode in ("keyword", "hybrid"))
    del words["cosine"], words["page"]
    others = [m for m in json.loads(OUTPUT.read_text(encoding="utf-8"))["models"] if m["digest"] != model["digest"]]
    table = {"origin": origin, "words": {"fit": words}, "models": [*others, {**model, "fit": vectors}]}
    if not given.dry_run:
        OUTPUT.write_text(json.dumps(table, indent=2) + "\n", encoding="utf-8", newline="\n")


def short_headings(opened: anvil.Anvil) -> list[str]:
    """Some headings of one to four words, the same ones each time."""
    by_length: dict[int, set[str]] = defaultdict(set)
    for page in opened.list_pages().pages:
        for breadcrumb in opened.headings(page.file_path):
            text = re.sub(r"[`*_#]|\[.*?\]|\(.*?\)|\{.*?\}", "", breadcrumb.rpartition(SEPARATOR)[2]).strip()
            by_length[len(parse_query(text, lambda word: [word.lower()]).terms)].add(text)
    chosen: list[str] = []
    for length in range(1, MAX_HEADING_WORDS + 1):
        shuffled = sorted(by_length[length], key=lambda text: hashlib.sha256(text.encode()).digest())
        chosen += [text for text in shuffled if 3 < len(text) < 60][:HEADINGS]
    return chosen


def are_family(one: str, other: str) -> bool:
    """Whether two corpora may answer each other's questions."""
    return any({one, other} <= family for family in FAMILIES)


def fitted(pairs: Sequence[Pair], vectors: bool) -> Fit:
    """The logistic regression over the first result of each pair, with a penalty, by Newton's method."""
    width = 5 if vectors else 3
    found = [pair for pair in pairs if pair.results]
    values = np.array([confidence.features(pair.results[0])[:width] for pair in found], np.float64)
    answered = np.array([pair.answered for pair in found], bool)
    heading = np.array([pair.heading for pair in found], bool)
    weights = np.zeros(len(found))
    for kind, share in ((heading, HEADINGS_SHARE), (~heading, 1 - HEADINGS_SHARE)):
        weights[kind] = share * even(answered[kind], ANSWERED)
    weights *= (~heading).sum() / 4  # the penalty is meant for about a quarter of the pairs
    mean = np.average(values, axis=0, weights=weights)
    spread = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weights))
    design = np.column_stack((np.ones(len(found)), (values - mean) / spread))
    penalty = L2 * np.diag([0.0] + [1.0] * width)
    solution = np.zeros(width + 1)
    for _ in range(50):
        likely = 1 / (1 + np.exp(-design @ solution))
        slope = design.T @ (weights * (likely - answered)) + penalty @ solution
        curve = (design * (weights * likely * (1 - likely))[:, None]).T @ design + penalty
        solution -= np.linalg.solve(curve, slope)
    coefficients = solution[1:] / spread
    intercept = float(solution[0] - coefficients @ mean)
    return Fit(round(intercept, DIGITS), *(round(float(value), DIGITS) for value in coefficients))


class Judged(NamedTuple):
    """Pairs with the confidence that a fit without their corpus gives."""

    corpora: NDArray[np.str_]
    heading: NDArray[np.bool_]
    answered: NDArray[np.bool_]
    values: Floats

    def of(self, corpus: str) -> Judged:
        """The questions asked of one corpus or of ``all``, or the ``headings``."""
        asked = ((self.corpora == corpus) | (corpus == "all")) & ~self.heading
        chosen = self.heading if corpus == "headings" else asked
        return Judged(self.corpora[chosen], self.heading[chosen], self.answered[chosen], self.values[chosen])


def leaving_one_out(pairs: Sequence[Pair], corpora: Iterable[str]) -> Judged:
    """The confidence of each pair by a fit that knows neither the documents nor the questions of its corpus."""
    judged: list[tuple[str, bool, bool, float]] = []
    for corpus in corpora:
        fit = fitted(
            [p for p in pairs if corpus not in (p.asked_of, p.own)], vectors=pairs[0].results[0].cosine is not None
        )
        for pair in pairs:
            if pair.asked_of == corpus:
                value = max(
                    (confidence.logistic(confidence.log_odds(fit, evidence)) for evidence in pair.results), default=0.0
                )
                judged.append((corpus, pair.heading, pair.answered, value))
    names, headings, answered, values = zip(*judged, strict=True)
    return Judged(np.array(names), np.array(headings), np.array(answered), np.array(values))


def measured(judged: Judged) -> list[str]:
    """AUC, and the calibration error both ways."""
    answered, values = judged.answered, judged.values
    errors = (calibration_error(answered, values, weights) for weights in (even(answered, 0.5), np.ones(len(values))))
    return [f"{area(answered, values):.3f}", *(f"{error:.3f}" for error in errors)]


def below(judged: Judged, line: float) -> list[str]:
    """The share of answered and of foreign questions under a line."""
    return [f"{(judged.values[judged.answered == answered] < line).mean():.1%}" for answered in (True, False)]


def even(answered: NDArray[np.bool_], share: float) -> Floats:
    """Weights with which the answered ones are this ``share`` of all; they sum to 1."""
    weights: Floats = np.where(answered, share / answered.sum(), (1 - share) / (~answered).sum())
    return weights


def area(answered: NDArray[np.bool_], values: Floats) -> float:
    """The area under the ROC curve: how often an answered one is above a foreign one; ties count half."""
    own, foreign = values[answered][:, None], values[~answered][None, :]
    return float((own > foreign).mean() + (own == foreign).mean() / 2)


def calibration_error(answered: NDArray[np.bool_], values: Floats, weights: Floats) -> float:
    """The expected calibration error (Naeini, Cooper and Hauskrecht 2015) in bins of equal width."""
    bins = np.minimum((values * BINS).astype(int), BINS - 1)
    gaps = [abs((weights * (values - answered))[bins == number].sum()) for number in range(BINS)]
    return float(sum(gaps) / weights.sum())


if __name__ == "__main__":
    main()
