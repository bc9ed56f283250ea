"""The only HTTP client: requests to untrusted servers, with limits on size, time and redirects.

A policy of :mod:`anvil.http.allowed_servers` decides which servers are allowed, also after each redirect. Credentials
are sent to their own origin only. A server that sends headers or body too slowly is abandoned. Credentials and URLs
are never logged.
"""

from __future__ import annotations

import contextlib
import functools
import logging
import math
import os
import re
import socket
import threading
import time
import urllib.parse
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timezone
from email.message import Message
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from anvil._version import __version__
from anvil.errors import FetchError, Unreachable
from anvil.http.allowed_servers import HttpPolicy, IndexPolicy, host_of, proxy_of
from anvil.settings import index_url

if TYPE_CHECKING:
    import ssl

    import httpx2


MAX_REDIRECTS = 5
LOCATION = "location"
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
TRUST_S = 600
"""Seconds after which the certificates that this machine trusts are read again."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of a request, in seconds, bytes, and bytes per second.

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


@dataclass(frozen=True, slots=True)
class _Sent:
    """What is sent to an address: a request's method, its body, and its headers without credentials."""

    method: str
    content: bytes | None
    headers: Mapping[str, str]


class TimedOut(Unreachable):
    """A request took longer than :attr:`Limits.total`."""


class BrokenOff(Unreachable):
    """A body that ended before its end."""


class Reply:
    """A response; its body is read by :meth:`chunks` or :meth:`text`. ``url``: its address, after redirects."""

    def __init__(self, response: httpx2.Response, url: str, limits: Limits, deadline: SocketDeadline) -> None:
        self._response, self._limits, self._deadline = response, limits, deadline
        self.url = url
        self.status: int = response.status_code
        self.headers: Mapping[str, str] = response.headers
        self.location: str | None = response.extensions[LOCATION]

    @property
    def host(self) -> str:
        return host_of(self.url)

    @property
    def length(self) -> int | None:
        """Content-Length in bytes; None without one."""
        header = self.headers.get("content-length", "")
        return int(header) if header.isdigit() else None

    def chunks(self, limit: int, too_large: Exception) -> Iterator[bytes]:
        """The body in chunks. Raises ``too_large`` for more than ``limit`` bytes, :class:`BrokenOff` if it ends early,
        and :class:`Unreachable` if it is too slow."""
        import httpx2

        # none was asked for: a small body could unpack to a huge one before its size is checked
        if self.headers.get("content-encoding", "").strip().lower() not in ("identity", ""):
            raise FetchError(f"{self.host} sent a compressed answer although none was asked for. Tell its owner.")
        began, received = time.monotonic(), 0
        try:
            for chunk in self._response.iter_raw():
                received += len(chunk)
                passed = time.monotonic() - began
                late = passed > self._limits.grace and received < (passed - self._limits.grace) * self._limits.rate
                if late or passed > self._limits.whole:
                    raise Unreachable(
                        f"{self.host} is too slow: {received:,} bytes in {passed:.0f} s. Try again later."
                    )
                if received > limit:
                    raise too_large
                yield chunk
        except httpx2.TransportError as error:
            broken = f"{self.host} broke off after {received:,} bytes ({type(error).__name__}). Try again later."
            raise BrokenOff(broken) from None
        if self._deadline.expired:  # a body without a length ends with its socket, as if complete
            raise Unreachable(f"{self.host} is too slow. Try again later.")

    def body(self, limit: int) -> bytes:
        """The body. Raises :class:`FetchError` when it has more bytes than ``limit``."""
        too_large = FetchError(f"{index_url.without_secrets(self.url)} is longer than {limit:,} bytes.")
        return b"".join(self.chunks(limit, too_large))

    def text(self, limit: int | None = None) -> str:
        """The body as text, with at most ``limit`` bytes, by default ``Limits.small``. Raises as :meth:`body`."""
        return self.body(self._limits.small if limit is None else limit).decode("utf-8", "replace")


