"""Fine-tune the embedding model on the pairs of ``mine_pairs.py``, then average its weights with the original ones.

    python scripts/finetune_model.py PAIRS.jsonl WEIGHTS OUT [--steps 800] [--seed 0] [--threads 2]
    python scripts/finetune_model.py --average 0.5 WEIGHTS OUT/step-800.safetensors DELTA.safetensors

WEIGHTS is a folder with the original ``model.safetensors`` and ``tokenizer.json``. The first command writes weights,
the second what is to be added to the original ones, as ``convert_model.py`` reads it. Needs torch, transformers,
safetensors and scikit-learn, which nothing else in this repository uses.

The loss is InfoNCE in both directions (arXiv 1807.03748) with the other passages of a batch as negatives. A batch is
from one project, because to tell the sections of one manual apart is the task. Half of it are random pairs, half are
groups of pairs whose passages share their rare words (TF-IDF), which makes hard negatives without further passages.
Passages that are nearly equal are never negatives of each other. In most batches the likeness of a query and a passage
is a cosine and the words that they share, so that vectors learn what words do not find (arXiv 2004.13969). The word
table is not trained. The same pairs, seed, number of threads and processor give the same weights.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy
import torch
from safetensors.torch import load_file, save_file
from sklearn.feature_extraction.text import TfidfVectorizer
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import BertConfig, BertModel

BATCH_PAIRS = 64
GROUP_PAIRS = 8
"""A seed pair and its nearest pairs."""
MAX_QUERY_TOKENS = 32
MAX_PASSAGE_TOKENS = 128
TEMPERATURE = 0.05
WARM_UP_STEPS = 30
NEAR_DUPLICATE = 0.6
"""TF-IDF cosine from which two passages say the same."""
PROJECT_WEIGHT_POWER = 0.6
"""A project is drawn by its number of pairs to this power, so that large ones do not fill the training."""
KIND_WEIGHT = {
    "heading": 1.0,
    "link": 1.0,
    "sentence": 0.5,
    "commit": 2.0,
    "task": 6.0,
    "problem": 6.0,
    "other words": 6.0,
}
WITH_WORDS = 0.7
"""Share of the batches whose likeness counts words, see ``--words``."""
QUESTIONS = ("how to ", "how do I ", "how can I ", "what is ", "where is ", "")

Pair = dict[str, str]


def main() -> None:
    """Train, or write the difference of an average."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("given", nargs=3, type=Path)
    arguments.add_argument("--average", type=float, metavar="SHARE")
    arguments.add_argument("--steps", type=int, default=800)
    arguments.add_argument("--seed", type=int, default=0)
    arguments.add_argument("--threads", type=int, default=2)
    arguments.add_argument("--rate", type=float, default=3e-5, help="of learning, at its highest")
    arguments.add_argument(
        "--words", type=float, default=0.5, help="weight of the words beside a cosine, as in a search"
    )
    arguments.add_argument("--kinds", nargs="*", choices=KIND_WEIGHT, default=list(KIND_WEIGHT), help="of pairs")
    arguments.add_argument("--save-every", type=int, default=200)
    options = arguments.parse_args()
    first, second, out = options.given
    if options.average is None:
        train(first, second, out, options)
    else:
        average(options.average, first, second, out)


def average(share: float, folder: Path, tuned: Path, out: Path) -> None:
    """Write ``share`` of what training changed, as 8-bit rows with a scale each (averaging: arXiv 2109.01903)."""
    original, trained = load_file(folder / "model.safetensors"), load_file(tuned)
    written: dict[str, torch.Tensor] = {}
    for name, weight in sorted(trained.items()):
        change = (weight - original[name]) * share
        if not weight.is_floating_point() or not change.any():
            continue
        rows = change.reshape(len(change), -1)
        scale = rows.abs().amax(1, keepdim=True).clamp_min(1e-12) / 127
        written[name] = (rows / scale).round().to(torch.int8).reshape(change.shape).contiguous()
        written[f"{name}.scale"] = scale.ravel().contiguous()
    save_file(written, out)


class Project:
    """The pairs of a project, and which of their passages are near each other."""

    def __init__(self, pairs: list[Pair]) -> None:
        self.pairs = pairs
        self.weights = [KIND_WEIGHT[pair["kind"]] for pair in pairs]
        texts = [f"{pair['header']} {pair['body']}" for pair in pairs]
        terms = TfidfVectorizer(sublinear_tf=True, max_df=0.3, dtype=numpy.float32)
        self.vectors = terms.fit_transform(texts)
        self.queries = terms.transform([pair["query"] for pair in pairs])

    def batch(self, chance: random.Random) -> list[int]:
        """Numbers of the pairs of a batch, with different passages."""
        chosen: dict[int, None] = {}
        bodies: set[str] = set()

        def add(number: int) -> None:
            body = self.pairs[number]["body"][:200]
            if body not in bodies and len(chosen) < BATCH_PAIRS:
                bodies.add(body)
                chosen[number] = None

        drawn = iter(chance.choices(range(len(self.pairs)), self.weights, k=4 * BATCH_PAIRS))
        for number in drawn:
            if len(chosen) >= BATCH_PAIRS // 2:
                break
            add(number)
        for number in drawn:
            if len(chosen) >= BATCH_PAIRS:
                break
            near = (self.vectors @ self.vectors[number].T).toarray().ravel()
            add(number)
            room = min(len(chosen) + GROUP_PAIRS - 1, BATCH_PAIRS)
            for other in numpy.argsort(-near, kind="stable")[: 6 * GROUP_PAIRS]:
                if len(chosen) >= room:
                    break
                if near[other] < NEAR_DUPLICATE:
                    add(int(other))
        return list(chosen)

    def words(self, numbers: list[int]) -> torch.Tensor:
        """How well the words of each query match each passage (n, n); 1 for its best one."""
        found = torch.from_numpy((self.queries[numbers] @ self.vectors[numbers].T).toarray())
        return found / found.amax(1, keepdim=True).clamp_min(1e-6)

    def duplicates(self, numbers: list[int]) -> torch.Tensor:
        """Which two passages of a batch say the same, as a matrix without its diagonal."""
        rows = self.vectors[numbers]
        near = torch.from_numpy((rows @ rows.T).toarray() >= NEAR_DUPLICATE)
        return near & ~torch.eye(len(numbers), dtype=torch.bool)


