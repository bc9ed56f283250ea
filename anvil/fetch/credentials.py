"""The user's credentials for the servers of published indexes: those in an address, and the token for GitHub."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress

from anvil.fetch.github import api_url
from anvil.http.client import origin
from anvil.settings.index_url import GitHubAddress, WebAddress


def authorization(address: WebAddress | GitHubAddress) -> Mapping[str, str]:
    """Origin -> value of the Authorization header. For GitHub's API it has ``GITHUB_TOKEN``, ``GH_TOKEN`` or what
    ``gh`` has."""
    if isinstance(address, GitHubAddress):
        secret = os.environ.get("GITHUB_TOKEN") or os.environ.get("GH_TOKEN") or _token_of_gh(api_url())
        return {origin(api_url()): f"Bearer {secret.strip()}"} if secret and secret.strip() else {}
    if address.credentials is None:
        return {}
    pair = base64.b64encode(":".join(address.credentials).encode()).decode("ascii")
    return {origin(address.url): f"Basic {pair}"}


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
