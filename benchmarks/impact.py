"""How often ``anvil impact`` names the pages that a change of code makes wrong, and how often it is rightly silent.

    python benchmarks/impact.py CLONES [--work FOLDER] [--only PROJECT ...] [--provider none] [--unsorted] [--fit]
        [--details]

CLONES has a clone with its whole history of each project of ``PROJECTS``, named like it. A question is the code part of
a commit that changed code and pages, asked of the pages as they were before; right are the pages that the commit
changed. Changes of code alone are asked too: there, silence is right. Commits of routine are left out.

Measured are the evidence as a whole, each kind alone and left out, without a title, and three baselines: the pages that
were edited most often before, those that changed together with the same files, and the title as a question to the
hybrid search. A page counts when it is one of the first three. ``--provider``: of the indexes (default ``local``).

Weights are fitted on one half of the projects (``--fit`` prints them) and judged on the other. ``--unsorted`` asks
commits of the projects of ``UNSORTED`` that nobody sorted, for the weights of a change as a whole. WORK keeps the
evidence of each commit: after a change of what is gathered, take a new folder. ``--details`` prints what is said of
changes of code alone, to be read by people: some of these changes should have changed a page.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt
from impact_commits import PROJECTS, UNSORTED, Commit, Project, code_part, sample, write_pages
from measuring import heading, percentile, table

import anvil
from anvil.impact import ranking
from anvil.impact.assessment import assess
from anvil.impact.evidence import Feature
from anvil.impact.ranking import ChangeFeature
from anvil.impact.settings import ImpactOptions
from anvil.search.confidence import logistic as probability

FloatArray = npt.NDArray[np.float64]
EvidenceKind = Literal["names", "texts", "title", "paths", "links", "co-change", "prose"]
"""What is measured alone and left out: the rows of the table of reasons in the guide."""
KINDS: frozenset[EvidenceKind] = frozenset(get_args(EvidenceKind))
KIND_OF: dict[Feature, EvidenceKind] = {
    **dict.fromkeys(("public name gone", "name gone", "name new", "name touched", "name near"), "names"),
    **dict.fromkeys(("title search", "title name", "title path"), "title"),
    "path words": "paths",
    **dict.fromkeys(("joint change", "joint folder", "often changed"), "co-change"),
    "text": "texts",
    "link": "links",
    "prose": "prose",
}
KIND_OF_CHANGE: dict[ChangeFeature, EvidenceKind] = {
    **dict.fromkeys(ranking.CHANGE_WEIGHTS, "title"),  # all but the following
    **dict.fromkeys(("tests", "surface files"), "paths"),
    **dict.fromkeys(("new words in code", "public name gone"), "names"),
    "joint change": "co-change",
    "prose": "prose",
}


@dataclass(frozen=True)
class Record:
    """What was gathered for a commit. ``pages``: all pages before it. ``features``: page -> strengths. ``change``:
    features of the change as a whole. ``search``: pages that the hybrid search finds for its title. ``lines``: of the
    diff; ``seconds``: of processor time."""

    commit: str
    project: str
    title: str
    gold: tuple[str, ...]
    is_code_alone: bool
    pages: tuple[str, ...]
    features: dict[str, dict[Feature, float]]
    change: dict[ChangeFeature, float]
    search: tuple[str, ...]
    lines: int
    seconds: float


def main() -> None:
    """Gather, measure, print tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("clones", type=Path)
    parser.add_argument("--work", type=Path, help="where evidence is kept; by default a temporary folder")
    parser.add_argument("--only", nargs="*", metavar="PROJECT", help="only these projects")
    parser.add_argument("--provider", default="local", help="embedding provider of the indexes")
    parser.add_argument("--confidence", type=float, default=ImpactOptions().min_confidence, help="of a comment")
    parser.add_argument("--unsorted", action="store_true", help="ask commits that nobody sorted")
    parser.add_argument("--fit", action="store_true", help="print weights that are fitted on the first half")
    parser.add_argument("--details", action="store_true", help="print what is said of changes of code alone")
    given = parser.parse_args()
    projects = UNSORTED if given.unsorted else PROJECTS
    records: dict[str, list[Record]] = {}
    with contextlib.ExitStack() as opened:
        work = given.work or Path(opened.enter_context(tempfile.TemporaryDirectory()))
        for project in projects:
            if not given.only or project.name in given.only:
                records[project.name] = gather(given.clones / project.name, project, work, given.provider)
                print(project.name, len(records[project.name]), file=sys.stderr)
    halves = {
        half: [record for project in projects if project.half == half for record in records.get(project.name, ())]
        for half in ("tune", "held out")
    }
    if given.fit:
        fit(halves["tune"])
    print(heading())
    print(table(("evidence", *(f"{half}: in three" for half in halves)), by_evidence(halves)))
    print(table(("project", "half", "n", *BASELINES, "impact", "first"), list(by_project(projects, records))))
    print(table(("half", "confidence", "of code alone, comments", "right page found", "comments right"), quiet(halves)))
    for half, chosen in halves.items():
        seconds = [record.seconds for record in chosen]
        if seconds:
            middle, high = statistics.median(seconds), percentile(seconds, 0.95)
            print(f"{half}: seconds of processor time, median {middle:.2f}, p95 {high:.2f}")
    if given.details:
        for record in (each for chosen in halves.values() for each in chosen if each.is_code_alone):
            for page, confidence in likely(record, given.confidence)[:1]:
                print(f"{confidence:.2f} {record.project} {record.commit[:9]} {record.title[:90]} -> {page}")


