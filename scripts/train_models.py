"""Train the bundled models on questions and commits of public documentation, as two larger models rank for them.

    python scripts/train_models.py candidates CLONES WORK
    python scripts/train_models.py train WORK/candidates.jsonl WEIGHTS TEACHER OUT.safetensors
    python scripts/convert_model.py --weights WEIGHTS --passages OUT.safetensors
    python scripts/train_models.py train WORK/candidates.jsonl WEIGHTS TEACHER OUT.safetensors --embedding
    python scripts/convert_model.py --weights WEIGHTS --trained OUT.safetensors

CLONES and the projects are those of ``mine_pairs.py``. The first command indexes the pages of each training project in
WORK, asks its written questions and the subjects of its commits, and writes the passages that the search finds for
each. The second needs torch, transformers and safetensors, which nothing else in this repository uses. WEIGHTS is a
folder with the original ``model.safetensors`` and ``tokenizer.json`` of the bundled model; TEACHER is one of
all-mpnet-base-v2, with ``model.safetensors``, ``config.json`` and ``vocab.txt``. On one H100 a step takes .15 s of both
teachers and of the scorer, and each teacher's scores for 33,000 questions take 110 s; on two processors it would take
days. With ``--bundled`` the scorer that is there is trained on, and its own scores count as those of a third teacher.
So was the bundled one, see its card; with batches that are made in other processes such a step takes .045 s, and one of
the embedding model .055 s.

Late interaction as in ColBERT (arXiv 2004.12832): a passage's score is the mean of the cosines of the question's tokens
with its nearest ones, weighted by a softmax over a linear function of the question's tokens.

1. Two teachers learn which passage is right. One encodes question and passage apart, as the scorer does. The other
   encodes each pair as one text, and adds a linear function of its first token: better, but as slow as the model is
   large. The loss is the cross entropy of the right passages of each question among its own, and, apart, among those of
   the other questions of a batch, which are of the same project.
2. The scorer learns the mean of both teachers' scores for all passages of a question (Kullback-Leibler divergence), and
   with a smaller weight which passage is right. The word tables are not trained.

The embedding model (``--embedding``) learns the same from the same teachers, with one vector for a text: the score is a
cosine. Windows of an index are longer than passages and hold more than an answer, so most passages are joined with
another one of their page. What is written lies between the original weights and the trained ones (arXiv 2109.01903),
because documentation is not all that people embed.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from scripts import mine_pairs  # noqa: E402

MAX_CHARS = 1_000_000
"""Of a larger project, pages without a question are left out from this size on."""
MAX_COMMITS = 450
"""Of each project, so that one with a long history does not decide."""
PASSAGES, TEACHER_PASSAGES = 16, 12
"""Of each question, in the file; and how many of them a teacher sees at a time: the right ones and a sample."""
MAX_RIGHT = 6
PROJECT_POWER = 0.7
"""A project is drawn by its number of questions to this power."""
LOWER_CASE = 0.2
"""Share of the questions that are put in small letters."""
COMMIT_WEIGHT = 0.5
"""Of a commit's subject, where a question has 1: the page that it changed is not always the one that it is about."""
RIGHT_WEIGHT = 0.3
"""Of the cross entropy of the right passages, where the teachers' scores have 1."""
TEACHER_STEPS = {False: 1000, True: 1200}
"""Of the teacher that encodes apart, and of the one that encodes each pair as one text."""
STEPS = 2400
FURTHER_STEPS, FURTHER_RATE = 10_000, 6e-5
"""Of a scorer that is trained on."""
EMBEDDING_STEPS, EMBEDDING_RATE = 7300, 6e-5
EMBEDDING_RIGHT_WEIGHT = 1.0
"""As :data:`RIGHT_WEIGHT`: passages of other questions teach an embedding most."""
JOINED_BATCHES, JOINED_PASSAGES = 0.6, 0.7
"""Share of the batches of an embedding model with joined passages, and of the passages in these."""
JOINED_SCORE = -0.3
"""Added to the teachers' score of a passage when it is joined with another one."""
MAX_WINDOW = 254
TRAINED_SHARE = 0.7
"""Of the trained weights; the original ones have the rest."""
TEACHER_BATCH, BATCH = 16, 24
TEACHER_RATE, RATE, HEAD_RATE = 3e-5, 8e-5, 1e-3
WARM_UP_STEPS = 60
SCALE, BUNDLED_SCALE = 20.0, 27.8
"""By which the mean cosine is multiplied at first; the factor is trained. With the second, the scores of the bundled
scorer have the standard deviation of those of the teachers."""
PAD, FIRST, LAST = 0, 101, 102
TEACHER_PAD, TEACHER_FIRST, TEACHER_LAST, TEACHER_UNKNOWN = 1, 0, 2, 3
"""Ids of tokens in the vocabularies of both models, which have the same words."""
NONE = -1e4
"""The score of what does not count."""
Batch = tuple[list["Question"], list[list[int]]]
"""Questions, and the tokens of each as it is asked."""
ByProject = dict[str, list["Question"]]


