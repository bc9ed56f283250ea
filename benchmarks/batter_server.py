"""A server under attack, at length: each answer must be right, and the next client must be answered.

Run it as ``python benchmarks/batter_server.py [--rounds N] [--seed N]``. It prints what was tried and what failed, and
exits with 1 when anything did. Five kinds:

edits      pages are written, renamed and deleted, and asked for at once: no answer may be of an older text
kills      the server is killed while pages change; the next one must answer from the files as they are
half-open  hundreds of requests that never end, while another client asks
abandoned  hundreds of expensive calls whose clients go away, then another client asks
mutations  real pages with random damage are cut: no error, no lost character, in bounded time
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections import Counter
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from anvil.settings.schema import ChunkingOptions
from anvil.text.chunker import chunks
from anvil.text.markdown_sections import parse
from tests.support import mcp_servers, raw_http
from tests.support.live_edits import LiveEdits
from tests.support.mutations import mutated

ROOT = Path(__file__).resolve().parents[1]
ANSWER_S = 30
"""Seconds in which a client must be answered, whatever others do."""
MUTATED_S_PER_MEGABYTE = 15


class Battery:
    """What was tried, and what failed."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        self.folder = folder
        self.chance = chance
        self.tried: Counter[str] = Counter()
        self.failures: list[str] = []
        self.pages = LiveEdits(folder / "docs", chance)
        self.pages.begin(20)

    def server(self) -> contextlib.AbstractContextManager[mcp_servers.Process]:
        """A server over the pages."""
        return mcp_servers.over_http(self.folder / "docs", self.folder / "index.db", "--provider", "none")

    def edits(self, url: str, rounds: int) -> None:
        """Live edits, each followed by a question."""
        self.pages.ask = partial(raw_http.tool, url)
        before = len(self.pages.failures)
        self.pages.run(rounds)
        self.failures += [f"edits: {failure}" for failure in self.pages.failures[before:]]
        self.tried["edits"] += rounds

    def kills(self, count: int) -> None:
        """Servers that are killed at random moments, each followed by one that is asked for all pages."""
        for number in range(count):
            with self.server() as server, contextlib.suppress(OSError):
                self.pages.ask = partial(raw_http.tool, server.url)
                self.pages.run(self.chance.randrange(4))
                time.sleep(self.chance.random() / 5)
                server.process.send_signal(signal.SIGTERM if os.name == "nt" else signal.SIGKILL)
            with self.server() as server:
                listing = raw_http.tool(server.url, "list_pages") or {"pages": []}
                listed = {page["file_path"] for page in listing["pages"]}
                if listed != set(self.pages.words):
                    self.failures.append(f"kills: after kill {number}, {sorted(listed ^ set(self.pages.words))} differ")
            self.tried["kills"] += 1

    def half_open(self, url: str, rounds: int) -> None:
        """Requests that never end."""
        for _ in range(rounds):
            pieces = [b"", b"POST /mcp", raw_http.head(1000), raw_http.head(1000) + b"{"]
            halves = [raw_http.sent(url, self.chance.choice(pieces)) for _ in range(200)]
            self._answers(url, "half-open")
            for half in halves:
                half.close()
            self.tried["half-open"] += len(halves)

    def abandoned(self, url: str, rounds: int) -> None:
        """Calls whose clients go away at once."""
        for number in range(rounds):
            query = " ".join(f"w{self.chance.randrange(10**6)} x{word}.y{number}" for word in range(20_000))
            body = raw_http.body("tools/call", name="search_docs", arguments={"query": query})
            for _ in range(100):
                raw_http.sent(url, raw_http.head(len(body)) + body).close()
            self._answers(url, "abandoned")
            self.tried["abandoned"] += 100

    def mutations(self, rounds: int) -> None:
        """Pages of this repository with random damage."""
        pages = [path.read_bytes() for path in sorted((ROOT / "docs").rglob("*.md"))]
        for number in range(rounds):
            text = mutated(self.chance.choice(pages), pages, self.chance)
            began = time.process_time()
            try:
                page = parse(text)
                cut = chunks(page, ChunkingOptions())
            except Exception as error:
                self.failures.append(f"mutations: page {number} raises {type(error).__name__}: {error}")
                continue
            seconds = time.process_time() - began
            if "".join(chunk.content for chunk in cut) != (page.text if page.text.strip() else ""):
                self.failures.append(f"mutations: page {number} loses text")
            if seconds > 0.2 + len(text) / 1e6 * MUTATED_S_PER_MEGABYTE:
                self.failures.append(f"mutations: page {number} of {len(text):,} characters takes {seconds:.1f} s")
            self.tried["mutations"] += 1

    def _answers(self, url: str, kind: str) -> None:
        began = time.monotonic()
        try:
            raw_http.request(url, "tools/call", timeout_s=ANSWER_S, name="list_pages", arguments={})
        except OSError as error:
            self.failures.append(f"{kind}: the next client got {error} after {time.monotonic() - began:.0f} s")


def main() -> int:
    """Everything, at length."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rounds", type=int, default=2000, help="edits, and mutated pages (default 2000)")
    options.add_argument("--kills", type=int, default=20, help="servers that are killed (default 20)")
    options.add_argument("--storms", type=int, default=5, help="rounds of half-open and abandoned calls (default 5)")
    options.add_argument("--seed", type=int, default=1)
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        battery = Battery(Path(folder), random.Random(given.seed))
        battery.mutations(given.rounds)
        with battery.server() as server:
            battery.edits(server.url, given.rounds // 2)
            battery.half_open(server.url, given.storms)
            battery.abandoned(server.url, given.storms)
            battery.edits(server.url, given.rounds - given.rounds // 2)
        battery.kills(given.kills)
    from measuring import heading, table

    print(heading())
    print(table(("kind", "tried"), [(kind, f"{count:,}") for kind, count in battery.tried.items()]))
    asked = ", ".join(f"{kind} {count:,}" for kind, count in sorted(battery.pages.tried.items()))
    print(f"\nOf the edits: {asked}.\n{len(battery.failures)} failures")
    for failure in battery.failures:
        print(" ", failure)
    return 1 if battery.failures else 0


if __name__ == "__main__":
    sys.exit(main())