def query_text(pair: Pair, chance: random.Random) -> str:
    """The query, some headings as a question, some in small letters."""
    query = pair["query"]
    if pair["kind"] == "heading" and chance.random() < 0.3:
        query = chance.choice(QUESTIONS) + query[:1].lower() + query[1:]
    return query.lower() if chance.random() < 0.2 else query


def load(folder: Path) -> tuple[Any, Tokenizer]:
    """The original model without its pooler, and its tokenizer."""
    size = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    model: Any = BertModel(BertConfig(vocab_size=30522, attn_implementation="eager", **size), add_pooling_layer=False)
    weights = {name.removeprefix("bert."): weight for name, weight in load_file(folder / "model.safetensors").items()}
    missing = model.load_state_dict(weights, strict=False).missing_keys
    assert not [name for name in missing if "position_ids" not in name], missing
    model.embeddings.word_embeddings.weight.requires_grad_(False)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return model.eval(), tokenizer


def embed(model: Any, tokenizer: Tokenizer, texts: list[str], limit: int) -> torch.Tensor:
    """Vectors of unit length, mean pooling, of the first ``limit`` tokens of each text."""
    ids = [encoded.ids for encoded in tokenizer.encode_batch(texts)]
    ids = [each if len(each) <= limit else [*each[: limit - 1], each[-1]] for each in ids]
    tokens = torch.nn.utils.rnn.pad_sequence([torch.tensor(each) for each in ids], batch_first=True)
    mask = torch.nn.utils.rnn.pad_sequence([torch.ones(len(each)) for each in ids], batch_first=True)
    states = model(input_ids=tokens, attention_mask=mask).last_hidden_state
    return functional.normalize((states * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True), dim=-1)


def train(file: Path, folder: Path, out: Path, options: argparse.Namespace) -> None:
    """Train and save ``out/step-N.safetensors``, under the original's names."""
    torch.manual_seed(options.seed)
    torch.set_num_threads(options.threads)
    chance = random.Random(options.seed)
    by_project: dict[str, list[Pair]] = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for line in lines:
            pair = json.loads(line)
            if pair["kind"] in options.kinds:
                by_project[pair["project"]].append(pair)
    projects = [Project(pairs) for pairs in by_project.values() if len(pairs) >= 2 * BATCH_PAIRS]
    shares = [len(project.pairs) ** PROJECT_WEIGHT_POWER for project in projects]
    model, tokenizer = load(folder)
    trained = [weight for weight in model.parameters() if weight.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr=options.rate, weight_decay=0.01, fused=True)
    original_names = load_file(folder / "model.safetensors").keys()
    prefix = "bert." if any(name.startswith("bert.") for name in original_names) else ""
    out.mkdir(parents=True, exist_ok=True)
    began, mean_loss = time.monotonic(), None
    for step in range(1, options.steps + 1):
        rate = options.rate * min(1, step / WARM_UP_STEPS) * 0.5 * (1 + math.cos(math.pi * (step - 1) / options.steps))
        for group in optimizer.param_groups:
            group["lr"] = rate
        project = chance.choices(projects, shares)[0]
        numbers = project.batch(chance)
        pairs = [project.pairs[number] for number in numbers]
        with torch.autocast("cpu", dtype=torch.bfloat16):
            queries = embed(model, tokenizer, [query_text(pair, chance) for pair in pairs], MAX_QUERY_TOKENS)
            passages = embed(model, tokenizer, [f"{p['header']}\n{p['body']}" for p in pairs], MAX_PASSAGE_TOKENS)
        words = options.words * project.words(numbers) if chance.random() < WITH_WORDS else 0.0
        likeness = ((queries.float() @ passages.float().T + words) / TEMPERATURE).masked_fill(
            project.duplicates(numbers), -1e4
        )
        right = torch.arange(len(pairs))
        loss = functional.cross_entropy(likeness, right) + 0.5 * functional.cross_entropy(likeness.T, right)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        mean_loss = loss.item() if mean_loss is None else 0.95 * mean_loss + 0.05 * loss.item()
        if step % 20 == 0:
            print(
                f"{step}/{options.steps} loss {mean_loss:.3f} {(time.monotonic() - began) / step:.2f} s a step",
                flush=True,
            )
        if step % options.save_every == 0 or step == options.steps:
            weights = {prefix + name: weight.contiguous() for name, weight in model.state_dict().items()}
            save_file({n: w for n, w in weights.items() if n in original_names}, out / f"step-{step}.safetensors")


if __name__ == "__main__":
    main()
