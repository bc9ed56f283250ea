"""``anvil.asgi:app``: an index behind an ASGI server, configured by variables, with and without lifespan."""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

import anvil
from anvil.asgi import AnvilApplication, AsgiSettings
from anvil.doc_tests import question_log
from anvil.errors import ConfigError
from anvil.server.access import RateLimit, client_of
from anvil.server.http_options import HttpOptions, Rate
from tests.conftest import PAGES, write
from tests.support import mcp_servers

SITE = "https://docs.example.org"
BASE = "http://127.0.0.1:8000"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
LIST = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "tools/list",
    "params": {
        "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }
    },
}
MODERN = {**JSON, "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/list"}


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("asgi")
    with anvil.open(write(place / "docs", PAGES), place / "index.db", "none") as opened:
        opened.index()
    return place / "index.db"


def asked(environment: dict[str, str], *requests: Callable[[httpx2.AsyncClient], Awaitable[Any]]) -> list[Any]:
    """The responses of the application to some requests, one after the other; it gets no lifespan, as in a function."""

    async def run() -> list[Any]:
        application = AnvilApplication(environment)
        try:
            async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url=BASE) as client:
                return [await request(client) for request in requests]
        finally:
            await application.stop()

    return asyncio.run(run())


@pytest.fixture
def public(index: Path) -> dict[str, str]:
    return {"ANVIL_INDEX": str(index), "ANVIL_PUBLIC": "1"}


def search(query: str = "certificate", **headers: str) -> Callable[[httpx2.AsyncClient], Awaitable[Any]]:
    return lambda client: client.get("/search", params={"query": query, "mode": "keyword"}, headers=headers)


def test_a_function_answers_without_lifespan(public: dict[str, str]) -> None:
    found, listed, health = asked(
        public,
        search(),
        lambda client: client.post("/mcp", json=LIST, headers=MODERN),
        lambda client: client.get("/health"),
    )
    assert found.json()["results"][0]["metadata"]["file_path"] == "guides/checks.md"
    assert "search_docs" in listed.text and listed.status_code == 200
    assert health.json()["pages"] == len(PAGES)


def test_answers_can_be_cached_and_checked(public: dict[str, str]) -> None:
    first, second = asked(public, search(), search())
    assert first.headers["cache-control"] == "public, max-age=300"
    assert first.headers["etag"] == second.headers["etag"]
    tag = first.headers["etag"]
    weakened = search(**{"If-None-Match": f'"a", W/{tag}'})
    same, also, other = asked(public, search(**{"If-None-Match": tag}), weakened, search("alert"))
    assert same.status_code == also.status_code == 304 and not same.content
    assert other.status_code == 200 and other.headers["etag"] != tag
    (fresh,) = asked({**public, "ANVIL_CACHE_SECONDS": "0"}, search())
    assert fresh.headers["cache-control"] == "no-cache"


