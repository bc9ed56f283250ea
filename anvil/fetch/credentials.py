"""The user's credentials for a web server."""

from __future__ import annotations

import base64
import netrc
import os
import urllib.parse
from contextlib import suppress


def basic(name: str, password: str) -> str:
    """The value of an Authorization header."""
    return f"Basic {base64.b64encode(f'{name}:{password}'.encode()).decode('ascii')}"


def in_netrc(url: str) -> tuple[str, str] | None:
    """Name and password for the host of a URL, from ``~/.netrc`` or the file that ``NETRC`` names, which pip, curl and
    git read, too. None if there are none or the file cannot be used."""
    host = urllib.parse.urlsplit(url).hostname or ""
    with suppress(OSError, ValueError, netrc.NetrcParseError):
        entry = netrc.netrc(os.environ.get("NETRC") or None).hosts.get(host)  # without "default", which is for any host
        if entry is not None:
            return entry[0], entry[2] or ""
    return None
