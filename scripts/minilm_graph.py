"""Write all-MiniLM-L6-v2 as ONNX: the int8 graph that Anvil ships, and the plain fp32 graph it is measured
against.

In the int8 graph every linear layer is an exact integer product. Each token has its own activation scale, so
that a vector depends on its text alone, and products of two neighbours fit 16 bits, so that CPUs whose 8-bit
multiply saturates (x86 without VNNI) compute what all others compute.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
from numpy.typing import ArrayLike, NDArray
from onnx import TensorProto, helper, numpy_helper

from scripts.minilm_layers import EPSILON, HEADS, HIDDEN, Array, Layer, Model

CONTRIB = "com.microsoft"
OPSET = 21

# Activations are unsigned 8-bit around this zero point; GELU's output is never below -0.17, so that its zero
# point can be low and leave nearly the whole range to positive values.
MIDDLE = 128
GELU_ZERO = 16
GELU_MINIMUM = 0.17

# x86 without VNNI adds two neighbouring u8 x s8 products in 16 bits, saturating: 255 * (a + b) must stay
# below 32,768.
PAIR_LIMIT = 128


class Graph:
    """An ONNX graph under construction; every method returns the name of the tensor it adds."""

    def __init__(self) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[tuple[bytes, tuple[int, ...], str], onnx.TensorProto] = {}

    def constant(self, value: ArrayLike, dtype: Any = np.float32) -> str:
        array = np.ascontiguousarray(value, dtype)
        key = (array.tobytes(), array.shape, str(array.dtype))
        if key not in self.constants:
            self.constants[key] = numpy_helper.from_array(array, f"c{len(self.constants)}")
        return str(self.constants[key].name)

    def shape(self, *dimensions: int) -> str:
        return self.constant(dimensions, np.int64)

    def node(self, kind: str, *inputs: str, domain: str = "", **attributes: Any) -> str:
        return self.nodes_of(kind, 1, *inputs, domain=domain, **attributes)[0]

    def nodes_of(self, kind: str, outputs: int, *inputs: str, domain: str = "", **attributes: Any) -> list[str]:
        names = [f"t{len(self.nodes)}_{index}" for index in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, domain=domain, **attributes))
        return names

    def norm(self, x: str, gain: Array, offset: Array) -> str:
        return self.node("LayerNormalization", x, self.constant(gain), self.constant(offset), epsilon=EPSILON, axis=-1)

    def finish(self, inputs: Mapping[str, int], output: str, shape: list[str | int]) -> onnx.ModelProto:
        """A graph from token ids (texts, tokens) to one tensor of floats."""
        given = [helper.make_tensor_value_info(name, kind, ["texts", "tokens"]) for name, kind in inputs.items()]
        return self.built(given, [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)])

    def built(self, inputs: list[onnx.ValueInfoProto], outputs: list[onnx.ValueInfoProto]) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, "all-MiniLM-L6-v2", inputs, outputs, list(self.constants.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)]
        built = helper.make_model(graph, opset_imports=opsets, ir_version=10, producer_name="anvil")
        onnx.checker.check_model(built)
        return built


def quantise(weight: Array, limit: int) -> tuple[NDArray[np.int8], Array]:
    """Per-column symmetric int8 of a (inputs, outputs) weight, and the column scales.

    ``limit`` is the largest step used. Two neighbours down a column are multiplied and added in 16 bits on
    some CPUs: where both have one sign and exceed ``PAIR_LIMIT`` together, both give way (far under 1 % of
    the pairs).
    """
    scale = np.maximum(np.abs(weight).max(axis=0), 1e-8) / limit
    steps = np.rint(weight / scale).astype(np.int64)
    for sign in (1, -1):
        upper, lower = sign * steps[0::2], sign * steps[1::2]
        excess = np.where((upper > 0) & (lower > 0), np.maximum(upper + lower - PAIR_LIMIT, 0), 0)
        steps[0::2] -= sign * ((excess + 1) // 2)
        steps[1::2] -= sign * (excess // 2)
    return steps.astype(np.int8), scale


class Int8Graph(Graph):
    """A shipped graph. ``given`` is its input: ``input_ids`` int32 (texts, tokens) without padding, or ``words``, the
    float vectors of these tokens (texts, tokens, 384)."""

    def __init__(self, limit: int, given: str = "input_ids") -> None:
        super().__init__()
        self.limit = limit
        self.dims = self.node("Shape", given)
        if given == "words":
            self.dims = self.node("Slice", self.dims, self.shape(0), self.shape(2), self.shape(0))
            count = self.node("ReduceProd", self.dims, keepdims=1)
        else:
            count = self.node("Shape", self.node("Reshape", given, self.shape(-1)))
        self.zeros = {zero: self.node("Expand", self.constant(zero, np.uint8), count) for zero in (MIDDLE, GELU_ZERO)}

    def linear(self, x: str, weight: Array, fold: Array | None = None, after_gelu: bool = False) -> str:
        """``x @ weight`` (tokens, outputs) in integers, each token with its own scale.

        ``fold`` divides the channels of ``x`` and multiplies the rows of ``weight``: channels that are always
        large no longer set the scale of a whole token (the idea of SmoothQuant, arXiv 2211.10438).
        """
        if fold is not None:
            x = self.node("Mul", x, self.constant(1 / fold))
            weight = weight * fold[:, None]
        steps, columns = quantise(weight, self.limit)
        last = self.shape(-1)
        if after_gelu:
            zero = GELU_ZERO
            peak = self.node("ReduceMax", x, last, keepdims=0)
            scale = self.node("Mul", peak, self.constant(1 / (255 - zero)))
            scale = self.node("Max", scale, self.constant(GELU_MINIMUM / zero))
        else:
            zero = MIDDLE
            peak = self.node("ReduceMax", self.node("Abs", x), last, keepdims=0)
            scale = self.node("Mul", peak, self.constant(1 / (255 - zero)))
        levels = self.node("QuantizeLinear", x, scale, self.zeros[zero], axis=0)
        product = self.node(
            "MatMulIntegerToFloat",
            levels,
            self.constant(steps, np.int8),
            self.constant(1.0),
            self.constant(columns),
            self.constant(zero, np.uint8),
            self.constant(np.zeros(len(columns)), np.int8),
            domain=CONTRIB,
        )
        return self.node("Mul", product, self.node("Unsqueeze", scale, self.shape(1)))

    def with_width(self, x: str, width: int) -> str:
        """(texts * tokens, width) -> (texts, tokens, width)."""
        return self.node("Reshape", x, self.node("Concat", self.dims, self.shape(width), axis=0))

    def embeddings(self, model: Model) -> str:
        scale = np.maximum(np.abs(model.words).max(axis=1, keepdims=True), 1e-8) / 127
        table = self.constant(np.rint(model.words / scale), np.int8)
        rows = self.node("Cast", self.node("Gather", table, "input_ids"), to=TensorProto.FLOAT)
        return self.placed(self.node("Mul", rows, self.node("Gather", self.constant(scale), "input_ids")), model)

    def placed(self, words: str, model: Model) -> str:
        """Vectors of words (texts, tokens, 384) with those of their positions, as (texts * tokens, 384)."""
        tokens = self.node("Slice", self.dims, self.shape(1), self.shape(2), self.shape(0))
        positions = self.node("Slice", self.constant(model.positions), self.shape(0), tokens, self.shape(0))
        return self.node("Reshape", self.node("Add", words, positions), self.shape(-1, HIDDEN))

    def layer(self, x: str, layer: Layer, folds: dict[str, Array], next_bias: Array | float) -> str:
        """One layer over ``x`` (tokens, 384), which already carries the bias of this layer's ``out``.

        A bias that is added to the residual stream rides in the offset of the norm before it, and the linear
        that reads that norm takes it back in its own bias: twelve passes over the activations fewer.
        """
        weight, bias = layer.qkv
        qkv = self.with_width(self.linear(x, weight, folds["qkv"]), 3 * HIDDEN)
        heads = self.nodes_of("Split", 3, qkv, axis=2, num_outputs=3)
        rest = self.constant(bias - layer.out[1] @ weight)
        mixed = self.node("MultiHeadAttention", *heads, rest, domain=CONTRIB, num_heads=HEADS)
        mixed = self.node("Reshape", mixed, self.shape(-1, HIDDEN))
        x = self.node("Add", x, self.linear(mixed, layer.out[0]))
        gain, offset = layer.attention_norm
        x = self.norm(x, gain, offset + layer.down[1])
        weight, bias = layer.up
        inner = self.linear(x, weight, folds["up"])
        inner = self.node("BiasGelu", inner, self.constant(bias - layer.down[1] @ weight), domain=CONTRIB)
        x = self.node("Add", x, self.linear(inner, layer.down[0], after_gelu=True))
        gain, offset = layer.output_norm
        return self.norm(x, gain, offset + next_bias)

    def states(self, x: str, model: Model, folds: list[dict[str, Array]]) -> str:
        """The last hidden states (texts * tokens, 384) of embeddings ``x``. ``folds``: of each layer, see
        :func:`scripts.minilm_calibration.channel_folds`."""
        gain, offset = model.norm
        x = self.norm(x, gain, offset + model.layers[0].out[1])
        biases: list[Array | float] = [layer.out[1] for layer in model.layers[1:]]
        for layer, fold, bias in zip(model.layers, folds, [*biases, 0.0], strict=True):
            x = self.layer(x, layer, fold, bias)
        return x


def passage_graph(model: Model, query_weight: Array, folds: list[dict[str, Array]], limit: int) -> onnx.ModelProto:
    """The graph of the passage scorer: ``words`` (texts, tokens, 384), the vectors of tokens in the word table of the
    embedding model -> ``states`` (texts * tokens, 384) of unit length, and ``weights`` (texts * tokens,), how much each
    token would count in a question (``query_weight``: (384,))."""
    graph = Int8Graph(limit, "words")
    x = graph.states(graph.placed("words", model), model, folds)
    graph.node("LpNormalization", x, axis=-1, p=2)
    graph.nodes[-1].output[0] = "states"
    graph.node("MatMul", x, graph.constant(query_weight))
    graph.nodes[-1].output[0] = "weights"
    shapes: dict[str, list[str | int]] = {
        "words": ["texts", "tokens", HIDDEN],
        "states": ["tokens", HIDDEN],
        "weights": ["tokens"],
    }
    words, *outputs = (helper.make_tensor_value_info(n, TensorProto.FLOAT, shape) for n, shape in shapes.items())
    return graph.built([words], outputs)


def int8_graph(model: Model, folds: list[dict[str, Array]], limit: int) -> onnx.ModelProto:
    """The graph of the embedding model: ``input_ids`` -> unit vectors (texts, 384). ``folds`` holds, for each layer,
    the channel scales of ``qkv`` and ``up``."""
    graph = Int8Graph(limit)
    x = graph.states(graph.embeddings(model), model, folds)
    mean = graph.node("ReduceMean", graph.with_width(x, HIDDEN), graph.shape(1), keepdims=0)
    vector = graph.node("LpNormalization", mean, axis=-1, p=2)
    return graph.finish({"input_ids": TensorProto.INT32}, vector, ["texts", HIDDEN])


def fp32_graph(model: Model) -> onnx.ModelProto:
    """The reference: padded int64 batches with a mask in, ``last_hidden_state`` out, standard operators only.

    It is what an exporter would write, for loops that expect such a file; onnxruntime fuses it as it fuses
    those.
    """
    graph = Graph()
    tokens = graph.node("Slice", graph.node("Shape", "input_ids"), graph.shape(1), graph.shape(2), graph.shape(0))
    positions = graph.node("Slice", graph.constant(model.positions), graph.shape(0), tokens, graph.shape(0))
    x = graph.node("Add", graph.node("Gather", graph.constant(model.words), "input_ids"), positions)
    x = graph.norm(x, *model.norm)
    unseen = graph.node("Sub", graph.constant(1.0), graph.node("Cast", "attention_mask", to=TensorProto.FLOAT))
    mask = graph.node("Unsqueeze", graph.node("Mul", unseen, graph.constant(-1e4)), graph.shape(1, 2))
    size = HIDDEN // HEADS

    def linear(x: str, weight: Array, bias: Array) -> str:
        return graph.node("Add", graph.node("MatMul", x, graph.constant(weight)), graph.constant(bias))

    def heads(x: str, order: list[int]) -> str:
        return graph.node("Transpose", graph.node("Reshape", x, graph.shape(0, 0, HEADS, size)), perm=order)

    for layer in model.layers:
        weight, bias = layer.qkv
        query, key, value = (
            heads(linear(x, weight[:, start : start + HIDDEN], bias[start : start + HIDDEN]), order)
            for start, order in ((0, [0, 2, 1, 3]), (HIDDEN, [0, 2, 3, 1]), (2 * HIDDEN, [0, 2, 1, 3]))
        )
        scores = graph.node("Div", graph.node("MatMul", query, key), graph.constant(np.sqrt(size)))
        shares = graph.node("Softmax", graph.node("Add", scores, mask), axis=-1)
        mixed = graph.node("Transpose", graph.node("MatMul", shares, value), perm=[0, 2, 1, 3])
        mixed = graph.node("Reshape", mixed, graph.shape(0, 0, HIDDEN))
        x = graph.norm(graph.node("Add", x, linear(mixed, *layer.out)), *layer.attention_norm)
        inner = graph.node("Gelu", linear(x, *layer.up))
        x = graph.norm(graph.node("Add", x, linear(inner, *layer.down)), *layer.output_norm)
    graph.node("Identity", x)
    graph.nodes[-1].output[0] = "last_hidden_state"
    inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), TensorProto.INT64)
    return graph.finish(inputs, "last_hidden_state", ["texts", "tokens", HIDDEN])
