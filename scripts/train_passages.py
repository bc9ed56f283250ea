"""Train the scorer of passages on the questions that were written for public documentation.

    python scripts/train_passages.py candidates CLONES WORK
    python scripts/train_passages.py train WORK/candidates.jsonl WEIGHTS OUT.safetensors [--steps 1800] [--start FILE]
    python scripts/convert_model.py --weights WEIGHTS --passages OUT.safetensors

CLONES and the projects are those of ``mine_pairs.py``. The first command indexes the pages of each training project in
WORK, asks its questions, and writes for each the passages that the search finds: those of the right section, else page,
and those of other pages. The second needs torch, transformers and safetensors, which nothing else in this repository
uses; WEIGHTS is a folder with the original ``model.safetensors`` of the bundled model. It took an hour on two
processors.

Late interaction as in ColBERT (arXiv 2004.12832): a passage's score is the mean of the cosines of the question's tokens
with its nearest ones, weighted by a softmax over a linear function of the question's tokens. A batch has ten questions
of one project, because to tell the pages of one documentation apart is the task. Each has its right passage and three
wrong ones that the search ranked high; the passages of the other questions are wrong, too, unless they are of the same
page. The loss is the cross entropy of the right one. The word table is not trained.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import mine_pairs  # noqa: E402

MAX_CHARS = 1_000_000
"""Of a larger project, pages without a question are left out from this size on."""
MAX_WRONG = 20
QUESTIONS, WRONG = 10, 3
"""Of a batch, and of each of its questions."""
PROJECT_POWER = 0.7
"""A project is drawn by its number of questions to this power."""
LOWER_CASE = 0.2
"""Share of the questions that are put in small letters."""
RATE, HEAD_RATE = 4e-5, 1e-3
WARM_UP_STEPS = 60
SCALE = 20.0
"""By which the mean cosine is multiplied at first; the factor is trained."""


class Question(NamedTuple):
    """The tokens of a question, as written and in small letters; its page; the tokens of right and wrong passages."""

    tokens: tuple[list[int], list[int]]
    page: str
    right: list[list[int]]
    wrong: list[tuple[str, list[int]]]


def main() -> None:
    """Write candidates, or train."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = arguments.add_subparsers(required=True)
    writes = commands.add_parser("candidates")
    writes.add_argument("clones", type=Path)
    writes.add_argument("work", type=Path)
    writes.set_defaults(run=lambda given: candidates(given.clones, given.work))
    trains = commands.add_parser("train")
    trains.add_argument("candidates", type=Path)
    trains.add_argument("weights", type=Path)
    trains.add_argument("out", type=Path)
    trains.add_argument("--steps", type=int, default=1800)
    trains.add_argument("--start", type=Path, help="weights of an earlier run")
    trains.add_argument("--seed", type=int, default=0)
    trains.set_defaults(run=train)
    given = arguments.parse_args()
    given.run(given)


