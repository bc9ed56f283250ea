"""OpenAI's API against a real HTTP server on the loopback interface."""

from __future__ import annotations

import json
import logging
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import anvil
from anvil.embedding.openai import OpenAIProvider
from anvil.embedding.provider import LocalExecutor
from anvil.errors import ConfigError, ProviderError
from anvil.settings.schema import Config, EmbeddingSettings
from tests.conftest import write

KEY = "sk-test-0123456789abcdef"
Answer = tuple[int, dict[str, str], Any]
Script = Callable[[dict[str, Any], int], Answer]

pytestmark = pytest.mark.skipif(find_spec("openai") is None, reason="comes with an extra")  # imported when used


def vector_of(text: str) -> list[float]:
    """Not of unit length, and different for different texts."""
    return [float(len(text) + 1), float(sum(map(ord, text)) % 97), 2.0]


def good(body: dict[str, Any], call: int) -> Answer:
    """Vectors in reversed order: only their index says whose they are."""
    data = [{"object": "embedding", "index": i, "embedding": vector_of(t)} for i, t in enumerate(body["input"])]
    return 200, {}, {"object": "list", "model": body["model"], "data": data[::-1], "usage": {}}


def error(status: int, message: str, headers: dict[str, str] | None = None, **more: Any) -> Answer:
    return status, headers or {}, {"error": {"message": message, **more}}


class Server:
    """EmbeddedBatches each POST by ``script`` and remembers what was asked."""

    def __init__(self) -> None:
        self.script: Script = good
        self.requests: list[dict[str, Any]] = []
        self.keys: set[str] = set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True  # else the body of an answer waits 40 ms for the client's acknowledgement

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                outer.requests.append(body)
                outer.keys.add(self.headers["authorization"])
                status, headers, content = outer.script(body, len(outer.requests))
                if status == 0:
                    self.close_connection = True
                    return
                raw = json.dumps(content).encode()
                self.send_response(status)
                for name, value in {**headers, "content-length": str(len(raw))}.items():
                    self.send_header(name, value)
                self.send_header("content-type", "application/json")
                self.end_headers()
                self.wfile.write(raw)

            def log_message(self, format: str, *arguments: Any) -> None:
                """Silence."""

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}/v1"


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(target=found.http.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(autouse=True)
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The pauses of OpenAI's library, in seconds. None is waited for."""
    pauses: list[float] = []
    library = import_module("openai._base_client")
    monkeypatch.setattr(library.time, "sleep", pauses.append)
    return pauses


@pytest.fixture
def remote(server: Server) -> Iterator[OpenAIProvider]:
    settings = EmbeddingSettings(provider="openai", api_key=KEY, base_url=server.url, dimensions=3)
    found = OpenAIProvider(settings)
    yield found
    found.close()


def assert_row(vectors: Any, row: int, text: str) -> None:
    expected = np.array(vector_of(text))
    np.testing.assert_allclose(vectors[row], expected / np.linalg.norm(expected), atol=1e-6)


def test_vectors_come_back_in_order_and_of_unit_length(server: Server, remote: OpenAIProvider) -> None:
    texts = ["alpha", "be", "gamma gamma"]
    result = remote.embed(texts)
    assert result.failed == {}
    assert result.vectors.dtype == np.float32
    for row, text in enumerate(texts):
        assert_row(result.vectors, row, text)
    assert server.keys == {f"Bearer {KEY}"}
    assert server.requests[0]["model"] == "text-embedding-3-small"
    assert server.requests[0]["dimensions"] == 3
    assert_row(remote.embed_query("alpha")[None], 0, "alpha")


def test_defaults() -> None:
    plain = OpenAIProvider(EmbeddingSettings())
    assert (plain.model, plain.dimensions) == ("text-embedding-3-small", 1536)
    assert OpenAIProvider(EmbeddingSettings(model="text-embedding-3-large")).dimensions == 3072
    with pytest.raises(ConfigError, match=r"dimensions of nomic.*Set embedding\.dimensions"):
        OpenAIProvider(EmbeddingSettings(model="nomic"))


def test_a_model_of_another_server_is_not_asked_to_shorten(server: Server) -> None:
    settings = EmbeddingSettings(model="nomic", api_key=KEY, base_url=server.url, dimensions=3)
    other = OpenAIProvider(settings)
    assert other.embed(["a"]).failed == {}
    assert "dimensions" not in server.requests[0]
    other.close()


def test_a_missing_key_is_said_exactly() -> None:
    calls: list[Callable[[OpenAIProvider], object]] = [lambda p: p.embed(["a"]), lambda p: p.embed_query("a")]
    for use in calls:
        with pytest.raises(ProviderError) as caught:
            use(OpenAIProvider(EmbeddingSettings()))
        assert str(caught.value) == "OpenAI API key required. Set embedding.api_key or OPENAI_API_KEY."


def test_key_and_address_from_the_environment(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-from-environment")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    remote = OpenAIProvider(EmbeddingSettings(dimensions=3))
    remote.embed(["a"])
    remote.close()
    assert server.keys == {"Bearer sk-from-environment"}


@pytest.mark.parametrize("where", ["settings", "environment"])
@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://models.example.org/v1", "over plain http"),
        ("http://me:SECRETPW@models.example.org/v1?key=Q", "models.example.org/v1:"),
        ("ftp://localhost/SECRETPW", "not a web address"),
        ("http://[SECRETPW", "not a web address"),
        ("https://localhost:x@/SECRETPW", "not a web address"),
        ("https://local host/SECRETPW", "not a web address"),
    ],
)
def test_a_key_is_sent_nowhere_unencrypted(monkeypatch: pytest.MonkeyPatch, where: str, url: str, told: str) -> None:
    settings = EmbeddingSettings(api_key=KEY, base_url=url if where == "settings" else None)
    if where == "environment":
        monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(ConfigError, match=told) as caught:
        OpenAIProvider(settings)
    assert "SECRETPW" not in str(caught.value) and "=Q" not in str(caught.value)
    assert str(caught.value).startswith("embedding.base_url" if where == "settings" else "OPENAI_BASE_URL")


