"""The only door to HTTP: requests to servers that are not trusted, with bounds on what they may do.

A policy decides which servers may be asked (``http_policy.py``). Redirects are followed here, a few at most, and each
is checked again; credentials go to their own origin and nowhere else. A server that sends slowly is given up, whether
it delays the headers or the body. Neither credentials nor URLs reach a log.
"""

from __future__ import annotations

import contextlib
import math
import re
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anvil._version import __version__
from anvil.backends.fetch import log_filter
from anvil.backends.fetch.deadline import SocketDeadline
from anvil.backends.fetch.http_policy import HttpPolicy, IndexPolicy, host_of
from anvil.core import http_headers, index_url
from anvil.errors import FetchError, Unreachable

if TYPE_CHECKING:
    import httpx2

MAX_REDIRECTS = 5
REDIRECT_STATUSES = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Limits:
    """What a server may take. Seconds, bytes, and bytes a second.

    ``connect``: until there is a connection; ``answer``: from the request to the last header; ``pause``: between two
    bytes; ``grace``: for a body before its ``rate`` counts; ``whole``: for one body; ``total``: for everything,
    redirects included; ``size``: of the largest index.
    """

    connect: float = 10.0
    answer: float = 30.0
    pause: float = 20.0
    grace: float = 20.0
    rate: float = 8_000.0
    whole: float = 3_600.0
    total: float | None = None
    size: int = 2_000_000_000
    small: int = 8_000_000
    """Bytes of the longest text, such as a manifest or a list."""


class TimedOut(Unreachable):
    """A request took longer than :attr:`Limits.total`."""


class Reply:
    """An answer whose body is still to be read. ``url`` is where it came from, after redirects."""

    def __init__(self, response: httpx2.Response, url: str, limits: Limits, deadline: SocketDeadline) -> None:
        self._response, self._limits, self._deadline = response, limits, deadline
        self.url = url
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def length(self) -> int | None:
        """The bytes announced; None when the server does not say."""
        told = self.headers.get("content-length", "")
        return int(told) if told.isdigit() else None

    def chunks(self) -> Iterator[bytes]:
        """The body as it comes. Raises :class:`Unreachable` when it breaks off or is too slow."""
        if http_headers.is_packed(self.headers):
            raise FetchError(f"{self.host} {http_headers.PACKED}")
        began, received = time.monotonic(), 0
        for chunk in self._response.iter_raw():
            received += len(chunk)
            passed = time.monotonic() - began
            late = passed > self._limits.grace and received < (passed - self._limits.grace) * self._limits.rate
            if late or passed > self._limits.whole:
                raise Unreachable(f"{self.host} is too slow: {received:,} bytes in {passed:.0f} s. Try again later.")
            yield chunk
        if self._deadline.expired:  # a body without a length seems to be complete when its socket is shut
            raise Unreachable(f"{self.host} is too slow. Try again later.")

    def text(self) -> str:
        """A small body. Raises :class:`FetchError` when it is not small."""
        found = bytearray()
        for chunk in self.chunks():
            found += chunk
            if len(found) > self._limits.small:
                raise FetchError(f"{index_url.without_secrets(self.url)} is longer than {self._limits.small:,} bytes.")
        return found.decode("utf-8", "replace")


