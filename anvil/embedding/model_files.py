"""A model folder: model.onnx, tokenizer.json, and model.json with the other settings that define a vector.

The folder is read without loading the model. Its digest shows whether an index's vectors came from the same files and
settings. The bundled model is such a folder, and so is any other that a user names.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from anvil.embedding.provider import BUNDLED_MODEL
from anvil.errors import ModelError
from anvil.system import safe_files

BUNDLED = Path(__file__).parent / "model"
POOLING = ("mean", "cls", "none")


@dataclass(frozen=True, slots=True)
class ModelSettings:
    """What defines a vector besides the weights and the tokenizer."""

    dimensions: int | None = None
    """None: all that the model has. A smaller number: the first ones, for models that are trained for it."""
    pooling: str = "mean"
    """How (1, tokens, d) becomes (1, d): ``mean`` or ``cls``; ``none`` when the graph's output is a vector."""
    max_tokens: int = 256
    """Tokens that the model reads, its special tokens included."""
    query_prefix: str = ""
    document_prefix: str = ""


@dataclass(frozen=True, slots=True)
class ModelDirectory:
    """A complete model folder, its settings, and the digest of both."""

    path: Path
    name: str
    settings: ModelSettings
    digest: str


def model_digest(path: Path, settings: ModelSettings) -> str:
    """SHA-256 (hex) over the folder's model.onnx and tokenizer.json and over ``settings``."""
    parts = {name: safe_files.sha256(path / name) for name in ("model.onnx", "tokenizer.json")}
    text = json.dumps({**parts, "settings": asdict(settings)}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def open_directory(model: str) -> ModelDirectory:
    """The folder behind a model setting: "" for the bundled model, else a folder's path or a hub id.

    The bundled folder's digest is read from its model.json, any other is computed (about 0.1 s for 100 MB).
    Raises ModelError when files are missing or model.json is invalid.
    """
    path = Path(model).expanduser() if model else BUNDLED
    if model and not path.is_dir():
        path = _download(model)
    for name in ("model.onnx", "tokenizer.json"):
        if not (path / name).is_file():
            raise ModelError(f"{path} has no {name}. A model folder holds model.onnx and tokenizer.json.")
    entries = _read_settings(path / "model.json")
    name = str(entries.get("name") or path.resolve().name)
    known = {key: entries[key] for key in ModelSettings.__dataclass_fields__ if key in entries}
    settings = ModelSettings(**known)
    _validate(path / "model.json", settings)
    digest = str(entries["digest"]) if path == BUNDLED else model_digest(path, settings)
    return ModelDirectory(
        path=path, name=name if path != BUNDLED or model else BUNDLED_MODEL, settings=settings, digest=digest
    )


def _read_settings(path: Path) -> dict[str, Any]:
    if not path.is_file():
        return {}
    try:
        entries = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ModelError(f"{path} is not valid JSON ({error}). Correct or remove it.") from error
    if not isinstance(entries, dict):
        raise ModelError(f"{path} must hold one JSON object.")
    return entries


def _validate(path: Path, settings: ModelSettings) -> None:
    if settings.pooling not in POOLING:
        raise ModelError(f"{path}: pooling {settings.pooling!r} is unknown. Use one of: {', '.join(POOLING)}.")
    for key in ("max_tokens", "dimensions"):
        value = getattr(settings, key)
        if not (value is None and key == "dimensions") and (type(value) is not int or value < 1):
            raise ModelError(f"{path}: {key} must be a positive whole number, not {value!r}.")
    for key in ("query_prefix", "document_prefix"):
        if not isinstance(getattr(settings, key), str):
            raise ModelError(f"{path}: {key} must be a string.")


def _download(model: str) -> Path:
    """Download "org/name" from the model hub into its cache; the folder that has both files."""
    ways_out = (
        "Set embedding.model to a folder that holds model.onnx and tokenizer.json, "
        "or leave it empty for the bundled model."
    )
    looks_like_id = model.count("/") == 1 and not model.startswith((".", "/", "~")) and "\\" not in model
    if not looks_like_id:
        raise ModelError(f"There is no model folder {model}. {ways_out}")
    if find_spec("huggingface_hub") is None:
        raise ModelError(f"{model} is not a folder and huggingface_hub is not installed. {ways_out}")
    from huggingface_hub import snapshot_download

    patterns = ["model.onnx", "onnx/model.onnx", "tokenizer.json", "model.json"]
    try:
        root = Path(snapshot_download(model, allow_patterns=patterns))
    except Exception as error:  # the hub's library raises its own, its HTTP client's and the system's errors
        raise ModelError(
            f"{model} is not a folder, and the model hub did not provide it ({_brief(error)}). {ways_out}"
        ) from error
    if not (root / "model.onnx").is_file() and (root / "onnx" / "model.onnx").is_file():
        return _collected(root)
    return root


def _collected(root: Path) -> Path:
    """Copy the tokenizer to the ONNX export, which hub repositories keep in a subfolder."""
    folder = root / "onnx"
    for name in ("tokenizer.json", "model.json"):
        if (root / name).is_file() and not (folder / name).is_file():
            (folder / name).write_bytes((root / name).read_bytes())
    return folder


def _brief(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