def test_a_missing_extra_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(ProviderError, match=r"\[openai\]"):
        OpenAIProvider(EmbeddingSettings(api_key=KEY)).embed(["a"])


def test_rate_limits_are_waited_for_as_asked(server: Server, remote: OpenAIProvider, waits: list[float]) -> None:
    limited = [error(429, "slow down", {"retry-after": "7"}), error(429, "slow down")]
    server.script = lambda body, call: limited[call - 1] if call <= 2 else good(body, call)
    assert remote.embed(["a"]).failed == {}
    assert waits[0] == 7 and 0 < waits[1] <= 2


@pytest.mark.parametrize("status", [429, 500, 503])
def test_three_failures_fail_the_batch_only(server: Server, remote: OpenAIProvider, status: int) -> None:
    texts = ["a"] * 2048 + ["b"]
    server.script = lambda body, call: error(status, "busy") if "a" in body["input"] else good(body, call)
    result = remote.embed(texts)
    assert len(server.requests) == 4
    assert sorted(result.failed) == list(range(2048))
    assert result.failed[0] == f"OpenAI answered HTTP {status}: busy (3 tries)"
    assert not result.vectors[:2048].any()
    assert_row(result.vectors, 2048, "b")
    with pytest.raises(ProviderError, match="busy"):
        remote.embed_query("a")


def test_a_lost_connection_is_tried_again(server: Server, remote: OpenAIProvider, waits: list[float]) -> None:
    server.script = lambda body, call: (0, {}, None) if call == 1 else good(body, call)
    assert remote.embed(["a"]).failed == {}
    assert len(waits) == 1 and len(server.requests) == 2


def test_a_dead_server_is_a_reason(waits: list[float]) -> None:
    settings = EmbeddingSettings(api_key=KEY, base_url="http://127.0.0.1:9/v1", dimensions=3)
    result = OpenAIProvider(settings).embed(["a"])
    assert result.failed[0].startswith("No connection to http://127.0.0.1:9/v1")
    assert len(waits) == 2


def test_a_bad_text_is_found_by_halving(server: Server, remote: OpenAIProvider) -> None:
    bad = {"bad one", "bad two"}
    server.script = lambda body, call: (
        error(400, "invalid input", param="input[3]") if bad & set(body["input"]) else good(body, call)
    )
    texts = [f"text {number}" for number in range(40)]
    texts[11], texts[30] = sorted(bad)
    result = remote.embed(texts)
    assert dict(result.failed) == dict.fromkeys((11, 30), "OpenAI answered HTTP 400: invalid input")
    assert not result.vectors[[11, 30]].any()
    for row in set(range(40)) - {11, 30}:
        assert_row(result.vectors, row, texts[row])


