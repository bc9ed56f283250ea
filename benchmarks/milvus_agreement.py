"""Whether Milvus gives the results of the file: real questions asked of the same index in both places.

    python benchmarks/milvus_agreement.py EVAL [--together] [--chunks 100000] [--limit 1800] [--details]

EVAL is the folder that ``retrieval.py`` wants: ``dev.jsonl`` and ``corpora/``. Each corpus is indexed with the bundled
model and exported into a Milvus Lite file; with ``--together`` all corpora are one index. Printed are, by mode, the
share of questions whose first five results are the same in the same order, the share of results that both have, the
mean reciprocal rank of the first right page, and the time of a question: median and 95th percentile, in turns, in one
process, the embedding of the question included.

``--chunks``: the one index is enlarged to so many chunks with copies of its pages, as in ``latency.py``: the sentences
of a page in another order, its vectors with noise of half their length. A copy of a right page is right, too. An
export that takes longer than ``--limit`` seconds ends the benchmark, and it says how many rows were written.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path

import latency
from measuring import ROOT, heading, percentile, table

sys.path.insert(0, str(ROOT))

import anvil
from anvil.milvus import export
from anvil.milvus.milvus_index import MilvusCollection
from anvil.results import Mode, SearchResult
from anvil.settings.schema import Config

MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
Place = tuple[str, str]


def places(result: SearchResult) -> list[Place]:
    """Path and breadcrumb of each result."""
    return [(hit.metadata.file_path, hit.metadata.heading_path) for hit in result.results]


def reciprocal(found: list[Place], wanted: list[str]) -> float:
    """1 through the rank of the first right page among the first ten, else 0."""
    pages = list(dict.fromkeys(original(path) for path, _ in found))[:10]
    return next((1 / rank for rank, path in enumerate(pages, 1) if path in wanted), 0.0)


def original(path: str) -> str:
    """The path of the page that a page is a copy of."""
    return path.partition("/")[2] if path.startswith("copy-") else path


def exported(index: Path, remote: MilvusCollection, limit_s: float) -> None:
    """Export an index, and say on stderr how long it took."""
    began = time.monotonic()

    def progress(stage: str, done: int, total: int) -> None:
        if time.monotonic() - began > limit_s:
            raise SystemExit(f"Milvus has {done:,} of {total:,} rows ({stage}) after {limit_s:.0f} s.")

    report = export.export(index, remote.client, progress, grace=0)
    print(f"  exported in {report.seconds:.0f} s", file=sys.stderr)


def main() -> None:
    """Index, export, ask both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--together", action="store_true", help="all corpora in one index")
    parser.add_argument("--chunks", type=int, help="all corpora in one index, enlarged to this number")
    parser.add_argument("--limit", type=float, default=1800, help="seconds that an export may take")
    parser.add_argument("--details", action="store_true", help="print the questions that differ")
    given = parser.parse_args()
    questions = [json.loads(line) for line in (given.eval / "dev.jsonl").read_text(encoding="utf-8").splitlines()]
    corpora = sorted({question["corpus"] for question in questions})
    found: dict[Mode, list[tuple[bool, float, float, float]]] = {mode: [] for mode in MODES}
    seconds: dict[Mode, tuple[list[float], list[float]]] = {mode: ([], []) for mode in MODES}
    with tempfile.TemporaryDirectory() as temporary:
        for corpus in [""] if given.together or given.chunks else corpora:
            print(f"{corpus or 'all'} ...", file=sys.stderr)
            index, source = Path(temporary, f"{corpus}.db"), f"milvus+lite:{temporary}/lite-{corpus}.db/docs"
            with anvil.open(given.eval / "corpora" / corpus, index) as built:
                built.index()
            if given.chunks:
                real, index = index, Path(temporary, "enlarged.db")
                latency.synthesised(index, real, latency.real_pages(real), given.chunks)
            remote = MilvusCollection(source, Path(temporary))
            exported(index, remote, given.limit)
            sizes = (
                index.stat().st_size,
                sum(file.stat().st_size for file in files(Path(temporary, f"lite-{corpus}.db"))),
            )
            print(f"  file {sizes[0] / 1e6:.0f} MB, Milvus {sizes[1] / 1e6:.0f} MB", file=sys.stderr)
            config = Config(docs=str(Path(temporary, "none")))
            with anvil.open(index=index, config=config) as file, anvil.open(index=source, config=config) as there:
                for each in (file, there):
                    began = time.perf_counter()
                    each.search("the first question", 5)
                    print(f"  first answer after {time.perf_counter() - began:.1f} s", file=sys.stderr)
                for question in questions:
                    if corpus not in ("", question["corpus"]):
                        continue
                    wanted = [f"{question['corpus']}/{path}" if not corpus else path for path in question["paths"]]
                    for mode in MODES:
                        answers = []
                        for each, taken in zip((file, there), seconds[mode], strict=True):
                            began = time.perf_counter()
                            answers.append(places(each.search(question["query"], 20, mode=mode)))
                            taken.append(time.perf_counter() - began)
                        one, other = answers
                        shared = len(set(one[:5]) & set(other[:5])) / max(len(one[:5]), 1)
                        ranks = reciprocal(one, wanted), reciprocal(other, wanted)
                        found[mode].append((one[:5] == other[:5], shared, *ranks))
                        if given.details and one[:5] != other[:5]:
                            print(mode, question["query"], one[:5], other[:5], sep="\n  ")
            remote.close()
    rows: list[tuple[str, ...]] = []
    for mode, told in found.items():
        same, shared, file_rank, there_rank = (statistics.mean(column) for column in zip(*told, strict=True))
        times = [
            f"{statistics.median(each) * 1000:.0f} ({percentile(each, 0.95) * 1000:.0f})" for each in seconds[mode]
        ]
        shares = f"{same:.1%}", f"{shared:.1%}", f"{file_rank:.3f}", f"{there_rank:.3f}"
        rows.append((mode, str(len(told)), *shares, *times))
    print(heading())
    columns = ("mode", "questions", "same five", "results shared", "MRR, file", "MRR, Milvus")
    print(table((*columns, "ms, file", "ms, Milvus"), rows))


def files(path: Path) -> list[Path]:
    """The file, or all files of the folder, at a path."""
    return [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]


if __name__ == "__main__":
    main()
