"""Whether Milvus gives the results of the file: real questions asked of the same index in both places.

    python benchmarks/milvus_agreement.py EVAL [--together] [--details]

EVAL is the folder that ``retrieval.py`` wants: ``dev.jsonl`` and ``corpora/``. Each corpus is indexed with the bundled
model and exported into a Milvus Lite file; with ``--together`` all corpora are one index. Printed are, by mode, the
share of questions whose first five results are the same in the same order, the share of results that both have, and
the mean reciprocal rank of the first right page.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

from measuring import ROOT, heading, table

sys.path.insert(0, str(ROOT))

import anvil
from anvil.core.config.schema import Config
from anvil.models.documents import Mode, SearchResult
from anvil.services.milvus import export
from anvil.services.milvus.working_copy import MilvusCollection

MODES: tuple[Mode, ...] = ("hybrid", "semantic", "keyword")
Place = tuple[str, str]


def places(result: SearchResult) -> list[Place]:
    """Path and breadcrumb of each result."""
    return [(hit.metadata.file_path, hit.metadata.heading_path) for hit in result.results]


def reciprocal(found: list[Place], wanted: list[str]) -> float:
    """1 through the rank of the first right page among the first ten, else 0."""
    pages = list(dict.fromkeys(path for path, _ in found))[:10]
    return next((1 / rank for rank, path in enumerate(pages, 1) if path in wanted), 0.0)


def main() -> None:
    """Index, export, ask both, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--together", action="store_true", help="all corpora in one index")
    parser.add_argument("--details", action="store_true", help="print the questions that differ")
    given = parser.parse_args()
    questions = [json.loads(line) for line in (given.eval / "dev.jsonl").read_text(encoding="utf-8").splitlines()]
    corpora = sorted({question["corpus"] for question in questions})
    found: dict[Mode, list[tuple[bool, float, float, float]]] = {mode: [] for mode in MODES}
    with tempfile.TemporaryDirectory() as temporary:
        for corpus in [""] if given.together else corpora:
            print(f"{corpus or 'all'} ...", file=sys.stderr)
            index, source = Path(temporary, f"{corpus}.db"), f"milvus+lite:{temporary}/lite-{corpus}.db/docs"
            with anvil.open(given.eval / "corpora" / corpus, index) as built:
                built.index()
            remote = MilvusCollection(source, Path(temporary))
            export.export(index, remote.client, grace=0)
            config = Config(docs=str(Path(temporary, "none")))
            with anvil.open(index=index, config=config) as file, anvil.open(index=source, config=config) as there:
                for question in questions:
                    if corpus not in ("", question["corpus"]):
                        continue
                    wanted = [f"{question['corpus']}/{path}" if not corpus else path for path in question["paths"]]
                    for mode in MODES:
                        one, other = (places(each.search(question["query"], 20, mode=mode)) for each in (file, there))
                        shared = len(set(one[:5]) & set(other[:5])) / max(len(one[:5]), 1)
                        ranks = reciprocal(one, wanted), reciprocal(other, wanted)
                        found[mode].append((one[:5] == other[:5], shared, *ranks))
                        if given.details and one[:5] != other[:5]:
                            print(mode, question["query"], one[:5], other[:5], sep="\n  ")
            remote.close()
    rows = []
    for mode, told in found.items():
        same, shared, file_rank, there_rank = (statistics.mean(column) for column in zip(*told, strict=True))
        rows.append((mode, str(len(told)), f"{same:.1%}", f"{shared:.1%}", f"{file_rank:.3f}", f"{there_rank:.3f}"))
    print(heading())
    print(table(("mode", "questions", "same five", "results shared", "MRR, file", "MRR, Milvus"), rows))


if __name__ == "__main__":
    main()
