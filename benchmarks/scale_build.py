"""A build's embedding on one machine and on a Ray cluster: passages a second, what Ray costs, what is sent.

The cluster runs on this machine, with as many processors as asked for, and is spoken to by Ray Client as one elsewhere
would be. Local builds with as many threads are what it is compared with. Needs the extra ``ray``.

Statements about larger clusters and indexes are derived from these numbers: each processor embeds at the
measured rate, unless the machine that builds takes longer to cut and to write; the rest stays on that machine.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import corpus
from benchmarks.measuring import heading, run, table

TOKEN = {
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(16),
    "RAY_USAGE_STATS_ENABLED": "0",
    "GRPC_ENABLE_FORK_SUPPORT": "0",
}
SIZES = (10_000, 100_000, 1_000_000)
PROCESSORS = (8, 32, 128)
Told = dict[str, float]


@contextlib.contextmanager
def ray_cluster(processors: int) -> Iterator[str]:
    """The address of a cluster on this machine, for the time of a ``with``."""
    with contextlib.ExitStack() as opened:
        sockets = [opened.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(2)]
        port, client = (each.getsockname()[1] for each in sockets)
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp") as folder:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ray.scripts.scripts",
                "start",
                "--head",
                "--block",
                f"--port={port}",
                f"--ray-client-server-port={client}",
                f"--num-cpus={processors}",
                "--include-dashboard=false",
                "--min-worker-port=0",
                "--max-worker-port=0",
                f"--temp-dir={folder}",
                "--node-ip-address=127.0.0.1",
            ],
            env={**os.environ, **TOKEN, "PYTHONPATH": str(Path(__file__).parents[1])},
            cwd=folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            until = time.monotonic() + 120
            while True:
                with contextlib.suppress(OSError):
                    socket.create_connection(("127.0.0.1", client), 1).close()
                    break
                if process.poll() is not None or time.monotonic() > until:
                    raise SystemExit("Ray did not start. Try 'ray start --head --block' by hand to see why.")
                time.sleep(0.2)
            time.sleep(3)  # until what it starts behind is at rest
            yield f"ray://127.0.0.1:{client}"
        finally:
            process.terminate()
            process.wait()


def one(docs: Path, index: Path, threads: int, address: str) -> None:
    """Build in this process, on the cluster at ``address`` if one is given, and print what it took."""
    from anvil.backends.embedding import ray_cluster
    from anvil.backends.embedding.executor import EmbeddedBatches, Executor, LocalExecutor
    from anvil.backends.embedding.factory import create_provider
    from anvil.backends.sources import open_tree
    from anvil.core.config.schema import ChunkingOptions, EmbeddingSettings
    from anvil.services.build import builder

    settings = EmbeddingSettings(threads=threads)
    provider = create_provider("local", settings)
    inner: Executor = ray_cluster.executor(address, provider, settings) if address else LocalExecutor(provider)
    told: Told = {"sent": 0, "received": 0, "first": 0.0, "embedding": 0.0, "own": 0.0}

    class Watched:
        """The executor, with an eye on the clock and on what goes through it."""

        batch = inner.batch
        notes = inner.notes

        def embed(self, batches: Iterable[Sequence[str]]) -> EmbeddedBatches:
            began = time.perf_counter()
            answers = inner.embed(self.counted(batches))
            with contextlib.closing(answers):
                for answer in answers:
                    told["first"] = told["first"] or time.perf_counter() - began
                    told["received"] += answer.vectors.nbytes
                    since = time.perf_counter()
                    yield answer
                    told["own"] += time.perf_counter() - since
            told["embedding"] = time.perf_counter() - began

        def counted(self, batches: Iterable[Sequence[str]]) -> Iterator[Sequence[str]]:
            since = time.perf_counter()
            for texts in batches:
                told["own"] += time.perf_counter() - since
                told["sent"] += len(json.dumps(texts))
                yield texts
                since = time.perf_counter()

    report = builder.build(open_tree.working_tree(docs), index, provider, ChunkingOptions(), executor=Watched())
    provider.close()
    told.update(seconds=report.seconds, passages=report.embedded)
    print(json.dumps(told))


def measured(docs: Path, work: Path, threads: int, address: str = "") -> tuple[Told, bytes]:
    """What one build took, and the index's bytes."""
    index = work / "index.db"
    index.unlink(missing_ok=True)
    command = [sys.executable, __file__, "--one", str(docs), str(index), str(threads), address]
    return json.loads(run(command, {**TOKEN, "RAYON_NUM_THREADS": str(threads)}).output), index.read_bytes()