@pytest.mark.parametrize(
    "refusal",
    [
        error(413, "Request Entity Too Large"),
        (413, {}, {"code": 20042, "message": "input batch size 64 > maximum allowed batch size 32", "data": None}),
        (422, {}, {"error": "batch size 64 > maximum allowed batch size 32", "error_type": "Validation"}),
        (422, {}, {"detail": [{"type": "too_long", "msg": "List should have at most 30 items, not 64"}]}),
        error(400, "invalid request: total number of texts must be at most 96 - received 128"),
        error(400, "* BatchEmbedContentsRequest.requests: at most 100 requests can be in one batch"),
        error(400, "Too many inputs. The max number of inputs is 16.", param="limit"),
        error(400, "Invalid 'input': array too long. Expected an array with maximum length 2048.", param="input"),
    ],
)
def test_a_server_that_takes_fewer_texts_is_asked_with_fewer_from_then_on(
    server: Server, remote: OpenAIProvider, refusal: Answer
) -> None:
    server.script = lambda body, call: good(body, call) if len(body["input"]) <= 30 else refusal
    texts = [f"text {number}" for number in range(120)]
    result = remote.embed(texts)
    assert result.failed == {}
    for row, text in enumerate(texts):
        assert_row(result.vectors, row, text)
    assert [len(body["input"]) for body in server.requests] == [120, 60, 30, 30, 30, 30]
    assert remote.embed(texts[:100]).failed == {}
    assert [len(body["input"]) for body in server.requests[6:]] == [30, 30, 30, 10]


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "`inputs` must have less than 512 tokens. Given: 600"),
        (400, "maximum context length is 512"),
        (413, "`inputs` must have less than 512 tokens. Given: 600"),
    ],
)
def test_a_text_that_is_too_long_makes_no_later_request_smaller(
    server: Server, remote: OpenAIProvider, status: int, said: str
) -> None:
    server.script = lambda body, call: error(status, said) if "long" in body["input"] else good(body, call)
    assert remote.embed(["long", "a"]).failed == {0: f"OpenAI answered HTTP {status}: {said}"}
    assert remote.embed(["a", "b", "c"]).failed == {}
    assert [len(body["input"]) for body in server.requests] == [2, 1, 1, 3]


def test_a_bad_parameter_is_not_blamed_on_the_texts(server: Server, remote: OpenAIProvider) -> None:
    server.script = lambda body, call: error(400, "dimensions too many", param="dimensions")
    with pytest.raises(ProviderError, match="dimensions too many"):
        remote.embed(["a", "b"])
    assert len(server.requests) == 2, "both, and then one of them alone"


@pytest.mark.parametrize("status", [401, 403, 404])
def test_refusals_raise_at_once(server: Server, remote: OpenAIProvider, status: int) -> None:
    server.script = lambda body, call: error(status, f"Incorrect API key provided: {KEY}")
    with pytest.raises(ProviderError, match=str(status)):
        remote.embed(["a"])
    assert len(server.requests) == 1


def test_a_used_up_quota_raises(server: Server, remote: OpenAIProvider) -> None:
    server.script = lambda body, call: error(429, "You exceeded your quota", code="insufficient_quota")
    with pytest.raises(ProviderError, match="quota"):
        remote.embed(["a"])


SPENT = error(429, "You exceeded your quota", code="insufficient_quota")


@pytest.mark.parametrize("last", [SPENT, error(401, "revoked"), error(403, "no"), error(404, "no such model")])
def test_what_was_made_before_the_service_gave_up_stands(server: Server, remote: OpenAIProvider, last: Answer) -> None:
    """Halved batches too: the bad text is in the first, the quota ends within it."""
    texts = [f"text {number}" for number in range(2048 * 3)]
    bad = error(400, "invalid input", param="input[3]")
    server.script = lambda body, call: bad if "text 0" in body["input"] else good(body, call) if call <= 14 else last
    result = remote.embed(texts)
    assert len(server.requests) == (17 if last == SPENT else 15)  # the others are not asked for
    made = [row for row in range(len(texts)) if row not in result.failed]
    assert made == [1, 2, 3]
    assert_row(result.vectors, 3, "text 3")
    assert result.failed[0] == "OpenAI answered HTTP 400: invalid input"
    assert len({result.failed[row] for row in range(4, len(texts))}) == 1