class Question(NamedTuple):
    """The tokens of a question, as written and in small letters; and of each passage: its page, whether it is right (2:
    the section, 1: only the page), its tokens, and the mean score of the teachers once it is known."""

    tokens: tuple[list[int], list[int]]
    weight: float
    pages: list[str]
    right: list[int]
    passages: list[list[int]]
    taught: list[float] = []  # noqa: RUF012  a default of a named tuple is never changed


@dataclass
class Scorer:
    """A model and its head. Of a teacher: the ids of its words by those of the scorer. ``pair_weight``: of the first
    token, for a model that encodes each pair as one text. ``pooled``: an embedding model, which has no head."""

    encoder: Any
    query_weight: Any
    log_scale: Any
    pair_weight: Any = None
    words: Any = None
    pooled: bool = False

    def scores(self, questions: Sequence[Question], asked: Sequence[list[int]]) -> tuple[Any, Any | None]:
        """(questions, passages) of each question's own passages; and of everybody's, where texts are encoded apart."""
        if self.pair_weight is not None:
            return pair_scores(self, questions, asked)
        return (pooled_scores if self.pooled else all_scores)(self, questions, asked)

    def states(self, ids: Any) -> Any:
        """The last hidden states (n, tokens, dimensions) of padded texts (n, tokens)."""
        import torch

        mask = ids != PAD
        with torch.autocast(ids.device.type, torch.bfloat16):
            found = self.encoder(input_ids=ids if self.words is None else self.words[ids], attention_mask=mask.long())
        return found.last_hidden_state.float()


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
    trains.add_argument("teacher", type=Path)
    trains.add_argument("out", type=Path)
    trains.add_argument("--share", type=float, default=1.0, help="of the steps, to try it out")
    trains.add_argument("--embedding", action="store_true", help="train the embedding model, not the scorer")
    trains.add_argument(
        "--bundled", type=Path, help="a folder with a scorer that is trained on, instead of the weights"
    )
    trains.set_defaults(run=train)
    given = arguments.parse_args()
    given.run(given)