class HttpClient:
    """A client for one fetch; a context manager. ``authorization``: origin -> value of the header."""

    def __init__(
        self, limits: Limits, authorization: Mapping[str, str] | None = None, policy: HttpPolicy | None = None
    ) -> None:
        import httpx2

        self.limits = limits
        self._policy = policy or IndexPolicy()
        self._authorization = dict(authorization or {})
        loopback = (f"[{name}]" if ":" in name else name for name in index_url.LOOPBACK)
        try:
            self._client = httpx2.Client(
                follow_redirects=False,
                verify=_tls(self._policy.uses_environment),
                trust_env=self._policy.uses_environment,
                timeout=httpx2.Timeout(limits.pause, connect=limits.connect),
                headers={"User-Agent": f"anvil-docs/{__version__}", "Accept-Encoding": "identity"},
                limits=httpx2.Limits(max_keepalive_connections=0),  # a connection and a deadline for each request
                mounts={f"all://{name}": None for name in loopback},  # no proxy for this machine
                event_hooks={"response": [_keep_location]},
            )
        except ImportError:  # socksio, which httpx2 needs for such a proxy
            raise FetchError(
                "A proxy of the environment is a SOCKS proxy. Run 'pip install socksio' to use it."
            ) from None
        except ValueError:  # its message has the proxy's address, and so a password
            raise FetchError(
                "HTTPS_PROXY, HTTP_PROXY or ALL_PROXY is not the address of a proxy. Correct it."
            ) from None
        install_log_filter()

    def __enter__(self) -> HttpClient:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def authorizes(self, url: str) -> bool:
        """Whether requests to this origin have credentials."""
        return origin(url) in self._authorization

    def anonymous(self) -> HttpClient:
        """A client without credentials, with the same limits and policy."""
        return HttpClient(self.limits, policy=self._policy)

    def target(self, before: str, url: str) -> str:
        """An address that the answer of ``before`` names, judged as if that redirected to it. Raises
        :class:`FetchError` for one that is not allowed."""
        try:
            origin(url)  # raises ValueError for an invalid address
            return self._policy.redirect(before, url)
        except ValueError:  # also UnicodeError, for invalid names
            raise FetchError(f"{host_of(before)} names an invalid address. Tell its owner.") from None

    @contextlib.contextmanager
    def get(
        self, url: str, headers: Mapping[str, str] | None = None, method: str = "GET", content: bytes | None = None
    ) -> Iterator[Reply]:
        """Send a GET request, or one with another method and a body, ``content``; such a one follows no redirect. The
        caller checks the status, except 408 and 5xx.

        Raises :class:`Unreachable`, :class:`FetchError` for an invalid address or a forbidden redirect, and the errors
        of the policy.
        """
        import httpx2

        end = math.inf if self.limits.total is None else time.monotonic() + self.limits.total
        host = host_of(url)
        with unlogged(), contextlib.ExitStack() as stack:
            try:
                self._policy.check(url)
                reply = self._followed(_Sent(method, content, dict(headers or {})), url, end, stack)
                host = reply.host
                if reply.status >= 500 or reply.status == 408:
                    raise Unreachable(f"{host} has an error (status {reply.status}). Try again later.")
                yield reply
            except (httpx2.HTTPError, Unreachable) as error:
                if time.monotonic() >= end:
                    raise TimedOut(f"{host} took longer than {self.limits.total:g} s. Try again later.") from None
                if isinstance(error, Unreachable):
                    raise
                proxy = proxy_of(url) if self._policy.uses_environment else None
                through, check = (f" through the proxy {proxy}", "HTTPS_PROXY, NO_PROXY and ") if proxy else ("", "")
                raise Unreachable(
                    f"{host} cannot be reached{through} ({reason(error)}). Check {check}the network."
                ) from None

    def _followed(self, message: _Sent, url: str, end: float, stack: contextlib.ExitStack) -> Reply:
        import httpx2

        invalid = f"{host_of(url)} is not a valid host. Check the address."
        for _ in range(MAX_REDIRECTS + 1):
            try:
                reply = self._sent(message, url, end, stack)
                target = reply.location
                if reply.status not in REDIRECT_STATUSES or not target or message.method != "GET":
                    return reply
                invalid = f"{host_of(url)} redirects to an invalid address. Tell its owner."
                target = urllib.parse.urljoin(url, target)
                origin(target)  # raises ValueError for an invalid address
                url = self._policy.redirect(url, target)
            except (httpx2.InvalidURL, ValueError):  # also UnicodeError, for invalid names
                raise FetchError(invalid) from None
        raise FetchError(f"{host_of(url)} redirects more than {MAX_REDIRECTS} times. Check the address.")

    def _sent(self, message: _Sent, url: str, end: float, stack: contextlib.ExitStack) -> Reply:
        import httpx2

        where, sent_headers = httpx2.URL(url), dict(message.headers)
        if authorization := self._authorization.get(origin(url)):
            sent_headers["Authorization"] = authorization
        deadline = SocketDeadline()
        extensions: dict[str, Any] = {"trace": deadline.trace}
        remaining = min(self.limits.answer, end - time.monotonic())
        address = self._policy.resolve(where.raw_host.decode("ascii").strip("[]"), where.port or 0, remaining)
        if address is not None:  # connect to the checked address; Host and certificate use the name
            sent_headers["Host"] = where.netloc.decode("ascii")
            extensions["sni_hostname"] = where.host
            where = where.copy_with(host=address)
        stack.callback(deadline.cancel)
        deadline.start(min(self.limits.answer, end - time.monotonic()))
        try:
            request = self._client.build_request(
                message.method, where, content=message.content, headers=sent_headers, extensions=extensions
            )
            response = stack.enter_context(contextlib.closing(self._client.send(request, stream=True)))
        except Exception:
            if deadline.expired:
                late = f"{host_of(url)} did not answer in {self.limits.answer:.0f} s. Try again later."
                raise Unreachable(late) from None
            raise
        deadline.cancel()
        if end < math.inf:
            deadline.start(end - time.monotonic())
        return Reply(response=response, url=url, limits=self.limits, deadline=deadline)


