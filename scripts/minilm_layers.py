"""The published tensors of all-MiniLM-L6-v2, named by what a BERT layer does with them.

Linear weights are transposed to (inputs, outputs) and query, key and value are joined side by side, so that the
graph and the calibration read the same few arrays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from scripts.minilm_weights import Weights

HIDDEN = 384
HEADS = 12
LAYERS = 6
EPSILON = 1e-12

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Layer:
    """One transformer layer: four linears, each (weight, bias), and two norms, each (gain, offset)."""

    qkv: tuple[Array, Array]
    out: tuple[Array, Array]
    up: tuple[Array, Array]
    down: tuple[Array, Array]
    attention_norm: tuple[Array, Array]
    output_norm: tuple[Array, Array]


@dataclass(frozen=True)
class Model:
    """The embedding tables (positions include the one token type in use), their norm, and the layers."""

    words: Array
    positions: Array
    norm: tuple[Array, Array]
    layers: list[Layer]


def model(weights: Weights) -> Model:
    """Gather ``weights`` into layers."""

    def norm(name: str) -> tuple[Array, Array]:
        return weights[f"{name}.weight"], weights[f"{name}.bias"]

    def linear(name: str) -> tuple[Array, Array]:
        return weights[f"{name}.weight"].T, weights[f"{name}.bias"]

    layers = []
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}"
        heads = [linear(f"{prefix}.attention.self.{part}") for part in ("query", "key", "value")]
        layers.append(
            Layer(
                qkv=(
                    np.concatenate([weight for weight, _ in heads], axis=1),
                    np.concatenate([bias for _, bias in heads]),
                ),
                out=linear(f"{prefix}.attention.output.dense"),
                up=linear(f"{prefix}.intermediate.dense"),
                down=linear(f"{prefix}.output.dense"),
                attention_norm=norm(f"{prefix}.attention.output.LayerNorm"),
                output_norm=norm(f"{prefix}.output.LayerNorm"),
            )
        )
    return Model(
        words=weights["embeddings.word_embeddings.weight"],
        positions=weights["embeddings.position_embeddings.weight"]
        + weights["embeddings.token_type_embeddings.weight"][0],
        norm=norm("embeddings.LayerNorm"),
        layers=layers,
    )