def candidates(clones: Path, work: Path) -> None:
    """Write ``work/candidates.jsonl``: a question a line, with the tokens of its passages."""
    import anvil
    from anvil.embedding.provider import create_provider
    from anvil.index_file.verify import open_checked
    from anvil.requests import SearchRequest
    from anvil.search.candidates import FileIndex
    from anvil.search.query_preparation import embed_query
    from anvil.search.searcher import Searcher
    from anvil.settings.schema import EmbeddingSettings

    provider = create_provider("local", EmbeddingSettings())
    scorer = provider.passages
    assert scorer is not None
    work.mkdir(parents=True, exist_ok=True)
    with (work / "candidates.jsonl").open("w", encoding="utf-8", newline="\n") as out:
        for project in mine_pairs.projects("train"):
            written = list(mine_pairs.question_pairs(str(project["name"])))
            docs = export(clones, project, {pair.page for pair in written}, work)
            asked = [(pair.query, pair.page, pair.header, 1.0) for pair in written]
            asked += commits(clones, project, docs)
            index = work / f"{docs.name}.db"
            with anvil.open(docs, index, "local") as opened:
                opened.index()
            with open_checked(index) as reader:
                searcher = Searcher(FileIndex(reader), provider)
                for text, right_page, right_header, weight in asked:
                    question = embed_query(text, provider)
                    if question.vector is None:
                        continue
                    rows_found = [each.row for each in searcher.candidates(SearchRequest(text), question).results]
                    passages = [searcher.passage(row, question.vector) for row in rows_found]
                    stored = reader.chunks(rows_found)
                    tokens, read = scorer.tokens(text, passages)
                    pages = [stored[row].metadata.file_path for row in rows_found]
                    right = [
                        (page == right_page) + (page == right_page and passage.header == right_header)
                        for page, passage in zip(pages, passages, strict=True)
                    ]
                    kept = sorted(range(len(right)), key=lambda place: (not right[place], place))
                    kept = kept[: min(sum(map(bool, right)), MAX_RIGHT)] + [at for at in kept if not right[at]]
                    kept = sorted(kept[:PASSAGES])
                    line = {
                        "project": project["name"],
                        "weight": weight,
                        "tokens": [tokens, scorer.tokens(text.lower(), ())[0]],
                        "passages": [(pages[at], right[at], read[at]) for at in kept],
                    }
                    if weight == 1.0 or any(right):  # a commit's page may be one that says little of its subject
                        out.write(json.dumps(line) + "\n")
            print(project["name"], len(asked), flush=True)


def commits(clones: Path, project: dict[str, object], docs: Path) -> list[tuple[str, str, str, float]]:
    """Subjects of commits, each with the page and header of the passage that it changed most, and its weight."""
    name = str(project["name"])
    files = sorted(file for file in docs.rglob("*") if file.is_file())
    passages = [
        passage
        for file in files
        for passage in mine_pairs.read_page(file.relative_to(docs).as_posix(), file.read_text(encoding="utf-8"))
    ]
    pairs = list(mine_pairs.commit_pairs(name, mine_pairs.repository_of(clones, project), project, passages))
    random.Random(name).shuffle(pairs)
    return [(pair.query, pair.page, pair.header, COMMIT_WEIGHT) for pair in pairs[:MAX_COMMITS]]


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
    """Train the teachers, then the scorer or the embedding model; write its weights under the names of the original."""
    import torch
    from safetensors.torch import save_file

    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    by_project = read(given.candidates)
    judges = []
    for together, steps in TEACHER_STEPS.items():
        teacher = load_teacher(given.teacher, given.weights, together, device)
        size = Batches(by_project, TEACHER_BATCH, TEACHER_PASSAGES, seed=1 + together)
        fit(teacher, size.drawn(int(steps * given.share)), int(steps * given.share), TEACHER_RATE, "teacher")
        judges.append(scores_of(teacher, by_project))
        del teacher
    if given.embedding:
        model = load_scorer(given.weights, device)
        model.pooled = True
        original = {name: weight.clone() for name, weight in model.encoder.state_dict().items()}
        batches = Batches(with_scores(by_project, judges), BATCH, PASSAGES, seed=4)
        steps = int(EMBEDDING_STEPS * given.share)
        fit(model, joined(batches.drawn(steps)), steps, EMBEDDING_RATE, "embedding", EMBEDDING_RIGHT_WEIGHT)
        trained = model.encoder.state_dict()
        mixed = {name: weight.lerp(trained[name], TRAINED_SHARE).cpu() for name, weight in original.items()}
        save_file(mixed, given.out)
        return
    scorer, steps, rate = load_scorer(given.weights, device), int(STEPS * given.share), RATE
    if given.bundled:
        steps, rate = int(FURTHER_STEPS * given.share), FURTHER_RATE
        scorer = load_bundled(given.bundled, device)
        judges.append(scores_of(scorer, by_project))
    batches = Batches(with_scores(by_project, judges), BATCH, PASSAGES, seed=4)
    fit(scorer, batches.drawn(steps), steps, rate, "scorer", RIGHT_WEIGHT)
    weights = {name: weight.detach().cpu().contiguous() for name, weight in scorer.encoder.state_dict().items()}
    head = {"query_weight": scorer.query_weight, "scale": scorer.log_scale.exp()}
    save_file({**weights, **{name: weight.detach().cpu() for name, weight in head.items()}}, given.out)


