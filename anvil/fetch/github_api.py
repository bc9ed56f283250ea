"""GitHub's API: its address, the token, and a message for each error status."""

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

from anvil.errors import ConfigError, FetchError, Unreachable
from anvil.formats.iso_time import timestamp
from anvil.http.client import HttpClient, Reply, origin
from anvil.settings import index_url
from anvil.settings.index_url import GitHubAddress

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
    secret = token or os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or _token_of_gh(api_url())
    return {origin(api_url()): f"Bearer {secret.strip()}"} if secret and secret.strip() else {}


def _token_of_gh(api: str) -> str | None:
    """The output of ``gh auth token``; None without that program or a token for the host."""
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
    """Requests to the API for one repository."""

    def __init__(self, http: HttpClient, address: GitHubAddress) -> None:
        self.http, self.address = http, address
        self.root = f"{api_url()}/repos/{address.slug}"
        self.authorized = http.authorizes(self.root)

    def get(self, url: str, what: str, may_be_missing: bool = False) -> tuple[Any, str | None]:
        """The JSON at ``url``, and the URL of the next page. ``what``: its name in errors. ``may_be_missing``: whether
        None is returned for what GitHub does not have."""
        headers = {"Accept": "application/vnd.github+json", "X-GitHub-Api-Version": "2022-11-28"}
        with self.http.get(url, headers) as reply:
            if may_be_missing and reply.status == 404:
                return None, None
            self.check_status(reply, what)
            try:
                value = json.loads(reply.text())
            except (ValueError, RecursionError):
                raise Unreachable(f"{reply.host} answered with something that is not JSON. Try again later.") from None
            return value, _following(url, reply.headers.get("link", ""))

    def check_status(self, reply: Reply, what: str) -> None:
        """Raise for a status other than 200, with the next step."""
        slug, status = self.address.slug, reply.status
        if status == 200:
            return
        limited = reply.headers.get("x-ratelimit-remaining") == "0" or "retry-after" in reply.headers
        if status == 429 or (status == 403 and limited):
            more = "" if self.authorized else " Set GITHUB_TOKEN: with a token, many more requests are allowed."
            when = _again(reply.headers)
            raise Unreachable(f"{reply.host} limits the number of requests. Try again {when}.{more}")
        if status == 401:
            raise FetchError(
                f"{reply.host} does not accept the token for {slug}. Set a valid GITHUB_TOKEN, or run 'gh auth login'."
                if self.authorized
                else f"{reply.host} gives {what} to signed-in users only. Set GITHUB_TOKEN, or run 'gh auth login'."
            )
        if status == 403:
            raise FetchError(
                f"The token may not read {what} of {slug}. Give it the permission 'actions: read' for an artifact, "
                "'contents: read' for a release, 'attestations: read' for an attestation."
            )
        if status == 410:
            raise FetchError(f"{what} of {slug} has expired. Run the workflow again, or raise its retention-days.")
        if status == 404:
            token = "the token's permissions" if self.authorized else "whether it needs a GITHUB_TOKEN"
            raise FetchError(f"GitHub does not show {what} of {slug}. Check the name, and {token}.")
        raise FetchError(f"{reply.host} answered with status {status} when asked for {what}. Check the address.")


def _following(url: str, links: str) -> str | None:
    """The URL of the next page in a ``Link`` header, if it has the origin of ``url``."""
    link = _NEXT.search(links)
    try:
        target = urllib.parse.urljoin(url, link[1]) if link else ""
        return target if origin(target) == origin(url) else None
    except ValueError:  # not a URL
        return None


def _again(headers: Mapping[str, str]) -> str:
    """The time when a rate limit ends, from the headers."""
    after, reset = headers.get("retry-after", ""), headers.get("x-ratelimit-reset", "")
    if after.isdecimal() and len(after) < 10:
        return f"in {int(after)} s"
    return f"at {timestamp(int(reset))}" if reset.isdecimal() and len(reset) < 12 else "in a while"


def entries(response: Any, key: str) -> list[dict[str, Any]]:
    """The objects in a list of a response; none when it is not as documented."""
    items = response.get(key) if isinstance(response, dict) else None
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def size_of(value: Any) -> int | None:
    """A number of bytes; None for another value."""
    return value if type(value) is int and value >= 0 else None


def digest_of(entry: dict[str, Any]) -> str | None:
    """The SHA-256 of an artifact's archive or an asset, if the API has it."""
    match = _SHA256.fullmatch(str(entry.get("digest")))
    return match[1] if match else None
