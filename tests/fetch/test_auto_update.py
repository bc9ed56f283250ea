"""An index from elsewhere while it is used: waited for, asked for anew, let go of."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import anvil
from anvil.errors import ConfigError, FetchError
from anvil.fetch import auto_update
from anvil.fetch.auto_update import AutoUpdater
from anvil.fetch.fetch_index import FetchRequest, fetch
from anvil.fetch.settings import FetchOptions
from anvil.index_file import publish
from tests.conftest import write
from tests.support.index_server import Answer, Server, serving


@pytest.fixture
def built(docs: Path, tmp_path: Path) -> Path:
    with anvil.open(docs, tmp_path / "built" / "index.db", "none") as opened:
        opened.index()
    return tmp_path / "built" / "index.db"


@pytest.fixture
def server(built: Path) -> Iterator[Server]:
    with serving() as server:
        server.publish(built)
        yield server


@pytest.fixture
def follow(server: Server, tmp_path: Path) -> Iterator[Callable[..., AutoUpdater]]:
    """A follower of the server, closed in the end."""
    made: list[AutoUpdater] = []

    def make(refresh: int = 0, moved: Callable[[], None] = lambda: None) -> AutoUpdater:
        made.append(AutoUpdater(f"{server.url}/", FetchRequest(FetchOptions(refresh), head=tmp_path)))
        made[-1].on_replaced = moved
        return made[-1]

    yield make
    for each in made:
        each.stop()


@pytest.fixture
def often(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server is asked ten times a second, where a configuration could say each second."""
    monkeypatch.setattr(AutoUpdater, "_pause", lambda self, failures: 0.1)


def rebuilt(docs: Path, index: Path, server: Server) -> None:
    write(docs, {"news.md": "# News\n\nThere is a new lamp.\n"})
    with anvil.open(docs, index, "none") as opened:
        opened.index()
    server.publish(index)


def aged(path: Path, seconds: float) -> None:
    """Make what was fetched older."""
    told = json.loads((path.parent / "state.json").read_text())
    (path.parent / "state.json").write_text(json.dumps({**told, "checked": told["checked"] - seconds}))


def test_without_a_thread_it_is_fetched_once(follow: Callable[..., AutoUpdater], server: Server) -> None:
    one = follow()
    one.ensure_fetched(True)
    one.ensure_fetched(True)
    assert one.path.is_file() and one.notes() == []
    assert len(server.asked("/anvil/index.json")) == 1


def test_a_thread_is_waited_for_and_asks_once_when_told_so(follow: Callable[..., AutoUpdater], server: Server) -> None:
    one = follow(refresh=0)
    one.start(None)
    one.start(None)
    one.ensure_fetched(True)
    assert one.path.is_file()
    one._thread.join(10)
    assert not one._thread.is_alive() and len(server.asked("/anvil/index.json")) == 1


def test_two_threads_start_it_once(follow: Callable[..., AutoUpdater], server: Server) -> None:
    """On a busy machine the first question came before the thread of the server ran, and failed with a RuntimeError."""
    one = follow(refresh=0)
    begin = one._thread.start

    def slowly() -> None:
        time.sleep(0.1)
        begin()

    one._thread.start = slowly  # type: ignore[method-assign]
    with ThreadPoolExecutor(2) as threads:
        for started in [threads.submit(one.start, None) for _ in range(2)]:
            started.result(10)
    one.ensure_fetched(True)
    assert one.path.is_file() and len(server.asked("/anvil/index.json")) == 1


def test_a_question_does_not_wait_for_long(
    follow: Callable[..., AutoUpdater], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_update, "FETCH_WAIT_S", 0.1)
    gate = threading.Event()
    server.answers["/anvil/index.json"].asked = lambda: gate.wait(20)
    one = follow()
    one.start(None)
    with pytest.raises(FetchError, match=r"is being fetched from .*\. Ask again in a moment\."):
        one.ensure_fetched(False)
    gate.set()
    one.ensure_fetched(True)


