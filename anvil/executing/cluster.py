"""The executor that spreads a build's embedding over a Ray cluster, as the build sees it.

Ray itself runs in a process of its own (:mod:`anvil.executing.driver`), which is started when there is enough to do
and ended with the build, whatever happens.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil import __version__
from anvil.embedding import Embedded
from anvil.errors import BuildError
from anvil.executing.worker import fingerprint

if TYPE_CHECKING:
    from anvil.config import EmbeddingSettings
    from anvil.embedding import EmbeddingProvider
    from anvil.executing import Answers

SMALL = 512
"""Up to so many texts are embedded on this machine: that is done before a cluster has been asked."""
DIAL_SECONDS = 10.0
START_SECONDS = 150.0
"""How long a connection may take: Ray gives a busy head 40 seconds, and it is asked three times."""
PATIENCE_SECONDS = 600.0
"""How long nothing at all may come back: a busy cluster is waited for, and one that grows when it is asked to."""
END_SECONDS = 15.0
HEADER = 10_000_000
"""Bytes of the longest line from the driver: a reason for each text of a batch would fit."""
_BOOT = "import sys, json; sys.path[:] = json.loads(sys.argv[1]); from anvil.executing.driver import main; main()"
_Answer = tuple[dict[str, Any], bytes]
"""What is said about a batch, and the bytes of its vectors."""
_KEPT_BACK = ("ANVIL_", "OPENAI_", "PYTHONWARNINGS")
"""Of the environment, which workers on this machine would inherit: keys are not for them."""


class Cluster:
    """Batches to the workers of the Ray cluster at ``address``, several under way for each of its processors.

    ``provider`` is the local one with ``settings``: a worker takes part only with the same version of Anvil and the
    same digest of the model.
    """

    batch = 64
    """A second or two of work for one processor, which is also what is lost with a worker."""

    def __init__(self, address: str, provider: EmbeddingProvider, settings: EmbeddingSettings) -> None:
        self.address = address
        self.notes: list[str] = []
        self._provider = provider
        self._settings = settings

    def embed(self, batches: Iterable[Sequence[str]]) -> Answers:
        """The vectors of each batch, in order; few texts in all never leave this machine."""
        source = iter(batches)
        first: list[Sequence[str]] = []
        while sum(map(len, first)) <= SMALL:
            texts = next(source, None)
            if texts is None:
                for each in first:
                    yield self._provider.embed(each)
                return
            first.append(texts)
        _dial(self.address)
        with contextlib.closing(_Driver(self.address)) as driver:
            alike = True
            for head, vectors in driver.answers(self._asked(), chain(first, source)):
                alike &= head["alike"] is True
                yield self._embedded(head, vectors)
        if not alike:
            self.notes.append(
                "Some workers of the cluster compute with other last bits than this machine (another processor or "
                "onnxruntime): vectors may differ in their last step from those of a local build; the digest does not."
            )

    def _asked(self) -> dict[str, Any]:
        """What each worker has to be, and to load."""
        model = self._settings.model
        if model and Path(model).expanduser().is_dir():  # workers have another working folder
            model = str(Path(model).expanduser().resolve())
        return {
            "version": __version__, "digest": self._provider.digest, "fingerprint": fingerprint(self._provider),
            "model": model, "dimensions": self._settings.dimensions,
        }  # fmt: skip

    def _embedded(self, head: dict[str, Any], vectors: bytes) -> Embedded:
        import numpy as np

        rows = np.frombuffer(vectors, "<f4").reshape(-1, self._provider.dimensions).astype(np.float32, copy=False)
        return Embedded(rows, {int(row): str(reason) for row, reason in head["failed"].items()})


def _dial(address: str) -> None:
    """See whether anybody listens there: Ray itself would try for minutes."""
    if address == "ray://auto":
        address = os.environ.get("RAY_ADDRESS", "")
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not port.isdigit():
        return
    try:
        socket.create_connection((host.strip("[]"), int(port)), DIAL_SECONDS).close()
    except (OSError, OverflowError) as error:
        raise BuildError(
            f"The Ray cluster at {address} cannot be reached ({getattr(error, 'strerror', None) or error}). Check the "
            "address, and that Ray Client (port 10001 of the head node) is open to this machine."
        ) from None


class _Driver:
    """The process that talks to the cluster: a line of JSON either way, vectors behind theirs."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._struck = self._ended = False
        kept = {name: value for name, value in os.environ.items() if not name.startswith(_KEPT_BACK)}
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-X", "utf8", "-c", _BOOT, json.dumps([each for each in sys.path if each])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env={**kept, "RAY_USAGE_STATS_ENABLED": "0"},
            start_new_session=True,  # an interrupt from the keyboard is for us
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )  # fmt: skip

    def answers(self, asked: dict[str, Any], batches: Iterator[Sequence[str]]) -> Iterator[_Answer]:
        """One for each batch, in order. Raises :class:`BuildError`."""
        begun = False
        try:
            self._send({"address": self._address, **asked})
            while True:
                head, vectors = self._heard(PATIENCE_SECONDS if begun else START_SECONDS)
                if "want" in head:
                    begun = True
                    self._send(next(batches, None))
                elif "bytes" in head:
                    yield head, vectors
                elif "done" in head:
                    self._ended = True
                    return
                elif "refused" in head:
                    raise BuildError(
                        f"The workers of {self._address} cannot take part: {head['refused'].rstrip('.')}. Install the "
                        f"same anvil-docs ({__version__}) and model on every node of the cluster."
                    )
                else:
                    raise BuildError(self._lost(begun, str(head.get("error"))))
        except (OSError, EOFError, ValueError):
            code = self._process.poll()
            raise BuildError(self._lost(begun, "the connection ended" if code is None else f"code {code}")) from None

    def close(self) -> None:
        """End the process, and with it the cluster that it may have started; twice is fine."""
        if not self._ended:
            self._process.terminate()  # it says goodbye to the cluster, which drops what is under way
        for pipe in (self._process.stdin, self._process.stdout):
            with contextlib.suppress(OSError):  # what was not flushed to a process that is gone
                if pipe is not None:
                    pipe.close()
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(END_SECONDS)
        finally:
            self._kill()

    def _send(self, message: object) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def _heard(self, patience: float) -> _Answer:
        """The next message, and the bytes behind it."""
        assert self._process.stdout is not None
        watchdog = threading.Timer(patience, self._strike)
        watchdog.daemon = True
        watchdog.start()
        try:
            line = self._process.stdout.readline(HEADER)
            head = json.loads(line) if line else None
            if not isinstance(head, dict):
                raise EOFError
            size = int(head.get("bytes", 0))
            vectors = self._process.stdout.read(size)
            if len(vectors) < size:
                raise EOFError
            return head, vectors
        finally:
            watchdog.cancel()

    def _strike(self) -> None:
        self._struck = True
        self._kill()

    def _lost(self, begun: bool, reason: str) -> str:
        stands = "The index is what it was."
        if self._struck and begun:
            return (
                f"Nothing came back from the workers of {self._address} for {PATIENCE_SECONDS / 60:.0f} minutes. "
                f"{stands} See with 'ray status' whether the cluster has a free processor."
            )
        if self._struck:
            return f"The Ray cluster at {self._address} does not answer within {START_SECONDS:.0f} seconds. {stands}"
        if begun:
            return f"The Ray cluster at {self._address} went away during the build ({reason}). {stands}"
        return (
            f"The Ray cluster at {self._address} cannot be used ({reason.rstrip('.')}). {stands} See that it runs the "
            "Ray and Python of this machine, and set RAY_AUTH_TOKEN if it asks for a token."
        )

    def _kill(self) -> None:
        with contextlib.suppress(OSError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()