def scores_of(judge: Scorer, by_project: ByProject) -> dict[str, list[list[float]]]:
    """A model's scores of all passages of each question."""
    import torch

    found: dict[str, list[list[float]]] = {}
    with torch.no_grad():
        for name, questions in by_project.items():
            found[name] = []
            for start in range(0, len(questions), BATCH):
                some = questions[start : start + BATCH]
                own = judge.scores(some, [question.tokens[0] for question in some])[0].tolist()
                found[name] += [row[: len(each.passages)] for row, each in zip(own, some, strict=True)]
    return found


def with_scores(by_project: ByProject, judges: Sequence[dict[str, list[list[float]]]]) -> ByProject:
    """The questions with the mean of the scores of all ``judges``."""
    return {
        name: [
            question._replace(taught=[sum(each) / len(each) for each in zip(*rows, strict=True)])
            for question, *rows in zip(questions, *(judge[name] for judge in judges), strict=True)
        ]
        for name, questions in by_project.items()
    }


def read(file: Path) -> ByProject:
    """The questions of each project."""
    by_project: dict[str, list[Question]] = defaultdict(list)
    with file.open(encoding="utf-8") as lines:
        for line in map(json.loads, lines):
            first, second = line["tokens"]
            pages, right, passages = map(list, zip(*line["passages"], strict=True))
            by_project[line["project"]].append(Question((first, second), line["weight"], pages, right, passages))
    return by_project


def load_scorer(weights: Path, device: str) -> Scorer:
    """The bundled model with an untrained head."""
    from safetensors.torch import load_file

    encoder = small_encoder()
    encoder.load_state_dict(load_file(weights / "model.safetensors"), strict=False)
    return with_head(encoder, device)


def load_bundled(folder: Path, device: str) -> Scorer:
    """The bundled scorer, as its 8-bit graph is. Its scores are spread as widely as those of the teachers."""
    import torch

    from scripts.bundled_weights import bundled_weights

    weights = {name: torch.tensor(weight) for name, weight in bundled_weights(folder, "passages.onnx").items()}
    encoder = small_encoder()
    head = weights.pop("query_weight")
    encoder.load_state_dict(weights)
    scorer = with_head(encoder, device)
    scorer.query_weight.data.copy_(head)
    scorer.log_scale.data.fill_(math.log(BUNDLED_SCALE))
    return scorer


def small_encoder() -> Any:
    """An encoder of the size of the bundled model."""
    from transformers import BertConfig, BertModel

    size = {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536}
    without = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
    return BertModel(BertConfig(vocab_size=30522, **size, **without), add_pooling_layer=False)


