"""The user's credentials for a server: those in its address, those in ``.netrc``, and the token for GitHub."""

from __future__ import annotations

import base64
import netrc
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress

from anvil.fetch import github
from anvil.http.client import origin
from anvil.settings.index_url import WebAddress


def for_address(address: WebAddress, is_named_by_user: bool) -> Mapping[str, str]:
    """Origin -> value of the Authorization header. ``is_named_by_user``: else what the user keeps for the host is not
    sent."""
    kept = address.credentials or (in_netrc(address.url) if is_named_by_user else None)
    return {origin(address.url): basic(*kept)} if kept is not None else {}


def basic(name: str, password: str) -> str:
    """The value of an Authorization header."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode('ascii')}"


def in_netrc(url: str) -> tuple[str, str] | None:
    """Name and password of a host in ``~/.netrc``, or in the file that ``NETRC`` names, which pip, curl and git read
    too; None without them, and where the file cannot be used."""
    host = urllib.parse.urlsplit(url).hostname or ""
    with suppress(OSError, ValueError, netrc.NetrcParseError):
        entry = netrc.netrc(os.environ.get("NETRC") or None).hosts.get(host)  # not the default one, which is for all
        if entry is not None:
            return entry[0], entry[2] or ""
    return None


def for_github() -> Mapping[str, str]:
    """Origin -> value of the Authorization header: for GitHub's API, with ``GITHUB_TOKEN``, ``GH_TOKEN`` or what ``gh``
    has."""
    api = github.api_url()
    secret = (os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or _token_of_gh(api) or "").strip()
    return {origin(api): f"Bearer {secret}"} if secret else {}


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