def test_the_question_of_a_search_box_is_logged_if_that_is_switched_on(
    public: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    questions: list[str] = []
    monkeypatch.setattr(question_log, "record", lambda log, name, question, result: questions.append(question))
    asked(public, search())
    assert not questions
    monkeypatch.setenv("ANVIL_SERVE_QUESTION_LOG", "true")
    asked(public, search())
    assert questions == ["certificate"]


def test_wrong_parameters_are_explained(public: dict[str, str]) -> None:
    blank, unknown, number = asked(
        public,
        lambda client: client.get("/search"),
        lambda client: client.get("/search", params={"query": "a", "limit": "3"}),
        lambda client: client.get("/search", params={"query": "a", "top_k": "many"}),
    )
    assert blank.status_code == unknown.status_code == number.status_code == 400
    assert "query parameter is required" in blank.json()["error"]
    assert "no parameter 'limit'" in unknown.json()["error"]
    assert "must be an integer" in number.json()["error"]
    assert number.headers["cache-control"] == "no-store"


def test_pages_of_a_named_origin_may_ask(public: dict[str, str]) -> None:
    preflight = {
        "Origin": SITE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,mcp-protocol-version,authorization",
    }
    named = {**public, "ANVIL_CORS_ORIGINS": f"{SITE}/ https://other.example.org"}
    allowed, asked_first, foreign = asked(
        named,
        search(Origin=SITE),
        lambda client: client.options("/mcp", headers=preflight),
        search(Origin="https://evil.example.org"),
    )
    assert allowed.status_code == 200 and allowed.headers["access-control-allow-origin"] == SITE
    assert "Origin" in allowed.headers["vary"]
    assert asked_first.status_code == 200 and asked_first.headers["access-control-allow-origin"] == SITE
    assert asked_first.headers["access-control-max-age"] == "86400", "the browser asks first once a day"
    assert foreign.status_code == 403 and "access-control-allow-origin" not in foreign.headers
    (refused,) = asked(public, search(Origin=SITE))
    assert refused.status_code == 403
    for origins in (SITE, "*"):  # a shared cache must not give the first answer, which has no CORS header, to a page
        plain, paged = asked({**public, "ANVIL_CORS_ORIGINS": origins}, search(), search(Origin=SITE))
        assert "Origin" in plain.headers["vary"] and paged.headers["access-control-allow-origin"] == origins


def test_a_token_is_required_unless_all_may_read(index: Path) -> None:
    with pytest.raises(ConfigError, match="ANVIL_PUBLIC=1"):
        asked({"ANVIL_INDEX": str(index)}, search())
    secret = {"ANVIL_INDEX": str(index), "ANVIL_TOKEN": "s3cret"}
    without, with_token, health = asked(
        secret, search(), search(Authorization="Bearer s3cret"), lambda client: client.get("/health")
    )
    assert without.status_code == 401 and health.status_code == 200
    assert with_token.status_code == 200 and with_token.headers["cache-control"].startswith("private")


def test_a_client_over_the_rate_waits(public: dict[str, str], caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "anvil.server")
    responses = asked({**public, "ANVIL_RATE_LIMIT": "2/hour"}, search(), search(), search())
    assert [response.status_code for response in responses] == [200, 200, 429]
    assert 1700 < int(responses[2].headers["retry-after"]) <= 1800
    (record,) = [each for each in caplog.records if "refused" in each.message]
    assert (record.__dict__["anvil_fields"]["status"], record.levelname) == (429, "INFO")


@pytest.mark.parametrize(
    ("proxies", "forwarded", "peer", "client"),
    [
        (0, "203.0.113.9", "198.51.100.1", "198.51.100.1"),
        (1, "203.0.113.9", "198.51.100.1", "203.0.113.9"),
        (1, "1.2.3.4, 203.0.113.9", "198.51.100.1", "203.0.113.9"),  # the client has written the first
        (2, "1.2.3.4, 203.0.113.9, 198.51.100.7", "198.51.100.1", "203.0.113.9"),
        (2, "203.0.113.9", "198.51.100.1", "198.51.100.1"),  # past the first proxy
        (1, "203.0.113.9:51234", "198.51.100.1", "203.0.113.9"),
        (1, "[2001:db8::7]:443", "198.51.100.1", "2001:db8::/64"),
        (0, "", "2001:db8::1:2", "2001:db8::/64"),
        (0, "", "::ffff:198.51.100.1", "198.51.100.1"),
        (1, "x" * 60_000, "198.51.100.1", "198.51.100.1"),
    ],
)
def test_a_client_is_the_one_that_the_proxies_saw(proxies: int, forwarded: str, peer: str, client: str) -> None:
    headers = [(b"x-forwarded-for", line.encode()) for line in forwarded.split(", ") if line]
    assert client_of({"client": (peer, 1), "headers": headers}, proxies) == client


def test_each_client_behind_a_proxy_has_a_rate_of_its_own(public: dict[str, str]) -> None:
    limited = {**public, "ANVIL_RATE_LIMIT": "1/hour", "ANVIL_PROXIES": "1"}
    one, other = search(**{"X-Forwarded-For": "203.0.113.9"}), search(**{"X-Forwarded-For": "203.0.113.10"})
    assert [response.status_code for response in asked(limited, one, other, one)] == [200, 200, 429]


def test_refused_requests_count_for_the_rate(index: Path) -> None:
    """Otherwise a client could try tokens and host names without a limit."""
    limited = {"ANVIL_INDEX": str(index), "ANVIL_TOKEN": "s3cret", "ANVIL_RATE_LIMIT": "2/hour"}
    right = search(Authorization="Bearer s3cret")
    responses = asked(limited, search(Authorization="Bearer other"), search(Host="evil.example"), right)
    assert [response.status_code for response in responses] == [401, 403, 429]


def test_requests_come_back_one_by_one_and_the_memory_is_bounded() -> None:
    limit = RateLimit(Rate(2, 60))
    assert [limit.wait_s("a", 0), limit.wait_s("a", 0), limit.wait_s("a", 0)] == [0, 0, 30]
    assert limit.wait_s("b", 0) == 0
    assert limit.wait_s("a", 29) > 0 and limit.wait_s("a", 31) == 0 and limit.wait_s("a", 31) > 0
    for number in range(10_005):
        limit.wait_s(str(number), 40)
    assert len(limit._clients) == 10_000


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("ANVIL_RATE_LIMIT", "fast", "such as 60/minute"),
        ("ANVIL_RATE_LIMIT", "0/minute", "such as 60/minute"),
        ("ANVIL_CACHE_SECONDS", "-1", "number of seconds"),
        ("ANVIL_PROXIES", "nginx", "number of proxies"),
        ("ANVIL_LOG_LEVEL", "loud", "Use one of"),
        ("ANVIL_CORS_ORIGINS", "https://a.org docs.example.org", "'docs.example.org'. Write https://HOST"),
        ("ANVIL_TOKEN", "", "The token is empty"),
        ("ANVIL_TOKEN_FILE", "/nonexistent/token", "cannot be read"),
    ],
)
def test_a_wrong_variable_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        AsgiSettings.from_environment({"ANVIL_PUBLIC": "1", name: value})