def _keep_location(response: httpx2.Response) -> None:
    """Take the header from httpx2, which judges the address before anybody follows it, and some releases refuse it as
    an error of the protocol."""
    response.extensions[LOCATION] = response.headers.pop(LOCATION, None)


def _tls(uses_environment: bool) -> ssl.SSLContext:
    """Settings of TLS with the certificates that this machine trusts, shared by clients: to read them takes 30 ms."""
    variables = [os.environ.get(name) for name in ("SSL_CERT_FILE", "SSL_CERT_DIR") if uses_environment]
    return _tls_of(uses_environment, tuple(variables), time.monotonic() // TRUST_S)


@functools.lru_cache(maxsize=4)
def _tls_of(uses_environment: bool, variables: tuple[str | None, ...], period: float) -> ssl.SSLContext:
    import httpx2

    try:
        return httpx2.create_ssl_context(trust_env=uses_environment)
    except OSError as error:  # also ssl.SSLError, for a file that holds no certificate
        file = next(filter(None, variables), "this machine")
        raise FetchError(
            f"The certificates of SSL_CERT_FILE cannot be read from {file} ({error.strerror}). Correct the variable."
        ) from None


def origin(url: str) -> str:
    """Scheme, host and port: credentials belong to these."""
    parts = urllib.parse.urlsplit(url)
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme, 0)
    return f"{parts.scheme}://{parts.hostname}:{port}"


def reason(error: Exception) -> str:
    """The message of an error, or its type if the message contains a URL."""
    message = re.sub(r"^\[[^]]*\] ?", "", str(error).strip()).rstrip(".")
    return message if message and "://" not in message else type(error).__name__


class SocketDeadline:
    """Shuts down the sockets of a request at the deadline, which ends the wait in the HTTP library."""

    def __init__(self) -> None:
        self.expired = False
        self._sockets: list[socket.socket] = []
        self._timer: threading.Timer | None = None

    def trace(self, event: str, info: dict[str, Any]) -> None:
        """Called by the HTTP library at each step. A new connection has its socket in ``info``."""
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            sock = info["return_value"].get_extra_info("socket")
            if sock is not None:
                self._sockets.append(sock)
                if self.expired:
                    self._expire()

    def start(self, seconds: float) -> None:
        """Set the deadline, in seconds from now."""
        self.cancel()
        self._timer = threading.Timer(max(seconds, 0), self._expire)
        self._timer.daemon = True
        self._timer.start()

    def cancel(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _expire(self) -> None:
        self.expired = True
        for sock in self._sockets:
            with contextlib.suppress(OSError):  # closed meanwhile
                socket.socket.shutdown(sock, socket.SHUT_RDWR)  # also of TLS, without its closing message


# --- headers, which are untrusted: one that cannot be parsed is ignored ------------------------------------------

_MAX_PARSED_CHARACTERS = 500
"""Characters of a header that are parsed. The parser takes quadratic time."""


def content_type(headers: Mapping[str, str]) -> tuple[str, str | None]:
    """The media type in lower case (empty without one), and the name of the encoding or None."""
    message = _parsed(headers, "content-type")
    charset = message.get_param("charset")
    media_type = message.get_content_type() if message["content-type"] else ""
    return media_type, charset.strip() if isinstance(charset, str) else None


def attachment_name(headers: Mapping[str, str]) -> str:
    """The name under which a browser would save the body; empty without one."""
    try:
        return _parsed(headers, "content-disposition").get_filename("")
    except ValueError:  # of the codec that it names
        return ""


def _parsed(headers: Mapping[str, str], name: str) -> Message:
    message = Message()
    message[name] = headers.get(name, "")[:_MAX_PARSED_CHARACTERS]
    return message


def http_date(header: str | None) -> str | None:
    """The time in a header such as Last-Modified: ISO 8601, UTC; None without a valid one."""
    try:
        moment = parsedate_to_datetime(header or "").astimezone(timezone.utc)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


# --- logs: addresses can be signed, so the HTTP library's records of our requests are dropped ----------------------

_unlogged: ContextVar[bool] = ContextVar("anvil_unlogged", default=False)


@contextlib.contextmanager
def unlogged() -> Iterator[None]:
    """Drop the HTTP library's log records within this context."""
    token = _unlogged.set(True)
    try:
        yield
    finally:
        _unlogged.reset(token)


def _is_logged(record: logging.LogRecord) -> bool:
    return not _unlogged.get()


def install_log_filter() -> None:
    """Add the filter to the library's loggers. A second call does nothing."""
    for version in ("", "2"):  # our library, and that of OpenAI's client
        for name in ("connection", "http11", "proxy", "socks"):
            logging.getLogger(f"httpcore{version}.{name}").addFilter(_is_logged)
        logging.getLogger(f"httpx{version}").addFilter(_is_logged)
    logging.getLogger("openai._base_client").addFilter(_is_logged)
