"""Fetching over real HTTP on loopback: what comes, what is refused, what is kept, and what a server may not do."""

from __future__ import annotations

import base64
import json
import logging
import os
import ssl
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme

import anvil
from anvil.errors import AnvilError, ArtifactRejected, BuildError, FetchError, Unreachable
from anvil.fetch import download, fetch_index
from anvil.fetch.fetch_index import FetchRequest, FetchResult, fetch
from anvil.fetch.fetched_cache import FetchedCache
from anvil.http.client import Limits
from anvil.index_file import manifests, publish
from anvil.settings import index_url
from anvil.settings.index_url import PLACES
from anvil.system import safe_files
from anvil.values import silent
from tests.conftest import PAGES, write
from tests.support import in_process
from tests.support.index_server import Answer, Server, serving

PATIENT = Limits(connect=20, answer=20, pause=20)
"""For servers that are not slow by intention: the machine may be busy."""
QUICK = Limits(connect=2, answer=1, pause=1, grace=0.5, rate=1000)


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Two indexes that differ by a page, large enough that a download has several reads."""
    long = "\n".join(f"Line {number} of a long page." for number in range(6_000))
    made = []
    for number in range(2):
        folder = tmp_path_factory.mktemp("made")
        write(
            folder / "docs",
            {**PAGES, f"new{number}.md": f"# New {number}\n\nSomething about number {number}.\n{long}\n"},
        )
        with anvil.open(folder / "docs", folder / "index.db", "none") as opened:
            opened.index()
        made.append((folder / "index.db").read_bytes())
    assert min(map(len, made)) > 2 * 65_536, "httpx reads up to 65,536 bytes at once"
    return made


@pytest.fixture
def index(tmp_path: Path, indexes: list[bytes]) -> Path:
    """The first of them as a file."""
    path = tmp_path / "built" / "index.db"
    path.parent.mkdir()
    path.write_bytes(indexes[0])
    return path


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def get(tmp_path: Path) -> Callable[..., FetchResult]:
    """``fetch`` into a cache of the test's own."""
    usual: dict[str, Any] = {"cache": FetchedCache(tmp_path / "cache"), "limits": PATIENT}
    return lambda source, **more: fetch(source, FetchRequest(**usual | more))


def refused(get: Callable[..., FetchResult], source: str, kind: type[AnvilError] = FetchError, **more: object) -> str:
    """The message of a fetch that fails: at most three short sentences, with no path of the cache in it."""
    with pytest.raises(kind) as caught:
        get(source, **more)
    message = str(caught.value)
    assert message.endswith(".") and "\n" not in message and "/cache/" not in message
    return message


def published(server: Server, path: Path, data: bytes) -> None:
    """Another index in the place of the one that is published."""
    path.write_bytes(data)
    server.publish(path)


# --- from a path ---------------------------------------------------------------------------------------------


def test_a_file_and_folders_with_one_are_found(index: Path, get: Callable[..., FetchResult]) -> None:
    site = index.parent.parent / "site" / "anvil"
    site.mkdir(parents=True)
    (site / "index.db").write_bytes(index.read_bytes())
    publish.write_manifest(site / "index.db")
    inside = site / "index.db"
    for source, path in ((index, index), (index.parent, index), (site, inside), (site.parent, inside)):
        found = get(str(source))
        assert (found.path, found.manifest.sha256) == (path, safe_files.sha256(path))
        assert found.from_cache is None and not found.downloaded and found.fetched_at is None and found.notes == ()


def test_a_path_whose_manifest_speaks_of_another_index_is_refused(index: Path, get: Callable[..., FetchResult]) -> None:
    beside = publish.write_manifest(index)
    beside.write_text(manifests.render(replace(publish.describe(index), commit="a" * 40)))
    assert "its manifest has commit" in refused(get, str(index), ArtifactRejected)


def test_an_empty_folder_and_a_missing_file_say_so(tmp_path: Path, get: Callable[..., FetchResult]) -> None:
    assert "There is no index in" in refused(get, str(tmp_path))
    with pytest.raises(anvil.AnvilError, match="There is no file or folder"):
        get(str(tmp_path / "none.db"))


