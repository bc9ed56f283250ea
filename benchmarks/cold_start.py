"""What the first visitor of a function waits for: ``uvicorn anvil.asgi:app`` from its start to the first hybrid answer.

    python benchmarks/cold_start.py [--docs FOLDER] [--chunks 10000] [--rounds 5]

The index is the one that ``latency.py`` synthesises, on the disk of this machine. Times are whole: the interpreter, all
imports, opening the index, the model, and one ``GET /search``. The first start checks the file and is reported alone.
``imports`` is an interpreter that only imports uvicorn and the application, for comparison on a busy machine.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from pathlib import Path

import corpus
import latency
from measuring import ROOT, heading, milliseconds, table


def environment(index: Path) -> dict[str, str]:
    """The variables of the application."""
    cache = {"XDG_CACHE_HOME": str(index.parent / "cache")}
    return {**os.environ, "PYTHONPATH": str(ROOT), "ANVIL_INDEX": str(index), "ANVIL_PUBLIC": "1", **cache}


def first_answer(index: Path, question: str) -> float:
    """Seconds from the start of a server to its first answer."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    started = time.perf_counter()
    line = [sys.executable, "-m", "uvicorn", "anvil.asgi:app", "--port", str(port), "--log-level", "error"]
    process = subprocess.Popen(line, env=environment(index), cwd=index.parent)
    try:
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            try:
                connection.request("GET", f"/search?query={urllib.parse.quote(question)}")
                answer = json.loads(connection.getresponse().read())
                break
            except ConnectionRefusedError:
                time.sleep(0.01)
            finally:
                connection.close()
        seconds = time.perf_counter() - started
        notes = answer.get("freshness", {}).get("notes")
        if not answer["results"] or any("Semantic search" in note or "vector" in note for note in notes):
            sys.exit(f"The first answer was not a whole one: {answer['freshness']}")
        return seconds
    finally:
        process.terminate()
        process.wait(30)


def imports(index: Path) -> float:
    """Seconds of an interpreter that imports what the server imports."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import uvicorn, anvil.asgi"], env=environment(index), check=True)
    return time.perf_counter() - started


def main() -> None:
    """Make the index, start servers, and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=5)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        base = latency.base_index(Path(name), corpus.chosen(chosen.docs))
        pages = latency.real_pages(base)
        index = Path(name, "served.db")
        latency.synthesised(index, base, pages, chosen.chunks)
        questions = latency.questions(pages, random.Random(3))
        unchecked = first_answer(index, next(questions))
        alone = [imports(index) for _ in range(chosen.rounds)]
        first = [first_answer(index, next(questions)) for _ in range(chosen.rounds)]
    rows = [
        [f"start to the first hybrid answer, {chosen.chunks:,} chunks", milliseconds(first)],
        ["the same, of a file that was never checked on this machine", milliseconds([unchecked])],
        ["imports alone", milliseconds(alone)],
    ]
    print(heading(chosen.rounds))
    print(table(["what", "measured"], rows))


if __name__ == "__main__":
    main()
