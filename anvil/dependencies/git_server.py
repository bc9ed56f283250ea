"""Where git may fetch a repository from: the address is checked as that of an HTTP request is, before git uses it."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping

from anvil.errors import FetchError
from anvil.http.client import HttpClient, Limits
from anvil.http.server_policy import ALLOW_DEPENDENCIES, HttpPolicy

RESOLVE_TIMEOUT_S = 10.0
_PORTS = {"https": 443, "http": 80, "ssh": 22}


def checked(url: str, policy: HttpPolicy, allow_local: bool) -> tuple[str, tuple[str, ...], Mapping[str, str]]:
    """(address after redirects, protocols, settings) for git.

    The host of an https address is resolved here, and git connects to the address that was checked. ``allow_local``:
    whether ``file://`` and servers on this machine can be used. Raises :class:`FetchError`.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme, 0)
    except ValueError:
        raise FetchError(f"{url[:100]!r} is not the address of a repository. Write https://HOST/PATH.") from None
    if parts.scheme == "file" and allow_local:
        return url, ("file",), {}
    if parts.scheme == "ssh" and parts.hostname:
        policy.resolve(parts.hostname, port, RESOLVE_TIMEOUT_S)  # raises for a host that is not allowed
        return url, ("ssh",), {}
    if not parts.scheme:
        raise FetchError(f"{url[:100]} is not the address of a repository. Write https://HOST/PATH.")
    if parts.scheme not in ("https", "http"):
        reason = ALLOW_DEPENDENCIES if parts.scheme == "file" else "Use https or ssh."
        raise FetchError(f"A repository at {parts.scheme}: is not fetched. {reason}")
    final = _redirected(url, policy)
    parts = urllib.parse.urlsplit(final)
    host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
    address = policy.resolve(host, port, RESOLVE_TIMEOUT_S)
    settings = {} if address is None else {"http.curloptResolve": f"{host}:{port}:{address}"}
    return final, (parts.scheme,), settings


def _redirected(url: str, policy: HttpPolicy) -> str:
    """The address that a server redirects git to, such as that of a renamed repository."""
    advertisement = "/info/refs?service=git-upload-pack"
    with HttpClient(Limits(), policy=policy) as http, http.get(url.rstrip("/") + advertisement) as reply:
        moved = reply.url.removesuffix(advertisement)
    return moved if reply.status == 200 and moved != reply.url else url