class HttpClient:
    """A client for one fetch; a context manager. ``authorization``: origin -> value of that header for it."""

    def __init__(
        self, limits: Limits, authorization: Mapping[str, str] | None = None, policy: HttpPolicy | None = None
    ) -> None:
        import httpx2

        self.limits = limits
        self._policy = policy or IndexPolicy()
        self._authorization = dict(authorization or {})
        loopback = (f"[{name}]" if ":" in name else name for name in index_url.LOOPBACK)
        self._client = httpx2.Client(
            follow_redirects=False,
            trust_env=self._policy.uses_environment,
            timeout=httpx2.Timeout(limits.pause, connect=limits.connect),
            headers={"User-Agent": f"anvil-docs/{__version__}", "Accept-Encoding": "identity"},
            limits=httpx2.Limits(max_keepalive_connections=0),  # each request has its own connection and its deadline
            mounts={f"all://{name}": None for name in loopback},  # no proxy for this machine
        )
        log_filter.install()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def authorizes(self, url: str) -> bool:
        """Whether requests to this origin carry credentials."""
        return origin(url) in self._authorization

    @contextlib.contextmanager
    def get(self, url: str, headers: Mapping[str, str] | None = None) -> Iterator[Reply]:
        """Ask for ``url``. The caller judges the status, except 408 and 5xx.

        Raises :class:`Unreachable`, or :class:`FetchError` for what is no address or a redirect that is not followed;
        further errors are those of the policy.
        """
        import httpx2

        end = math.inf if self.limits.total is None else time.monotonic() + self.limits.total
        host = host_of(url)
        with log_filter.silence(), contextlib.ExitStack() as stack:
            try:
                self._policy.check(url)
                reply = self._followed(url, dict(headers or {}), end, stack)
                host = reply.host
                if reply.status >= 500 or reply.status == 408:
                    raise Unreachable(f"{host} is in trouble (status {reply.status}). Try again later.")
                yield reply
            except (httpx2.HTTPError, Unreachable) as error:
                if time.monotonic() >= end:
                    raise TimedOut(f"{host} took longer than {self.limits.total:g} s. Try again later.") from None
                if isinstance(error, Unreachable):
                    raise
                raise Unreachable(f"{host} cannot be reached ({reason(error)}). Check the network.") from None

    def _followed(self, url: str, headers: dict[str, str], end: float, stack: contextlib.ExitStack) -> Reply:
        import httpx2

        invalid = f"{host_of(url)} is not a host that can be asked. Check the address."
        for _ in range(MAX_REDIRECTS + 1):
            try:
                reply = self._sent(url, headers, end, stack)
                target = reply.headers.get("location")
                if reply.status not in REDIRECT_STATUSES or not target:
                    return reply
                invalid = f"{host_of(url)} redirects to something that is no address. Tell its owner."
                target = urllib.parse.urljoin(url, target)
                origin(target)  # raises ValueError for what is no address
                url = self._policy.redirect(url, target)
            except (httpx2.InvalidURL, ValueError):  # also UnicodeError, for names that nobody can have
                raise FetchError(invalid) from None
        raise FetchError(f"{host_of(url)} redirects more than {MAX_REDIRECTS} times. Check the address.")

    def _sent(self, url: str, headers: Mapping[str, str], end: float, stack: contextlib.ExitStack) -> Reply:
        import httpx2

        where, sent_headers = httpx2.URL(url), dict(headers)
        if authorization := self._authorization.get(origin(url)):
            sent_headers["Authorization"] = authorization
        deadline = SocketDeadline()
        extensions: dict[str, Any] = {"trace": deadline.trace}
        remaining = min(self.limits.answer, end - time.monotonic())
        address = self._policy.resolve(where.raw_host.decode("ascii").strip("[]"), where.port or 0, remaining)
        if address is not None:  # connect to the address that was checked; Host and certificate are of the name
            sent_headers["Host"] = where.netloc.decode("ascii")
            extensions["sni_hostname"] = where.host
            where = where.copy_with(host=address)
        stack.callback(deadline.cancel)
        deadline.start(min(self.limits.answer, end - time.monotonic()))
        try:
            request = self._client.build_request("GET", where, headers=sent_headers, extensions=extensions)
            response = stack.enter_context(contextlib.closing(self._client.send(request, stream=True)))
        except Exception:
            if deadline.expired:
                message = f"{host_of(url)} did not answer in {self.limits.answer:.0f} s. Try again later."
                raise Unreachable(message) from None
            raise
        deadline.cancel()
        if end < math.inf:
            deadline.start(end - time.monotonic())
        return Reply(response=response, url=url, limits=self.limits, deadline=deadline)


def origin(url: str) -> str:
    """Scheme, host and port: what credentials are given to."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def reason(error: Exception) -> str:
    """What went wrong, in the library's or the system's words, which hold no URL."""
    said = re.sub(r"^\[[^]]*\] ?", "", str(error).strip()).rstrip(".")
    return said if said and "://" not in said else type(error).__name__


def body_errors() -> tuple[type[Exception], ...]:
    """What is raised when a body ends before its end."""
    import httpx2

    return (httpx2.TransportError,)
