"""Embedding on a Ray cluster: the executor in the process of the build, and the task of the workers.

Ray itself runs in a child process (:mod:`anvil.ray.ray_process`), which is started if there are enough texts, and ends
with the build. A worker imports this module for its task, :func:`work`. Arguments and results are plain values, so the
pickles do not depend on the versions of numpy and Anvil.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

from anvil._version import __version__
from anvil.embedding.provider import Embedded, EmbeddedBatches, EmbeddingProvider, Executor, LocalExecutor
from anvil.errors import AnvilError, BuildError, ConfigError
from anvil.settings.schema import EmbeddingSettings
from anvil.system import installation
from anvil.system.child_process import ChildProcess, Watchdog

MAX_LOCAL_TEXTS = 512
"""Up to this number, texts are embedded on this machine, which is faster than connecting to a cluster."""
DIAL_TIMEOUT_S = 10.0
START_TIMEOUT_S = 150.0
"""Limit for connecting. Ray gives a busy head node 40 seconds, and there are three attempts."""
SILENCE_TIMEOUT_S = 600.0
"""Limit for the next answer. The cluster may be busy, or start machines first."""
END_TIMEOUT_S = 15.0
MAX_LINE_BYTES = 10_000_000
"""The longest message of the process, which can have a reason for each text of a batch."""
_Answer = tuple[dict[str, Any], bytes]
"""The message about a batch, and the bytes of its vectors."""
_SECRET_VARIABLES = ("ANVIL_", "OPENAI_", "PYTHONWARNINGS")
"""Prefixes of environment variables that the process does not get, so that workers do not inherit keys."""


def executor(address: str, provider: EmbeddingProvider, settings: EmbeddingSettings) -> Executor:
    """The executor at ``address``: ``ray://HOST:PORT``, ``ray://auto`` or ``ray://local``. Nothing is started yet.

    Raises :class:`ConfigError` for an invalid address, a provider that cannot run on a cluster, or without Ray.
    """
    if not re.fullmatch(r"ray://(local|auto|([\w.-]+|\[[0-9A-Fa-f:.]+\]):[0-9]{1,5})", address):
        raise ConfigError(
            f"{address!r} is not an executor. Name a cluster as ray://HOST:10001, as ray://auto where RAY_ADDRESS or "
            "this machine says which, or start one on this machine with ray://local."
        )
    if provider.name == "none":
        return LocalExecutor(provider)  # it makes no vectors, so there is nothing to distribute
    if provider.name != "local":
        raise ConfigError(
            f"The provider {provider.name!r} embeds elsewhere already, and its key stays on this machine. "
            "Build without --executor."
        )
    if find_spec("ray") is None:
        raise ConfigError(f"Ray is not installed. Run: {installation.install_extras('ray')}")
    return Cluster(address, provider, settings)


class Cluster:
    """Embeds on the workers of the Ray cluster at ``address``, several batches at a time for each processor.

    ``provider`` is the local one with ``settings``. A worker must have the same version of Anvil and model digest.
    """

    batch = 64
    """Texts of a batch: one or two seconds of work for a processor, which are lost if a worker dies."""

    def __init__(self, address: str, provider: EmbeddingProvider, settings: EmbeddingSettings) -> None:
        self.address = address
        self._provider = provider
        self._settings = settings

    def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
        """The vectors of each batch, in order. This machine makes them for at most ``MAX_LOCAL_TEXTS`` texts."""
        import numpy as np

        source = iter(batches)
        first: list[Sequence[str]] = []
        while sum(map(len, first)) <= MAX_LOCAL_TEXTS:
            texts = next(source, None)
            if texts is None:
                yield from (self._provider.embed(batch) for batch in first)
                return
            first.append(texts)
        _ensure_reachable(self.address)
        with contextlib.closing(_RayProcess(self.address)) as process:
            for message, vectors in process.embed(self._request(), chain(first, source)):
                rows = np.frombuffer(vectors, "<f4").reshape(-1, self._provider.dimensions)
                failed = {int(row): str(reason) for row, reason in message["failed"].items()}
                yield Embedded(rows.astype(np.float32, copy=False), failed)

    def _request(self) -> dict[str, Any]:
        model = self._settings.model
        if model and Path(model).expanduser().is_dir():  # absolute: workers have another working folder
            model = str(Path(model).expanduser().resolve())
        return {
            "version": __version__,
            "digest": self._provider.digest,
            "model": model,
            "dimensions": self._settings.dimensions,
        }


def _ensure_reachable(address: str) -> None:
    """Raise :class:`BuildError` if nothing listens at the address. Ray itself would try for minutes."""
    if address == "ray://auto":
        address = os.environ.get("RAY_ADDRESS", "")
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), DIAL_TIMEOUT_S).close()
    except (OSError, OverflowError) as error:
        raise BuildError(
            f"The Ray cluster at {address} cannot be reached ({getattr(error, 'strerror', None) or error}). Check the "
            "address, and that Ray Client (port 10001 of the head node) is open to this machine."
        ) from None


class _RayProcess:
    def __init__(self, address: str) -> None:
        self._address = address
        self._timed_out = self._done = False
        env = {name: value for name, value in os.environ.items() if not name.startswith(_SECRET_VARIABLES)}
        self._process = ChildProcess("anvil.ray.ray_process", env={**env, "RAY_USAGE_STATS_ENABLED": "0"})

    def embed(self, request: dict[str, Any], batches: Iterator[Sequence[str]]) -> Iterator[_Answer]:
        """One answer for each batch, in order. Raises :class:`BuildError`."""
        connected = False
        try:
            self._process.send({"address": self._address, **request})
            while True:
                message, vectors = self._receive(SILENCE_TIMEOUT_S if connected else START_TIMEOUT_S)
                if vectors is not None:
                    yield message, vectors
                elif "want" in message:
                    connected = True
                    self._process.send({"texts": next(batches, None)})
                elif "done" in message:
                    self._done = True
                    return
                elif "refused" in message:
                    raise BuildError(
                        f"The workers of {self._address} cannot take part: {message['refused'].rstrip('.')}. Install "
                        f"the same anvil-docs ({__version__}) and model on every node of the cluster."
                    )
                else:
                    raise BuildError(self._failure(connected, str(message.get("error"))))
        except (OSError, EOFError, ValueError):
            code = self._process.exit_code
            reason = "the connection ended" if code is None else f"code {code}"
            raise BuildError(self._failure(connected, reason)) from None

    def close(self) -> None:
        """End the process, and a cluster that it started. A second call does nothing."""
        if not self._done:
            self._process.terminate()  # it disconnects, and the cluster drops its running tasks
        self._process.close(END_TIMEOUT_S)

    def _receive(self, timeout_s: float) -> tuple[dict[str, Any], bytes | None]:
        watchdog = Watchdog(self._process, timeout_s)
        try:
            with watchdog:
                return self._process.receive(MAX_LINE_BYTES)
        finally:
            self._timed_out = watchdog.expired

    def _failure(self, connected: bool, reason: str) -> str:
        unchanged = "The index was not changed."
        if self._timed_out and connected:
            return (
                f"Nothing came back from the workers of {self._address} for {SILENCE_TIMEOUT_S / 60:.0f} minutes. "
                f"{unchanged} See with 'ray status' whether the cluster has a free processor."
            )
        if self._timed_out:
            return (
                f"The Ray cluster at {self._address} does not answer within {START_TIMEOUT_S:.0f} seconds. {unchanged}"
            )
        if connected:
            return f"The Ray cluster at {self._address} was lost during the build ({reason}). {unchanged}"
        return (
            f"The Ray cluster at {self._address} cannot be used ({reason.rstrip('.')}). {unchanged} See that it runs "
            "the Ray and Python of this machine, and set RAY_AUTH_TOKEN if it asks for a token."
        )


# --- on a worker -----------------------------------------------------------------------------------------------------


def work(request: dict[str, Any], texts: list[str]) -> dict[str, Any]:
    """Embed ``texts``. ``request``: the ``version`` of Anvil, the ``digest`` of the model, and ``model`` and
    ``dimensions`` as configured.

    Returns ``vectors``, the bytes of (n, dimensions) float32 in little-endian order, and ``failed``, row -> reason. If
    this worker has another version or model, it returns ``refused``, the reason.
    """
    if __version__ != request["version"]:
        return {"refused": f"Anvil {__version__} is installed there and {request['version']} here"}
    try:
        provider = _worker_provider(request["model"], request["dimensions"])
        digest = provider.digest
    except AnvilError as error:
        return {"refused": f"the model is not available there: {error}"}
    if digest != request["digest"]:
        return {"refused": f"the model there is another ({digest[:12]}) than the one here ({request['digest'][:12]})"}
    embedded = provider.embed(texts)
    return {"vectors": embedded.vectors.astype("<f4").tobytes(), "failed": dict(embedded.failed)}


@lru_cache(maxsize=1)
def _worker_provider(model: str, dimensions: int | None) -> EmbeddingProvider:
    """The provider of this process, with one thread, because a worker has one processor."""
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    from anvil.embedding.provider import create_provider

    return create_provider("local", EmbeddingSettings(model=model, dimensions=dimensions, threads=1))
