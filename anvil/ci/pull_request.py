"""The pull request of GitHub, or the merge request of GitLab, that a job is for; and one comment on a pull request,
which says what its change means for the documentation.

The comment is written once, then updated. It is found again by a hidden mark at the start of its text. Others can write
that mark too, so only a comment of the token's own user counts. The token of a job is a bot's and may not ask who it
is, so then one of a bot counts.
"""

from __future__ import annotations

import json
import os
import re
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from anvil.ci.runners import Runner, bounded
from anvil.errors import AnvilError, ConfigError, FetchError, Unreachable
from anvil.fetch import github
from anvil.formats.data_formats import json_object
from anvil.git.repository import Repository
from anvil.http.client import HttpClient, Limits, origin
from anvil.system import safe_files

if TYPE_CHECKING:
    from anvil.api import Anvil

FETCH_ALL = 'Fetch the history: "fetch-depth: 0" for actions/checkout, or GIT_DEPTH: "0" at GitLab.'
MARK = "<!-- anvil impact -->"
MAX_BYTES = 65_000
"""Bytes of a comment. GitHub refuses one of more than 65,536 characters."""
NOTHING = "Nothing that this change makes wrong in the documentation is likely now."
_CUT = "\n\n*The rest is in the summary of the job.*"
_PER_PAGE = 100
_MAX_PAGES = 10
"""Pages of the list of comments that are read."""
_MAX_PAGE_BYTES = 32_000_000
"""Bytes of one page of the list: a comment can have 65,536 characters of four bytes."""
_LIMITS = Limits(connect=10.0, answer=20.0, total=30.0)
_HEADERS = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
_REPOSITORY = re.compile(r"[A-Za-z0-9_-]+/[A-Za-z0-9._-]+")


def _variable(*names: str) -> str:
    """The first of these variables of a runner that is set."""
    return next(filter(None, map(os.environ.get, names)), "") or ""


def base_branch() -> str | None:
    """The branch that a pull request is for; None in other runs."""
    return _variable("GITHUB_BASE_REF", "CI_MERGE_REQUEST_TARGET_BRANCH_NAME") or None


def own_branch() -> str:
    """The branch that the run is for."""
    return _variable("GITHUB_HEAD_REF", "GITHUB_REF_NAME", "CI_COMMIT_REF_NAME")


def base_commit(opened: Anvil) -> str | None:
    """The commit that a pull request is compared with; None where this checkout does not have it."""
    for revision in revisions():
        with suppress(AnvilError):
            repository = Repository.discover(opened.folder or Path.cwd())
            if repository is not None:
                return repository.resolve(revision)
    return None


def described() -> tuple[str, int | None]:
    """The title and the number of the pull request that the run is for, as GitHub names them in a file; the title of a
    merge request; ``""`` and None elsewhere."""
    event = os.environ.get("GITHUB_EVENT_PATH")
    payload = None
    with suppress(OSError, ValueError):  # without a title the subjects of the commits are there
        payload = json_object(safe_files.text(Path(event))) if event else None
    request = (payload or {}).get("pull_request")
    title, number = (request.get("title"), request.get("number")) if isinstance(request, dict) else (None, None)
    title = title if isinstance(title, str) else _variable("CI_MERGE_REQUEST_TITLE")
    return title, number if type(number) is int and number > 0 else None


def revisions() -> list[str]:
    """Where the branch of a pull request is found: below the merge that GitHub checks out, at the commit that GitLab
    names, or as fetched."""
    merge = os.environ.get("GITHUB_SHA") if os.environ.get("GITHUB_REF", "").endswith("/merge") else None
    named = f"{merge}^1" if merge else _variable("CI_MERGE_REQUEST_DIFF_BASE_SHA")
    return [*([named] if named else []), f"origin/{base_branch()}"]


# --- the comment ----------------------------------------------------------------------------------------------


def keep_current(findings: str, runner: Runner) -> None:
    """Write the comment, or update it where its text differs. ``findings``: Markdown in which text of the documents is
    escaped; empty where nothing is likely, which an earlier comment then says, and no new one.

    It never fails: what keeps the comment from being written is a warning.
    """
    _, pull_request = described()
    if os.environ.get("GITHUB_EVENT_NAME") != "pull_request" or pull_request is None:
        runner.line("There is no pull request of GitHub to comment on.")
        return
    body = text(findings)
    try:
        with _Api() as api:
            comments = f"{api.root}/issues/{pull_request}/comments"
            earlier = _earlier(api, comments)
            if earlier is None and findings:
                api.ask("POST", comments, 201, {"body": body})
            elif earlier is not None and _plain(earlier["body"]) != body:
                api.ask("PATCH", f"{api.root}/issues/comments/{earlier['id']}", 200, {"body": body})
    except AnvilError as error:
        runner.annotate(
            "warning",
            f"The comment on the pull request is not up to date: {error} The job needs 'permissions: pull-requests: "
            "write', which GitHub does not give to pull requests from forks. The findings are in the summary.",
        )


def text(findings: str) -> str:
    """The text of the comment, cut at the end of a line when it is long."""
    return bounded(f"{MARK}\n\n{findings.strip() or NOTHING}", MAX_BYTES, _CUT)


def _earlier(api: _Api, comments: str) -> dict[str, Any] | None:
    own_login: str | None = None
    for page in range(1, _MAX_PAGES + 1):
        listed = api.ask("GET", f"{comments}?per_page={_PER_PAGE}&page={page}", 200)
        if not isinstance(listed, list):
            raise Unreachable("GitHub's list of comments is not as documented.")
        marked = [each for each in listed if _is_marked(each)]
        if marked and own_login is None:  # most pull requests have no comment of this kind: nothing is asked
            user = api.ask("GET", f"{github.api_url()}/user", 200, refused=(401, 403, 404))
            own_login = str(user.get("login") or "") if isinstance(user, dict) else ""  # the token of a job may not ask
        for each in marked:
            user = each["user"]
            if user.get("login") == own_login if own_login else user.get("type") == "Bot":
                return dict(each)
        if len(listed) < _PER_PAGE:
            return None
    raise FetchError(f"It has more than {_MAX_PAGES * _PER_PAGE:,} comments, among which none of Anvil was found.")


def _is_marked(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and type(entry.get("id")) is int
        and isinstance(entry.get("user"), dict)
        and isinstance(entry.get("body"), str)
        and _plain(entry["body"]).startswith(MARK)
    )


def _plain(body: str) -> str:
    """A comment's text as it was sent: GitHub can give other line breaks."""
    return body.replace("\r\n", "\n").strip()


class _Api(AbstractContextManager["_Api"]):
    """Requests for the job's repository with the job's token; a context manager. Raises :class:`ConfigError` without
    them."""

    def __init__(self) -> None:
        token, repository = (os.environ.get(f"GITHUB_{name}", "").strip() for name in ("TOKEN", "REPOSITORY"))
        if not re.fullmatch("[!-~]+", token):  # another could not be sent, and the error would repeat it
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
        """The JSON of an answer; None for a status in ``refused``. ``value``: the JSON to send. Raises
        :class:`FetchError` for a status other than ``expected``, :class:`Unreachable` for what is no JSON."""
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
