"""GitHub's API: whom to ask, as whom, and what each refusal means."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from anvil.backends.fetch.http_client import HttpClient, Reply, origin
from anvil.core import index_url
from anvil.core.index_url import GitHubAddress
from anvil.core.timestamps import timestamp
from anvil.errors import ConfigError, FetchError, Unreachable

API = "https://api.github.com"
_NEXT = re.compile(r'<([^>]*)>\s*;[^,]*\brel="?next"?')
_SHA256 = re.compile(r"sha256:([0-9a-f]{64})")


def api_url() -> str:
    """Where the API is: ``GITHUB_API_URL``, which runners and enterprise servers set. Raises :class:`ConfigError`."""
    url = os.environ.get("GITHUB_API_URL", "").strip().rstrip("/") or API
    if not index_url.is_allowed(url) or index_url.without_secrets(url) != url:
        raise ConfigError("GITHUB_API_URL must be an https address without credentials, such as https://HOST/api/v3.")
    return url


def authorization(token: str | None) -> dict[str, str]:
    """The header for the API's origin; nothing without a token."""
    found = token or os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or _token_of_gh(api_url())
    return {origin(api_url()): f"Bearer {found.strip()}"} if found and found.strip() else {}


def _token_of_gh(api: str) -> str | None:
    """What ``gh auth token`` prints, where that program is and knows the host."""
    program = shutil.which("gh")
    if program is None:
        return None
    host = urllib.parse.urlsplit(api).hostname or ""
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(
            [program, "auth", "token", "--hostname", "github.com" if host == "api.github.com" else host],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        if done.returncode == 0:
            return done.stdout.strip() or None
    return None


class Api:
    """Questions to the API about one repository."""

    def __init__(self, http: HttpClient, address: GitHubAddress) -> None:
        self.http, self.address = http, address
        self.root = f"{api_url()}/repos/{address.slug}"
        self.authorized = http.authorizes(self.root)

    def get(self, url: str, what: str) -> tuple[Any, str | None]:
        """The JSON at ``url``, and the address of the page after it. ``what`` it is, for the message if it is not."""
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        with self.http.get(url, headers) as reply:
            self.check_status(reply, what)
            try:
                found = json.loads(reply.text())
            except (ValueError, RecursionError):
                raise Unreachable(f"{reply.host} answered with something that is not JSON. Try again later.") from None
            return found, _following(url, reply.headers.get("link", ""))

    def check_status(self, reply: Reply, what: str) -> None:
        """Raise for a status that is no answer, each with its own next step."""
        slug, status = self.address.slug, reply.status
        if status == 200:
            return
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        if status == 429 or (status == 403 and limited):
            more = "" if self.authorized else " Set GITHUB_TOKEN: with a token one may ask far more often."
            when = _again(reply.headers)
            raise Unreachable(f"{reply.host} has had too many requests and answers again {when}.{more}")
        if status == 401:
            raise FetchError(
                f"{reply.host} does not accept the token for {slug}. Set a valid GITHUB_TOKEN, or run 'gh auth login'."
                if self.authorized
                else f"{reply.host} gives {what} to signed-in users only. Set GITHUB_TOKEN, or run 'gh auth login'."
            )
        if status == 403:
            raise FetchError(
                f"The token may not read {what} of {slug}. Give it the permission 'actions: read' for an artifact, "
                "'contents: read' for a release."
            )
        if status == 410:
            raise FetchError(f"{what} of {slug} has expired. Run the workflow again, or raise its retention-days.")
        if status == 404:
            token = "the token's permissions" if self.authorized else "whether it needs a GITHUB_TOKEN"
            raise FetchError(f"GitHub does not show {what} of {slug}. Check the name, and {token}.")
        raise FetchError(f"{reply.host} answered with status {status} when asked for {what}. Check the address.")


def _following(url: str, links: str) -> str | None:
    """The next page's address in a ``Link`` header, at the origin of ``url``."""
    link = _NEXT.search(links)
    try:
        found = urllib.parse.urljoin(url, link[1]) if link else ""
        return found if origin(found) == origin(url) else None
    except ValueError:  # it is no address
        return None


def _again(headers: Mapping[str, str]) -> str:
    """When a limit ends, as the headers say."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal() and len(after) < 10:
        return f"in {int(after)} s"
    return f"at {timestamp(int(reset))}" if reset.isdecimal() and len(reset) < 12 else "in a while"


def entries(told: Any, key: str) -> list[dict[str, Any]]:
    """The objects in a list of an answer; none when it is not as documented."""
    found = told.get(key) if isinstance(told, dict) else None
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def size_of(value: Any) -> int | None:
    """A number of bytes, where it is one."""
    return value if type(value) is int and value >= 0 else None


def digest_of(told: dict[str, Any]) -> str | None:
    """The SHA-256 that the API gives for an artifact's archive or an asset, where it does."""
    found = _SHA256.fullmatch(str(told.get("digest")))
    return found[1] if found else None
