"""Servers side by side over one index file, as replicas: questions a second, how long one takes, start and memory.

    python benchmarks/replicas.py [--docs FOLDER] [--chunks 10000] [--replicas 2] [--rounds 3] [--seconds 5]

The index is the one that ``latency.py`` synthesises. Four clients ask hybrid questions over HTTP without a pause, dealt
out over the servers; one server and several take turns. Clients and servers share the processors, so that the gain
says what this machine has left rather than what a cluster would give. A start is from the process to the first
``/health`` of 200, and to the first hybrid answer. Memory is Linux's own count: resident, and with what several
processes have in common divided among them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

import corpus
import latency
from measuring import ROOT, anvil, heading, milliseconds, ratio, table

CLIENTS = 4
HEADERS = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


class Replica:
    """A server process on a port of its own."""

    def __init__(self, index: Path) -> None:
        self.started = time.perf_counter()
        self.process = subprocess.Popen(
            anvil("serve", "--index", str(index), "--transport", "http", "--port", "0"),
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=index.parent,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            text=True,
        )
        assert self.process.stderr
        found = next(filter(None, (re.search(r"http://(\S+)/mcp", line) for line in self.process.stderr)), None)
        if found is None:
            sys.exit("A server did not start.")
        self.address = found[1]
        connection = self.connection()
        connection.request("GET", "/health")
        if connection.getresponse().status != 200:
            sys.exit("A server is not well.")
        self.healthy = time.perf_counter() - self.started
        self.search("where do I begin?")
        self.answering = time.perf_counter() - self.started

    def connection(self) -> http.client.HTTPConnection:
        """One that is kept open."""
        return http.client.HTTPConnection(self.address, timeout=60)

    def search(self, query: str, connection: http.client.HTTPConnection | None = None) -> float:
        """Seconds of one hybrid question."""
        connection = connection or self.connection()
        params = {"name": "search_docs", "arguments": {"query": query}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        began = time.perf_counter()
        connection.request("POST", "/mcp", json.dumps(message), HEADERS)
        response = connection.getresponse()
        text = response.read().decode()
        seconds = time.perf_counter() - began
        events = [json.loads(line[len("data:") :]) for line in text.splitlines() if line.startswith("data:")]
        answer = events[-1].get("result", {}) if events else {}
        found = answer.get("structuredContent", {})
        notes = [
            note for note in found.get("freshness", {}).get("notes", ()) if not note.startswith("Probably nothing")
        ]
        if response.status != 200 or answer.get("isError") or not found or notes:
            sys.exit(f"An answer that is none, or not a whole one ({response.status}): {text[:2000]}")
        return seconds

    def memory(self) -> tuple[float, float]:
        """Resident and proportional megabytes; nothing where the system does not tell."""
        try:
            told = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text()
        except OSError:
            return 0.0, 0.0
        rss, pss = (int(re.findall(rf"^{name}:\s+(\d+)", told, re.MULTILINE)[0]) / 1024 for name in ("Rss", "Pss"))
        return rss, pss

    def end(self) -> None:
        """SIGTERM, and wait."""
        self.process.send_signal(signal.SIGTERM)
        if self.process.wait(60):
            sys.exit("A server ended with an error.")
        assert self.process.stderr
        self.process.stderr.close()


@contextmanager
def replicas(index: Path, count: int) -> Iterator[list[Replica]]:
    """Servers over one file, started one after the other."""
    with ExitStack() as stack:
        found = []
        for _ in range(count):
            found.append(Replica(index))
            stack.callback(found[-1].end)
        yield found


def load(found: list[Replica], asked: Iterator[str], seconds: float) -> list[float]:
    """Seconds of each question that the clients got answered in the time given."""
    queries = [[next(asked) for _ in range(400)] for _ in range(CLIENTS)]
    end = time.perf_counter() + seconds

    def client(number: int) -> list[float]:
        replica = found[number % len(found)]
        connection, times, turn = replica.connection(), [], 0
        while time.perf_counter() < end:
            times.append(replica.search(queries[number][turn % 400], connection))
            turn += 1
        connection.close()
        return times

    with ThreadPoolExecutor(CLIENTS) as pool:
        return [each for times in pool.map(client, range(CLIENTS)) for each in times]


def main() -> None:
    """Make the index, ask, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--replicas", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5.0)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = latency.base_index(Path(name), corpus.chosen(chosen.docs))
        pages = latency.real_pages(base)
        index = Path(name, "served.db")
        latency.synthesised(index, base, pages, chosen.chunks)
        asked = latency.questions(pages, random.Random(5))
        counts = (1, chosen.replicas)
        healthy, answering = [], []
        pace: dict[int, list[float]] = {count: [] for count in counts}
        times: dict[int, list[float]] = {count: [] for count in counts}
        memory: dict[int, list[tuple[float, float]]] = {count: [] for count in counts}
        for _ in range(chosen.rounds):
            for count in counts:
                with replicas(index, count) as found:
                    load(found, asked, 0.5)  # the first questions of a process fill its caches
                    taken = load(found, asked, chosen.seconds)
                    pace[count].append(len(taken) / chosen.seconds)
                    times[count] += taken
                    memory[count] += [each.memory() for each in found]
                    healthy += [each.healthy for each in found]
                    answering += [each.answering for each in found]
    print(heading(chosen.rounds))
    print(f"{chosen.chunks:,} chunks, {CLIENTS} clients.\n")
    columns = ["servers", "questions a second", "against one", "median of one", "resident, each", "own share"]
    print(
        table(
            columns,
            [
                [
                    str(count),
                    f"{statistics.median(pace[count]):.0f}",
                    f"{ratio(pace[count], pace[1]):.2f} x",
                    f"{statistics.median(times[count]) * 1000:.1f} ms",
                    *(f"{statistics.median(each):.0f} MB" for each in zip(*memory[count], strict=True)),
                ]
                for count in counts
            ],
        )
    )
    print()
    print(
        table(
            ["a server's start", "measured"],
            [
                ["to `/health` of 200", milliseconds(healthy)],
                ["to the first hybrid answer", milliseconds(answering)],
            ],
        )
    )


if __name__ == "__main__":
    main()
