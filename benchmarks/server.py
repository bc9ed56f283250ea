"""What a client of ``anvil serve`` waits for, over a pipe: the start, the first hybrid answer, and each answer after.

    python benchmarks/server.py [--docs FOLDER] [--chunks 10000] [--rounds 5] [--questions 200]

The index is the one that ``latency.py`` synthesises, served alone; the client is a few lines of this file, so that
nothing but the server is timed. Times to the first answer are whole: from the process's start, its imports and the
model included. Resident memory is read from ``/proc`` after all questions (Linux only). Freshness checks are timed by
``freshness.py``.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import corpus
import latency
from measuring import ROOT, anvil, heading, milliseconds, percentile, table

INITIALIZE = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "benchmark", "version": "1"},
}


class Server:
    """A server process, and a client of one request at a time."""

    def __init__(
        self, folder: Path, *flags: str, command: list[str] | None = None, settings: Mapping[str, str] | None = None
    ) -> None:
        """``command``: another server than Anvil's, with ``settings`` in its environment."""
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            command or anvil("serve", *flags, "--log-level", "error"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL if command else None,
            cwd=folder,
            env={**os.environ, **({"PYTHONPATH": str(ROOT)} if command is None else settings or {})},
        )
        self._number = 0

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        """The result of a request."""
        assert self.process.stdin and self.process.stdout
        self._number += 1
        message = {"jsonrpc": "2.0", "id": self._number, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while (answer := json.loads(self.process.stdout.readline())).get("id") != self._number:
            pass
        return answer["result"]

    def begin(self) -> float:
        """Seconds from the process's start to the answer to ``initialize``."""
        self.ask("initialize", INITIALIZE)
        seconds = time.perf_counter() - self.started
        assert self.process.stdin
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        return seconds

    def search(self, query: str) -> Any:
        """The structured answer to a hybrid question."""
        return self.call("search_docs", query=query)

    def call(self, tool: str, **arguments: Any) -> Any:
        """The structured answer of a tool."""
        result = self.ask("tools/call", {"name": tool, "arguments": arguments})
        assert not result.get("isError"), result
        return result["structuredContent"]

    def resident(self) -> float | None:
        """Resident megabytes, where the system tells."""
        try:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
        except OSError:
            return None
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def end(self) -> None:
        """Close its stdin and wait."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        if self.process.wait(60):
            sys.exit("The server ended with an error.")
        self.process.stdout.close()


def main() -> None:
    """Make the index, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--questions", type=int, default=200)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = latency.base_index(Path(name), corpus.chosen(chosen.docs))
        pages = latency.real_pages(base)
        index = Path(name, "served.db")
        latency.synthesised(index, base, pages, chosen.chunks)
        questions = latency.questions(pages, random.Random(3))
        greeted, first = [], []
        for _ in range(chosen.rounds):
            server = Server(index.parent, "--index", str(index))
            greeted.append(server.begin())
            notes = server.search(next(questions)).get("freshness", {}).get("notes")
            first.append(time.perf_counter() - server.started)
            if notes:
                sys.exit(f"The first answer was not a whole one: {notes}")
            server.end()
        server = Server(index.parent, "--index", str(index))
        server.begin()
        for _ in range(latency.WARM):
            server.search(next(questions))
        times = []
        for question in itertools.islice(questions, chosen.questions):
            began = time.perf_counter()
            server.search(question)
            times.append(time.perf_counter() - began)
        resident = server.resident()
        server.end()
    print(heading(chosen.rounds))
    print(
        table(
            ["what", "measured"],
            [
                ["process start to answered `initialize`", milliseconds(greeted)],
                ["process start to the first hybrid answer", milliseconds(first)],
                [f"`search_docs` at {chosen.chunks:,} chunks, median", f"{statistics.median(times) * 1000:.1f} ms"],
                [
                    f"`search_docs` at {chosen.chunks:,} chunks, 99th percentile",
                    f"{percentile(times, 0.99) * 1000:.1f} ms",
                ],
                ["resident memory after all questions", "unknown" if resident is None else f"{resident:.0f} MB"],
            ],
        )
    )


if __name__ == "__main__":
    main()
