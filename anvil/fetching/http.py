"""The only door to HTTP: requests to servers that are not trusted, with what they may do bounded.

HTTPS only, but for this machine. Redirects are followed by hand, a few at most, never from https to http and never
from elsewhere to this machine; credentials go to the origin they are meant for and nowhere else. A server that sends
slowly is given up on, whether it drips headers or the body. Neither credentials nor URLs reach a log.
"""

from __future__ import annotations

import contextlib
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from anvil import __version__, addresses, httpheaders
from anvil.errors import FetchError, Unreachable
from anvil.fetching import quiet
from anvil.fetching.watchdog import Watch

if TYPE_CHECKING:
    import httpx2

REDIRECTS = 5
REDIRECT = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server may take. Seconds, bytes, and bytes a second.

    ``connect``: until a connection stands; ``answer``: from the request to the last header; ``pause``: between two
    bytes; ``grace``: for a body before its ``rate`` counts; ``whole``: for one body; ``size``: of the largest index.
    """

    connect: float = 10.0
    answer: float = 30.0
    pause: float = 20.0
    grace: float = 20.0
    rate: float = 8_000.0
    whole: float = 3_600.0
    size: int = 2_000_000_000
    small: int = 8_000_000
    """Bytes of the longest text, such as a manifest or a list."""


class Reply:
    """An answer whose body is still to be read. ``url`` is where it came from, after redirects."""

    def __init__(self, response: httpx2.Response, url: str, limits: Limits) -> None:
        self._response, self._limits = response, limits
        self.url = url
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    @property
    def host(self) -> str:
        return _host(self.url)

    @property
    def length(self) -> int | None:
        """The bytes announced; None when the server does not say."""
        told = self.headers.get("content-length", "")
        return int(told) if told.isdigit() else None

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes. Raises :class:`Unreachable` when it breaks off or is too slow."""
        if httpheaders.is_packed(self.headers):
            raise FetchError(f"{self.host} {httpheaders.PACKED}")
        began, received = time.monotonic(), 0
        for chunk in self._response.iter_raw():
            received += len(chunk)
            passed = time.monotonic() - began
            late = passed > self._limits.grace and received < (passed - self._limits.grace) * self._limits.rate
            if late or passed > self._limits.whole:
                raise Unreachable(f"{self.host} is too slow: {received:,} bytes in {passed:.0f} s. Try again later.")
            yield chunk

    def text(self) -> str:
        """A small body. Raises :class:`FetchError` when it is not small."""
        found = bytearray()
        for chunk in self.chunks():
            found += chunk
            if len(found) > self._limits.small:
                raise FetchError(f"{addresses.without_secrets(self.url)} is longer than {self._limits.small:,} bytes.")
        return found.decode("utf-8", "replace")


class Http:
    """A client for one fetch; a context manager. ``authorization``: origin -> value of that header for it."""

    def __init__(self, limits: Limits, authorization: Mapping[str, str] | None = None) -> None:
        import httpx2

        self.limits = limits
        self._authorization = dict(authorization or {})
        self._client = httpx2.Client(
            follow_redirects=False,
            timeout=httpx2.Timeout(limits.pause, connect=limits.connect),
            headers={"User-Agent": f"anvil-docs/{__version__}", "Accept-Encoding": "identity"},
            limits=httpx2.Limits(max_keepalive_connections=0),  # a watch knows the sockets that it saw made
            mounts={f"all://{name if ':' not in name else f'[{name}]'}": None for name in addresses.LOOPBACK},
        )
        quiet.install()

    def __enter__(self) -> Http:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def authorizes(self, url: str) -> bool:
        """Whether requests to this origin carry credentials."""
        return origin(url) in self._authorization

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Reply]:
        """Ask for ``url``. Statuses are for the caller to judge, but for those of a server in trouble.

        Raises :class:`Unreachable`, or :class:`FetchError` for what is no address or a redirect that is not followed.
        """
        import httpx2

        host = _host(url)
        if not addresses.is_allowed(url):
            raise FetchError(f"{host} is asked over https only. Check the address.")
        with quiet.silence(), contextlib.ExitStack() as stack:
            try:
                reply = self._followed(url, dict(headers or {}), stack)
                host = reply.host
                if reply.status >= 500 or reply.status == 408:
                    raise Unreachable(f"{host} is in trouble (status {reply.status}). Try again later.")
                yield reply
            except httpx2.HTTPError as error:
                raise Unreachable(f"{host} cannot be reached ({reason(error)}). Check the network.") from None

    def _followed(self, url: str, headers: dict[str, str], stack: contextlib.ExitStack) -> Reply:
        import httpx2

        nowhere = f"{_host(url)} is not a host that can be asked. Check the address."
        for _ in range(REDIRECTS + 1):
            try:
                response = self._sent(url, headers, stack)
                target = response.headers.get("location")
                if response.status_code not in REDIRECT or not target:
                    return Reply(response, url, self.limits)
                nowhere = f"{_host(url)} redirects to something that is no address. Tell its owner."
                url = self._allowed(url, urllib.parse.urljoin(url, target))
            except (httpx2.InvalidURL, ValueError):  # also UnicodeError, for names that nobody can have
                raise FetchError(nowhere) from None
        raise FetchError(f"{_host(url)} redirects more than {REDIRECTS} times. Check the address.")

    def _sent(self, url: str, headers: Mapping[str, str], stack: contextlib.ExitStack) -> httpx2.Response:
        authorization = self._authorization.get(origin(url))
        own = {**headers, "Authorization": authorization} if authorization else headers
        with Watch(self.limits.answer) as watch:
            try:
                request = self._client.build_request("GET", url, headers=own, extensions={"trace": watch.trace})
                return stack.enter_context(contextlib.closing(self._client.send(request, stream=True)))
            except Exception:
                if watch.ended:
                    told = f"{_host(url)} did not answer in {self.limits.answer:.0f} s. Try again later."
                    raise Unreachable(told) from None
                raise

    @staticmethod
    def _allowed(before: str, url: str) -> str:
        """A redirect's target, when it may be followed. Raises ValueError for what is no address."""
        origin(url)
        hosts = f"{_host(before)} to {_host(url)}"
        if not addresses.is_allowed(url) or (before.startswith("https:") and not url.startswith("https:")):
            raise FetchError(f"A redirect from {hosts} leads to plain http, which is not followed. Tell its owner.")
        if addresses.is_loopback(url) and not addresses.is_loopback(before):
            raise FetchError(f"A redirect from {hosts}, this machine, is not followed. Check the address.")
        parts = urllib.parse.urlsplit(url)
        if not parts.hostname:
            raise ValueError("no host")
        return urllib.parse.urlunsplit((parts.scheme, _host(url), parts.path, parts.query, ""))


def origin(url: str) -> str:
    """Scheme, host and port: what credentials are given to."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def _host(url: str) -> str:
    """Host and port as they may be shown."""
    return urllib.parse.urlsplit(url).netloc.rpartition("@")[2]


def reason(error: Exception) -> str:
    """What went wrong, in the library's or the system's words, which hold no URL."""
    said = re.sub(r"^\[[^]]*\] ?", "", str(error).strip()).rstrip(".")
    return said if said and "://" not in said else type(error).__name__


def broken() -> tuple[type[Exception], ...]:
    """What is raised when a body ends before its end."""
    import httpx2

    return (httpx2.TransportError,)
