"""Many threads ask one object all sorts of things while pages are edited, renamed and deleted under it.

No call fails, no text is older than the one before the last written, and memory does not grow. In its short form
64 calls; 10,000 with ``ANVIL_SOAK=1``.
"""

from __future__ import annotations

import gc
import os
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import anvil
from anvil.errors import NotFound
from anvil.results import Mode
from tests.conftest import PAGES, write

FULL = os.environ.get("ANVIL_SOAK")
CALLS = 10_000 if FULL else 64
THREADS = 8
MODES: tuple[Mode, ...] = ("hybrid", "keyword", "semantic")
PLACES = 12
"""Pages that the writer works on; each is at one of two paths, or nowhere."""


class Shelf:
    """The pages on disk: for each the texts that an answer may have, by the time at which they were written."""

    def __init__(self, docs: Path) -> None:
        self.docs = docs
        self.lock = threading.Lock()
        self.writes: dict[str, list[tuple[float, str | None]]] = {}

    def put(self, path: str, text: str | None) -> None:
        """Write a page, or delete it (None). The moment noted is one at which the old text may still be read."""
        began = time.monotonic()
        with self.lock:
            self.writes.setdefault(path, [(0.0, None)]).append((began, text))
        if text is None:
            (self.docs / path).unlink(missing_ok=True)
            return
        file = self.docs / path
        file.parent.mkdir(parents=True, exist_ok=True)
        fresh = file.with_name(file.name + ".tmp")
        fresh.write_bytes(text.encode())
        fresh.replace(file)

    def may_hold(self, path: str, since: float) -> list[str | None]:
        """The text at a moment, its predecessor, and all that came later."""
        with self.lock:
            writes = self.writes.get(path, [(0.0, None)])
            standing = max(place for place, (when, _) in enumerate(writes) if when <= since)
            return [text for _, text in writes[max(standing - 1, 0) :]]


def text_of(place: int, version: int) -> str:
    filler = PAGES["guides/alerts.md"].split("\n\n", 1)[1] if version % 3 else ""
    return f"# Place {place}\n\nThe wombat of place {place} in version {version}.\n\n{filler}"


def work(shelf: Shelf, stop: threading.Event) -> None:
    """Edit, rename and delete pages until told to stop."""
    chance = random.Random(5)
    version = 0
    while not stop.is_set():
        version += 1
        place = chance.randrange(PLACES)
        here, there = f"moving/{place}.md", f"moved/{place}.md"
        if chance.random() < 0.2:
            here, there = there, here
        shelf.put(there, None)
        if chance.random() < 0.8:
            shelf.put(here, text_of(place, version))
        else:
            shelf.put(here, None)
        stop.wait(0.02 if FULL else 0.1)


def ask(found: anvil.Anvil, shelf: Shelf, chance: random.Random) -> None:
    """Make one call of a random kind, and compare its answer with the pages on disk."""
    path = f"{chance.choice(['moving', 'moved'])}/{chance.randrange(PLACES)}.md"
    kind = chance.randrange(6)
    since = time.monotonic()
    if kind == 0:
        try:
            text: str | None = "".join(chunk.content for chunk in found.get_page(path).chunks)
        except NotFound:
            text = None
        assert text in shelf.may_hold(path, since), (path, text and text[:80])
    elif kind == 1:
        place = path.split("/")[1].removesuffix(".md")
        try:
            text = found.get_section(path, f"Place {place}", include_children=True).content
        except NotFound:
            text = None
        assert text in shelf.may_hold(path, since), (path, text and text[:80])
    elif kind in (2, 3):
        mode = chance.choice(MODES)
        result = found.search(f"wombat of place {chance.randrange(PLACES)}", mode=mode, max_chars=100_000)
        for hit in result.results:
            if hit.metadata.file_path.startswith("mov"):
                texts = shelf.may_hold(hit.metadata.file_path, since)
                assert any(text and hit.content in text for text in texts), (hit.metadata, hit.content[:80])
    elif kind == 4:
        for page in found.list_pages("moving").pages:
            texts = shelf.may_hold(page.file_path, since)
            assert any(text and len(text) == page.total_chars for text in texts), page
    else:
        status = found.get_status()
        assert status.index.total_pages >= len(PAGES)


def resident() -> int:
    """Bytes that this process holds; 0 where the system does not say."""
    gc.collect()
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError):
        return 0


@pytest.fixture
def shelf(docs: Path) -> Iterator[Shelf]:
    found = Shelf(docs)
    for place in range(PLACES):
        found.put(f"moving/{place}.md", text_of(place, 0))
    with anvil.open(docs) as first:
        first.index()
    stop = threading.Event()
    writer = threading.Thread(target=work, args=(found, stop))
    writer.start()
    yield found
    stop.set()
    writer.join()


@pytest.mark.slow
@pytest.mark.parametrize("watch", [True, False] if FULL else [True])
def test_mixed_calls_while_pages_change(shelf: Shelf, watch: bool) -> None:
    failures: list[BaseException] = []
    sizes: list[int] = []

    def client(number: int, calls: int) -> None:
        chance = random.Random(number)
        try:
            for _ in range(calls):
                ask(found, shelf, chance)
        except BaseException as error:
            failures.append(error)

    with anvil.open(shelf.docs, background=True, watch=watch) as found:
        for part in range(4):  # memory is compared between quarters
            threads = [
                threading.Thread(target=client, args=(part * THREADS + each, CALLS // THREADS // 4))
                for each in range(THREADS)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(600)
            assert not failures and not any(thread.is_alive() for thread in threads), failures
            sizes.append(resident())
    assert sizes[-1] - sizes[0] < 40_000_000, sizes


def test_a_page_written_back_and_forth_is_right_each_time(docs: Path) -> None:
    write(docs, {"moving/1.md": text_of(1, 1)})
    with anvil.open(docs, provider="none", background=True, watch=True) as found:
        end = time.monotonic() + 30
        while found.search("wombat", mode="keyword").freshness.notes and time.monotonic() < end:
            time.sleep(0.02)
        for number in range(60):
            write(docs, {"moving/1.md": text_of(1, number % 4)})
            assert found.get_page("moving/1.md").chunks[0].content.startswith(text_of(1, number % 4)[:40])
