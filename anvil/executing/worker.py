"""What runs on a cluster's workers: texts to vectors, by a model that is loaded once in each process.

What comes in and goes out is made of plain values, so that neither versions of numpy nor of Anvil meet in a pickle.
"""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from anvil.embedding import EmbeddingProvider

PROBE = (
    "The same text gives the same vector.",
    "A check is a question that is put to a server again and again, and the answer that is expected. " * 2,
    "Download the package and run `dpkg -i lighthouse.deb`; settings lie in /etc/lighthouse.toml. " * 9,
)
"""Texts, from short to long, whose vectors tell whether two machines compute alike to the last bit."""


def work(asked: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Embed ``texts`` with the model that ``asked`` describes: ``version`` of Anvil, ``digest`` of the model, its
    ``model`` and ``dimensions`` as configured, and ``fingerprint`` of the probe's vectors.

    Either ``refused``, a sentence: this worker is not what was asked for. Or ``vectors``, the bytes of (n, dimensions)
    float32 in little-endian order; ``failed``, row -> reason; ``alike``, whether the probe came out the same here.
    """
    import anvil

    if anvil.__version__ != asked["version"]:
        return {"refused": f"Anvil {anvil.__version__} is installed there and {asked['version']} here"}
    from anvil.errors import AnvilError

    try:
        provider, digest, found = _provider(asked["model"], asked["dimensions"])
    except AnvilError as error:
        return {"refused": f"the model is not to be had there: {error}"}
    if digest != asked["digest"]:
        return {"refused": f"the model there is another ({digest[:12]}) than the one here ({asked['digest'][:12]})"}
    made = provider.embed(texts)
    return {
        "vectors": made.vectors.astype("<f4").tobytes(), "failed": dict(made.failed),
        "alike": found == asked["fingerprint"],
    }  # fmt: skip


def fingerprint(provider: EmbeddingProvider) -> str:
    """SHA-256 (hex) over the bits of the probe's vectors."""
    return hashlib.sha256(provider.embed(PROBE).vectors.astype("<f4").tobytes()).hexdigest()


@lru_cache(maxsize=1)
def _provider(model: str, dimensions: int | None) -> tuple[EmbeddingProvider, str, str]:
    """The provider of this process on one thread, its digest and the probe's fingerprint."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a worker has one processor, and neighbours
    from anvil import embedding
    from anvil.config import EmbeddingSettings

    provider = embedding.provider("local", EmbeddingSettings(model=model, dimensions=dimensions, threads=1))
    return provider, provider.digest, fingerprint(provider)