def load_teacher(folder: Path, weights: Path, together: bool, device: str) -> Scorer:
    """The larger model with an untrained head, and the table from the scorer's words to its own."""
    import torch
    from safetensors.torch import load_file
    from transformers import MPNetConfig, MPNetModel

    config: Any = MPNetConfig.from_json_file(folder / "config.json")
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    encoder: Any = MPNetModel(config, add_pooling_layer=False)
    encoder.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    own = {word: at for at, word in enumerate((folder / "vocab.txt").read_text(encoding="utf-8").split("\n"))}
    vocabulary = json.loads((weights / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    words = torch.full((len(vocabulary),), TEACHER_UNKNOWN)
    for word, at in vocabulary.items():
        words[at] = own.get(word, TEACHER_UNKNOWN)
    words[PAD], words[FIRST], words[LAST] = TEACHER_PAD, TEACHER_FIRST, TEACHER_LAST
    teacher = with_head(encoder, device)
    teacher.words = words.to(device)
    if together:
        teacher.pair_weight = torch.zeros(config.hidden_size, device=device, requires_grad=True)
    return teacher


def with_head(encoder: Any, device: str) -> Scorer:
    """An encoder whose word table is not trained, and a head that weighs all tokens the same."""
    import torch

    encoder.to(device).embeddings.word_embeddings.weight.requires_grad_(False)
    zeros = torch.zeros(encoder.config.hidden_size, device=device, requires_grad=True)
    return Scorer(encoder, zeros, torch.tensor(math.log(SCALE), device=device, requires_grad=True))


def texts_of(questions: Sequence[Question]) -> tuple[list[list[int]], int]:
    """The passages of all questions in order, as many of each, empty where one has fewer; and that number."""
    width = max(len(question.passages) for question in questions)
    every = range(width)
    return [
        question.passages[at] if at < len(question.passages) else [] for question in questions for at in every
    ], width


def all_scores(scorer: Scorer, questions: Sequence[Question], asked: Sequence[list[int]]) -> tuple[Any, Any]:
    """Encoded apart: (questions, passages) of its own, and (questions, questions, passages) of everybody's."""
    import torch
    from torch.nn import functional

    device = scorer.log_scale.device
    ids = padded([[FIRST, *tokens, LAST] for tokens in asked], device)
    counted = (ids != PAD) & (ids != FIRST) & (ids != LAST)  # [CLS] and [SEP] of a question do not count
    states = scorer.states(ids)
    shares = (states @ scorer.query_weight).masked_fill(~counted, NONE).softmax(-1)
    texts, width = texts_of(questions)
    read_ids = padded([[FIRST, *tokens, LAST] for tokens in texts], device)
    read = functional.normalize(scorer.states(read_ids), dim=-1).bfloat16()
    cosines = torch.einsum("qid,pjd->qpij", functional.normalize(states, dim=-1).bfloat16(), read).float()
    nearest = cosines.masked_fill((read_ids == PAD)[None, :, None, :], -1).amax(-1)
    scores = scorer.log_scale.exp() * (nearest * shares[:, None, :]).sum(-1)
    empty = torch.tensor([not text for text in texts], device=device)
    everybody = scores.masked_fill(empty, NONE).view(len(questions), len(questions), width)
    own = torch.arange(len(questions), device=device)
    return everybody[own, own], everybody


def pooled_scores(model: Scorer, questions: Sequence[Question], asked: Sequence[list[int]]) -> tuple[Any, Any]:
    """One vector for each text, the mean of its states: as :func:`all_scores`."""
    import torch
    from torch.nn import functional

    device = model.log_scale.device

    def vectors(texts: Sequence[list[int]]) -> Any:
        ids = padded([[FIRST, *tokens, LAST] for tokens in texts], device)
        is_token = (ids != PAD)[:, :, None]
        return functional.normalize((model.states(ids) * is_token).sum(1) / is_token.sum(1), dim=-1)

    texts, width = texts_of(questions)
    scores = model.log_scale.exp() * (vectors(asked) @ vectors(texts).T)
    empty = torch.tensor([not text for text in texts], device=device)
    everybody = scores.masked_fill(empty, NONE).view(len(questions), len(questions), width)
    own = torch.arange(len(questions), device=device)
    return everybody[own, own], everybody


def pair_scores(scorer: Scorer, questions: Sequence[Question], asked: Sequence[list[int]]) -> tuple[Any, None]:
    """Each question and passage encoded as one text: (questions, passages)."""
    import torch
    from torch.nn import functional

    device = scorer.log_scale.device
    width = max(len(question.passages) for question in questions)
    pairs = [
        (tokens, question.passages[at] if at < len(question.passages) else [])
        for question, tokens in zip(questions, asked, strict=True)
        for at in range(width)
    ]
    ids = padded([[FIRST, *tokens, LAST, LAST, *text, LAST] for tokens, text in pairs], device)
    starts = torch.tensor([len(tokens) + 3 for tokens, _ in pairs], device=device)[:, None]
    ends = starts + torch.tensor([len(text) for _, text in pairs], device=device)[:, None]
    at = torch.arange(ids.shape[1], device=device)[None]
    states = scorer.states(ids)
    longest = int(starts.max()) - 2
    asked_here = ((at >= 1) & (at < starts - 2))[:, :longest]
    shares = (states[:, :longest] @ scorer.query_weight).masked_fill(~asked_here, NONE).softmax(-1)
    unit = functional.normalize(states, dim=-1).bfloat16()
    cosines = torch.einsum("nid,njd->nij", unit[:, :longest], unit).float()
    nearest = cosines.masked_fill(~((at >= starts) & (at < ends))[:, None, :], -1).amax(-1)
    scores = scorer.log_scale.exp() * (nearest * shares).sum(-1) + states[:, 0] @ scorer.pair_weight
    empty = torch.tensor([not text for _, text in pairs], device=device)
    return scores.masked_fill(empty, NONE).view(len(questions), width), None


def padded(texts: Sequence[list[int]], device: Any) -> Any:
    """(n, tokens)."""
    import torch

    return torch.nn.utils.rnn.pad_sequence([torch.tensor(text) for text in texts], batch_first=True).to(device)


def fit(
    scorer: Scorer, batches: Iterator[Batch], steps: int, rate: float, name: str, right_weight: float | None = None
) -> None:
    """Train on ``batches``. ``right_weight``: of the cross entropy of the right passages, where the scores that were
    taught have 1; None without these."""
    import torch

    layers = [weight for weight in scorer.encoder.parameters() if weight.requires_grad]
    head = [scorer.log_scale, *([] if scorer.pooled else [scorer.query_weight])]
    head += [] if scorer.pair_weight is None else [scorer.pair_weight]
    groups = [{"params": layers, "rate": rate}, {"params": head, "rate": HEAD_RATE, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=rate, weight_decay=0.01, fused=True)
    started = time.monotonic()
    losses: list[float] = []
    for step, (questions, asked) in enumerate(batches):
        for group in optimizer.param_groups:
            decay = 0.5 * (1 + math.cos(math.pi * step / steps))
            group["lr"] = group["rate"] * min(1.0, (step + 1) / WARM_UP_STEPS) * max(0.02, decay)
        own, everybody = scorer.scores(questions, asked)
        loss = right_loss(own, everybody, questions)
        if right_weight is not None:
            rows = [[*question.taught, *[NONE] * (own.shape[1] - len(question.taught))] for question in questions]
            taught, loss = torch.tensor(rows, device=own.device), right_weight * loss
            wanted = taught.masked_fill(own <= NONE, NONE).log_softmax(-1).clamp(min=-30)
            loss = loss + (wanted.exp() * (wanted - own.log_softmax(-1))).sum(-1).mean()
        loss.backward()
        torch.nn.utils.clip_grad_norm_([*layers, *head], 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if len(losses) == 100 or step + 1 == steps:
            mean = sum(losses) / len(losses)
            print(f"{name} {step + 1} {mean:.3f} {time.monotonic() - started:.0f} s", flush=True)
            losses.clear()


def right_loss(own: Any, everybody: Any | None, questions: Sequence[Question]) -> Any:
    """The mean cross entropy of the right passages among all that count: the passages of the section that was asked
    for, else of its page. Other passages of the right page do not count, also those of another question."""
    import torch

    width = own.shape[1]
    right = torch.zeros(own.shape, dtype=torch.bool)
    ignored = torch.zeros(own.shape, dtype=torch.bool)
    clash = torch.zeros(len(questions), len(questions), width, dtype=torch.bool)
    for place, question in enumerate(questions):
        best = max(question.right)
        pages = {page for page, mark in zip(question.pages, question.right, strict=True) if mark}
        for at, mark in enumerate(question.right):
            right[place, at] = mark == best > 0
            ignored[place, at] = 0 < mark < best
        for other, asked in enumerate(questions):
            for at, page in enumerate(asked.pages):
                clash[place, other, at] = other != place and page in pages
    right, ignored = right.to(own.device), ignored.to(own.device)
    hits = own.masked_fill(~right, NONE).logsumexp(-1)
    if everybody is None:
        counted = own.masked_fill(ignored, NONE)
    else:
        places = torch.arange(len(questions))
        clash[places, places] = ignored.cpu()
        counted = everybody.masked_fill(clash.to(own.device), NONE).flatten(1)
    weights = torch.tensor([question.weight for question in questions], device=own.device) * right.any(-1)
    return ((counted.logsumexp(-1) - hits) * weights).sum() / weights.sum().clamp(min=1)


@dataclass(frozen=True)
class Batches:
    """Questions of one project at a time: to tell the pages of one documentation apart is the task."""

    by_project: dict[str, list[Question]]
    questions: int
    passages: int
    seed: int

    def drawn(self, count: int) -> Iterator[Batch]:
        """``count`` batches of questions with at most ``passages`` passages. All questions of a project are asked
        before one is asked again."""
        chance = random.Random(self.seed)
        names = sorted(self.by_project)
        shares = [len(self.by_project[name]) ** PROJECT_POWER for name in names]
        waiting: dict[str, list[Question]] = defaultdict(list)
        for _ in range(count):
            name = chance.choices(names, shares)[0]
            if len(waiting[name]) < self.questions:
                waiting[name] += chance.sample(self.by_project[name], len(self.by_project[name]))
            whole, waiting[name] = waiting[name][: self.questions], waiting[name][self.questions :]
            asked = [question.tokens[chance.random() < LOWER_CASE] for question in whole]
            yield [self._sampled(question, chance) for question in whole], asked

    def _sampled(self, question: Question, chance: random.Random) -> Question:
        """The question with its right passages and a sample of the others."""
        if len(question.passages) <= self.passages:
            return question
        order = sorted(range(len(question.passages)), key=lambda at: (not question.right[at], chance.random()))
        kept = order[: self.passages]
        return question._replace(
            pages=[question.pages[at] for at in kept],
            right=[question.right[at] for at in kept],
            passages=[question.passages[at] for at in kept],
            taught=[question.taught[at] for at in kept] if question.taught else [],
        )


def joined(batches: Iterator[Batch]) -> Iterator[Batch]:
    """Batches with, in most of them, most passages joined with another one of their page."""
    chance = random.Random(5)
    for questions, asked in batches:
        if chance.random() < JOINED_BATCHES:
            yield [_joined(question, chance) for question in questions], asked
        else:
            yield questions, asked


def _joined(question: Question, chance: random.Random) -> Question:
    """A joined passage is as right as its better half."""
    right, passages, taught = list(question.right), list(question.passages), list(question.taught)
    for at, page in enumerate(question.pages):
        others = [other for other, its_page in enumerate(question.pages) if its_page == page and other != at]
        if others and chance.random() < JOINED_PASSAGES:
            other = chance.choice(others)
            first, second = chance.sample([at, other], 2)
            passages[at] = (question.passages[first] + question.passages[second])[:MAX_WINDOW]
            right[at] = max(question.right[at], question.right[other])
            taught[at] = max(question.taught[at], question.taught[other]) + JOINED_SCORE
    return question._replace(right=right, passages=passages, taught=taught)


if __name__ == "__main__":
    main()
