"""How often the right page and the right section are found, on questions that people asked.

    python benchmarks/retrieval.py EVAL [--work FOLDER] [--sites]

EVAL has ``*.jsonl`` (one question a line: corpus, query, paths, heading, kind) and ``corpora/<name>/``, as its README
describes. Each question is asked of its own corpus. Baselines: words alone, vectors alone, and ``grep``
(pages by how many different words of the question they hold, then by how many in all), and ``textbook.py``, forty
lines of BM25 and vectors fused by reciprocal ranks. ``--sites``: each corpus is also
built as a site by MkDocs, and the same questions are put to the index of its HTML ("site").

In the reply: the right page is that of one of the five results of a default reply; the section is one of these results,
or one that such a result names as a further one. Page measures: hit@k and MRR@10 over distinct pages in the order of
their best chunk. Section hit@5: one of the first five results is in the first page given and is the section of that
heading or one below it, by its breadcrumb.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import re
import statistics
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path

from measuring import heading, run
from textbook import Textbook

import anvil
from anvil.api import Anvil
from anvil.embedding.provider import create_provider
from anvil.results import Hit, Mode
from anvil.settings.schema import EmbeddingSettings
from anvil.text.headings import attributes, plain
from anvil.text.query import STOP

Question = dict[str, object]
MEASURES = ("page in the reply", "section in the reply", "hit@1", "hit@5", "hit@10", "MRR@10", "section hit@5")


def main() -> None:
    """Index, ask, print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("eval", type=Path)
    parser.add_argument("--work", type=Path, help="where the indexes are kept; by default a temporary folder")
    parser.add_argument("--sites", action="store_true", help="also build each corpus as a site, and index its HTML")
    parser.add_argument("--only", nargs="*", metavar="CORPUS", help="only these corpora")
    parser.add_argument("--details", action="store_true", help="print each question and the rank of its page")
    given = parser.parse_args()
    questions = [
        {**json.loads(line), "file": file.name}
        for file in sorted(given.eval.glob("*.jsonl"))
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    by_corpus: dict[str, list[Question]] = defaultdict(list)
    for question in questions:
        if given.only and question["corpus"] not in given.only:
            continue
        by_corpus[question["corpus"]].append(question)

    provider = create_provider("local", EmbeddingSettings())
    scores: dict[str, list[tuple[Question, dict[str, float]]]] = defaultdict(list)
    with contextlib.ExitStack() as opened_folder:
        work = given.work or Path(opened_folder.enter_context(tempfile.TemporaryDirectory()))
        for corpus, asked in sorted(by_corpus.items()):
            docs = given.eval / "corpora" / corpus
            with contextlib.ExitStack() as indexes:
                opened = indexes.enter_context(anvil.open(docs, work / f"{corpus}.db"))
                print(corpus, opened.index().outcome, file=sys.stderr)
                ways: dict[str, Callable[[str], list[Place]]] = {
                    "grep": partial(grep, docs),
                    "keyword": partial(ranked, opened, "keyword"),
                    "semantic": partial(ranked, opened, "semantic"),
                    "hybrid": partial(ranked, opened, "hybrid"),
                    "textbook": Textbook(docs, provider, work / f"{corpus}-textbook.npy").ranked,
                }
                if given.sites:
                    site = build_site(docs, work / f"{corpus}-site")
                    of_site = indexes.enter_context(anvil.open(docs, work / f"{corpus}-site.db", site=site))
                    print(corpus, "as a site", of_site.index().outcome, file=sys.stderr)
                    ways["site"] = partial(ranked, of_site, "hybrid")
                for name, ask in ways.items():
                    for question in asked:
                        measured = measure(question, ask(str(question["query"])))
                        scores[name].append((question, measured))
                        if given.details and name == "hybrid":
                            told = f"{measured['MRR@10']:.2f} {measured.get('section hit@5', '-')}"
                            print(told, f"{corpus}: {question['query']}")

    print(heading())
    print(f"| set | method | n | {' | '.join(MEASURES)} (n) |")
    print(f"|---|---|---|{'---|' * len(MEASURES)}")
    every_kind = sorted({str(question["kind"]) for question in questions})
    for label, kinds in {"all": every_kind, **{kind: [kind] for kind in every_kind}}.items():
        for name, rows in scores.items():
            print(row(label, name, [found for question, found in rows if question["kind"] in kinds]))
    for file in sorted({str(question["file"]) for question in questions}):
        for name, rows in scores.items():
            if any(question["file"] == file for question, _ in rows):
                print(row(file, name, [found for question, found in rows if question["file"] == file]))
    for corpus in sorted(by_corpus):
        for name in ("hybrid", "textbook", *(["site"] if given.sites else [])):
            print(row(corpus, name, [found for question, found in scores[name] if question["corpus"] == corpus]))


SITE = """\
site_name: Corpus
site_url: https://docs.example.com/
theme: mkdocs
plugins: []
markdown_extensions:
  - admonition
  - attr_list
  - def_list
  - footnotes
  - md_in_html
  - tables
  - pymdownx.details
  - pymdownx.highlight: {pygments_lang_class: true}
  - pymdownx.superfences
  - pymdownx.tabbed: {alternate_style: true}
"""


def build_site(docs: Path, folder: Path) -> Path:
    """A corpus built by MkDocs with a plain configuration; the folder of its HTML."""
    if not (folder / "site").exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "mkdocs.yml").write_text(f"{SITE}docs_dir: {docs.resolve().as_posix()}\n", encoding="utf-8")
        run([sys.executable, "-m", "mkdocs", "build", "--quiet"], {"NO_MKDOCS_2_WARNING": "1"}, folder)
    return folder / "site"


