"""Weights of pages in the ranking: globs over paths, each with the factor of the scores of such pages."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

from anvil.formats import globs


def recorded(weights: Mapping[str, float]) -> str | None:
    """The weights as text for the manifest, in their order; None where there are none."""
    return json.dumps(list(weights.items()), ensure_ascii=False, separators=(",", ":")) if weights else None


def recalled(text: str | None) -> dict[str, float]:
    """The weights from the text of :func:`recorded`. Raises :class:`ValueError` and :class:`TypeError` for another."""
    return {globs.bounded(glob): weight for glob, weight in json.loads(text)} if text else {}


def weigher(weights: Mapping[str, float]) -> Callable[[str], float | None]:
    """A function path -> the weight of the first glob that it matches; None if it matches none."""
    selectors = [(globs.selects(glob), weight) for glob, weight in weights.items()]
    return lambda path: next((weight for is_selected, weight in selectors if is_selected(path)), None)
