"""Choose, for each linear of all-MiniLM-L6-v2, how activations and weights share 8 bits.

A float64 forward pass over a few texts shows which channels are always large; dividing those before
quantising keeps them from setting the scale of a whole token. Float64 and numpy alone, so that any machine
chooses the same.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from tokenizers import Tokenizer

from scripts.calibration_texts import TEXTS
from scripts.minilm_graph import MIDDLE, quantise
from scripts.minilm_layers import EPSILON, HEADS, HIDDEN, Array, Model

# How much of the channels' range moves into the weights: the trials, 1 being all of it.
EXPONENTS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8)

# Every how manieth token is looked at: enough rows to choose by, in a few seconds.
STRIDE = 3


def token_ids(tokenizer_json: str, max_tokens: int = 256) -> list[list[int]]:
    """The calibration texts as the model reads them."""
    tokenizer = Tokenizer.from_str(tokenizer_json)
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_tokens)
    return [encoding.ids for encoding in tokenizer.encode_batch(list(TEXTS))]


def channel_folds(model: Model, texts: Sequence[Sequence[int]], limit: int) -> list[dict[str, Array]]:
    """For each layer, the channel scales of the two linears that read the residual stream, ``qkv`` and
    ``up``.

    The other two gain nothing that could be measured (cosine to fp32 unchanged in the fourth digit).
    """
    seen = [_residuals(model, ids) for ids in texts]
    folds: list[dict[str, Array]] = []
    for number, layer in enumerate(model.layers):
        rows = [np.concatenate([text[number][part] for text in seen])[::STRIDE] for part in range(2)]
        weights = {"qkv": layer.qkv[0], "up": layer.up[0]}
        folds.append({name: _best_fold(x, weights[name], limit) for name, x in zip(weights, rows, strict=True)})
    return folds


def _best_fold(rows: Array, weight: Array, limit: int) -> Array:
    """The scales of ``rows``' channels with the least squared error of the integer product."""
    exact = rows @ weight
    reach = np.abs(rows).max(axis=0) + 1e-6
    strength = np.abs(weight).max(axis=1) + 1e-6
    best = np.ones(len(reach))
    least = np.inf
    for exponent in EXPONENTS:
        fold = reach**exponent / strength ** (1 - exponent)
        # Steps of about 1 %: far coarser than what two machines could disagree about.
        fold = np.exp2(np.round(np.log2(fold / fold.max()) * 64) / 64)
        steps, columns = quantise(weight * fold[:, None], limit)
        error = float(np.square(_on_grid(rows / fold) @ (steps * columns) - exact).mean())
        if error < least:
            least, best = error, fold
    return best


def _on_grid(rows: Array) -> Array:
    """``rows`` rounded to the 8-bit grid that the graph gives each token."""
    scale = np.abs(rows).max(axis=1, keepdims=True) / (255 - MIDDLE)
    grid: Array = np.rint(rows / scale) * scale
    return grid


def _residuals(model: Model, ids: Sequence[int]) -> list[tuple[Array, Array]]:
    """For each layer, what its ``qkv`` and ``up`` read for one text, as the int8 graph carries it (biases
    included)."""
    count = len(ids)
    following = [layer.out[1] for layer in model.layers[1:]] + [np.zeros(HIDDEN)]
    x = _norm(model.words[list(ids)] + model.positions[:count], *model.norm) + model.layers[0].out[1]
    seen = []
    for layer, next_bias in zip(model.layers, following, strict=True):
        qkv = (x - layer.out[1]) @ layer.qkv[0] + layer.qkv[1]
        query, key, value = qkv.reshape(count, 3, HEADS, HIDDEN // HEADS).transpose(1, 2, 0, 3)
        scores = query @ key.transpose(0, 2, 1) / np.sqrt(HIDDEN // HEADS)
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        mixed = (shares @ value).transpose(1, 0, 2).reshape(count, HIDDEN)
        y = _norm(x + mixed @ layer.out[0], *layer.attention_norm) + layer.down[1]
        seen.append((x, y))
        inner = _gelu((y - layer.down[1]) @ layer.up[0] + layer.up[1])
        x = _norm(y + inner @ layer.down[0], *layer.output_norm) + next_bias
    return seen


def _norm(x: Array, gain: Array, offset: Array) -> Array:
    centred = x - x.mean(axis=-1, keepdims=True)
    spread = np.sqrt(np.square(centred).mean(axis=-1, keepdims=True) + EPSILON)
    normal: Array = centred / spread * gain + offset
    return normal


def _gelu(x: Array) -> Array:
    """The tanh form (Hendrycks and Gimpel, arXiv 1606.08415), within 1e-3 of the exact one."""
    inner: Array = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
    return inner