def test_a_build_keeps_what_was_paid_for_and_the_next_makes_the_rest(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(LocalExecutor.__init__, "__defaults__", (4,))  # its size of a batch
    write(tmp_path / "docs", {f"{number}.md": f"# Page {number}\n\nText of {number}.\n" for number in range(30)})
    settings = EmbeddingSettings(provider="openai", api_key=KEY, base_url=server.url, dimensions=3)
    config = Config(docs=str(tmp_path / "docs"), embedding=settings)
    server.script = lambda body, call: good(body, call) if call <= 5 else SPENT
    with anvil.open(config=config) as opened:
        first = opened.index()
        asked, paid = len(server.requests), {text for body in server.requests[:5] for text in body["input"]}
        assert asked == 8 and first.embedded == len(paid) and len(first.failed) == 30 - len(paid)
        assert all("quota" in each.reason for each in first.failed)
        server.script = good
        second = opened.index()  # the same object: one run that gave up is not for ever
        again = [text for body in server.requests[asked:] for text in body["input"]]
        assert second.failed == () and not paid & set(again) and len(again) == 30 - len(paid)
    server.script = lambda body, call: SPENT
    write(tmp_path / "docs", {"new.md": "# New\n\nNothing of it can be made.\n"})
    with anvil.open(config=config) as opened, pytest.raises(ProviderError, match="quota"):
        opened.index()


def test_other_dimensions_are_named(server: Server) -> None:
    settings = EmbeddingSettings(api_key=KEY, base_url=server.url, dimensions=8)
    with pytest.raises(ProviderError, match=r"shape \(1, 3\), not \(1, 8\)"):
        OpenAIProvider(settings).embed(["a"])


def test_batches_keep_the_apis_limits(server: Server, remote: OpenAIProvider) -> None:
    remote.embed(["x"] * 5000)
    assert [len(body["input"]) for body in server.requests] == [2048, 2048, 904]
    server.requests.clear()
    remote.embed(["word " * 1600] * 250)
    assert [len(body["input"]) for body in server.requests] == [100, 100, 50]


def test_empty_and_odd_texts_are_sent_as_something(server: Server, remote: OpenAIProvider) -> None:
    texts = ["", "\0", "\ud800", "😀" * 5000, "é" * 20000, "x" * 20000]
    assert remote.embed(texts).failed == {}
    sent = server.requests[0]["input"]
    assert sent[0] == " "
    assert all(0 < len(text.encode()) <= 8191 for text in sent)


@pytest.mark.parametrize("text", ["plain words, 12 things", "日本語 and 😀", "Привет", "\n\n\t x", ""])
def test_pieces_cover_the_text_in_at_most_four_bytes(text: str) -> None:
    spans = OpenAIProvider(EmbeddingSettings()).token_spans([text])[0]
    assert "".join(text[start:end] for start, end in spans) == text
    assert all(1 <= len(text[start:end].encode()) <= 4 for start, end in spans)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422, 429, 500])
def test_the_key_is_in_no_message(
    server: Server, remote: OpenAIProvider, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    server.script = lambda body, call: error(status, f"key {KEY} and sk-other-key****cdef are wrong")
    try:
        said = str(remote.embed(["a"]).failed)
    except ProviderError as caught:
        said = str(caught)
    assert str(status) in said
    for text in (said, repr(remote), repr(remote.__dict__["_settings"]), caplog.text):
        assert KEY not in text
        assert "sk-other" not in text


@pytest.mark.parametrize("port", ["", "9"])
def test_a_secret_in_the_address_is_in_no_message(
    server: Server, waits: list[float], caplog: pytest.LogCaptureFixture, port: str
) -> None:
    caplog.set_level(logging.DEBUG)
    where = f"127.0.0.1:{port or server.http.server_port}/v1"
    settings = EmbeddingSettings(api_key=KEY, base_url=f"http://me:SECRETPW@{where}?key=SECRETQ", dimensions=3)
    remote = OpenAIProvider(settings)
    found = remote.embed(["a"])
    remote.close()
    told = {0: f"No connection to http://{where}: APIConnectionError. (3 tries)"}
    assert dict(found.failed) == (told if port else {})
    for text in (str(found.failed), repr(settings), repr(Config(embedding=settings)), caplog.text):
        assert "SECRET" not in text and KEY not in text