def gather(clone: Path, project: Project, work: Path, provider: str) -> list[Record]:
    """The evidence of each commit of the sample, from the index of the pages before it."""
    folder = work / f"{project.name}-{provider}{'' if project.is_sorted else '-unsorted'}"
    folder.mkdir(parents=True, exist_ok=True)
    kept = folder / "records.jsonl"
    known: dict[str, Record] = {}
    if kept.exists():
        for line in kept.read_text(encoding="utf-8").splitlines():
            record = Record(**json.loads(line))
            known[record.commit] = record
    with kept.open("a", encoding="utf-8") as file:
        for commit in sample(clone, project):
            if commit.id not in known:
                known[commit.id] = gather_one(clone, project, commit, folder, provider)
                file.write(json.dumps(asdict(known[commit.id])) + "\n")
                file.flush()
    return [record for record in known.values() if record.pages and (record.gold or record.is_code_alone)]


def gather_one(clone: Path, project: Project, commit: Commit, folder: Path, provider: str) -> Record:
    """The evidence of one commit. The index is that of the commit before, updated."""
    docs = write_pages(clone, project, commit.parent, folder / "docs")
    diff = code_part(clone, project, commit)
    with anvil.open(docs, folder / "index.db", provider) as opened:
        opened.index()
        started = time.process_time()
        found = assess(diff, opened, title=commit.title, repository=clone, before=commit.parent, docs_path=project.docs)
        seconds = time.process_time() - started
        of_page = defaultdict(list)
        for each in found.evidence:
            of_page[each.path].append(each)
        pages = tuple(sorted(path.relative_to(docs).as_posix() for path in docs.rglob("*") if path.is_file()))
        features = {page: ranking.features(evidence) for page, evidence in of_page.items()}
        change = dict(found.change)
        hits = opened.search(commit.title, top_k=20).results if any(map(str.isalnum, commit.title)) else ()
    return Record(
        commit.id,
        project.name,
        commit.title,
        tuple(page for page in commit.gold if page in pages),
        not commit.gold,
        pages,
        features,
        change,
        tuple(dict.fromkeys(hit.metadata.file_path for hit in hits)),
        diff.count("\n"),
        seconds,
    )


def ordered(record: Record, kinds: frozenset[EvidenceKind] = KINDS) -> list[tuple[str, float]]:
    """Pages with their log-odds by evidence of these kinds, best first."""
    odds = {
        page: ranking.log_odds({name: each for name, each in own.items() if KIND_OF[name] in kinds}, len(record.pages))
        for page, own in record.features.items()
    }
    return sorted(odds.items(), key=lambda item: (-item[1], item[0]))