# --- from a web server ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/", "/anvil/", "/anvil", "/anvil/index.json", "/anvil/index.db"])
def test_a_site_a_folder_a_manifest_and_a_file_lead_to_the_same_index(
    place: str, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    found = get(server.url + place)
    assert found.path.read_bytes() == index.read_bytes()
    assert found.downloaded and found.from_cache is None and found.notes == ()
    assert found.manifest == replace(publish.describe(index), file="index.db")
    assert found.path.parts[-3:] == FetchRequest().entry(index_url.parse(server.url + place)).index.parts[-3:]


def test_a_site_whose_own_json_is_something_else(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    server.answers["/index.json"] = Answer(b"", 403)  # as stores say of what they do not have
    assert get(server.url).path.read_bytes() == index.read_bytes()
    server.answers["/index.json"] = Answer(b'[{"title": "a search index of another kind"}]')
    assert get(f"{server.url}/").from_cache is None
    server.answers["/index.json"] = Answer(b"<!doctype html>, as one-page sites answer anything")
    assert get(f"{server.url}/").path.read_bytes() == index.read_bytes()


def test_a_file_without_a_manifest_is_taken_and_says_so(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.answers["/docs.db"] = Answer(index.read_bytes())
    found = get(f"{server.url}/docs.db")
    assert found.manifest.pages == 5
    (note,) = found.notes
    assert "without a manifest" in note
    again = get(f"{server.url}/docs.db")
    assert not again.downloaded and again.notes == found.notes
    assert server.asked("/docs.db")[-1].headers["If-None-Match"]


def test_nothing_changed_costs_one_question_and_no_download(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    first = get(server.url)
    server.requests.clear()
    again = get(server.url)
    assert [each.path for each in server.requests] == ["/anvil/index.json"]
    assert not again.downloaded and (again.path, again.fetched_at) == (first.path, first.fetched_at)
    published(server, index, indexes[1])
    newer = get(server.url)
    assert newer.downloaded and newer.path == first.path and newer.path.read_bytes() == indexes[1]


@pytest.mark.parametrize("place", ["/anvil/", "/plain.db"])
def test_a_server_that_only_knows_times_is_asked_by_them(
    place: str, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    server.answers["/plain.db"] = Answer(index.read_bytes())
    for answer in server.answers.values():
        answer.etag, answer.headers = False, {"Last-Modified": "Sun, 01 Feb 2026 10:00:00 GMT"}
    get(server.url + place)
    server.requests.clear()
    again = get(server.url + place)
    assert not again.downloaded
    assert server.requests[-1].headers["If-Modified-Since"] == "Sun, 01 Feb 2026 10:00:00 GMT"
    assert sum(len(server.answers[each.path].body) for each in server.asked("/anvil/index.db")) == 0


def test_what_was_fetched_once_is_not_fetched_again_under_another_name(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    get(server.url)
    published(server, index, indexes[1])
    get(server.url)
    published(server, index, indexes[0])  # a roll back
    server.publish(index, "/mirror/")
    server.requests.clear()
    assert get(server.url).path.read_bytes() == indexes[0]
    assert get(f"{server.url}/mirror/").path.read_bytes() == indexes[0]
    assert [each.path for each in server.requests if each.path.endswith(".db")] == []


def test_a_damaged_cache_heals(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    path = get(server.url).path
    data = bytearray(path.read_bytes())
    data[5000] ^= 1
    path.write_bytes(data)  # and with it the object it is a link to
    again = get(server.url)
    assert again.downloaded and again.path.read_bytes() == index.read_bytes()


def test_a_clock_that_went_back_hides_no_newer_index(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    state = get(server.url).path.with_name("state.json")
    in_a_year = {"checked": time.time() + 365 * 86400}
    state.write_text(json.dumps({**json.loads(state.read_text()), **in_a_year}))
    published(server, index, indexes[1])
    assert get(server.url).path.read_bytes() == indexes[1]


@pytest.mark.parametrize("wrong", ['{"checked": "soon"}', '{"checked": NaN}', '{"fetched": 1e999}', '{"shown": 1}'])
def test_a_damaged_state_heals(wrong: str, server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    state = get(server.url).path.with_name("state.json")
    state.write_text(json.dumps({**json.loads(state.read_text()), **json.loads(wrong)}))
    assert get(server.url).path.read_bytes() == index.read_bytes()
    state.write_text("[" * 100_000)
    assert get(server.url).path.read_bytes() == index.read_bytes()


def test_progress_is_told_in_thousands_of_bytes(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    told: list[tuple[str, int, int]] = []
    get(server.url, progress=lambda *heard: told.append(heard))
    whole = index.stat().st_size // 1000
    assert told[-1] == ("fetching kB", whole, whole) and [done for _, done, _ in told] == sorted(d for _, d, _ in told)


# --- offline -------------------------------------------------------------------------------------------------


def test_an_unreachable_server_leaves_what_was_fetched(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    first = get(server.url)
    server.stop()
    found = get(server.url)
    assert found.path == first.path and found.fetched_at == first.fetched_at and not found.downloaded
    assert str(found.from_cache).startswith(f"127.0.0.1:{server.port} cannot be reached (")
    server.start()
    server.answers["/anvil/index.json"].status = 503
    assert "has an error (status 503)" in str(get(server.url).from_cache)
    server.answers["/anvil/index.json"].status = 200
    assert get(server.url).from_cache is None


def test_an_unreachable_server_and_an_empty_cache_are_an_error_that_names_both(
    server: Server, get: Callable[..., FetchResult]
) -> None:
    server.stop()
    message = refused(get, server.url, Unreachable)
    assert "cannot be reached" in message and f"{server.url}/ was not fetched before." in message


def test_offline_asks_nobody(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    assert "It was not fetched before" in refused(get, server.url, Unreachable, offline="You asked for that.")
    server.publish(index)
    get(server.url)
    server.requests.clear()
    assert get(server.url, offline="You asked for that.").from_cache == "You asked for that."
    assert server.requests == []


def test_what_the_server_takes_back_is_an_error_although_it_is_cached(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    get(server.url)
    server.answers.clear()
    assert "There is no index at" in refused(get, server.url)


# --- broken downloads ----------------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(download, "RETRY_DELAY_S", 0.0)


def cuts_in_each_attempt(data: bytes) -> list[int]:
    """Numbers of bytes after which each attempt breaks off, so that a rest stays for the next download."""
    return [len(data) // (download.MAX_ATTEMPTS + 1)] * download.MAX_ATTEMPTS


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("place", ["/anvil/", "/plain/index.db"])
def test_a_download_that_breaks_off_goes_on_where_it_was(
    place: str, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    server.answers["/plain/index.db"] = server.answers["/anvil/index.db"]
    first, second = index.stat().st_size // 2, index.stat().st_size // 3
    server.answers["/anvil/index.db"].cuts = [first, second]
    assert get(server.url + place).path.read_bytes() == index.read_bytes()
    path = "/anvil/index.db" if place == "/anvil/" else place
    ranges = [each.headers["Range"] for each in server.asked(path)]
    assert ranges == [None, f"bytes={first}-", f"bytes={first + second}-"]
    assert all(each.headers["If-Range"] for each in server.asked(path)[1:])


@pytest.mark.usefixtures("hasty")
def test_a_download_that_gets_further_in_each_attempt_is_not_given_up(
    monkeypatch: pytest.MonkeyPatch, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    monkeypatch.setattr(download, "MIN_PROGRESS_BYTES", 1000)
    server.publish(index)
    server.answers["/anvil/index.db"].cuts = [1000, 1000, 10, 10, 1000, 10, 1000, 1000]
    assert get(server.url).path.read_bytes() == index.read_bytes()
    server.publish(index)
    server.answers["/anvil/other.db"] = Answer(index.read_bytes(), cuts=[2000, 10, 10, 10, 10])
    assert "broke off after 10 bytes" in refused(get, f"{server.url}/anvil/other.db", Unreachable)
    assert len(server.asked("/anvil/other.db")) == 4


@pytest.mark.usefixtures("hasty")
def test_nothing_is_said_to_be_kept_of_a_file_that_cannot_be_recognized(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.answers["/plain.db"] = Answer(index.read_bytes(), etag=False, cuts=cuts_in_each_attempt(index.read_bytes()))
    message = refused(get, f"{server.url}/plain.db", Unreachable)
    assert "broke off after" in message and "is kept" not in message


@pytest.mark.usefixtures("hasty")
def test_what_came_is_kept_for_the_next_attempt(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    cuts = cuts_in_each_attempt(index.read_bytes())
    server.answers["/anvil/index.db"].cuts = list(cuts)
    assert "The received part is kept" in refused(get, server.url, Unreachable)
    server.requests.clear()
    assert get(server.url).path.read_bytes() == index.read_bytes()
    assert server.asked("/anvil/index.db")[0].headers["Range"] == f"bytes={sum(cuts)}-"


@pytest.mark.usefixtures("hasty")
def test_a_server_without_ranges_or_with_another_file_meanwhile_starts_anew(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    answer = server.answers["/anvil/index.db"]
    answer.ranges, answer.cuts = False, [len(indexes[0]) // 2]
    assert get(server.url).path.read_bytes() == indexes[0]
    assert len(server.asked("/anvil/index.db")) == 2
    server.answers["/other.db"] = Answer(indexes[0], cuts=cuts_in_each_attempt(indexes[0]))
    refused(get, f"{server.url}/other.db", Unreachable)
    server.answers["/other.db"] = Answer(indexes[1])  # If-Range no longer fits
    assert get(f"{server.url}/other.db").path.read_bytes() == indexes[1]


def test_a_source_that_was_never_fetched_is_not_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(time, "sleep", pauses.append)
    entry = FetchedCache(tmp_path / "cache").entry("https://docs.example.com/")
    assert entry.state() is None and pauses == []
    write(entry.folder, {"index.db": "without a state, as between two renames"})
    assert entry.state() is None and len(pauses) == 1


@pytest.mark.usefixtures("hasty")
def test_a_server_that_does_not_know_the_rest_is_asked_for_the_whole(
    server: Server, index: Path, get: Callable[..., FetchResult], tmp_path: Path
) -> None:
    server.publish(index)
    sha256 = safe_files.sha256(index)
    entry = FetchedCache(tmp_path / "cache").entry(f"{server.url}/")
    entry.folder.mkdir(parents=True)
    entry.part.write_bytes(index.read_bytes())  # whole, but it was not known to be
    entry.part.with_name("part.json").write_text(json.dumps({"name": sha256, "etag": None}))
    assert get(server.url).path.read_bytes() == index.read_bytes()


def test_slow_headers_and_a_slow_body_end(server: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    server.publish(index)
    server.answers["/anvil/index.json"].drip_headers = 0.1
    began = time.monotonic()
    assert "did not answer in 1 s" in refused(get, server.url, Unreachable, limits=QUICK)
    server.answers["/anvil/index.json"].drip_headers = 0.0
    server.answers["/anvil/index.db"].drip = 0.05
    assert "is too slow" in refused(get, server.url, Unreachable, limits=QUICK)
    assert time.monotonic() - began < 60


def test_a_silent_server_ends(server: Server, get: Callable[..., FetchResult]) -> None:
    server.answers["/index.json"] = Answer(b"{}", drip=5.0)
    # it gave up before the answer came
    assert "broke off after 0 bytes" in refused(get, server.url, Unreachable, limits=QUICK)


# --- what is refused -----------------------------------------------------------------------------------------


def test_a_wrong_digest_is_refused_and_nothing_is_replaced(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    before = get(server.url)
    published(server, index, indexes[1])
    changed = bytearray(indexes[1])
    changed[-1] ^= 1
    server.answers["/anvil/index.db"].body = bytes(changed)
    assert "its SHA-256 is" in refused(get, server.url, ArtifactRejected)
    assert before.path.read_bytes() == indexes[0]
    assert not list(before.path.parent.glob("part*"))
    server.answers["/anvil/index.db"].body = indexes[1]
    assert get(server.url).path.read_bytes() == indexes[1]


def test_a_site_that_is_published_between_two_questions_is_asked_again(
    server: Server, index: Path, indexes: list[bytes], get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    old = server.answers["/anvil/index.json"]
    published(server, index, indexes[1])
    new, server.answers["/anvil/index.json"] = server.answers["/anvil/index.json"], old
    server.answers["/anvil/index.db"].asked = lambda: server.answers.update({"/anvil/index.json": new})
    assert get(server.url).path.read_bytes() == indexes[1]


@pytest.mark.parametrize(
    ("key", "value"), [("commit", "b" * 40), ("digest", "c" * 64), ("format", 7), ("size", 5), ("sha256", "d" * 64)]
)
def test_a_manifest_of_another_index_is_refused(
    key: str, value: object, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    told = json.loads(server.answers["/anvil/index.json"].body)
    server.answers["/anvil/index.json"].body = json.dumps({**told, key: value}).encode()
    assert server.url in refused(get, server.url, ArtifactRejected) or key == "size"


@pytest.mark.parametrize("text", ["", "{", '{"anvil_version": "0.1.0", "chun', '{"sha256": "x"}', '{"digest": 1}'])
def test_a_manifest_that_is_wrong_is_not_none(text: str, index: Path, get: Callable[..., FetchResult]) -> None:
    publish.write_manifest(index).write_text(text)
    for place in (index, index.parent) if index.name == "index.db" else (index,):
        assert "is not the manifest of an index" in refused(get, str(place), ArtifactRejected)


def test_a_json_file_of_another_kind_is_no_manifest(index: Path, get: Callable[..., FetchResult]) -> None:
    manifests.manifest_path(index).write_text('{"pages": []}')
    assert get(str(index)).manifest.pages == 5


@pytest.mark.parametrize("place", ["", "/anvil/index.db"])
@pytest.mark.parametrize("text", ['{"anvil_version": "0.1.0", "chun', '{"sha256": "x"}'])
def test_a_wrong_manifest_on_a_server_is_not_none(
    text: str, place: str, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    server.answers["/anvil/index.json"].body = text.encode()
    assert "is not the manifest of an index" in refused(get, server.url + place, ArtifactRejected)


def test_a_manifest_that_names_a_path_is_no_manifest(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    told = json.loads(server.answers["/anvil/index.json"].body)
    server.answers["/anvil/index.json"].body = json.dumps({**told, "file": "../../etc/passwd"}).encode()
    assert "'file' is missing or wrong" in refused(get, f"{server.url}/anvil/index.json", ArtifactRejected)


def test_files_beyond_the_limit_are_refused_declared_or_not(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    most = index.stat().st_size - 1
    small = replace(PATIENT, size=most)
    server.publish(index)
    message = refused(get, server.url, ArtifactRejected, limits=small)
    assert f"a file of {most + 1:,} bytes, and {most:,} are allowed. Raise fetch.max_bytes" in message
    server.answers["/plain.db"] = Answer(index.read_bytes(), headers={"Content-Length": ""})
    message = refused(get, f"{server.url}/plain.db", ArtifactRejected, limits=small)
    assert f"more than the {most:,} bytes that are allowed. Raise fetch.max_bytes" in message
    server.answers["/anvil/index.db"].headers = {"Content-Length": ""}
    server.answers["/anvil/index.db"].body += b"more than its manifest says"
    assert "bytes it should" in refused(get, server.url, ArtifactRejected)


def test_something_that_is_no_index_is_refused_by_the_name_of_its_source(
    server: Server, get: Callable[..., FetchResult]
) -> None:
    server.answers["/page.db"] = Answer(b"<!doctype html>")
    message = refused(get, f"{server.url}/page.db", ArtifactRejected)
    assert message.startswith(f"The download from {server.url}/page.db is not an Anvil index.")


def test_a_compressed_answer_that_nobody_asked_for_is_refused(server: Server, get: Callable[..., FetchResult]) -> None:
    server.answers["/x.db"] = Answer(b"\x1f\x8b", headers={"Content-Encoding": "gzip"})
    assert "compressed" in refused(get, f"{server.url}/x.db")
    assert server.asked("/x.db")[0].headers["Accept-Encoding"] == "identity"


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (401, "cannot be read (status 401)"),
        (403, "cannot be read (status 403)"),
        (404, "There is no index at"),
        (410, "There is no index at"),
        (418, "answered with status 418"),
        (429, "limits the number of requests"),
    ],
)
def test_each_refusal_of_a_server_has_its_words(
    status: int, message: str, server: Server, get: Callable[..., FetchResult]
) -> None:
    server.answers["/x.db"] = Answer(b"", status)
    assert message in refused(get, f"{server.url}/x.db")
    server.answers = {f"/{place}": Answer(b"", status) for place in PLACES}
    assert message in refused(get, f"{server.url}/")


# --- redirects and secrets -----------------------------------------------------------------------------------


def test_credentials_of_netrc_are_sent_to_a_server_that_the_user_named(
    server: Server, index: Path, get: Callable[..., FetchResult], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish(index)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login reader password s3cret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    in_process.program("pull", server.url, "--to", str(tmp_path / "pulled.db"))
    assert {each.headers["Authorization"] for each in server.requests} == {"Basic cmVhZGVyOnMzY3JldA=="}
    server.requests.clear()
    get(server.url)  # a caller that does not say whose words these are, such as a package's
    assert {each.headers["Authorization"] for each in server.requests} == {None}


@pytest.mark.parametrize("place", ["", "[collections.docs]\n"])
def test_an_address_in_a_file_that_nobody_named_gets_no_credentials_of_netrc(
    place: str, server: Server, index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A checkout could name any port of a host whose password the user keeps."""
    server.publish(index)
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login reader password s3cret\n", encoding="utf-8")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "anvil.toml").write_text(f'{place}index = "{server.url}/"\n', encoding="utf-8")
    for config, index_option, expected in (
        (None, None, None),
        ("anvil.toml", None, "Basic cmVhZGVyOnMzY3JldA=="),
        (None, f"{server.url}/", "Basic cmVhZGVyOnMzY3JldA=="),
    ):
        server.requests.clear()
        collections = None if index_option else "all"
        with anvil.open(index=index_option, config=config, provider="none", collections=collections) as opened:
            assert opened.search("lamp")
        assert {each.headers["Authorization"] for each in server.requests} == {expected}, (config, index_option)


def test_redirects_are_followed_a_few_times_and_lose_the_credentials_at_another_origin(
    server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    with serving() as other:
        other.publish(index)
        server.answers["/docs/index.json"] = Answer(b"", 302, {"Location": "/moved/index.json"})
        server.answers["/moved/index.json"] = Answer(b"", 301, {"Location": f"{other.url}/anvil/index.json"})
        source = f"http://reader:s3cret-password@127.0.0.1:{server.port}/docs/"
        found = get(source)
        assert found.path.read_bytes() == index.read_bytes()
        expected = f"Basic {base64.b64encode(b'reader:s3cret-password').decode()}"
        assert [each.headers["Authorization"] for each in server.requests] == [expected, expected]
        assert other.requests and all(each.headers["Authorization"] is None for each in other.requests)
        assert found.origin == f"{server.url}/docs/"
        server.answers["/moved/index.json"] = Answer(b"", 302, {"Location": "/docs/index.json"})
        assert "redirects more than 5 times" in refused(get, source)


@pytest.mark.parametrize("target", ["http://docs.example.com/index.db", "ftp://127.0.0.1/x", "file:///etc/passwd"])
def test_redirects_to_anything_but_https_or_this_machine_are_not_followed(
    target: str, server: Server, get: Callable[..., FetchResult]
) -> None:
    server.answers["/x.db"] = Answer(b"", 302, {"Location": target})
    assert "is not followed" in refused(get, f"{server.url}/x.db")


@pytest.mark.parametrize(
    "target",
    [
        "https://[x/",
        "https://docs.example.com:99999/",
        "https://docs.example.com:abc/",
        "http://127.0.0.1:-1/",
        "https://a..b/",
        f"https://{'a' * 70}.example.com/",
        "https:///x",
        "https://[v1.x]/",
        "http://me:s3cret@[/",
    ],
)
def test_a_redirect_to_what_is_no_address_is_told_in_a_sentence(
    target: str, server: Server, get: Callable[..., FetchResult]
) -> None:
    server.answers["/x.db"] = Answer(b"", 302, {"Location": target})
    said = refused(get, f"{server.url}/x.db")
    assert said == f"127.0.0.1:{server.port} redirects to an invalid address. Tell its owner."


def test_a_host_that_nobody_can_have_is_told_in_a_sentence(get: Callable[..., FetchResult]) -> None:
    assert refused(get, "https://a..b/x.db") == "a..b is not a valid host. Check the address."


def test_secrets_appear_in_no_file_error_or_log(
    server: Server, index: Path, get: Callable[..., FetchResult], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    server.answers["/private/index.db"] = Answer(index.read_bytes())
    source = f"http://reader:s3cret-password@127.0.0.1:{server.port}/private/index.db?sig=S1GNATURE"
    found = get(source)
    server.answers["/private/index.db"].status = 403
    said = [refused(get, source), repr(found), caplog.text]
    server.stop()
    said.append(str(get(source).from_cache))
    kept = [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]
    said += [path.read_bytes().decode("latin-1") + str(path) for path in kept]
    assert len(kept) >= 3
    for text in said:
        assert "s3cret-password" not in text and "S1GNATURE" not in text


def test_other_users_of_the_http_library_keep_their_log(
    server: Server, index: Path, get: Callable[..., FetchResult], caplog: pytest.LogCaptureFixture
) -> None:
    import httpx2

    server.publish(index)
    get(server.url)
    with caplog.at_level(logging.INFO, "httpx2"):
        httpx2.get(f"{server.url}/anvil/index.json", trust_env=False)
    assert "index.json" in caplog.text


# --- https ---------------------------------------------------------------------------------------------------


@pytest.fixture
def secure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    """A server whose certificate this process trusts, by the variable that all programs know."""
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    authority.cert_pem.write_to_path(str(tmp_path / "authority.pem"))
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authority.pem"))
    with serving(context) as server:
        yield server


def test_https_with_a_certificate_that_is_trusted_and_with_one_that_is_not(
    secure: Server, index: Path, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    secure.publish(index)
    assert get(f"{secure.url}/").origin == f"{secure.url}/"
    monkeypatch.delenv("SSL_CERT_FILE")
    assert "certificate verify failed" in refused(get, f"{secure.url}/anvil/", Unreachable)


def test_a_redirect_from_https_to_http_is_not_followed_even_on_this_machine(
    secure: Server, server: Server, index: Path, get: Callable[..., FetchResult]
) -> None:
    server.publish(index)
    secure.answers["/x.db"] = Answer(b"", 302, {"Location": f"{server.url}/anvil/index.db"})
    assert "leads to plain http, which is not followed" in refused(get, f"{secure.url}/x.db")
    server.answers["/up.db"] = Answer(b"", 307, {"Location": f"{secure.url}/y.db"})
    secure.answers["/y.db"] = Answer(index.read_bytes())
    assert get(f"{server.url}/up.db").manifest.pages == 5
    assert [each.path for each in server.requests] == ["/up.json", "/up.db"]


def test_an_answer_that_makes_no_sense_is_named(server: Server, get: Callable[..., FetchResult]) -> None:
    for name in ("x.db", "x.json"):
        server.answers[f"/{name}"] = Answer(b"", 304)  # although no condition was sent
        assert "answered with status 304" in refused(get, f"{server.url}/{name}")
    server.answers["/y.db"] = Answer(b"", 302, {"Location": "file:///etc/passwd"})
    host = server.url.removeprefix("http://")
    assert f"A redirect from {host} leads to an address with file:" in refused(get, f"{server.url}/y.db")


def test_slow_headers_end_over_tls_too(secure: Server, index: Path, get: Callable[..., FetchResult]) -> None:
    secure.publish(index)
    secure.answers["/anvil/index.json"].drip_headers = 0.1
    assert "did not answer in 1 s" in refused(get, f"{secure.url}/anvil/", Unreachable, limits=QUICK)


# --- the cache -----------------------------------------------------------------------------------------------


def test_the_cache_keeps_what_is_new_or_in_use(tmp_path: Path, indexes: list[bytes]) -> None:
    cache = FetchedCache(tmp_path / "cache")
    objects = cache.folder / "objects"
    objects.mkdir(parents=True)
    for number in range(20):
        (objects / f"{number:02}.db").write_bytes(b"x")
        (cache.folder / "sources" / f"{number:02}").mkdir(parents=True)
    cache.prune()
    assert len(list(objects.iterdir())) == 20  # all were used today
    old = time.time() - 3 * 24 * 3600
    for number in range(20):
        for path in (objects / f"{number:02}.db", cache.folder / "sources" / f"{number:02}"):
            os.utime(path, (old + number, old + number))
    cache.prune()
    assert sorted(path.stem for path in objects.iterdir()) == [f"{number:02}" for number in range(8, 20)]
    assert len(list((cache.folder / "sources").iterdir())) == 12


def test_a_cache_that_cannot_be_written_is_named(
    server: Server, index: Path, get: Callable[..., FetchResult], tmp_path: Path
) -> None:
    server.publish(index)
    (tmp_path / "file").write_text("in the way")
    cache = FetchedCache(tmp_path / "file")
    message = (
        r"The cache folder .*file cannot be written \(.+\)\. Make it writable .*set XDG_CACHE_HOME to another folder"
    )
    with pytest.raises(FetchError, match=message):
        get(server.url, cache=cache)
    for change in (
        lambda: cache.note("name", "text"),
        lambda: cache.workplace().__enter__(),
        lambda: cache.keep(index, "0"),
    ):
        with pytest.raises(BuildError, match=message):
            change()


def test_a_cache_that_can_only_be_read_still_answers(
    server: Server, index: Path, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish(index)
    first = get(server.url)

    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")  # who runs the tests may be root, whom no mode keeps out

    monkeypatch.setattr(os, "utime", refuse)
    found = get(server.url)
    assert found.path == first.path and "cannot be written (Permission denied)" in str(found.from_cache)


def test_a_proxy_is_not_asked_for_this_machine(
    server: Server, index: Path, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    server.publish(index)
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    assert get(server.url).from_cache is None
    assert get(server.url.replace("127.0.0.1", "localhost")).from_cache is None


def test_several_threads_and_processes_share_a_cache(server: Server, index: Path, tmp_path: Path) -> None:
    server.publish(index)
    code = (
        "import sys, pathlib; from anvil.fetch.fetch_index import FetchedCache, FetchRequest, fetch; "
        "print(fetch(sys.argv[1], FetchRequest(cache=FetchedCache(pathlib.Path(sys.argv[2])))).manifest.sha256)"
    )
    line = [sys.executable, "-c", code, server.url, str(tmp_path / "cache")]
    environment = {**os.environ, "PYTHONPATH": str(Path(anvil.__file__).parents[1])}
    programs = [subprocess.Popen(line, stdout=subprocess.PIPE, text=True, env=environment) for _ in range(3)]
    found: list[str] = []
    request = FetchRequest(cache=FetchedCache(tmp_path / "cache"))
    threads = [
        threading.Thread(target=lambda: found.append(fetch(server.url, request).manifest.sha256)) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    found += [program.communicate(timeout=60)[0].strip() for program in programs]
    assert found == [safe_files.sha256(index)] * 7
    assert len(server.asked("/anvil/index.db")) == 1
    assert not list((tmp_path / "cache").rglob("*.new")) + list((tmp_path / "cache").rglob("part*"))


def test_one_that_waited_for_another_takes_what_it_fetched(
    server: Server, index: Path, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    server.publish(index)
    get(server.url)
    monkeypatch.setattr(fetch_index, "LOCK_TIMEOUT_S", 0.2)
    entry = FetchedCache(tmp_path / "cache").entry(f"{server.url}/")
    with entry.lock(1.0, silent):
        caught: list[str] = []
        thread = threading.Thread(target=lambda: caught.append(refused(get, server.url, Unreachable)))
        thread.start()
        thread.join(30)
    assert caught == [f"Another process is fetching {server.url}/. Try again when it has finished."]
