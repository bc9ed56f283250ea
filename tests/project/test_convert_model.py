"""The bundled model's files: as their digest says, and as their sources give."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnxruntime
import pytest

from anvil.embedding.local import BUNDLED, ModelSettings, model_digest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "convert_model.py"


def test_the_recorded_digest_is_that_of_the_shipped_files() -> None:
    entries = json.loads((BUNDLED / "model.json").read_text(encoding="utf-8"))
    settings = ModelSettings(**{name: entries[name] for name in ModelSettings.__dataclass_fields__})
    assert entries["digest"] == model_digest(BUNDLED, settings)
    assert settings == ModelSettings(dimensions=384, pooling="mean", max_tokens=256)


def test_the_folder_is_complete_and_small() -> None:
    names = {path.name for path in BUNDLED.iterdir()}
    scorer = {"passages.onnx", "passages.json"}
    assert names == {"model.onnx", "tokenizer.json", "model.json", "MODEL_CARD.md", "LICENSE"} | scorer
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 36_000_000


def test_the_scorer_of_passages_finds_the_table_of_words_in_the_model() -> None:
    onnx = pytest.importorskip("onnx")
    facts = json.loads((BUNDLED / "passages.json").read_text(encoding="utf-8"))["words"]
    constants = onnx.load(str(BUNDLED / "model.onnx")).graph.initializer
    rows, scales = (
        next(onnx.numpy_helper.to_array(each) for each in constants if list(each.dims) == shape)
        for shape in ([30522, 384], [30522, 1])
    )
    file = BUNDLED / "model.onnx"
    read = np.fromfile(file, np.int8, 30522 * 384, offset=facts["rows_at"])
    assert np.array_equal(read.reshape(30522, 384), rows)
    assert np.array_equal(np.fromfile(file, np.float32, 30522, offset=facts["scales_at"]), scales.ravel())


def test_the_tokenizer_neither_cuts_nor_pads() -> None:
    tokenizer = json.loads((BUNDLED / "tokenizer.json").read_text(encoding="utf-8"))
    assert tokenizer["truncation"] is None
    assert tokenizer["padding"] is None


def test_the_model_card_names_source_and_licence() -> None:
    card = (BUNDLED / "MODEL_CARD.md").read_text(encoding="utf-8")
    entries = json.loads((BUNDLED / "model.json").read_text(encoding="utf-8"))
    assert entries["source_sha256"] in card
    assert "Apache" in card
    assert "Apache License" in (BUNDLED / "LICENSE").read_text(encoding="utf-8")


def test_no_product_saturates_on_this_cpu() -> None:
    """x86 without VNNI adds two neighbouring products in 16 bits; the largest inputs must come out exact."""
    onnx = pytest.importorskip("onnx")
    helper, types = onnx.helper, onnx.TensorProto
    tensors = onnx.load(str(BUNDLED / "model.onnx")).graph.initializer
    weights = [entry for entry in tensors if entry.data_type == types.INT8 and list(entry.dims)[:1] != [30522]]
    weights = [entry for entry in weights if len(entry.dims) == 2]
    assert len(weights) == 24
    for entry in weights:
        steps = onnx.numpy_helper.to_array(entry).astype(np.int64)
        rows, columns = steps.shape
        signs = np.where(steps[:, :64] > 0, 255, 0).T.astype(np.uint8)
        levels = np.concatenate([signs, np.full((1, rows), 255, np.uint8)])
        graph = helper.make_graph(
            [helper.make_node("MatMulInteger", ["levels", entry.name], ["product"])],
            "one",
            [helper.make_tensor_value_info("levels", types.UINT8, ["n", rows])],
            [helper.make_tensor_value_info("product", types.INT32, ["n", columns])],
            [entry],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString())
        assert (session.run(None, {"levels": levels})[0] == levels.astype(np.int64) @ steps).all()


def test_other_weights_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"something else")
    command = [
        sys.executable,
        str(SCRIPT),
        "--weights",
        str(tmp_path),
        "--trained",
        str(tmp_path / "model.safetensors"),
    ]
    command += ["--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is not the published file" in done.stderr
    assert not (tmp_path / "out").exists()