def likely(record: Record, confidence: float, kinds: frozenset[EvidenceKind] = KINDS) -> list[tuple[str, float]]:
    """Pages that a comment names at a confidence, best first."""
    pages = ordered(record, kinds)
    if not pages:
        return []
    needed = ranking.change_probability(
        {name: value for name, value in record.change.items() if KIND_OF_CHANGE[name] in kinds}
    )
    sure = [(page, needed * probability(odds)) for page, odds in pages[:10]]
    return [(page, value) for page, value in sure if value >= confidence]


def by_feature(name: Feature) -> Callable[[Record], list[str]]:
    """A baseline: pages by one feature."""
    return lambda record: sorted(
        (page for page, own in record.features.items() if own.get(name)),
        key=lambda page: (-record.features[page].get(name, 0.0), page),
    )


BASELINES: dict[str, Callable[[Record], list[str]]] = {
    "most edited": by_feature("often changed"),
    "co-change": by_feature("joint change"),
    "title searched": lambda record: list(record.search),
}
"""Name -> pages of a commit, best first."""


def share(records: Iterable[Record], ask: Callable[[Record], Sequence[str]], most: int = 3) -> float:
    """For how many of the commits that changed pages one of these is among the first."""
    asked = [record for record in records if record.gold]
    return statistics.mean(bool(set(ask(record)[:most]) & set(record.gold)) for record in asked) if asked else 0.0


def by_impact(kinds: frozenset[EvidenceKind]) -> Callable[[Record], list[str]]:
    """Pages by evidence of these kinds, best first."""
    return lambda record: [page for page, _ in ordered(record, kinds)]


def by_evidence(halves: dict[str, list[Record]]) -> list[list[str]]:
    """Rows: all evidence, each kind left out, each alone, the baselines."""
    ways = {"all": by_impact(KINDS)}
    ways |= {f"without {kind}": by_impact(KINDS - {kind}) for kind in sorted(KINDS)}
    ways |= {f"{kind} alone": by_impact(frozenset({kind})) for kind in sorted(KINDS)}
    ways |= {f"baseline: {name}": ask for name, ask in BASELINES.items()}
    return [[name, *(f"{share(chosen, ask):.2f}" for chosen in halves.values())] for name, ask in ways.items()]


def by_project(projects: Sequence[Project], records: dict[str, list[Record]]) -> Iterator[list[str]]:
    """Rows: the baselines and all evidence; of the latter also how often the first page is right."""
    for project in projects:
        if chosen := records.get(project.name):
            shares = [share(chosen, ask) for ask in (*BASELINES.values(), by_impact(KINDS))]
            first = share(chosen, by_impact(KINDS), most=1)
            count = sum(bool(record.gold) for record in chosen)
            yield [project.name, project.half, str(count), *(f"{each:.2f}" for each in (*shares, first))]


def quiet(halves: dict[str, list[Record]]) -> list[list[str]]:
    """Rows: at several confidences, how many changes of code alone get a comment, for how many of the others one of the
    first three pages that it names is right, and how many of the comments on these name a right page."""
    rows = []
    for half, chosen in halves.items():
        alone = [record for record in chosen if record.is_code_alone]
        both = [record for record in chosen if record.gold]
        for kinds, label in ((KINDS, ""), (KINDS - {"title"}, ", no title")):
            for confidence in (0.05, 0.08, 0.1, 0.12, 0.15, 0.2, 0.3) if alone and both else ():
                wrong = statistics.mean(bool(likely(record, confidence, kinds)) for record in alone)
                said = [(record, likely(record, confidence, kinds)[:3]) for record in both]
                right = [any(page in record.gold for page, _ in pages) for record, pages in said if pages]
                cells = (wrong, sum(right) / len(both), statistics.mean(right) if right else 0.0)
                rows.append([half + label, f"{confidence}", *(f"{each:.2f}" for each in cells)])
    return rows


