"""The comment on a pull request of GitHub: the sections that its change probably makes wrong.

The comment is written once, then updated. It is found again by a hidden mark at the start of its text. Others can write
that mark too, so only a comment by the token's own user counts. The token of a job may not ask who its user is. Then a
comment by any bot counts.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractContextManager
from typing import Any

from anvil.ci.runners import Runner, pull_request, truncate
from anvil.errors import AnvilError, ConfigError, FetchError, Unreachable
from anvil.fetch import github
from anvil.http.client import HttpClient, Limits, origin

MARK = "<!-- anvil impact -->"
MAX_BYTES = 65_000
"""Limit of a comment. GitHub refuses a comment of more than 65,536 characters."""
NOTHING = "Nothing that this change makes wrong in the documentation is likely now."
_CUT = "\n\n*The rest is in the summary of the job.*"
_PER_PAGE = 100
_MAX_PAGES = 10
"""Pages of the list of comments that are read."""
_MAX_PAGE_BYTES = 32_000_000
"""Limit of one page of the list: 100 comments can each have 65,536 characters of four bytes."""
_LIMITS = Limits(connect=10.0, answer=20.0, total=30.0)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


def update(findings: str, runner: Runner) -> None:
    """Write the comment, or update it if its text differs.

    ``findings`` is Markdown in which text of the documents is escaped. If it is empty, an earlier comment is updated to
    :data:`NOTHING`, and no new comment is written. An error is a warning of the runner, and is not raised.
    """
    number = pull_request().number
    if os.environ.get("GITHUB_EVENT_NAME") != "pull_request" or number is None:
        runner.line("There is no pull request of GitHub to comment on.")
        return
    body = text(findings)
    try:
        with _Api() as api:
            comments = f"{api.root}/issues/{number}/comments"
            earlier = _find_earlier(api, comments)
            if earlier is None and findings:
                api.ask("POST", comments, 201, {"body": body})
            elif earlier is not None and _normalize(earlier["body"]) != body:
                api.ask("PATCH", f"{api.root}/issues/comments/{earlier['id']}", 200, {"body": body})
    except AnvilError as error:
        runner.annotate(
            "warning",
            f"The comment on the pull request is not up to date: {error} The job needs 'permissions: pull-requests: "
            "write', which GitHub does not give to pull requests from forks. The findings are in the summary.",
        )


def text(findings: str) -> str:
    """The text of the comment, cut at the end of a line if it is too long."""
    return truncate(f"{MARK}\n\n{findings.strip() or NOTHING}", MAX_BYTES, _CUT)


def _find_earlier(api: _Api, comments: str) -> dict[str, Any] | None:
    """Anvil's comment on the pull request, if there is one. ``comments`` is the address of the list of comments."""
    own_login: str | None = None
    for page in range(1, _MAX_PAGES + 1):
        listed = api.ask("GET", f"{comments}?per_page={_PER_PAGE}&page={page}", 200)
        if not isinstance(listed, list):
            raise Unreachable("GitHub's list of comments is not as documented.")
        marked = [comment for comment in listed if _is_marked(comment)]
        if marked and own_login is None:  # without a marked comment, which is the usual case, the user is not needed
            user = api.ask("GET", f"{github.api_url()}/user", 200, refused=(401, 403, 404))
            own_login = str(user.get("login") or "") if isinstance(user, dict) else ""  # the token of a job may not ask
        for comment in marked:
            author = comment["user"]
            if author.get("login") == own_login if own_login else author.get("type") == "Bot":
                return dict(comment)
        if len(listed) < _PER_PAGE:
            return None
    raise FetchError(f"None of its first {_MAX_PAGES * _PER_PAGE:,} comments is by Anvil, and the others are not read.")


def _is_marked(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and type(entry.get("id")) is int
        and isinstance(entry.get("user"), dict)
        and isinstance(entry.get("body"), str)
        and _normalize(entry["body"]).startswith(MARK)
    )


def _normalize(body: str) -> str:
    """The text of a comment as it was sent. GitHub can return other line breaks."""
    return body.replace("\r\n", "\n").strip()


class _Api(AbstractContextManager["_Api"]):
    """Requests to GitHub's API about the job's repository, with the job's token. A context manager.

    Raises :class:`ConfigError` if the environment has no valid token or repository.
    """

    def __init__(self) -> None:
        token, repository = (os.environ.get(f"GITHUB_{name}", "").strip() for name in ("TOKEN", "REPOSITORY"))
        if not re.fullmatch("[!-~]+", token):  # other characters cannot be sent, and the error would repeat the token
            raise ConfigError("GITHUB_TOKEN is not set to a token.")
        if not _REPOSITORY.fullmatch(repository):
            raise ConfigError("GITHUB_REPOSITORY is not set to OWNER/REPO.")
        url = github.api_url()
        self.root = f"{url}/repos/{repository}"
        self._http = HttpClient(_LIMITS, {origin(url): f"Bearer {token}"})

    def __exit__(self, *problem: object) -> None:
        self._http.__exit__(*problem)

    def ask(
        self, method: str, url: str, expected: int, value: dict[str, str] | None = None, refused: tuple[int, ...] = ()
    ) -> Any:
        """The JSON of an answer; None if its status is in ``refused``. ``value`` is sent as JSON.

        Raises :class:`FetchError` if the status is not ``expected``, :class:`Unreachable` if the answer is not JSON.
        """
        content = None if value is None else json.dumps(value).encode()
        headers = _HEADERS if content is None else {**_HEADERS, "Content-Type": "application/json"}
        with self._http.get(url, headers, method, content) as reply:
            if reply.status in refused:
                return None
            if reply.status != expected:
                raise FetchError(f"{reply.host} answered with status {reply.status}.")
            try:
                return json.loads(reply.text(_MAX_PAGE_BYTES))
            except (ValueError, RecursionError):
                raise Unreachable(f"{reply.host} answered with something that is not JSON.") from None
