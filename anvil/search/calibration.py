"""The fits of :mod:`anvil.search.confidence` that come with the package, by embedding model."""

from __future__ import annotations

import importlib.resources
import json
from functools import cache

from anvil.search.confidence import Fit, Fits

FILE = "confidence.json"
"""Next to this module; ``scripts/fit_confidence.py`` writes it, with its origin."""


@cache
def fits_for(model_digest: str) -> Fits:
    """The fits for vectors of this model; for another one, of words alone."""
    text = importlib.resources.files("anvil.search").joinpath(FILE).read_text(encoding="utf-8")
    table = json.loads(text)
    vectors = next((model["fit"] for model in table["models"] if model["digest"] == model_digest), None)
    return Fits(words=Fit(**table["words"]["fit"]), vectors=None if vectors is None else Fit(**vectors))