BASE_RATE = 1 / 4
"""Share of the changes of code that concern a page, for which probabilities are: that of projects that keep their pages
with care, such as goreleaser and fastify. Over all of these projects it is .13."""


BY_HAND: frozenset[ChangeFeature] = frozenset({"breaking", "public name gone"})
"""Features of a change that are too rare to be fitted."""


def fit(records: Sequence[Record]) -> None:
    """Print the weights: of pages, from the commits that changed pages; of changes, from all, each with and without its
    title. A weight of a page is at least 0: evidence never speaks against a page."""
    asked = [record for record in records if record.gold]
    rows = [(record.features.get(page, {}), record, page in record.gold) for record in asked for page in record.pages]
    names = list(KIND_OF)
    while True:
        table_of_pages = [[math.log(len(of.pages)), *(own.get(name, 0.0) for name in names)] for own, of, _ in rows]
        intercept, (of_pages, *weights) = logistic(table_of_pages, [right for *_, right in rows])
        if min(weights) >= 0:
            break
        names.pop(int(np.argmin(weights)))
    print(f"INTERCEPT, OF_PAGES = {intercept:.2f}, {of_pages:.2f}")
    print("WEIGHTS =", {name: round(weight, 2) for name, weight in zip(names, weights, strict=True)})
    of_changes = sorted(KIND_OF_CHANGE.keys() - BY_HAND)
    count = Counter(bool(record.gold) for record in records)
    table_of_changes, labels = [], []
    for record in records:
        for left_out in ("title", ""):
            own = {name: value for name, value in record.change.items() if KIND_OF_CHANGE[name] != left_out}
            table_of_changes.append([own.get(name, 0.0) for name in of_changes])
            labels.append(bool(record.gold))
    shares = [BASE_RATE / count[True] if label else (1 - BASE_RATE) / count[False] for label in labels]
    intercept, weights = logistic(table_of_changes, labels, shares)
    print(f"CHANGE_INTERCEPT = {intercept:.2f}")
    print("CHANGE_WEIGHTS =", {name: round(weight, 2) for name, weight in zip(of_changes, weights, strict=True)})


def logistic(
    rows: Sequence[Sequence[float]], labels: Sequence[bool], shares: Sequence[float] | None = None, ridge: float = 3.0
) -> tuple[float, list[float]]:
    """Intercept and weights of a logistic regression, by Newton's method with halved steps. ``shares``: what each row
    counts; ``ridge``: penalty of weights in units of a feature's standard deviation."""
    table_of_rows, wanted = np.array(rows, np.float64), np.array(labels, np.float64)
    counts = np.ones(len(wanted)) if shares is None else np.array(shares) * len(wanted) / sum(shares)
    mean, deviation = table_of_rows.mean(0), table_of_rows.std(0) + 1e-9
    scaled = np.c_[np.ones(len(wanted)), (table_of_rows - mean) / deviation]
    penalty = np.full(scaled.shape[1], ridge)
    penalty[0] = 1e-6

    def loss(beta: FloatArray) -> float:
        odds = scaled @ beta
        return float((counts * (np.logaddexp(0, odds) - wanted * odds)).sum() + (penalty * beta**2).sum() / 2)

    beta = np.zeros(scaled.shape[1])
    for _ in range(100):
        guess = 1 / (1 + np.exp(-np.clip(scaled @ beta, -30, 30)))
        curvature = np.maximum(guess * (1 - guess), 1e-6) * counts
        slope = scaled.T @ (counts * (wanted - guess)) - penalty * beta
        step = np.linalg.solve((scaled.T * curvature) @ scaled + np.diag(penalty), slope)
        while loss(beta + step) > loss(beta) and np.abs(step).max() > 1e-9:
            step /= 2
        beta += step
        if np.abs(step).max() < 1e-6:
            break
    weights = beta[1:] / deviation
    return float(beta[0] - weights @ mean), [float(weight) for weight in weights]


if __name__ == "__main__":
    main()
