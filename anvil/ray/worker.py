"""The task of a cluster's worker, with plain values: the pickles do not depend on the versions of numpy and Anvil."""

from __future__ import annotations

import hashlib
import os
from functools import lru_cache
from typing import Any

from anvil._version import __version__
from anvil.embedding.provider import EmbeddingProvider

PROBE = (
    "The same text gives the same vector.",
    "A check is a question that is put to a server again and again, and the answer that is expected. " * 2,
    "Download the package and run `dpkg -i lighthouse.deb`; settings lie in /etc/lighthouse.toml. " * 9,
)
"""Texts, from short to long, whose vectors show whether two machines compute the same bits."""


def work(request: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Embed ``texts`` with the model that ``request`` describes: ``version`` of Anvil, ``digest`` of the model, its
    ``model`` and ``dimensions`` as configured, and ``fingerprint`` of the probe's vectors.

    Returns either ``refused``, why this worker does not match the request, or ``vectors``, the bytes of (n, dimensions)
    float32 in little-endian order; ``failed``, row -> reason; ``alike``, whether the probe's vectors have the same bits
    here.
    """
    if __version__ != request["version"]:
        return {"refused": f"Anvil {__version__} is installed there and {request['version']} here"}
    from anvil.errors import AnvilError

    try:
        provider, digest, probe_fingerprint = _worker_provider(request["model"], request["dimensions"])
    except AnvilError as error:
        return {"refused": f"the model is not available there: {error}"}
    if digest != request["digest"]:
        return {"refused": f"the model there is another ({digest[:12]}) than the one here ({request['digest'][:12]})"}
    embedded = provider.embed(texts)
    return {
        "vectors": embedded.vectors.astype("<f4").tobytes(),
        "failed": dict(embedded.failed),
        "alike": probe_fingerprint == request["fingerprint"],
    }


def fingerprint(provider: EmbeddingProvider) -> str:
    """SHA-256 (hex) over the bits of the probe's vectors."""
    return hashlib.sha256(provider.embed(PROBE).vectors.astype("<f4").tobytes()).hexdigest()


@lru_cache(maxsize=1)
def _worker_provider(model: str, dimensions: int | None) -> tuple[EmbeddingProvider, str, str]:
    """The provider of this process on one thread, its digest and the probe's fingerprint."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"  # a worker has one processor
    from anvil.embedding.provider import create_provider
    from anvil.settings.schema import EmbeddingSettings

    provider = create_provider("local", EmbeddingSettings(model=model, dimensions=dimensions, threads=1))
    return provider, provider.digest, fingerprint(provider)
