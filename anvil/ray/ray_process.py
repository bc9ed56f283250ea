"""The program of the child process that is connected to a Ray cluster, and the only module that imports Ray.

Ray changes its process: it sets signal handlers, logs, starts threads, and exits without an error if the cluster dies.
So it has a process of its own, which asks its parent for each batch of texts, and answers with vectors in order.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

from anvil.ray.executor import work
from anvil.system.child_process import take_over_pipes, write_message

BATCHES_PER_CPU = 4
"""Batches that run or wait for each processor. More than one, so that no processor is idle while the oldest batch is
not finished."""
MAX_RETRIES = 3
"""How often a batch is given to another worker after its worker was lost."""
MAX_CONNECTION_ATTEMPTS = 3
"""For each connection, the head node forks a process with gRPC threads. Sometimes that process dies before it runs, and
the error comes after half a minute."""
CLUSTER_SIZE_INTERVAL_S = 5.0
"""Seconds after which the number of processors is read again, because nodes come and go."""


def main() -> None:
    messages, answers = take_over_pipes()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # so that _connection() calls ray.shutdown()
    request = next(messages)
    try:
        with _connection(request.pop("address")) as ray:
            _serve(ray, request, messages, answers)
            write_message(answers, {"done": True})
    except _Refused as refused:
        write_message(answers, {"refused": str(refused)})
    except Exception as error:  # Ray raises its own errors, those of gRPC and the system, and bare Exception
        write_message(answers, {"error": _brief(error)})


class _Refused(Exception):
    """A worker cannot take part. The text is the reason, as a part of a sentence."""


@contextmanager
def _connection(address: str) -> Iterator[Any]:
    import ray

    if address == "ray://local":
        ray.init(address="local", include_dashboard=False, log_to_driver=False)
    else:
        target = address if address != "ray://auto" else os.environ.get("RAY_ADDRESS") or "auto"
        for attempts_left in range(MAX_CONNECTION_ATTEMPTS, 0, -1):
            try:
                ray.init(address=target, log_to_driver=False)
                break
            except ConnectionAbortedError:
                if attempts_left == 1:
                    raise
    try:
        yield ray
    finally:
        ray.shutdown()


def _serve(ray: Any, request: dict[str, Any], messages: Iterator[dict[str, Any]], answers: BinaryIO) -> None:
    remote = ray.remote(num_cpus=1, max_retries=MAX_RETRIES)(work)
    capacities = _capacities(ray)
    pending: deque[Any] = deque()
    more = True
    while more or pending:
        while more and len(pending) < next(capacities):
            write_message(answers, {"want": True})
            texts = next(messages, {}).get("texts")
            more = bool(texts)
            if texts:
                pending.append(remote.remote(request, texts))
        if pending:
            result = _result(ray, pending.popleft(), request["version"])
            vectors = result.pop("vectors")
            write_message(answers, result, vectors)


def _result(ray: Any, reference: Any, version: str) -> dict[str, Any]:
    try:
        result: dict[str, Any] = ray.get(reference)
    except ray.exceptions.RayTaskError as error:  # the task raised an error, or could not be loaded
        last_line = (str(error).strip().splitlines() or [type(error).__name__])[-1]  # the worker's own error
        raise _Refused(f"Anvil {version} does not run there: {last_line[:300]}") from None
    if "refused" in result:
        raise _Refused(result["refused"])
    return result


def _capacities(ray: Any) -> Iterator[int]:
    """How many batches the cluster can have at a time: from its processors, at most :data:`CLUSTER_SIZE_INTERVAL_S`
    ago."""
    next_check = 0.0
    while True:
        if time.monotonic() >= next_check:
            batches = BATCHES_PER_CPU * max(int(ray.cluster_resources().get("CPU", 0)), 1)
            next_check = time.monotonic() + CLUSTER_SIZE_INTERVAL_S
        yield batches


def _brief(error: BaseException) -> str:
    message = " ".join(str(error).split())
    return f"{type(error).__name__}: {message[:400]}" if message else type(error).__name__