Place = tuple[str, str, tuple[str, ...]]
"""Path and breadcrumb of a result, and the breadcrumbs that it names as further ones."""


def place(hit: Hit) -> Place:
    """The place of a result."""
    also = tuple(each.heading_path for each in hit.also or ())
    return hit.metadata.file_path, hit.metadata.heading_path, also


def measure(question: Question, results: list[Place]) -> dict[str, float]:
    """The measures of one question."""
    paths = question["paths"]
    assert isinstance(paths, list)
    pages = list(dict.fromkeys(path for path, _, _ in results))
    rank = next((number for number, path in enumerate(pages, 1) if path in paths), 0)
    found = {f"hit@{k}": float(0 < rank <= k) for k in (1, 5, 10)}
    found["MRR@10"] = 1 / rank if 0 < rank <= 10 else 0.0
    found["page in the reply"] = float(any(path in paths for path, _, _ in results[:5]))
    if question["heading"] is not None:
        wanted = bare(plain(attributes(str(question["heading"]))[0]))

        def is_wanted(breadcrumb: str) -> bool:
            return wanted in map(bare, breadcrumb.split(" > "))

        own = [(breadcrumb, also) for path, breadcrumb, also in results[:5] if path == paths[0]]
        found["section hit@5"] = float(any(is_wanted(breadcrumb) for breadcrumb, _ in own))
        found["section in the reply"] = float(any(is_wanted(each) for first, also in own for each in (first, *also)))
    return found


def bare(heading: str) -> str:
    """A heading without what Anvil adds to tell equal ones and parts apart."""
    return re.sub(r"( \[\d+\])?( \[part \d+/\d+\])?$", "", heading).strip()


def ranked(opened: Anvil, mode: Mode, text: str) -> list[Place]:
    """Places of the results of a search: those of a default reply, and what a longer one adds."""
    reply = opened.search(text, mode=mode).results
    return list(map(place, (*reply, *opened.search(text, top_k=20, mode=mode).results[len(reply) :])))


def grep(docs: Path, text: str) -> list[Place]:
    """Pages by the number of different words of the question in them, then by all occurrences."""
    words = {word for word in re.findall(r"\w+", text.lower()) if word not in STOP}
    ranked = []
    for path in sorted([*docs.rglob("*.md"), *docs.rglob("*.mdx")]):
        counts = Counter(re.findall(r"\w+", path.read_text(encoding="utf-8").lower()))
        held = [counts[word] for word in words if counts[word]]
        ranked.append((-len(held), -sum(held), path.relative_to(docs).as_posix()))
    return [(path, "", ()) for _, _, path in sorted(ranked)[:20]]


def row(label: str, name: str, found: list[dict[str, float]]) -> str:
    """A table row of means."""
    cells = []
    for key in MEASURES:
        values = [each[key] for each in found if key in each]
        known = values and ("section" not in key or name not in ("grep", "textbook"))
        cells.append(f"{statistics.mean(values):.3f}" if known else "-")
    cells[-1] += f" ({len(values)})"
    return f"| {label} | {name} | {len(found)} | {' | '.join(cells)} |"


if __name__ == "__main__":
    main()
