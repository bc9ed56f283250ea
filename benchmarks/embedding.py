"""How fast texts become vectors: Anvil's local model compared with the loops that other tools run on the same
weights.

    python scripts/convert_model.py --fp32 /tmp/minilm-fp32
    python benchmarks/embedding.py --fp32 /tmp/minilm-fp32 [--docs FOLDER] [--chunks N] [--rounds N]

All loops get the same chunks and the same weights (theirs as fp32, cut at 256 tokens as they do by default),
take turns within one run, and are counted from text to vector. What is not installed is skipped: fastembed,
chromadb, sentence-transformers. Quote ratios: they hold where absolute numbers do not.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import re
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from measuring import heading
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.embedding.provider import create_provider  # noqa: E402
from anvil.settings.schema import EmbeddingSettings  # noqa: E402

Loop = Callable[[list[str]], NDArray[np.float32]]


def chunks_of(docs: Path, count: int, size: int) -> list[str]:
    """Up to ``count`` random sections of Markdown pages, each cut at ``size`` characters (1,000 are about 256
    tokens)."""
    found = []
    for page in sorted([*docs.rglob("*.md"), *docs.rglob("*.mdx")]):
        for section in re.split(r"\n(?=#{1,6} )", page.read_text(encoding="utf-8", errors="replace")):
            pieces = (section[start : start + size].strip() for start in range(0, len(section), size))
            found += [piece for piece in pieces if len(piece) > 20]
    return random.Random(1).sample(found, min(count, len(found)))


def anvil_loop() -> Loop:
    """Anvil, as it comes."""
    local = create_provider("local", EmbeddingSettings())
    return lambda texts: local.embed(texts).vectors


def anvil_fp32_loop(fp32: Path) -> Loop:
    """Anvil's way of running, over the fp32 weights: what is due to the loop, and what to int8."""
    local = create_provider("local", EmbeddingSettings(model=str(fp32)))
    return lambda texts: local.embed(texts).vectors


def fastembed_loop(fp32: Path) -> Loop:
    """fastembed's TextEmbedding with its defaults (batches of 256)."""
    from fastembed import TextEmbedding

    model = TextEmbedding("sentence-transformers/all-MiniLM-L6-v2", specific_model_path=str(fp32))
    return lambda texts: np.array(list(model.embed(texts)))


def chroma_loop(fp32: Path) -> Loop:
    """Chroma's default embedding function (batches of 32, each text padded to 256 tokens)."""
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import ONNXMiniLM_L6_V2

    class Local(ONNXMiniLM_L6_V2):  # type: ignore[misc]
        DOWNLOAD_PATH = fp32.resolve().parent
        EXTRACTED_FOLDER_NAME = fp32.name

    (fp32 / "vocab.txt").touch()  # it looks for the file, and reads it never
    model = Local()
    return lambda texts: np.array(model(texts))


def sentence_transformers_loop(weights: Path) -> Loop:
    """sentence-transformers with its defaults (torch, batches of 32, sorted by length), cut at 256 tokens."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(weights), device="cpu")
    model.max_seq_length = 256
    return lambda texts: model.encode(texts, normalize_embeddings=True, show_progress_bar=False)


def loops(fp32: Path | None, weights: Path | None) -> dict[str, Loop]:
    """The loops that can run here; the others are named on stderr with the reason."""
    found: dict[str, Loop] = {"Anvil (int8)": anvil_loop()}
    if fp32 is None:
        print("only Anvil: give --fp32 for the others", file=sys.stderr)
        return found
    found["Anvil's loop, fp32"] = anvil_fp32_loop(fp32)
    others = {
        "fastembed": ("fastembed, default", fastembed_loop, fp32, "--fp32"),
        "chromadb": ("Chroma, default", chroma_loop, fp32, "--fp32"),
        "sentence_transformers": (
            "sentence-transformers, default",
            sentence_transformers_loop,
            weights,
            "--sentence-transformers FOLDER",
        ),
    }
    for module, (title, make, folder, option) in others.items():
        if importlib.util.find_spec(module) is None:
            print(f"skipped {module}: not installed", file=sys.stderr)
        elif folder is None:
            print(f"skipped {module}: give {option}", file=sys.stderr)
        else:
            found[title] = make(folder)
    return found


def measure(found: dict[str, Loop], texts: list[str], rounds: int) -> dict[str, list[float]]:
    """Seconds per round of each loop. All take turns, so that a busy moment hits all."""
    for loop in found.values():
        loop(texts[:4])
    seconds: dict[str, list[float]] = {title: [] for title in found}
    for _ in range(rounds):
        for title, loop in found.items():
            started = time.perf_counter()
            loop(texts)
            seconds[title].append(time.perf_counter() - started)
    return seconds


def table(seconds: dict[str, list[float]], cosines: dict[str, str], count: int) -> str:
    """A Markdown table: medians over the rounds; the ratio is the median of the rounds' own ratios."""
    ours = seconds["Anvil (int8)"]
    rows = ["| loop | chunks/s | Anvil is faster by | cosine to fp32, mean / worst |", "|---|---|---|---|"]
    for title, times in seconds.items():
        ratio = statistics.median(theirs / own for theirs, own in zip(times, ours, strict=True))
        rows.append(f"| {title} | {count / statistics.median(times):.1f} | {ratio:.2f} | {cosines[title]} |")
    return "\n".join(rows)


def agreement(found: dict[str, Loop], texts: list[str]) -> dict[str, str]:
    """Cosines of each loop's vectors to those of the fp32 weights run one text at a time."""
    reference = found.get("Anvil's loop, fp32")
    if reference is None:
        return dict.fromkeys(found, "-")
    exact = reference(texts)
    result = {}
    for title, loop in found.items():
        vectors = loop(texts)
        cosines = (vectors * exact).sum(axis=1) / np.linalg.norm(vectors, axis=1)
        result[title] = f"{cosines.mean():.4f} / {cosines.min():.4f}"
    return result


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description="Compare the speed of local embedding loops.")
    parser.add_argument("--docs", type=Path, default=ROOT / "docs", help="folder of Markdown pages")
    parser.add_argument("--fp32", type=Path, help="folder written by scripts/convert_model.py --fp32")
    parser.add_argument("--sentence-transformers", type=Path, help="folder of the original model")
    parser.add_argument("--chunks", type=int, default=256)
    parser.add_argument("--size", type=int, default=1000, help="characters at which a section is cut")
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    texts = chunks_of(options.docs, options.chunks, options.size)
    if not texts:
        parser.error(f"{options.docs} has no Markdown text. Give another folder with --docs.")
    tokens = [len(spans) + 2 for spans in create_provider("local", EmbeddingSettings()).token_spans(texts)]
    found = loops(options.fp32, options.sentence_transformers)
    seconds = measure(found, texts, options.rounds)
    print(heading(options.rounds))
    print(f"{len(texts)} chunks, {statistics.mean(tokens):.0f} tokens on average, {max(tokens)} at most.\n")
    print(table(seconds, agreement(found, texts[:64]), len(texts)))


if __name__ == "__main__":
    main()