def test_several_values_are_separated_by_spaces() -> None:
    given = {"ANVIL_ALLOWED_HOST": "a.example b.example"}
    assert HttpOptions.from_environment(given, insecure=True).allowed_host == ("a.example", "b.example")


def test_the_address_of_the_http_server_does_not_change_the_rules_for_a_public_one() -> None:
    settings = AsgiSettings.from_environment({"ANVIL_PUBLIC": "1", "ANVIL_HOST": "127.0.0.1"})
    assert settings.options.host == "0.0.0.0" and settings.options.knows("198.51.100.7")


def test_after_a_failure_the_next_request_tries_again(tmp_path: Path, index: Path) -> None:
    environment = {"ANVIL_INDEX": str(index)}

    async def run() -> int:
        application = AnvilApplication(environment)
        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(application), base_url=BASE) as client:
            with pytest.raises(ConfigError):
                await client.get("/health")
            environment["ANVIL_PUBLIC"] = "1"
            status: int = (await client.get("/health")).status_code
        await application.stop()
        return status

    assert asyncio.run(run()) == 200


@pytest.fixture
def port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        number = free.getsockname()[1]
    yield number


def test_uvicorn_runs_it(index: Path, port: int) -> None:
    line = [sys.executable, "-m", "uvicorn", "anvil.asgi:app", "--port", str(port), "--log-level", "warning"]
    variables = {"ANVIL_INDEX": str(index), "ANVIL_PUBLIC": "1", "ANVIL_EMBEDDING_PROVIDER": "none"}
    with subprocess.Popen(line, env=mcp_servers.environment(**variables), cwd=index.parent) as process:
        try:
            end = time.monotonic() + 60
            while True:
                try:
                    with urllib.request.urlopen(f"http://127.0.0.1:{port}/search?query=certificate") as response:
                        assert json.load(response)["results"]
                    break
                except urllib.error.URLError:
                    assert process.poll() is None and time.monotonic() < end
                    time.sleep(0.05)
        finally:
            process.terminate()
        assert process.wait(30) in (0, -15)


def test_a_server_that_raises_for_a_failed_start_shows_one_error() -> None:
    """hypercorn raises from ``send``."""

    class Failed(Exception):
        pass

    async def receive() -> dict[str, Any]:
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        assert message["type"] == "lifespan.startup.failed" and "ANVIL_PUBLIC=1" in message["message"]
        raise Failed

    with pytest.raises(Failed) as raised:
        asyncio.run(AnvilApplication({})({"type": "lifespan"}, receive, send))
    assert raised.value.__context__ is None
