"""Fetching an index that must have an attestation: where it is found, what is refused, and what is remembered."""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import anvil
from anvil.errors import ConfigError, FetchError, NotAttested, Unreachable
from anvil.fetch.attestation import MAX_BYTES, AttestationRule
from anvil.fetch.fetch_index import FetchRequest, FetchResult, fetch
from anvil.fetch.fetched_cache import FetchedCache
from anvil.settings import index_url
from anvil.system import safe_files
from tests.conftest import PAGES, write
from tests.support.index_server import Answer, GitHub, Server, packed, serving
from tests.support.sigstore import Sigstore

BESIDE = "/anvil/index.db.sigstore.json"


@pytest.fixture(scope="module")
def sigstore() -> Sigstore:
    return Sigstore()


@pytest.fixture(scope="module")
def indexes(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two indexes."""
    made = []
    for number in range(2):
        folder = tmp_path_factory.mktemp("made")
        write(folder / "docs", {**PAGES, "new.md": f"# New {number}\n\nSomething new.\n"})
        with anvil.open(folder / "docs", folder / "index.db", "none") as opened:
            opened.index()
        made.append(folder / "index.db")
    return made


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as server:
        yield server


@pytest.fixture
def get(tmp_path: Path, sigstore: Sigstore) -> Callable[..., FetchResult]:
    """Fetches with one cache, and the trusted root of the tests. ``builder``: who must have built the index."""
    root = str(sigstore.write_root(tmp_path))

    def fetched(source: str, builder: str | None = None, **more: Any) -> FetchResult:
        required = more.pop("required", builder is not None)
        rule = AttestationRule(required, builder, root) if more.pop("asked", True) else None
        return fetch(source, FetchRequest(cache=FetchedCache(tmp_path / "cache"), attested=rule, **more))

    return fetched


@pytest.fixture
def site(server: Server, indexes: list[Path], sigstore: Sigstore) -> Server:
    """A site with an index and its attestation."""
    server.publish(indexes[0])
    server.json(BESIDE, sigstore.bundle(indexes[0].read_bytes()))
    return server


# --- a web server ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/", "/anvil/", "/anvil/index.json", "/anvil/index.db"])
def test_the_file_beside_the_index_says_who_built_it(place: str, site: Server, get: Callable[..., FetchResult]) -> None:
    found = get(site.url + place, "acme/docs")
    assert found.attestation is not None and found.attestation.repository == "acme/docs" and found.notes == ()
    again = get(site.url + place, "ACME")
    assert not again.downloaded and again.attestation == found.attestation
    assert len(site.asked(BESIDE)) == 1  # the result is remembered
    assert get(site.url + place, "acme/docs", offline="No network.").attestation == found.attestation


def test_an_index_with_another_name_and_a_query_in_its_address(
    server: Server, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    server.answers["/my%20docs.db"] = Answer(indexes[0].read_bytes())
    server.json("/my%20docs.db.sigstore.json", sigstore.bundle(indexes[0].read_bytes()))
    found = get(f"{server.url}/my%20docs.db?token=SECRET", "acme/docs")
    assert found.attestation is not None
    assert server.asked("/my%20docs.db.sigstore.json")[0].path.endswith("?token=SECRET")


def test_without_a_rule_nothing_is_asked(site: Server, get: Callable[..., FetchResult]) -> None:
    found = get(site.url, asked=False)
    assert found.attestation is None and found.notes == () and not site.asked(BESIDE)


def test_an_attestation_that_comes_later_is_found(
    server: Server, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    server.publish(indexes[0])
    first = get(server.url)
    assert (first.attestation, first.notes) == (None, ())
    server.json(BESIDE, sigstore.bundle(indexes[0].read_bytes()))
    later = get(server.url)
    assert later.attestation is not None and not later.downloaded
    assert server.asked("/anvil/index.json")[-1].headers["If-None-Match"]


BROKEN: dict[str, tuple[Callable[[Sigstore, bytes, bytes], Answer], str]] = {
    "missing": (lambda sigstore, index, other: Answer(b"", 404), "it has no attestation"),
    "forbidden": (lambda sigstore, index, other: Answer(b"", 403), "it has no attestation"),
    "a page": (lambda sigstore, index, other: Answer(b"<!doctype html>"), "it has no attestation"),
    "of another file": (lambda sigstore, index, other: bundle(sigstore, other), "it is of another file"),
    "of another repository": (
        lambda sigstore, index, other: bundle(sigstore, index, "evil/docs"),
        "it was built by evil/docs, not by acme/docs",
    ),
    "of a similar owner": (
        lambda sigstore, index, other: bundle(sigstore, index, "acme-docs/docs"),
        "it was built by acme-docs/docs, not by acme/docs",
    ),
    "of another Sigstore": (lambda sigstore, index, other: bundle(Sigstore(), index), ""),
    "not JSON": (lambda sigstore, index, other: Answer(b"{not JSON"), "cannot be read, because it is not JSON"),
    "another format": (lambda sigstore, index, other: Answer(b'{"mediaType": "text/plain"}'), "not a Sigstore bundle"),
    "of 50 MB": (
        lambda sigstore, index, other: Answer(b'{"x": "' + b"9" * 50_000_000 + b'"}'),
        f"is longer than {MAX_BYTES:,} bytes",
    ),
    "an endless one": (
        lambda sigstore, index, other: Answer(b"{" * 2_000_000, headers={"Content-Length": ""}),
        f"is longer than {MAX_BYTES:,} bytes",
    ),
}


def bundle(sigstore: Sigstore, index: bytes, repository: str = "acme/docs") -> Answer:
    return Answer(json.dumps(sigstore.bundle(index, repository)).encode())


@pytest.mark.parametrize("kind", BROKEN)
def test_an_index_without_the_right_attestation_is_refused_and_not_kept(
    kind: str, server: Server, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    make, reason = BROKEN[kind]
    server.publish(indexes[0])
    server.answers[BESIDE] = make(sigstore, indexes[0].read_bytes(), indexes[1].read_bytes())
    with pytest.raises((NotAttested, FetchError)) as caught:
        get(server.url, "acme/docs")
    message = str(caught.value)
    assert reason in message and len(message) < 500
    with pytest.raises(Unreachable):  # it did not become the index of this source
        get(server.url, asked=False, offline="No network.")


@pytest.mark.parametrize(
    "kind", [kind for kind in BROKEN if kind not in ("of another repository", "of a similar owner")]
)
def test_where_none_is_required_a_wrong_one_is_a_note(
    kind: str, server: Server, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    make, reason = BROKEN[kind]
    server.publish(indexes[0])
    server.answers[BESIDE] = make(sigstore, indexes[0].read_bytes(), indexes[1].read_bytes())
    found = get(server.url)
    assert found.attestation is None and found.path.read_bytes() == indexes[0].read_bytes()
    if reason == "it has no attestation":
        assert found.notes == ()
    else:
        (note,) = found.notes
        assert note.startswith(("Its attestation is not valid: ", "Its attestation cannot be fetched: "))
        assert reason in note


def test_a_newer_index_without_attestation_does_not_replace_one_with_it(
    site: Server, indexes: list[Path], get: Callable[..., FetchResult]
) -> None:
    path = get(site.url, "acme/docs").path
    site.publish(indexes[1])
    with pytest.raises(NotAttested, match="of another file"):
        get(site.url, "acme/docs")
    other = get(site.url).path  # for somebody who does not require it, at another place
    usual = FetchRequest().entry(index_url.parse(site.url)).index
    assert other.read_bytes() == indexes[1].read_bytes() and other.parts[-3:] == usual.parts[-3:]
    assert path.read_bytes() == indexes[0].read_bytes()
    assert get(site.url, "acme/docs", offline="No network.").path == path != other


def test_what_was_fetched_without_a_rule_is_verified_when_there_is_one(
    site: Server, get: Callable[..., FetchResult]
) -> None:
    get(site.url, asked=False)
    with pytest.raises(Unreachable, match="was not fetched before"):
        get(site.url, "acme/docs", offline="No network.")
    verified = get(site.url, "acme/docs")
    assert verified.attestation is not None and not verified.downloaded  # the bytes are those in the cache
    with pytest.raises(NotAttested, match="built by acme/docs, not by evil"):
        get(site.url, "evil")
    assert get(site.url, "acme/docs", offline="No network.").attestation is not None


def test_a_cached_index_whose_result_was_lost_is_refused_offline_and_verified_again(
    site: Server, get: Callable[..., FetchResult], tmp_path: Path
) -> None:
    get(site.url, "acme/docs")
    shutil.rmtree(tmp_path / "cache" / "names")
    with pytest.raises(NotAttested, match="was not verified before"):
        get(site.url, "acme/docs", offline="No network.")
    assert get(site.url, "acme/docs").attestation is not None


def test_a_server_that_fails_when_asked_for_the_attestation(site: Server, get: Callable[..., FetchResult]) -> None:
    site.answers[BESIDE] = Answer(b"", 503)
    (note,) = get(site.url).notes
    assert note.startswith("Its attestation cannot be fetched: ")
    with pytest.raises(Unreachable, match="was not fetched before"):
        get(site.url, "acme/docs")
    site.answers[BESIDE] = Answer(b"", 418)
    with pytest.raises(FetchError, match="status 418"):
        get(site.url, "acme/docs")


def test_who_must_have_built_it_must_be_known_before_anything_is_fetched(
    site: Server, get: Callable[..., FetchResult]
) -> None:
    with pytest.raises(ConfigError, match="--attested-by OWNER/REPO"):
        get(site.url, required=True)
    assert not site.requests


def test_without_the_package_a_note_says_how_to_install_it(
    site: Server, get: Callable[..., FetchResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sigstore", None)
    found = get(site.url)
    assert found.attestation is None
    (note,) = found.notes
    assert note.startswith("Its attestation is not verified: that needs the extra attest. Install it: ")
    assert "[attest]" in note
    del site.answers[BESIDE]
    assert get(site.url).notes == ()
    before = len(site.requests)
    with pytest.raises(ConfigError, match=r"Install it: .*\[attest\]"):
        get(site.url, "acme/docs")
    assert len(site.requests) == before


def test_several_attestations_one_in_each_line(
    site: Server, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    index = indexes[0].read_bytes()
    rows = [sigstore.bundle(index, name) for name in ("evil/docs", "acme/docs")]
    site.answers[BESIDE] = Answer("".join(f"{json.dumps(row)}\n" for row in rows).encode())
    found = get(site.url, "acme/docs").attestation
    assert found is not None and found.repository == "acme/docs"


# --- GitHub and paths ------------------------------------------------------------------------------------------------


@pytest.fixture
def github(server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[GitHub]:
    monkeypatch.setenv("GITHUB_API_URL", server.url)
    monkeypatch.setenv("GITHUB_TOKEN", "SECRET-TOKEN")
    with serving() as storage:
        yield GitHub(server, storage)


def keeps(github: GitHub, index: Path, *bundles: dict[str, Any]) -> str:
    """What GitHub's API says of the attestations of an index; its path."""
    path = f"{github.root}/attestations/sha256:{safe_files.sha256(index)}"
    github.api.json(path, {"attestations": [{"bundle": each, "repository_id": 1} for each in bundles]})
    return path


@pytest.mark.parametrize("source", ["github:owner/repo#artifact:docs-index", "github:Owner/Repo#release:v1"])
def test_github_keeps_the_attestation_of_an_artifact_and_of_a_release(
    source: str, github: GitHub, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    index = indexes[0]
    github.artifact("a" * 40, packed({"index.db": index.read_bytes()}))
    github.release("v1", {"index.db": index.read_bytes()})
    github.root = source.partition(":")[2].partition("#")[0].join(("/repos/", ""))
    for path, answer in list(github.api.answers.items()):
        github.api.answers[path.replace("/repos/owner/repo", github.root)] = answer
    path = keeps(github, index, sigstore.bundle(index.read_bytes(), "owner/repo"))
    found = get(source, required=True)
    assert found.attestation is not None and found.attestation.repository == "owner/repo"
    (request,) = github.api.asked(path)
    assert request.headers["Authorization"] == "Bearer SECRET-TOKEN"
    get(source, required=True)
    assert len(github.api.asked(path)) == 1


def test_github_without_an_attestation(
    github: GitHub, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    source = "github:owner/repo#release:v1"
    github.release("v1", {"index.db": indexes[0].read_bytes()})
    assert [note for note in get(source).notes if "ttestation" in note] == []
    with pytest.raises(NotAttested, match="owner/repo must have built it: it has no attestation"):
        get(source, required=True)
    path = keeps(github, indexes[0], sigstore.bundle(indexes[0].read_bytes(), "owner/other"))
    with pytest.raises(NotAttested, match="built by owner/other, not by owner/repo"):
        get(source, required=True)
    github.api.answers[path] = Answer(b"{}", 403)
    with pytest.raises(FetchError, match="'attestations: read'"):
        get(source, required=True)
    github.api.answers[path] = Answer(b"", 429)
    assert "limits the number of requests" in " ".join(get(source).notes)


# --- GitHub's storage of bundles ---------------------------------------------------------------------------------

STORED = "/attestations/1/2.json.sn"


def stores(github: GitHub, index: Path, answer: Answer, url: object = None) -> None:
    """GitHub's API names the address of a bundle instead of the bundle, as it does since July 2026."""
    path = f"{github.root}/attestations/sha256:{safe_files.sha256(index)}"
    url = f"{github.storage.url}{STORED}?sig=SIGNED" if url is None else url
    github.api.json(path, {"attestations": [{"repository_id": 1, "bundle_url": url, "bundle": None}]})
    github.storage.answers[STORED] = answer
    github.api.answers[STORED] = answer


def snapped(text: str) -> bytes:
    """A block of Snappy, with literals only."""
    data = text.encode()
    length = bytes((len(data) >> 7 * step) & 0x7F | (0x80 if step < 4 else 0) for step in range(5))
    return length + b"\xf8" + (len(data) - 1).to_bytes(3, "little") + data


@pytest.fixture
def source(github: GitHub, indexes: list[Path]) -> str:
    github.release("v1", {"index.db": indexes[0].read_bytes()})
    return "github:owner/repo#release:v1"


@pytest.mark.parametrize("is_packed", [True, False])
def test_a_bundle_in_the_storage_of_github(
    is_packed: bool,
    source: str,
    github: GitHub,
    indexes: list[Path],
    sigstore: Sigstore,
    get: Callable[..., FetchResult],
) -> None:
    text = json.dumps(sigstore.bundle(indexes[0].read_bytes(), "owner/repo"))
    stores(github, indexes[0], Answer(snapped(text) if is_packed else text.encode()))
    found = get(source, required=True)
    assert found.attestation is not None and found.attestation.repository == "owner/repo" and found.notes == ()
    (request,) = github.storage.asked(STORED)
    assert request.path.endswith("?sig=SIGNED") and "Authorization" not in request.headers


def test_the_token_does_not_go_to_a_bundle_at_the_api_itself(
    source: str, github: GitHub, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    text = json.dumps(sigstore.bundle(indexes[0].read_bytes(), "owner/repo"))
    stores(github, indexes[0], Answer(snapped(text)), github.api.url + STORED)
    assert get(source, required=True).attestation is not None
    (request,) = github.api.asked(STORED)
    assert "Authorization" not in request.headers


def test_a_stored_bundle_of_another_repository_is_refused(
    source: str, github: GitHub, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    text = json.dumps(sigstore.bundle(indexes[0].read_bytes(), "owner/other"))
    stores(github, indexes[0], Answer(snapped(text)))
    with pytest.raises(NotAttested, match="built by owner/other, not by owner/repo"):
        get(source, required=True)


@pytest.mark.parametrize(
    ("answer", "url", "reason"),
    [
        (Answer(b"", 403), None, "answered with status 403"),
        (Answer(b"", 404), None, "answered with status 404"),
        (Answer(b"", 503), None, "status 503"),
        (Answer(b"<html>"), None, "cannot be read, because "),
        (Answer(snapped("[]")), None, "cannot be read, because it is not JSON"),
        (Answer(b"\xff\x06\x00\x00sNaPpY"), None, "cannot be read, because "),
        (Answer(b"\xff\xff\xff\xff\x0f\x00x"), None, "size = 4294967295"),
        (Answer(b"\x01" * (MAX_BYTES + 1)), None, f"is longer than {MAX_BYTES:,} bytes"),
        (Answer(b""), "", "neither a bundle nor its address"),
        (Answer(b""), 7, "neither a bundle nor its address"),
        (Answer(b""), "http://example.com/x", "leads to plain http"),
        (Answer(b""), "https://[", "names an invalid address"),
        (Answer(b""), "https://a:b/", "names an invalid address"),
        (Answer(b""), "file:///etc/passwd", "which is not followed"),
    ],
)
def test_a_stored_bundle_that_cannot_be_read_is_not_none(
    answer: Answer,
    url: object,
    reason: str,
    source: str,
    github: GitHub,
    indexes: list[Path],
    get: Callable[..., FetchResult],
) -> None:
    stores(github, indexes[0], answer, url)
    (note,) = [note for note in get(source).notes if "ttestation" in note]
    assert note.startswith("Its attestation cannot be fetched: ") and reason in note
    with pytest.raises(FetchError) as caught:
        get(source, required=True)
    assert "SIGNED" not in f"{note} {caught.value}" and "has no attestation" not in str(caught.value)


def test_a_path_has_its_attestation_beside_it(
    tmp_path: Path, indexes: list[Path], sigstore: Sigstore, get: Callable[..., FetchResult]
) -> None:
    index = tmp_path / "here" / "index.db"
    index.parent.mkdir()
    index.write_bytes(indexes[0].read_bytes())
    with pytest.raises(NotAttested, match="it has no attestation"):
        get(str(index), "acme/docs")
    beside = index.with_name("index.db.sigstore.json")
    beside.write_text(json.dumps(sigstore.bundle(index.read_bytes())), encoding="utf-8")
    assert get(str(index.parent), "acme/docs").attestation is not None
    beside.write_bytes(b"{" + b" " * MAX_BYTES)
    with pytest.raises(NotAttested, match="has more than 1,000,000 bytes"):
        get(str(index), "acme/docs")
    beside.unlink()
    beside.mkdir()
    assert "index.db.sigstore.json cannot be read, because" in get(str(index)).notes[0]