def candidates(clones: Path, work: Path) -> None:
    """Write ``work/candidates.jsonl``: a question a line, with the tokens of its passages."""
    import anvil
    from anvil.embedding.factory import create_provider
    from anvil.index_file.verify import open_checked
    from anvil.requests import SearchRequest
    from anvil.search.candidates import FileIndex
    from anvil.search.searcher import Searcher, embed_query
    from anvil.settings.schema import EmbeddingSettings

    provider = create_provider("local", EmbeddingSettings())
    scorer = provider.passages
    assert scorer is not None
    work.mkdir(parents=True, exist_ok=True)
    with (work / "candidates.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for project in mine_pairs.projects("train"):
            asked = [
                (row, row[style]) for row in written(str(project["name"])) for style in mine_pairs.STYLES if row[style]
            ]
            docs = export(clones, project, {row["page"] for row, _ in asked}, work)
            index = work / f"{docs.name}.db"
            with anvil.open(docs, index, "local") as opened:
                opened.index()
            with open_checked(index) as reader:
                searcher = Searcher(FileIndex(reader), provider)
                for asked_for, text in asked:
                    question = embed_query(text, provider)
                    assert question.vector is not None
                    rows = [each.row for each in searcher.candidates(SearchRequest(text), question).results]
                    passages = [searcher.passage(row, question.vector) for row in rows]
                    stored = reader.chunks(rows)
                    tokens, read = scorer.tokens(text, passages)
                    found = [
                        (stored[chunk].metadata.file_path, passage.header, ids)
                        for chunk, passage, ids in zip(rows, passages, read, strict=True)
                    ]
                    own = [(header, ids) for page, header, ids in found if page == asked_for["page"]]
                    section = [ids for header, ids in own if header == asked_for["headings"]]
                    line = {
                        "project": project["name"],
                        "page": asked_for["page"],
                        "tokens": [tokens, scorer.tokens(text.lower(), ())[0]],
                        "right": section or [ids for _, ids in own],
                        "wrong": [(page, ids) for page, _, ids in found if page != asked_for["page"]][:MAX_WRONG],
                    }
                    out.write(json.dumps(line) + "\n")
            print(project["name"], len(asked), flush=True)


def written(project: str) -> list[dict[str, str]]:
    """The rows of the questions that were written for a project."""
    with mine_pairs.QUESTIONS.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [row for row in rows if row["project"] == project]


def export(clones: Path, project: dict[str, object], needed: set[str], work: Path) -> Path:
    """The folder of a project's pages: those ``needed``, and others in a random order up to :data:`MAX_CHARS`."""
    name = str(project["name"])
    folder = work / "corpora" / name.replace("/", "+")
    repository = mine_pairs.repository_of(clones, project)
    pages = mine_pairs.pages(repository, project)
    others = [page for page in pages if page not in needed]
    random.Random(name).shuffle(others)
    size = 0
    for page in [*(page for page in pages if page in needed), *others]:
        if size > MAX_CHARS and page not in needed:
            break
        text = mine_pairs.git(repository, "show", f"{project['commit']}:{page}")
        size += len(text)
        file = folder / page
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8", newline="\n")
    return folder


def train(given: argparse.Namespace) -> None:
    """Train, and write the weights under the names of the original."""
    import torch
    from safetensors.torch import load_file, save_file
    from torch.nn import functional
    from transformers import BertConfig, BertModel

    torch.manual_seed(given.seed)
    size = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0, "attn_implementation": "eager"}
    model: Any = BertModel(BertConfig(vocab_size=30522, **size, **without), add_pooling_layer=False)
    model.load_state_dict(load_file(given.weights / "model.safetensors"), strict=False)
    model.embeddings.word_embeddings.weight.requires_grad_(False)
    query_weight = torch.zeros(384, requires_grad=True)
    scale = torch.tensor(math.log(SCALE), requires_grad=True)
    if given.start:
        trained = load_file(given.start)
        query_weight.data, scale.data = trained.pop("query_weight"), trained.pop("scale").log()
        model.load_state_dict(trained, strict=False)
    layers = [weight for weight in model.parameters() if weight.requires_grad]
    groups = [
        {"params": layers, "rate": RATE},
        {"params": [query_weight, scale], "rate": HEAD_RATE, "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=RATE, weight_decay=0.01, fused=True)

    def states(texts: list[list[int]]) -> tuple[Any, Any]:
        """The last hidden states (n, tokens, 384), and which tokens are of the texts (n, tokens)."""
        rows = [torch.tensor([101, *ids, 102]) for ids in texts]
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)
        mask = torch.nn.utils.rnn.pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
        return model(input_ids=ids, attention_mask=mask).last_hidden_state.float(), mask

    started = time.monotonic()
    losses: list[float] = []
    for step, (tokens, passages, right, wrong) in enumerate(batches(given.candidates, given.seed, given.steps)):
        for group in optimizer.param_groups:
            decay = 0.5 * (1 + math.cos(math.pi * step / given.steps))
            group["lr"] = group["rate"] * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.03, decay)
        with torch.autocast("cpu", torch.bfloat16):
            asked, asked_mask = states(tokens)
            read, read_mask = states(passages)
        asked_mask[:, 0] = 0
        asked_mask[torch.arange(len(tokens)), asked_mask.sum(1)] = 0  # [CLS] and [SEP] of a question do not count
        shares = (asked @ query_weight).masked_fill(asked_mask == 0, -1e4).softmax(-1)
        unit = functional.normalize(read, dim=-1)
        cosines = torch.einsum("qid,pjd->qpij", functional.normalize(asked, dim=-1), unit)
        nearest = cosines.masked_fill(read_mask[None, :, None, :] == 0, -1).amax(-1)
        scores = scale.exp() * (nearest * shares[:, None, :]).sum(-1)
        loss = functional.cross_entropy(scores.masked_fill(~torch.tensor(wrong), -1e4), torch.tensor(right))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(layers, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if len(losses) == 25:
            print(f"{step + 1} {sum(losses) / 25:.3f} {time.monotonic() - started:.0f} s", flush=True)
            losses.clear()
    weights = {name: weight.contiguous() for name, weight in model.state_dict().items()}
    save_file({**weights, "query_weight": query_weight.detach(), "scale": scale.detach().exp()}, given.out)


Batch = tuple[list[list[int]], list[list[int]], list[int], list[list[bool]]]
"""Tokens of the questions and of all passages, the place of each question's right passage, and the passages that count
for it: all but others of its page."""


def batches(file: Path, seed: int, count: int) -> Iterator[Batch]:
    """Batches of one project each; all questions of a project are asked before one is asked again."""
    by_project: dict[str, list[Question]] = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            if line["right"] and len(line["wrong"]) >= WRONG:
                first, second = line["tokens"]
                question = Question((first, second), line["page"], line["right"], line["wrong"])
                by_project[line["project"]].append(question)
    chance = random.Random(seed)
    names = sorted(by_project)
    shares = [len(by_project[name]) ** PROJECT_POWER for name in names]
    waiting: dict[str, list[Question]] = defaultdict(list)
    for _ in range(count):
        name = chance.choices(names, shares)[0]
        if len(waiting[name]) < QUESTIONS:
            waiting[name] = chance.sample(by_project[name], len(by_project[name]))
        asked, waiting[name] = waiting[name][:QUESTIONS], waiting[name][QUESTIONS:]
        passages: list[tuple[str, list[int]]] = []
        for question in asked:
            right = question.right[0] if chance.random() < 0.7 else chance.choice(question.right[:3])
            passages += [(question.page, right), *drawn(question.wrong, chance)]
        rights = [number * (1 + WRONG) for number in range(len(asked))]
        counts = [
            [page != question.page or place == right for place, (page, _) in enumerate(passages)]
            for question, right in zip(asked, rights, strict=True)
        ]
        tokens = [question.tokens[chance.random() < LOWER_CASE] for question in asked]
        yield tokens, [ids for _, ids in passages], rights, counts


def drawn(wrong: list[tuple[str, list[int]]], chance: random.Random) -> list[tuple[str, list[int]]]:
    """Some wrong passages, more often those that the search ranked high."""
    left = list(range(len(wrong)))
    chosen = []
    for _ in range(WRONG):
        place = chance.choices(left, [1 / (rank + 2) for rank in left])[0]
        left.remove(place)
        chosen.append(wrong[place])
    return chosen


if __name__ == "__main__":
    main()
