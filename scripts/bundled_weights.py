"""The weights of the bundled models, read back from their 8-bit graphs: to train one on, or to run it in fp32.

The graph carries some biases and scales elsewhere than the layers of BERT do; see :mod:`scripts.minilm_graph`. What is
read here computes the same.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import numpy_helper

from scripts.minilm_layers import HIDDEN, LAYERS

Floats = NDArray[np.float32]


def bundled_weights(folder: Path, file: str) -> dict[str, Floats]:
    """Name in the original -> weight, of ``model.onnx`` or ``passages.onnx`` in the folder of the embedding model. The
    second has a ``query_weight`` too."""
    words = [numpy_helper.to_array(each) for each in onnx.load(folder / "model.onnx").graph.initializer]
    table = max((each for each in words if each.ndim == 2), key=lambda each: each.size)
    scales = next(each for each in words if each.shape == (len(table), 1))
    graph = onnx.load(folder / file).graph
    constants = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    made_by = {name: node for node in graph.node for name in node.output}
    of_kind = {kind: [node for node in graph.node if node.op_type == kind] for kind in {n.op_type for n in graph.node}}

    def linear(node: onnx.NodeProto) -> Floats:
        """The weight (outputs, inputs) of a product, with the scales by which its input is multiplied before."""
        weight: Floats = constants[node.input[1]].astype(np.float32) * constants[node.input[3]]
        scaled = made_by.get(made_by[node.input[0]].input[0])
        if scaled is not None and scaled.op_type == "Mul" and scaled.input[1] in constants:
            factor = constants[scaled.input[1]]
            weight = weight * factor[:, None] if factor.shape == (len(weight),) else weight
        return np.ascontiguousarray(weight.T)

    def norm(name: str, node: onnx.NodeProto) -> None:
        weights[f"{name}.weight"], weights[f"{name}.bias"] = constants[node.input[1]], constants[node.input[2]]

    none = np.zeros(HIDDEN, np.float32)
    # The positions of the graph include the one token type in use.
    weights = {
        "embeddings.word_embeddings.weight": table.astype(np.float32) * scales,
        "embeddings.position_embeddings.weight": next(c for c in constants.values() if c.shape == (512, HIDDEN)),
        "embeddings.token_type_embeddings.weight": np.zeros((2, HIDDEN), np.float32),
    }
    if "MatMul" in of_kind:
        weights["query_weight"] = constants[of_kind["MatMul"][0].input[1]]
    norms = of_kind["LayerNormalization"]
    norm("embeddings.LayerNorm", norms[0])
    for number in range(LAYERS):
        prefix = f"encoder.layer.{number}"
        qkv, out, up, down = map(linear, of_kind["MatMulIntegerToFloat"][4 * number : 4 * number + 4])
        bias = constants[of_kind["MultiHeadAttention"][number].input[3]]
        for place, part in enumerate(("query", "key", "value")):
            rows = slice(HIDDEN * place, HIDDEN * (place + 1))
            weights[f"{prefix}.attention.self.{part}.weight"] = qkv[rows]
            weights[f"{prefix}.attention.self.{part}.bias"] = bias[rows]
        inner = constants[of_kind["BiasGelu"][number].input[1]]
        for name, weight, offset in (
            ("attention.output", out, none),
            ("intermediate", up, inner),
            ("output", down, none),
        ):
            weights[f"{prefix}.{name}.dense.weight"], weights[f"{prefix}.{name}.dense.bias"] = weight, offset
        norm(f"{prefix}.attention.output.LayerNorm", norms[2 * number + 1])
        norm(f"{prefix}.output.LayerNorm", norms[2 * number + 2])
    return weights
