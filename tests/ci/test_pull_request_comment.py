"""The comment on a pull request, written to a server that answers as GitHub's API does."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from anvil.ci import pull_request_comment, runners, summary
from anvil.ci.pull_request_comment import MARK, MAX_BYTES, NOTHING
from anvil.impact.assessment import Impact
from anvil.impact.ranking import AffectedSection

TOKEN = "ghs_very-secret"
LIST = "/repos/owner/repo/issues/7/comments"
BOT = {"login": "github-actions[bot]", "type": "Bot"}
PERSON = {"login": "someone", "type": "User"}
TABLE = "| place |\n|---|\n| `a.md:7` |"


class Api:
    """Comments, and the requests that came. ``refuses``: method and path -> the status of a refusal. ``answer``: what
    every request gets instead, if anything. ``user``: whom the token belongs to, None for the token of a job."""

    def __init__(self) -> None:
        self.comments: list[dict[str, Any]] = []
        self.requests: list[tuple[str, str]] = []
        self.tokens: set[str] = set()
        self.refuses: dict[tuple[str, str], int] = {}
        self.answer: bytes | None = None
        self.user: dict[str, str] | None = None
        self.url = ""

    def add(self, body: str, user: dict[str, str], number: int = 1) -> None:
        self.comments += [{"id": len(self.comments) + 1, "body": body, "user": user} for _ in range(number)]

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [each for each in self.requests if each[0] != "GET"]

    def reply(self, method: str, path: str, query: str, sent: bytes) -> tuple[int, Any]:
        if status := self.refuses.get((method, path)):
            return status, {"message": f"refused {TOKEN}"}
        if path == "/user":
            return (200, self.user) if self.user else (403, {"message": "Resource not accessible by integration"})
        if method == "GET" and path == LIST:
            asked = dict(each.split("=") for each in query.split("&"))
            size, page = int(asked["per_page"]), int(asked["page"])
            return 200, self.comments[(page - 1) * size : page * size]
        body = json.loads(sent)["body"]
        if method == "POST" and path == LIST:
            self.add(body, self.user or BOT)
            return 201, self.comments[-1]
        [found] = [each for each in self.comments if path == f"/repos/owner/repo/issues/comments/{each['id']}"]
        found["body"] = body
        return 200, found


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Api]:
    api = Api()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            path, _, query = self.path.partition("?")
            api.requests.append((self.command, path))
            api.tokens.add(self.headers["Authorization"])
            sent = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            status, value = api.reply(self.command, path, query, sent)
            body = json.dumps(value).encode() if api.answer is None else api.answer
            self.send_response(status)
            if status in (301, 307):
                self.send_header("Location", f"{api.url}/elsewhere")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        api.url = f"http://127.0.0.1:{server.server_address[1]}"
        event = tmp_path / "event.json"
        event.write_text('{"pull_request": {"number": 7, "title": "x"}}')
        monkeypatch.setenv("GITHUB_API_URL", api.url)
        monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request")
        monkeypatch.setenv("GITHUB_EVENT_PATH", str(event))
        monkeypatch.setenv("GITHUB_REPOSITORY", "owner/repo")
        monkeypatch.setenv("GITHUB_TOKEN", TOKEN)
        yield api
        server.shutdown()


def said(findings: str) -> str:
    """What a run with these findings prints."""
    lines: list[str] = []
    pull_request_comment.update(findings, runners.GitHub(lines.append, None, None))
    printed = "\n".join(lines)
    assert TOKEN not in printed
    return printed


def warned(findings: str = TABLE) -> str:
    """The one warning of a run with these findings."""
    printed = said(findings)
    assert printed.startswith("::warning title=Anvil::") and printed.count("::warning") == 1
    assert "'permissions: pull-requests: write'" in printed
    return printed


def test_it_is_written_once_and_updated_when_it_differs(api: Api) -> None:
    assert said(TABLE) == ""
    assert [each["body"] for each in api.comments] == [f"{MARK}\n\n{TABLE}"]
    api.comments[0]["body"] = f"{MARK}\r\n\r\n{TABLE}\r\n".replace("|\n", "|\r\n")  # as a form would send it
    assert said(f"{TABLE}\n") == "" and len(api.writes) == 1
    assert said(f"{TABLE}\n| `b.md:1` |") == ""
    assert api.writes == [("POST", LIST), ("PATCH", "/repos/owner/repo/issues/comments/1")]
    assert [each["body"] for each in api.comments] == [f"{MARK}\n\n{TABLE}\n| `b.md:1` |"]
    assert api.tokens == {f"Bearer {TOKEN}"}


def test_when_nothing_is_likely_any_more_the_comment_says_so_and_no_new_one_is_written(api: Api) -> None:
    api.add("Fine.", PERSON)
    assert said("") == "" and api.writes == []
    api.add(f"{MARK}\n\n{TABLE}", BOT)
    assert said("") == "" and said("") == ""
    assert api.writes == [("PATCH", "/repos/owner/repo/issues/comments/2")]
    assert api.comments[1]["body"] == f"{MARK}\n\n{NOTHING}"


def test_it_is_found_on_a_later_page(api: Api) -> None:
    api.add("Fine.", PERSON, 130)
    api.comments[-1] |= {"id": 130, "body": MARK, "user": BOT}
    said(TABLE)
    assert api.writes == [("PATCH", "/repos/owner/repo/issues/comments/130")]


def test_comments_of_others_with_the_mark_are_left_alone(api: Api) -> None:
    api.add(f"{MARK}\n\nMine.", PERSON)
    api.add(f"> {MARK}\n\nA quotation.", BOT)
    said(TABLE)
    assert api.writes == [("POST", LIST)] and len(api.comments) == 3


def test_a_token_that_can_say_whose_it_is_updates_comments_of_this_user_only(api: Api) -> None:
    api.user = {"login": "docs-person", "type": "User"}
    for user in (BOT, PERSON, api.user):
        api.add(f"{MARK}\n\nBefore.", user)
    said(TABLE)
    assert api.writes == [("PATCH", "/repos/owner/repo/issues/comments/3")] and api.requests[1] == ("GET", "/user")


def test_among_very_many_comments_none_is_added(api: Api) -> None:
    api.add("Fine.", PERSON, 1000)
    assert "first 1,000 comments" in warned()
    assert api.writes == [] and len(api.requests) == 10


@pytest.mark.parametrize(
    "method, status",
    [("GET", 401), ("GET", 404), ("GET", 500), ("POST", 403), ("POST", 404), ("POST", 307), ("POST", 502)],
)
def test_a_refusal_is_a_warning(api: Api, method: str, status: int) -> None:
    """A pull request from a fork has a token that can read only: 403."""
    api.refuses[method, LIST] = status
    assert f"status {status}" in warned()
    assert api.comments == [] and not any(path == "/elsewhere" for _, path in api.requests)


@pytest.mark.parametrize("answer", [b"<html>", b'{"message": "x"}', b"[" * 100_000, b""])
def test_a_strange_answer_is_a_warning(api: Api, answer: bytes) -> None:
    api.answer = answer
    assert "not JSON" in (printed := warned()) or "not as documented" in printed
    assert api.writes == []


def test_strange_entries_are_passed_over(api: Api) -> None:
    strange: list[Any] = [None, 1, {}, {"id": "../x", "body": MARK, "user": BOT}, {"id": 1, "body": None, "user": BOT}]
    api.comments = [*strange, {"id": 3, "body": MARK, "user": None}]
    said(TABLE)
    assert api.writes == [("POST", LIST)]


@pytest.mark.parametrize(
    "name, value, says",
    [
        ("GITHUB_TOKEN", "", "GITHUB_TOKEN is not set"),
        ("GITHUB_TOKEN", f"{TOKEN}\nb", "GITHUB_TOKEN is not set"),
        ("GITHUB_REPOSITORY", "../..//x", "GITHUB_REPOSITORY is not set"),
        ("GITHUB_API_URL", "http://api.example", "must be an https address"),
        ("GITHUB_API_URL", "http://127.0.0.1:1", "cannot be reached"),
    ],
)
def test_without_a_token_or_an_address_there_is_a_warning(
    api: Api, monkeypatch: pytest.MonkeyPatch, name: str, value: str, says: str
) -> None:
    monkeypatch.setenv(name, value)
    assert says in warned()
    assert api.requests == []


def test_elsewhere_than_in_a_pull_request_nothing_is_asked(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_EVENT_NAME", "pull_request_target")
    assert said(TABLE) == "There is no pull request of GitHub to comment on."
    assert api.requests == []


def test_text_of_documents_cannot_be_markup_mentions_or_links(api: Api) -> None:
    heading = "`@team` <img src=x> [x](https://evil.example) | --> \n\n# @all ![y](https://evil.example)"
    finding = AffectedSection("a)@b.md", heading, heading, 7, 0.71, (f"names `{heading}`",))
    findings = summary.render_impact((finding,), Impact((finding,), files=1), "https://x.example/blob/1/")
    said(findings)
    markdown = api.comments[0]["body"].replace("\\|", "¦")
    [row] = [line for line in markdown.splitlines() if line.startswith("| [")]
    link, section, why, confidence = (cell.strip() for cell in row.strip("|").split("|"))
    assert link == "[`a)@b.md:7`](https://x.example/blob/1/a%29%40b.md#L7)" and confidence == "0.71"
    for cell, ticks in ((section, "``"), (why, "```")):  # code, between more signs than are in it
        assert cell.startswith(f"{ticks} ") and cell.endswith(f" {ticks}")
        assert ticks not in cell[len(ticks) : -len(ticks)]
    assert "@" not in markdown.replace(row, "")


def test_a_long_text_is_cut_at_the_end_of_a_line() -> None:
    whole = pull_request_comment.text("\n".join(f"| {number} |" + "x" * 500 for number in range(500)))
    assert len(whole.encode()) <= MAX_BYTES
    assert whole.endswith("x\n\n*The rest is in the summary of the job.*")
