"""The process that talks to a Ray cluster, and the only place that imports ray.

Ray takes a process over: signal handlers, log lines, threads, and an end without a word when its cluster dies. So it
gets one of its own. Batches come in on stdin, which is asked for each; vectors go out on stdout, in order.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from anvil.executing.worker import work

AHEAD = 4
"""Batches under way for each processor of the cluster: it must not run dry while the oldest one is waited for."""
RETRIES = 3
"""How often a batch is given to another worker after one was lost."""
CONNECTING = 3
"""How often a head is asked for a connection. It forks a process for each, beside threads of gRPC, and now and then
that process dies before it runs, which is told after half a minute."""
LOOK_SECONDS = 5.0
"""How often the cluster's size is asked for: nodes come and go."""


def main() -> None:
    """Serve one build."""
    source, target = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # what Ray prints is no answer
        os.dup2(nothing, number)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # through what says goodbye to the cluster
    asked = json.loads(source.readline())
    try:
        with _connected(asked.pop("address")) as ray:
            _serve(ray, asked, source, target)
            _say(target, {"done": True})
    except _Refused as refused:
        _say(target, {"refused": str(refused)})
    except Exception as error:  # Ray raises its own, gRPC's, the system's and, from its depths, bare errors
        _say(target, {"error": _brief(error)})


class _Refused(Exception):
    """A worker is not what was asked for; the rest of a sentence that says why."""


@contextmanager
def _connected(address: str) -> Iterator[Any]:
    import ray

    if address == "ray://local":
        ray.init(address="local", include_dashboard=False, log_to_driver=False)
    else:
        named = address if address != "ray://auto" else os.environ.get("RAY_ADDRESS") or "auto"
        for left in range(CONNECTING, 0, -1):
            try:
                ray.init(address=named, log_to_driver=False)
                break
            except ConnectionAbortedError:
                if left == 1:
                    raise
    try:
        yield ray
    finally:
        ray.shutdown()


def _serve(ray: Any, asked: dict[str, Any], source: BinaryIO, target: BinaryIO) -> None:
    remote = ray.remote(num_cpus=1, max_retries=RETRIES)(work)
    room = _Room(ray)
    pending: deque[Any] = deque()
    more = True
    while more or pending:
        while more and len(pending) < room():
            _say(target, {"want": True})
            line = source.readline()
            texts = json.loads(line) if line else None
            more = bool(texts)
            if texts:
                pending.append(remote.remote(asked, texts))
        if pending:
            _say_vectors(target, _result(ray, pending.popleft(), asked["version"]))


def _result(ray: Any, reference: Any, version: str) -> dict[str, Any]:
    try:
        found: dict[str, Any] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # it ran, or should have, and raised
        raise _Refused(f"Anvil {version} does not run there: {_last_line(error)}") from None
    if "refused" in found:
        raise _Refused(found["refused"])
    return found


class _Room:
    """How many batches may be under way."""

    def __init__(self, ray: Any) -> None:
        self._ray, self._next, self._room = ray, 0.0, AHEAD

    def __call__(self) -> int:
        if time.monotonic() >= self._next:
            self._room = AHEAD * max(int(self._ray.cluster_resources().get("CPU", 0)), 1)
            self._next = time.monotonic() + LOOK_SECONDS
        return self._room


def _say(target: BinaryIO, message: dict[str, Any]) -> None:
    target.write(json.dumps(message).encode() + b"\n")
    target.flush()


def _say_vectors(target: BinaryIO, found: dict[str, Any]) -> None:
    vectors: bytes = found["vectors"]
    head = {"bytes": len(vectors), "failed": found["failed"], "alike": found["alike"]}
    target.write(json.dumps(head).encode() + b"\n" + vectors)
    target.flush()


def _brief(error: BaseException) -> str:
    told = " ".join(str(error).split())
    return f"{type(error).__name__}: {told[:400]}" if told else type(error).__name__


def _last_line(error: BaseException) -> str:
    """The worker's own error, which stands at the end of a traceback."""
    return (str(error).strip().splitlines() or [type(error).__name__])[-1][:300]