def test_what_was_fetched_before_answers_while_a_newer_one_is_looked_for(
    follow: Callable[..., AutoUpdater], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(f"{server.url}/")
    monkeypatch.setattr(auto_update, "FETCH_WAIT_S", 0.1)
    gate = threading.Event()
    server.answers["/anvil/index.json"].asked = lambda: gate.wait(20)
    one = follow()
    aged(one.path, 26 * 3600)
    one.start(None)
    one.ensure_fetched(False)
    (note,) = one.notes()
    assert note == "This is the index as fetched before, last confirmed 1 day ago: a newer one is being looked for."
    aged(one.path, -52 * 3600)
    one._take_cached("The clock went back.")
    assert one.notes()[0].endswith("Z, which is in the future by this machine's clock: The clock went back.")
    gate.set()
    one._thread.join(20)
    assert one.notes() == []


@pytest.mark.usefixtures("often")
def test_a_new_index_is_told_of_and_a_failure_is_noted(
    follow: Callable[..., AutoUpdater], server: Server, docs: Path, built: Path
) -> None:
    moved = threading.Event()
    one = follow(1, moved.set)
    one.start(None)
    one.ensure_fetched(True)
    first = one.path.read_bytes()
    rebuilt(docs, built, server)
    assert moved.wait(20) and one.path.read_bytes() == built.read_bytes() != first
    server.stop()
    end = time.monotonic() + 20
    while not one.notes() and time.monotonic() < end:
        time.sleep(0.05)
    assert "cannot be reached" in one.notes()[0]
    one.ensure_fetched(False)


def within(seconds: float, true: Callable[[], bool]) -> bool:
    """Whether something becomes true in that time."""
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.05)
    return true()


@pytest.mark.usefixtures("often")
@pytest.mark.parametrize("target", ["https://[x/", "https://docs.example.com:99999/", "https://a..b/"])
def test_an_odd_redirect_is_a_failure_and_the_server_is_asked_again(
    target: str, follow: Callable[..., AutoUpdater], server: Server, docs: Path, built: Path
) -> None:
    moved = threading.Event()
    one = follow(1, moved.set)
    one.start(None)
    one.ensure_fetched(True)
    server.answers["/anvil/index.json"] = Answer(b"", 302, {"Location": target})
    assert within(20, lambda: bool(one.notes()))
    assert "redirects to an invalid address" in one.notes()[0]
    rebuilt(docs, built, server)
    assert moved.wait(20) and one.path.read_bytes() == built.read_bytes() and within(20, lambda: not one.notes())


@pytest.mark.usefixtures("often")
def test_what_nobody_foresaw_does_not_end_the_asking(
    follow: Callable[..., AutoUpdater], server: Server, docs: Path, built: Path, caplog: pytest.LogCaptureFixture
) -> None:
    def moved() -> None:
        raise RuntimeError("nobody foresaw that")

    one = follow(1, moved)
    one.start(None)
    one.ensure_fetched(True)
    asked = len(server.requests)
    rebuilt(docs, built, server)
    assert within(20, lambda: "nobody foresaw that" in caplog.text)
    assert within(20, lambda: len(server.requests) > asked + 4 and not one.notes()) and one._thread.is_alive()


def test_a_server_in_trouble_is_asked_less_and_less(follow: Callable[..., AutoUpdater]) -> None:
    assert [follow(600)._pause(failures) for failures in (0, 1, 2, 4, 5, 99)] == [600, 60, 120, 480, 600, 600]
    assert [follow(1)._pause(failures) for failures in (0, 1, 9)] == [1, 1, 1]
    assert [follow(0)._pause(failures) for failures in (1, 7, 999)] == [60, 3600, 3600]


def test_a_copy_is_at_hand_while_another_process_downloads(
    follow: Callable[..., AutoUpdater], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    fetch(f"{server.url}/")
    monkeypatch.setattr(auto_update, "FETCH_WAIT_S", 0.1)
    one = follow()
    with publish.exclusive(one.path):
        one.start(None)
        end = time.monotonic() + 20
        while not one.notes() and time.monotonic() < end:
            time.sleep(0.02)
        one.ensure_fetched(False)
        assert "a newer one is being looked for" in one.notes()[0]
    one.ensure_fetched(True)


def test_a_download_under_way_ends_when_it_is_closed(follow: Callable[..., AutoUpdater], server: Server) -> None:
    server.answers["/anvil/index.db"].drip = 0.01
    one = follow()
    one.start(None)
    while not server.asked("/anvil/index.db"):
        time.sleep(0.01)
    time.sleep(0.2)
    began = time.monotonic()
    one.stop()
    assert time.monotonic() - began < 30 and not one._thread.is_alive()
    assert list(one.path.parent.glob("part"))  # to go on from


def test_a_source_that_makes_no_sense_is_refused_when_it_is_opened() -> None:
    with pytest.raises(ConfigError, match="over https only"):
        anvil.open(index="http://docs.example.com/")