def median(told: Sequence[Told], key: str) -> float:
    """Over the rounds."""
    return statistics.median(each[key] for each in told)


def derived(start: float, rate: float, own: float, outside: float) -> list[tuple[str, ...]]:
    """What follows for other sizes: seconds of a build on one machine of two processors, and on clusters."""

    def told(seconds: float) -> str:
        if seconds < 120:
            return f"{seconds:.0f} s"
        return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"

    return [
        (
            f"{size:,}",
            told(size * (outside + own + 1 / (2 * rate))),
            *(told(start + size * (outside + max(own, 1 / (count * rate)))) for count in PROCESSORS),
        )
        for size in SIZES
    ]


def main() -> None:
    """Build in turns and print two tables."""
    if sys.argv[1:2] == ["--one"]:
        one(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]), sys.argv[5])
        return
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path, help="a folder of Markdown in place of the npm package")
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        docs = work / "docs"
        corpus.write(docs, corpus.chosen(given.docs), given.pages)
        here: dict[int, list[Told]] = {count: [] for count in given.workers}
        there: dict[int, list[Told]] = {count: [] for count in given.workers}
        for number in range(given.rounds):
            for count in given.workers:
                print(f"round {number + 1}, {count} workers ...", file=sys.stderr)
                told, expected = measured(docs, work, count)
                here[count].append(told)
                with ray_cluster(count) as address:
                    told, found = measured(docs, work, count, address)
                there[count].append(told)
                assert found == expected, "other bytes than those of the local build"
    rows = []
    for count in given.workers:
        passages = median(here[count], "passages")
        base = median(here[count], "embedding")
        rows.append((f"local, {count} threads", f"{passages / base:.1f}", "", "", "", ""))
        spread = median(there[count], "embedding")
        after = spread - median(there[count], "first")
        more = statistics.median(
            b["embedding"] / a["embedding"] - 1 for a, b in zip(here[count], there[count], strict=True)
        )
        rows.append(
            (
                f"Ray, {count} workers",
                f"{passages / spread:.1f}",
                f"{passages / after:.1f}",
                f"{median(there[count], 'first'):.1f} s",
                f"{more * 100:.1f} %",
                f"{median(there[count], 'sent') / passages:.0f} + {median(there[count], 'received') / passages:.0f}",
            )
        )
    columns = (
        "embedding",
        "passages/s",
        "after the first answer",
        "until the first answer",
        "longer than local",
        "bytes a passage, out and back",
    )
    print(heading(given.rounds))
    print(f"{given.pages} pages, {int(passages)} passages; all indexes have the same bytes.\n")
    print(table(columns, rows))
    most = max(given.workers)
    whole = there[most]
    rate = statistics.median(each["passages"] / each["embedding"] for each in here[most]) / most
    outside = statistics.median((each["seconds"] - each["embedding"]) / each["passages"] for each in whole)
    own = statistics.median(each["own"] / each["passages"] for each in whole)
    given_by = (
        f"{rate:.1f} passages/s a processor, {own * 1000:.2f} ms a passage for cutting and writing its vectors, "
        f"{outside * 1000:.2f} ms for all the rest"
    )
    print(f"\nDerived, not measured, from {given_by}.\n")
    print(
        table(
            ("passages", "one machine, 2 processors", *(f"{count} processors" for count in PROCESSORS)),
            derived(median(whole, "first"), rate, own, outside),
        )
    )


if __name__ == "__main__":
    main()
